// SPDX-License-Identifier: Apache-2.0
// What NVML says of this host's GPUs while a job runs, read again and again: why their clocks are low,
// clocks, heat, power, memory errors, Xids, and what their links counted. Names of counters, all of
// DeviceKind::kGpu by PCI address:
//
//   throttle                                   why the clock is low: bits of nvmlClocksThrottleReasons
//   sm_clock_mhz temperature_c power_mw
//   ecc_uncorrected pcie_replay                errors since ever
//   nvlink_tx_bytes nvlink_rx_bytes            over all links: 1.3 ms each
//   nvlink_replay nvlink_recovery nvlink_crc   errors over all links: 1.1 ms a link
//   xid_N                                      how often the driver reported Xid N since the object was made
//
// Only asks and listens. One thread. What a GPU does not support has no counter.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "links/counters.h"
#include "links/samples/pace.h"

namespace lockstep::links::nvidia {

// Whether NVML can have anything to say here; loads nothing.
bool may_have_gpus();

class WatchedGpus {
 public:
  WatchedGpus();  // loads NVML (LOCKSTEP_NVML); without it there is nothing to watch
  ~WatchedGpus();
  WatchedGpus(const WatchedGpus&) = delete;
  WatchedGpus& operator=(const WatchedGpus&) = delete;

  // At most 64 GPUs with eleven counters each; Xids add some at the end, up to 1,024 counters in all.
  size_t size() const;
  const CounterKey& key(size_t i) const;
  // How often it is due; `i` is below size().
  Pace pace(size_t i) const;
  // Calls visit(number of a counter, its value, nothing where it could not be read) for all that are due.
  using Visit = std::function<void(size_t, std::optional<uint64_t>)>;
  void read(Pace due, const Visit& visit);

 private:
  class Watch;
  std::unique_ptr<Watch> watch_;
};

}  // namespace lockstep::links::nvidia
