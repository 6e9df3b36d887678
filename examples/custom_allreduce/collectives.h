// SPDX-License-Identifier: Apache-2.0
// Collectives of a rank on the arena's memory. Each tells Lockstep what it does: this is the part to copy.
// Sums are in rank order, so all ranks get the same bits.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "arena.h"
#include "lockstep/lockstep.h"

namespace custom_allreduce {

class Rank {
 public:
  // In the rank's own process: declares the group of all ranks.
  Rank(const Arena& arena, int rank);

  int rank() const { return rank_; }
  int ranks() const { return arena_.ranks(); }
  // This rank's contribution, to be filled before each operation.
  float* input() { return arena_.input(rank_); }
  // Makes this rank late in every operation.
  void set_delay_us(int64_t us) { delay_us_ = us; }

  // `count` elements of input summed over all ranks, into out. One-shot: each rank reads everything of
  // everybody; two-shot: each rank sums its share and collects the others'.
  void all_reduce_one_shot(float* out, size_t count);
  void all_reduce_two_shot(float* out, size_t count);
  // `count` elements out, of count x ranks in.
  void reduce_scatter(float* out, size_t count);
  // `count` elements in, count x ranks out.
  void all_gather(float* out, size_t count);

 private:
  class Annotated;
  // Returns when all ranks have come; what they wrote before is visible.
  void barrier();
  void sum(float* out, size_t first, size_t count);

  const Arena& arena_;
  int rank_;
  uint32_t epoch_ = 0;
  int64_t delay_us_ = 0;
  lockstep_group group_;
};

}  // namespace custom_allreduce
