// SPDX-License-Identifier: Apache-2.0
// Which call of the profiler's (KernelLaunch, GroupApi) a call of the driver lies in: on the same thread,
// begun later and returned earlier. Threads are told apart by the low half of pthread_self(), which is what
// the driver's tools give.
#pragma once
#include <cstdint>
#include <vector>

#include "model/event_kind.h"
#include "model/trace.h"

namespace lockstep::job::assemble {

class EnclosingCalls {
 public:
  // The calls of one kind. Those that have no end, whose thread is not known, or that overlap others of their
  // thread (two threads may share the low half) enclose nothing.
  EnclosingCalls(const model::Trace& trace, model::EventKind kind);

  // Row of calls; kNoRow none. Quick where launches come nearly in the order of time.
  uint32_t of_launch(uint32_t launch);

 private:
  struct Call {
    uint32_t caller, row;
    int64_t start_ns, end_ns;  // end 0: encloses nothing
  };
  void void_overlaps();
  // Whether the place is that of the last call that began by then.
  bool is_place(size_t at, uint32_t caller, int64_t ns) const;

  const model::LaunchTable& launches_;
  std::vector<Call> calls_;  // by caller and start
  size_t at_ = 0;            // where the last one was found
};

}  // namespace lockstep::job::assemble
