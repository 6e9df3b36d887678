// SPDX-License-Identifier: Apache-2.0
// Flags in shared memory by which ranks meet: each rank has one flag per peer, which only that peer raises,
// as kernels on peer-mapped GPU memory do it. Waiting spins, then yields, then sleeps in the kernel.
#pragma once
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace custom_allreduce {

class alignas(64) Flag {
 public:
  void raise(uint32_t epoch) {
    epoch_.store(epoch, std::memory_order_seq_cst);
    if (sleeping_.load(std::memory_order_seq_cst) != 0) futex(FUTEX_WAKE, 1, nullptr);
  }
  // Returns when the flag has reached the epoch; what its raiser wrote before is visible then.
  void wait(uint32_t epoch) {
    for (int spin = 0; spin < kSpins; ++spin) {
      if (reached(epoch)) return;
    }
    for (int turn = 0; turn < kYields; ++turn) {
      if (reached(epoch)) return;
      sched_yield();
    }
    sleeping_.store(1, std::memory_order_seq_cst);
    for (uint32_t seen; (seen = epoch_.load(std::memory_order_seq_cst)), !is_past(seen, epoch);) {
      const timespec limit{0, 100'000'000};
      futex(FUTEX_WAIT, seen, &limit);
    }
    sleeping_.store(0, std::memory_order_seq_cst);
  }

 private:
  static constexpr int kSpins = 200, kYields = 50;

  static bool is_past(uint32_t seen, uint32_t epoch) { return static_cast<int32_t>(seen - epoch) >= 0; }
  bool reached(uint32_t epoch) const { return is_past(epoch_.load(std::memory_order_acquire), epoch); }
  void futex(int operation, uint32_t value, const timespec* limit) {
    syscall(SYS_futex, reinterpret_cast<uint32_t*>(&epoch_), operation, value, limit, nullptr, 0);
  }

  std::atomic<uint32_t> epoch_{0};
  std::atomic<uint32_t> sleeping_{0};
};
static_assert(sizeof(Flag) == 64 && std::atomic<uint32_t>::is_always_lock_free);

}  // namespace custom_allreduce
