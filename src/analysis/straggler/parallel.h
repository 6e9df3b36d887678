// SPDX-License-Identifier: Apache-2.0
// Independent pieces of work on all cores of the machine.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <system_error>
#include <thread>
#include <vector>

namespace lockstep::analysis::straggler {

inline size_t parallel_threads() { return std::max(1u, std::thread::hardware_concurrency()); }

// Calls work(i) for every i below `count`, on several threads at once, in no order; on as many as the system starts.
// Returns when all are done.
template <class Work>
void for_each_parallel(size_t count, const Work& work) {
  std::atomic<size_t> next{0};
  const auto run = [&] {
    for (size_t i; (i = next.fetch_add(1)) < count;) work(i);
  };
  const size_t threads = std::min(parallel_threads(), count);
  std::vector<std::jthread> others;
  others.reserve(threads);
  try {
    while (others.size() + 1 < threads) others.emplace_back(run);
  } catch (const std::system_error&) {
    // No more threads to be had: those that run do it all.
  }
  run();
}

}  // namespace lockstep::analysis::straggler
