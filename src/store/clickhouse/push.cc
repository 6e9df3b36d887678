// SPDX-License-Identifier: Apache-2.0
// The order is what makes it safe to end at any moment: tables, marks, then each batch and its mark, the run
// itself last, and at the end the counts.
#include <cstdlib>

#include "store/clickhouse/batches.h"
#include "store/clickhouse/make_tables.h"
#include "store/clickhouse/run_rows.h"
#include "store/fleet.h"

namespace lockstep::store {
using namespace clickhouse;

std::string key_of_environment() {
  const char* const key = std::getenv("LOCKSTEP_PUSH_KEY");
  return key == nullptr ? "" : key;
}

Result<void> check_target(const FleetTarget& target) {
  LOCKSTEP_ASSIGN(const Address address, parse_address(target.url));
  // It becomes a line of the HTTP head: a line's end in it would begin another header.
  if (has_control(target.key)) return usage_error("the key has control characters");
  // Loaded to see that it is there: a push begins with a long reading, after which it should not fail for
  // this.
  auto library = curl::load();
  if (!library) return library.error();
  return {};
}

namespace {

Result<PushResult> go_through(const FleetRun& run, const FleetTarget& target, Batches::Mode mode,
                              const std::function<void(double fraction)>& progress) {
  const bool sends = mode == Batches::Mode::kSend;
  LOCKSTEP_TRY(check_target(target));
  LOCKSTEP_ASSIGN(Address address, parse_address(target.url));
  if (!target.key.empty()) address.key = target.key;
  if (run.job == nullptr || run.job->processes.empty())
    return Error{ErrorCode::kInvalidInput, "the run has no process", run.name};
  LOCKSTEP_ASSIGN(Client client, Client::open(address, {.patience = target.patience,
                                                        .settings = sends ? "" : "readonly=1",
                                                        .compresses = sends}));
  // Not the tables of running jobs: those are the followers'.
  const auto tables = sends ? make_tables : check_tables;
  LOCKSTEP_TRY(tables(client, address.database, TableId::kProcesses, TableId::kBatches));
  const RunRows rows(run);
  Batches batches(client, address.database, rows.run(), rows.day(), {}, mode);
  LOCKSTEP_TRY(batches.read_marks());
  LOCKSTEP_TRY(rows.send(batches, progress));
  PushResult result;
  result.run = rows.run();
  result.database = address.database;
  // Marks are not compared: they are of several pushes and hold times.
  for (size_t i = 0; i < number(TableId::kBatches); ++i) {
    LOCKSTEP_ASSIGN(std::string difference, batches.compare(static_cast<TableId>(i)));
    if (!difference.empty()) result.differences.push_back(std::move(difference));
  }
  result.rows = batches.rows();
  result.sent_rows = batches.sent_rows();
  result.batches = batches.batches();
  result.sent_batches = batches.sent_batches();
  result.sent_bytes = batches.sent_bytes();
  return result;
}

}  // namespace

Result<PushResult> push(const FleetRun& run, const FleetTarget& target,
                        const std::function<void(double fraction)>& progress) {
  return go_through(run, target, Batches::Mode::kSend, progress);
}

Result<PushResult> check_pushed(const FleetRun& run, const FleetTarget& target,
                                const std::function<void(double fraction)>& progress) {
  return go_through(run, target, Batches::Mode::kCompare, progress);
}

}  // namespace lockstep::store
