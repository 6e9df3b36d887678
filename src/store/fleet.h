// SPDX-License-Identifier: Apache-2.0
// Where runs of many jobs are kept together: an existing ClickHouse, which others run. docs/fleet.md has its
// tables.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/job.h"
#include "model/rollup.h"

namespace lockstep::store {

// analysis::Finding, as it is stored.
struct FleetFinding {
  std::string id, finding_class, severity;
  bool is_verdict = false;
  std::string statement;
  std::vector<int32_t> ranks;
  std::vector<std::string> hosts;
  std::optional<uint32_t> comm;  // of the job's comms
  std::string comm_name, func;
  std::optional<uint64_t> op_index;
  uint64_t comms_id = 0;
  // ns since the Unix epoch; 0 unknown.
  int64_t since_ns = 0;
  // In `effect_unit`, with its bounds; all 0 with an empty unit: no effect is known.
  double effect = 0, effect_low = 0, effect_high = 0;
  std::string effect_unit;
  std::vector<std::string> evidence;
  std::string advice, needed_evidence;
};

// A finished run. The job is matched and its clocks are aligned; it outlives the call.
struct FleetRun {
  const model::Job* job = nullptr;
  std::string name;  // as the user named it
  std::string lockstep_version;
  std::vector<FleetFinding> findings;
  std::vector<model::Rollup> rollups;  // of the job, each key once
};

struct FleetTarget {
  std::string url;                             // http[s]://[USER[:KEY]@]HOST[:PORT][/DATABASE]
  std::string key;                             // instead of one in the URL; empty: none
  std::chrono::milliseconds patience{60'000};  // with a store that does not answer
};

struct PushResult {
  uint64_t run = 0;      // its number in the store, the same for every push of it
  std::string database;  // where
  uint64_t rows = 0, sent_rows = 0;
  uint64_t batches = 0, sent_batches = 0;
  uint64_t sent_bytes = 0;
  // One line for each table that does not hold what was confirmed.
  std::vector<std::string> differences;
};

// LOCKSTEP_PUSH_KEY; empty: not set.
std::string key_of_environment();

// Whether it can be a target at all, which the end of a long reading should not have to find out.
Result<void> check_target(const FleetTarget& target);

// Sends what is not there yet, and compares. Whatever ends it, also kill -9: the same call goes on from
// there, without a row lost or counted twice. Errors: kUsage, the URL; kIo, the store did not answer for as
// long as `patience`; kPermission and kUnsupported, it does not want to; kInvalidInput, the job has no
// process.
Result<PushResult> push(const FleetRun& run, const FleetTarget& target,
                        const std::function<void(double fraction)>& progress);

// Only compares: rows and sums of each table, and the digest of each batch that the store confirmed.
Result<PushResult> check_pushed(const FleetRun& run, const FleetTarget& target,
                                const std::function<void(double fraction)>& progress);

}  // namespace lockstep::store
