// SPDX-License-Identifier: Apache-2.0
// The capture library's own threads, and how they sleep.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace lockstep::capture {

// Runs on a detached thread that blocks all signals. 0, or why there is none. `stack_bytes`: 0 for the usual.
int start_thread(void* (*run)(void*), void* argument, size_t stack_bytes = 256 * 1024);

// One thread sleeps on it, any thread wakes it. A call between `calls` and `nap` is not missed.
class Bell {
 public:
  uint32_t calls() const { return calls_.load(std::memory_order_acquire); }
  void ring();
  // Until there are more calls than `seen`, or `ns` are over.
  void nap(uint32_t seen, int64_t ns);

 private:
  std::atomic<uint32_t> calls_{0};
};

}  // namespace lockstep::capture
