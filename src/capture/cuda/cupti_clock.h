// SPDX-License-Identifier: Apache-2.0
// From CUPTI's clock to the host clock of our file. CUPTI gives ns of CLOCK_REALTIME, or of whatever callback
// a profiler of the process has registered; ours registers none, so that nobody's times change. Both clocks
// are read together whenever records arrive, and a time lies on the line between the two readings around it:
// a clock that is slewed or stepped by the administrator is wrong only between two readings. Any thread; a
// lock guards the readings, off the event path.
#pragma once
#include <pthread.h>

#include <cstdint>

#include "capture/cuda/cupti_abi.h"

namespace lockstep::capture::cuda {

class CuptiClock {
 public:
  // `standard`: CUPTI's clock where no profiler has registered another.
  explicit constexpr CuptiClock(cupti::Timestamp standard) : timestamp_(standard) {}
  // Host ticks a ns, nearly: for times of a clock that has been read once so far.
  void set_rate(double ticks_per_ns) { rate_ = ticks_per_ns; }
  // The time that CUPTI shows.
  uint64_t now();
  // Reads both clocks; kept if the reading before is not too near.
  void read();
  // From here on CUPTI shows this clock; what was recorded before stays convertible.
  void change(cupti::Timestamp timestamp);
  // Host ticks of a time; 0 when no clock that was in use can have shown it lately.
  uint64_t ticks(uint64_t ns);

 private:
  struct Reading {
    uint64_t ns;
    uint64_t ticks;
    uint32_t clock;
  };
  // From one second, where buffers come without pause, to half a minute; an older time takes the oldest line.
  static constexpr uint32_t kReadings = 64;

  const Reading& reading(uint32_t back) const { return readings_[(count_ - 1 - back) % kReadings]; }
  uint64_t on_line(const Reading& from, const Reading* other, uint64_t ns) const;

  pthread_mutex_t lock_ = PTHREAD_MUTEX_INITIALIZER;
  cupti::Timestamp timestamp_;
  Reading readings_[kReadings] = {};
  uint32_t count_ = 0;
  uint32_t clock_ = 0;
  double rate_ = 1;
};

}  // namespace lockstep::capture::cuda
