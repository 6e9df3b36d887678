// SPDX-License-Identifier: Apache-2.0
#include "job.h"

#include <chrono>
#include <vector>

namespace custom_allreduce {
namespace {

struct Collective {
  const char* name;
  void (Rank::*run)(float* out, size_t count);
  bool in_is_whole, out_is_whole;  // the message: all elements, or one rank's share
  bool sums;
};
constexpr Collective kCollectives[] = {
    {"one-shot all-reduce", &Rank::all_reduce_one_shot, true, true, true},
    {"two-shot all-reduce", &Rank::all_reduce_two_shot, true, true, true},
    {"reduce-scatter", &Rank::reduce_scatter, true, false, true},
    {"all-gather", &Rank::all_gather, false, true, false},
};

bool is_gathered(const float* out, size_t share, int ranks, uint64_t n) {
  for (int peer = 0; peer < ranks; ++peer) {
    for (size_t i = 0; i < share; ++i) {
      if (out[share * static_cast<size_t>(peer) + i] != contribution(peer, n, i)) return false;
    }
  }
  return true;
}

// One operation on messages of `count` elements; true if its result is right.
bool run_one(Rank& rank, const Collective& collective, size_t count, uint64_t n, std::vector<float>& out) {
  const auto ranks = static_cast<size_t>(rank.ranks());
  const size_t share = count / ranks;
  const size_t in = collective.in_is_whole ? share * ranks : share;
  for (size_t i = 0; i < in; ++i) rank.input()[i] = contribution(rank.rank(), n, i);
  const bool whole = collective.in_is_whole && collective.out_is_whole;
  (rank.*collective.run)(out.data(), whole ? in : share);
  if (!collective.sums) return is_gathered(out.data(), share, rank.ranks(), n);
  const size_t first = whole ? 0 : share * static_cast<size_t>(rank.rank());
  return is_sum(out.data(), first, whole ? in : share, rank.ranks(), n);
}

}  // namespace

float contribution(int rank, uint64_t n, size_t i) {
  return static_cast<float>(rank + 1) * static_cast<float>((n + i) % 17);
}

bool is_sum(const float* out, size_t first, size_t count, int ranks, uint64_t n) {
  const int factor = ranks * (ranks + 1) / 2;
  for (size_t i = 0; i < count; ++i) {
    if (out[i] != static_cast<float>(factor) * contribution(0, n, first + i)) return false;
  }
  return true;
}

Outcome run_rank(Rank& rank, const Options& options) {
  if (rank.rank() == options.slow_rank) rank.set_delay_us(options.slow_us);
  Outcome outcome;
  std::vector<float> out(options.max_bytes / sizeof(float));
  const auto begin = std::chrono::steady_clock::now();
  for (int step = 0; step < options.steps; ++step) {
    lockstep_step(step);
    for (size_t bytes = options.min_bytes; bytes <= options.max_bytes; bytes *= 4) {
      for (int repeat = 0; repeat < options.iterations * static_cast<int>(std::size(kCollectives));
           ++repeat) {
        const Collective& collective = kCollectives[static_cast<size_t>(repeat) % std::size(kCollectives)];
        if (!run_one(rank, collective, bytes / sizeof(float), outcome.operations, out) &&
            outcome.wrong.empty()) {
          outcome.wrong = std::string(collective.name) + " of " + std::to_string(bytes) +
                          " bytes, operation " + std::to_string(outcome.operations);
        }
        ++outcome.operations;
      }
    }
  }
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return outcome;
}

}  // namespace custom_allreduce
