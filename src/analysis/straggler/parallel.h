// SPDX-License-Identifier: Apache-2.0
// Independent pieces of work on all cores of the machine.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

namespace lockstep::analysis::straggler {

inline size_t parallel_threads() { return std::max(1u, std::thread::hardware_concurrency()); }

// Calls work(i) for every i below `count`, on several threads at once, in no order. Returns when all are done.
template <class Work>
void for_each_parallel(size_t count, const Work& work) {
  std::atomic<size_t> next{0};
  const auto run = [&] {
    for (size_t i; (i = next.fetch_add(1)) < count;) work(i);
  };
  const size_t threads = std::min(parallel_threads(), count);
  std::vector<std::thread> others;
  for (size_t i = 1; i < threads; ++i) others.emplace_back(run);
  run();
  for (std::thread& thread : others) thread.join();
}

}  // namespace lockstep::analysis::straggler
