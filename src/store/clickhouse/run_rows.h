// SPDX-License-Identifier: Apache-2.0
// What of a run goes into which table. The same run gives the same rows in the same order, whatever it was
// read from and whenever: numbers of runs, processes and communicators come from what they are.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "store/clickhouse/batches.h"
#include "store/fleet.h"

namespace lockstep::store::clickhouse {

class RunRows {
 public:
  // The run outlives it and has a process.
  explicit RunRows(const FleetRun& run);
  uint64_t run() const { return run_number_; }
  uint16_t day() const { return day_; }
  // All rows, table by table. `progress` gets the part that is made.
  Result<void> send(Batches& batches, const std::function<void(double)>& progress) const;

  static constexpr size_t kMostNameBytes = 256;  // of a text that many rows repeat

 private:
  Result<void> send_processes(Batches& batches) const;
  Result<void> send_comms(Batches& batches) const;
  Result<void> send_ops(Batches& batches, const std::function<void(double)>& progress) const;
  Result<void> send_ops_of(uint32_t process, Batches& batches) const;
  Result<void> send_rollups(Batches& batches) const;
  Result<void> send_findings(Batches& batches) const;
  Result<void> send_losses(Batches& batches) const;
  Result<void> send_run(Batches& batches) const;

  const FleetRun& run_;
  const model::Job& job_;
  std::vector<uint64_t> processes_, comms_;  // their numbers
  // Of the run that the earliest process stands for, so that files that come later do not change it.
  uint64_t run_number_ = 0;
  // The first and last record of any process, ns since the Unix epoch, each on its host's clock; 0 unknown.
  int64_t started_ns_ = 0, ended_ns_ = 0;
  // The partition of all rows but operations and rollups, days since the Unix epoch.
  uint16_t day_ = 0;
};

}  // namespace lockstep::store::clickhouse
