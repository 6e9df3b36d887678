// SPDX-License-Identifier: Apache-2.0
#include "collectives.h"

#include <time.h>

#include <algorithm>
#include <numeric>

namespace custom_allreduce {
namespace {

uint64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000 + static_cast<uint64_t>(now.tv_nsec);
}

lockstep_op_info describe(lockstep_group group, const char* collective, const char* algorithm, size_t in,
                          size_t out) {
  lockstep_op_info info = LOCKSTEP_OP_INFO_INIT;
  info.group = group;
  info.collective = collective;
  info.algorithm = algorithm;
  info.dtype = "Float";
  info.in_count = in;
  info.out_count = out;
  return info;
}

}  // namespace

// What an operation of a GPU would be: the call, then the kernel. There is no GPU here, so the kernel is the
// rest of the function, timed with this host's clock.
class Rank::Annotated {
 public:
  Annotated(const Rank& rank, const char* collective, const char* algorithm, size_t in, size_t out)
      : operation_(describe(start(rank), collective, algorithm, in, out)), kernel_start_(monotonic_ns()) {}
  ~Annotated() { operation_.set_gpu_times(LOCKSTEP_CLOCK_MONOTONIC, kernel_start_, monotonic_ns()); }
  Annotated(const Annotated&) = delete;
  Annotated& operator=(const Annotated&) = delete;

 private:
  // A late rank is late in calling.
  static lockstep_group start(const Rank& rank) {
    const timespec delay{rank.delay_us_ / 1000000, rank.delay_us_ % 1000000 * 1000};
    if (rank.delay_us_ > 0) nanosleep(&delay, nullptr);
    return rank.group_;
  }
  lockstep::Operation operation_;
  uint64_t kernel_start_;
};

Rank::Rank(const Arena& arena, int rank) : arena_(arena), rank_(rank) {
  std::vector<int32_t> members(static_cast<size_t>(arena.ranks()));
  std::iota(members.begin(), members.end(), 0);
  // "<description>:<name>", so that tools can give PyTorch's Comms Id to each operation.
  group_ = lockstep_declare_group("custom_allreduce:0", members.data(), arena.ranks(), rank);
}

void Rank::barrier() {
  ++epoch_;
  for (int peer = 0; peer < ranks(); ++peer) arena_.flag(peer, rank_).raise(epoch_);
  for (int peer = 0; peer < ranks(); ++peer) arena_.flag(rank_, peer).wait(epoch_);
}

void Rank::sum(float* out, size_t first, size_t count) {
  std::copy_n(arena_.input(0) + first, count, out);
  for (int peer = 1; peer < ranks(); ++peer) {
    const float* in = arena_.input(peer) + first;
    for (size_t i = 0; i < count; ++i) out[i] += in[i];
  }
}

void Rank::all_reduce_one_shot(float* out, size_t count) {
  const Annotated operation(*this, "allreduce", "one-shot", count, count);
  barrier();
  sum(out, 0, count);
  barrier();  // the inputs may be overwritten from here
}

void Rank::all_reduce_two_shot(float* out, size_t count) {
  const Annotated operation(*this, "allreduce", "two-shot", count, count);
  const size_t share = (count + static_cast<size_t>(ranks()) - 1) / static_cast<size_t>(ranks());
  auto part = [&](int peer) {
    const size_t first = std::min(count, share * static_cast<size_t>(peer));
    return std::pair(first, std::min(share, count - first));
  };
  const auto [first, own] = part(rank_);
  barrier();
  sum(arena_.scratch(rank_), first, own);
  barrier();
  for (int peer = 0; peer < ranks(); ++peer) {
    const auto [at, length] = part(peer);
    std::copy_n(arena_.scratch(peer), length, out + at);
  }
  barrier();
}

void Rank::reduce_scatter(float* out, size_t count) {
  const Annotated operation(*this, "reduce_scatter", nullptr, count * static_cast<size_t>(ranks()), count);
  barrier();
  sum(out, count * static_cast<size_t>(rank_), count);
  barrier();
}

void Rank::all_gather(float* out, size_t count) {
  const Annotated operation(*this, "all_gather", nullptr, count, count * static_cast<size_t>(ranks()));
  barrier();
  for (int peer = 0; peer < ranks(); ++peer)
    std::copy_n(arena_.input(peer), count, out + count * static_cast<size_t>(peer));
  barrier();
}

}  // namespace custom_allreduce
