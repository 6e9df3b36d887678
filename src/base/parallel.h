// SPDX-License-Identifier: Apache-2.0
// Independent pieces of work on all cores of the machine.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace lockstep {

inline size_t parallel_threads() { return std::max(1u, std::thread::hardware_concurrency()); }

// Calls work(i) for every i below `count`, on so many threads at once, or on those that the system starts;
// the caller's is one of them. They are begun in order. Returns when all are done. What a call throws ends it
// all, and is thrown on.
template <class Work>
void for_each_parallel(size_t count, size_t threads, const Work& work) {
  std::atomic<size_t> next{0};
  std::mutex lock;
  std::exception_ptr thrown;
  const auto run = [&] {
    try {
      for (size_t i; (i = next.fetch_add(1)) < count;) work(i);
    } catch (...) {
      next = count;
      const std::lock_guard guard(lock);
      if (!thrown) thrown = std::current_exception();
    }
  };
  const size_t most = std::min(threads, count);
  {
    std::vector<std::jthread> others;
    others.reserve(most);
    try {
      while (others.size() + 1 < most) others.emplace_back(run);
    } catch (const std::system_error&) {
      // No more threads to be had: those that run do it all.
    }
    run();
  }
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace lockstep
