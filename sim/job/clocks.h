// SPDX-License-Identifier: Apache-2.0
// The clocks of a job. True time is what the host of rank 0 shows: ns since the job began. Another host's
// clock has an offset and a drift against it, a GPU's clock has its own against true time. Everything a
// process file holds is made from true times through these, and truth.json has the same numbers. Values; any
// thread.
#pragma once
#include <array>
#include <cstdint>

#include "format/file_layout.h"
#include "job/random.h"

namespace lockstep::sim::job {

inline constexpr int64_t kEpochNs = 1'760'000'000'000'000'000;  // Unix time at true time 0

// value(t) = offset + t * (1 + drift)
struct LinearClock {
  int64_t offset_ns = 0;
  int64_t drift_ppb = 0;
  int64_t at(int64_t true_ns) const {
    return true_ns + offset_ns +
           static_cast<int64_t>(static_cast<__int128>(true_ns) * drift_ppb / 1'000'000'000);
  }
};

class HostClock {
 public:
  // `begins_ns`: at true time 0, ns since kEpochNs on the first host.
  HostClock(int host, const Random& random, int64_t begins_ns = 0);

  // Time since kEpochNs as the reader of process files will place it.
  const LinearClock& wall() const { return wall_; }
  uint64_t ticks(int64_t true_ns) const { return ticks_at(monotonic(true_ns)); }
  int64_t monotonic(int64_t true_ns) const { return wall_.at(true_ns) + uptime_ns_; }
  uint64_t tick_hz() const { return tick_khz_ * 1000; }
  // As the capture library reads all clocks: `n` tells the readings of a process apart.
  format::ClockAnchor anchor(int64_t true_ns, uint64_t process, uint64_t n, const Random& random) const;
  const std::array<unsigned char, 16>& boot_id() const { return boot_id_; }

 private:
  uint64_t ticks_at(int64_t monotonic_ns) const {
    return tick_base_ + static_cast<uint64_t>(static_cast<__int128>(monotonic_ns) * tick_khz_ / 1'000'000);
  }
  LinearClock wall_;
  int64_t uptime_ns_;
  uint64_t tick_base_, tick_khz_;
  std::array<unsigned char, 16> boot_id_;
};

// A GPU's nanosecond counter, near its host's Unix time.
class GpuClock {
 public:
  GpuClock(int rank, const HostClock& host, const Random& random);
  uint64_t at(int64_t true_ns) const {
    return static_cast<uint64_t>(kEpochNs + clock_.at(true_ns)) / kStepNs * kStepNs;
  }
  const LinearClock& clock() const { return clock_; }

 private:
  static constexpr uint64_t kStepNs = 32;
  LinearClock clock_;
};

}  // namespace lockstep::sim::job
