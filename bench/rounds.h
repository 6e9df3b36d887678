// SPDX-License-Identifier: Apache-2.0
// Runs something several times and prints one line about it: median, worst and best rate, and the peak of
// memory so far.
#pragma once
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <vector>

#include "base/result.h"

namespace lockstep::bench {

struct Round {
  uint64_t items = 0, bytes = 0;
};

// False if a round failed. `last`: what the last one did.
inline bool measure(const char* name, const char* unit, int rounds,
                    const std::function<Result<Round>()>& once, Round* last = nullptr) {
  std::vector<double> rates;
  Round done;
  for (int i = 0; i < rounds; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    auto round = once();
    if (!round) {
      std::fprintf(stderr, "%s: %s\n", name, round.error().message().c_str());
      return false;
    }
    done = *round;
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    rates.push_back(static_cast<double>(done.items) / seconds / 1e6);
  }
  std::sort(rates.begin(), rates.end());
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf("%-20s %6.2f M %s/s (%.2f..%.2f of %d rounds)  %.1f M %s, ", name, rates[rates.size() / 2],
              unit, rates.front(), rates.back(), rounds, static_cast<double>(done.items) / 1e6, unit);
  if (done.bytes != 0)
    std::printf("%.0f bytes each, ", static_cast<double>(done.bytes) / static_cast<double>(done.items));
  std::printf("peak RSS %ld MiB\n", usage.ru_maxrss >> 10);
  if (last != nullptr) *last = done;
  return true;
}

}  // namespace lockstep::bench
