// SPDX-License-Identifier: Apache-2.0
// play(): makes the calls of a Program, one operating-system thread for each of its threads, under the
// recorded names. An ordered program is handed from thread to thread: runs of calls of the same thread are
// one batch, and a batch starts when the batch before it has ended. An unordered program runs freely between
// its barriers.
#pragma once
#include <atomic>
#include <cstdint>

#include "nccl_host/core.h"
#include "nccl_host/program.h"
#include "nccl_host/stats.h"

namespace lockstep::sim {

struct PlayOptions {
  bool recorded_pace = false;
  // With recorded_pace: CLOCK_MONOTONIC of now that is the tape's time 0. 0: the first call is made at once.
  int64_t tape_zero_ns = 0;
  // How late the job is, ns. Processes that play the tapes of one job share it: who is late delays all, as
  // the ranks of a job wait for one another.
  std::atomic<uint64_t>* late_ns = nullptr;
  uint64_t repeat = 1;      // the whole program, back to back
  bool race_inits = false;  // other threads create and destroy comms all the while
};

struct PlayResult {
  Stats stats;
  double seconds = 0;
};

PlayResult play(const Program& program, const PlayOptions& options, Core* core);

}  // namespace lockstep::sim
