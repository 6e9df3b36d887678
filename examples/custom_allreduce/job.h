// SPDX-License-Identifier: Apache-2.0
// What each rank does: steps over a sweep of message sizes, every collective at every size, every result
// checked.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "collectives.h"

namespace custom_allreduce {

struct Options {
  int ranks = 4;
  int steps = 5;
  int iterations = 3;                               // of each collective, per step and size
  size_t min_bytes = 1 << 10, max_bytes = 1 << 20;  // of a message; each size is four times the one before
  int slow_rank = -1;
  int64_t slow_us = 0;
};

// Element i of what a rank contributes to the n-th operation; all are small integers, so that every sum is
// exact.
float contribution(int rank, uint64_t n, size_t i);
// Whether out holds elements [first, first + count) of the n-th operation's sum.
bool is_sum(const float* out, size_t first, size_t count, int ranks, uint64_t n);

struct Outcome {
  uint64_t operations = 0;
  double seconds = 0;
  std::string wrong;  // the first wrong result; empty if all are right
};
Outcome run_rank(Rank& rank, const Options& options);

}  // namespace custom_allreduce
