// SPDX-License-Identifier: Apache-2.0
// Which communication kernels of one process ran which operation, while both are recorded in two files:
// NCCL's launch of an operation (the NCCL file), the driver's call inside it on the same thread, and the
// kernel that bears the call's number (the CUDA file). Only operations that were launched alone are joined:
// one kernel of several gives no time to any. Bounded: the newest kMostLaunches of a thread, kMostCalls and
// kMostKernels; what is overtaken stays unjoined. Ticks of the host clock that both files share. One thread.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "readers/native/tail/live_tally.h"

namespace lockstep::readers::native {

class LaunchJoin {
 public:
  static constexpr size_t kMostThreads = 64, kMostLaunches = 8192, kMostCalls = 4096, kMostKernels = 4096;
  static constexpr uint32_t kPatience = 5;
  // An operation, in words that outlive its file's tables.
  struct Op {
    LiveTally::Operation op;
    std::string func;
  };
  // Who launched. CUPTI's records give the low half of pthread_self() or the kernel's tid, so a launch is
  // entered under both.
  struct Thread {
    uint32_t number = 0;
    bool is_tid = false;  // else the low half of pthread_self()
    auto operator<=>(const Thread&) const = default;
  };
  // A communication kernel that the GPU has finished, and how long it ran.
  struct Kernel {
    std::string func;
    int64_t ns = 0;
  };
  // An operation, and how long its one kernel ran.
  struct Timed {
    Op op;
    int64_t ns = 0;
  };

  // Launches are kept from when kernels are expected.
  void expect_kernels() { expected_ = true; }
  bool expected() const { return expected_; }

  // An operation's launch that is over, by ticks. It has to come before the call inside it; a kernel may come
  // before both.
  void add_launch(const Thread& thread, uint64_t begin, uint64_t end, const Op& op);
  void add_call(const Thread& thread, uint64_t begin, uint32_t correlation);
  void add_kernel(uint32_t correlation, Kernel kernel);
  // Operations whose kernels are known by now.
  std::vector<Timed> take_timed();
  // Kernels whose call has not been reported the last kPatience times that this was asked for.
  std::vector<Kernel> take_unjoined();

 private:
  struct Launch {
    uint64_t end = 0;
    Op op;
  };
  struct Held {
    uint32_t correlation = 0;
    Kernel kernel;
    uint32_t asked = 0;
  };

  bool expected_ = false;
  std::map<Thread, std::map<uint64_t, Launch>> launches_;  // by begin
  std::unordered_map<uint32_t, Op> ops_;                   // by number of the driver's call
  std::deque<uint32_t> ops_order_;
  std::vector<Held> held_;
  std::vector<Timed> timed_;
};

}  // namespace lockstep::readers::native
