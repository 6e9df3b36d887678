// SPDX-License-Identifier: Apache-2.0
// Pushes a job into a store in memory, which fails where it hurts. tests/e2e/push_test.cc does it with a real
// server.
#include <gtest/gtest.h>

#include <algorithm>

#include "store/clickhouse/batches.h"
#include "store/clickhouse/fake_store.h"
#include "store/clickhouse/fleet_job.h"
#include "store/clickhouse/run_rows.h"

namespace lockstep::store {
namespace {

using clickhouse::FakeStore;
using clickhouse::FleetJob;

Result<PushResult> push_to(const FakeStore& store, const FleetRun& run) {
  return push(run, {.url = store.url(), .key = {}, .patience = std::chrono::seconds(60)}, {});
}
void expect_whole(const FakeStore& store, const Result<PushResult>& pushed) {
  ASSERT_TRUE(pushed) << pushed.error().message();
  EXPECT_EQ(pushed->differences, std::vector<std::string>{});
  const std::map<std::string, size_t> kRows = {{"processes", 2}, {"comms", 1},  {"ops", 10}, {"rollups", 2},
                                               {"findings", 2},  {"losses", 1}, {"runs", 1}};
  for (const auto& [name, rows] : kRows) EXPECT_EQ(store.tables.at(name).rows.size(), rows) << name;
}

TEST(Push, StoresARunOnce) {
  FakeStore store;
  const FleetJob job;
  const auto pushed = push_to(store, job.run);
  expect_whole(store, pushed);
  EXPECT_EQ(pushed->rows, 19u);
  EXPECT_EQ(pushed->sent_rows, 19u);
  EXPECT_EQ(pushed->batches, 9u) << "two days of operations and sums, and one of each other table";
  EXPECT_EQ(store.inserts[store.inserts.size() - 2], "runs") << "a run is there when all of it is";
  EXPECT_EQ(store.inserts.back(), "batches");
  const auto again = push_to(store, job.run);
  expect_whole(store, again);
  EXPECT_EQ(again->sent_batches, 0u);
  EXPECT_EQ(again->run, pushed->run);
}

TEST(Push, StoresNamesAsTheyAre) {
  FakeStore store;
  const FleetJob job;
  expect_whole(store, push_to(store, job.run));
  for (const auto& [key, row] : store.tables["ops"].rows) EXPECT_EQ(row.at("host").bytes, FleetJob::kHost);
  EXPECT_EQ(store.tables["runs"].rows.begin()->second.at("name").bytes, "run'; --");
}

TEST(Push, StoresTimesByDay) {
  FakeStore store;
  const FleetJob job;
  expect_whole(store, push_to(store, job.run));
  std::map<uint64_t, int> days;
  for (const auto& [key, row] : store.tables["ops"].rows) {
    ++days[row.at("day").number];
    EXPECT_EQ(row.at("clock_error_ns").number, 0u) << "the reference host's own clock";
    EXPECT_EQ(row.at("gpu_after_ns").number, 10u);
  }
  EXPECT_EQ(days, (std::map<uint64_t, int>{{19'000, 8}, {19'001, 2}}));
}

TEST(Push, StoresSumsOfEachMinute) {
  FakeStore store;
  const FleetJob job;
  expect_whole(store, push_to(store, job.run));
  std::set<uint64_t> minutes;
  for (const auto& [key, row] : store.tables["rollups"].rows) {
    minutes.insert(row.at("minute").number);
    EXPECT_EQ(row.at("day").number, row.at("minute").number / 86'400);
    EXPECT_EQ(row.at("host").bytes, FleetJob::kHost);
    EXPECT_EQ(row.at("nodes").number, 1u) << "of its members, as NCCL does not say";
    EXPECT_EQ(row.at("blamed_ns").number, 1'000'000'000u);
    const int32_t bins[] = {0, 80}, counts[] = {1, 2};
    EXPECT_EQ(row.at("late_bins").bytes, std::string(reinterpret_cast<const char*>(bins), sizeof bins));
    EXPECT_EQ(row.at("late_counts").bytes, std::string(reinterpret_cast<const char*>(counts), sizeof counts));
  }
  EXPECT_EQ(minutes, (std::set<uint64_t>{19'000 * 86'400 + 420, 19'001 * 86'400 + 420}));
}

// As a store of the first schema is.
void make_old(FakeStore& store) {
  store.tables.erase("rollups");
  auto& runs = store.tables["runs"];
  runs.columns.erase(std::find(runs.columns.begin(), runs.columns.end(),
                               std::pair<std::string, std::string>("schema", "UInt32")));
  for (auto& [key, row] : runs.rows) row["schema"] = {};
  std::erase_if(store.tables["batches"].rows, [](const auto& mark) {
    const std::string& target = mark.second.at("target").bytes;
    return target == "rollups" || target == "runs";
  });
}

TEST(Push, BringsAStoreOfTheFirstSchemaUpToDate) {
  for (const bool is_answer_lost : {false, true}) {
    FakeStore store;
    const FleetJob job;
    expect_whole(store, push_to(store, job.run));
    make_old(store);
    store.lose_alter = is_answer_lost;
    const auto pushed = push_to(store, job.run);
    expect_whole(store, pushed);
    EXPECT_EQ(pushed->sent_batches, 3u)
        << "what the first schema did not have: two days of sums, and the run";
    EXPECT_EQ(store.tables["runs"].rows.begin()->second.at("schema").number, clickhouse::kSchema);
  }
}

TEST(Push, CountsNothingTwiceAfterLostAnswers) {
  FakeStore store;
  const FleetJob job;
  store.fault = [](const std::string&, int insert) {
    return insert % 2 == 0 ? FakeStore::Fault::kLoseAnswer : FakeStore::Fault::kNone;
  };
  const auto pushed = push_to(store, job.run);
  expect_whole(store, pushed);
  EXPECT_EQ(std::count(store.inserts.begin(), store.inserts.end(), "runs"), 2);
}

// What a kill leaves: batches without their marks, or nothing of them.
TEST(Push, GoesOnWhereItStopped) {
  const FleetJob job;
  int all = 0;
  {
    FakeStore store;
    expect_whole(store, push_to(store, job.run));
    all = static_cast<int>(store.inserts.size());
  }
  for (const FakeStore::Fault what : {FakeStore::Fault::kRefuse, FakeStore::Fault::kLoseAnswer}) {
    for (int stop = 0; stop < all; ++stop) {
      FakeStore store;
      store.fault = [&](const std::string&, int insert) {
        return insert < stop ? FakeStore::Fault::kNone : what;
      };
      const auto stopped = push(job.run, {.url = store.url(), .key = {}, .patience = {}}, {});
      ASSERT_FALSE(stopped);
      EXPECT_EQ(stopped.error().code, ErrorCode::kIo);
      EXPECT_EQ(store.inserts.size(), static_cast<size_t>(stop) + 1);
      store.fault = {};
      const auto pushed = push_to(store, job.run);
      expect_whole(store, pushed);
      const bool is_marked = what == FakeStore::Fault::kLoseAnswer && stop % 2 == 1;
      EXPECT_EQ(pushed->sent_batches, static_cast<uint64_t>(all - stop + (is_marked ? 0 : 1)) / 2);
    }
  }
}

TEST(Push, SendsAgainWhatHasChanged) {
  FakeStore store;
  FleetJob job;
  const auto before = push_to(store, job.run);
  expect_whole(store, before);
  // Of a clock that has been set back meanwhile, all rows there are newer than this push.
  for (auto& [name, table] : store.tables)
    for (auto& [key, row] : table.rows) row["version"].number += 1'000'000'000'000;
  job.run.findings[0].statement = "rank 1 is very late";
  const auto pushed = push_to(store, job.run);
  expect_whole(store, pushed);
  EXPECT_EQ(pushed->run, before->run);
  EXPECT_EQ(pushed->sent_batches, 2u) << "the findings, and the run with its verdict";
  EXPECT_EQ(store.tables["runs"].rows.begin()->second.at("verdict_text").bytes, "rank 1 is very late");
}

TEST(Push, SaysWhatTheStoreHasLost) {
  FakeStore store;
  const FleetJob job;
  expect_whole(store, push_to(store, job.run));
  auto& ops = store.tables["ops"].rows;
  ops.erase(ops.begin());
  auto& run = store.tables["runs"].rows.begin()->second;
  run["started_ns"].number += 1;
  const auto pushed = push_to(store, job.run);
  ASSERT_TRUE(pushed) << pushed.error().message();
  ASSERT_EQ(pushed->differences.size(), 2u);
  EXPECT_EQ(pushed->differences[0], "ops holds 9 rows of this run, which has 10");
  EXPECT_EQ(pushed->differences[1], "runs holds other values of started_ns than this run");
}

TEST(Push, LeavesTablesOfAnotherShapeAlone) {
  FakeStore store;
  const FleetJob job;
  store.tables["ops"].columns = {{"run", "UInt64"}, {"day", "Date"}};
  const auto other = push_to(store, job.run);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(other.error().message().find("fleet.ops has no column comm"), std::string::npos)
      << other.error().message();
  EXPECT_TRUE(store.inserts.empty());
}

TEST(Push, RefusesAKeyThatIsSeveralLines) {
  const FleetJob job;
  const auto pushed = push(job.run, {.url = "http://127.0.0.1:1/", .key = "a\r\nX: y", .patience = {}}, {});
  ASSERT_FALSE(pushed);
  EXPECT_EQ(pushed.error().code, ErrorCode::kUsage);
}

TEST(Push, RefusesAJobWithoutProcesses) {
  const model::Job job;
  FleetRun run;
  run.job = &job;
  const auto pushed = push(run, {.url = "http://127.0.0.1:1/", .key = {}, .patience = {}}, {});
  ASSERT_FALSE(pushed);
  EXPECT_EQ(pushed.error().code, ErrorCode::kInvalidInput);
}

TEST(RunRows, KeepTheirNumberWhenProcessesCome) {
  FleetJob one, two;
  model::JobProcess& later = two.job.processes.emplace_back();
  later.row.first_ns = FleetJob::kStart + 1;
  EXPECT_EQ(clickhouse::RunRows(one.run).run(), clickhouse::RunRows(two.run).run());
  two.job.processes[0].row.pid = 7;
  EXPECT_NE(clickhouse::RunRows(one.run).run(), clickhouse::RunRows(two.run).run());
}

TEST(RunRows, HaveADayAtAnyTime) {
  for (const int64_t ns : {INT64_MIN, int64_t{-1}, int64_t{0}, INT64_MAX}) {
    FleetJob job;
    for (model::JobProcess& process : job.job.processes) {
      process.row.first_ns = process.row.last_ns = ns;
      for (auto& called : process.ops.called_ns) called = ns;
      for (auto& start : process.ops.gpu_start_ns) start = ns;
      for (auto& end : process.ops.gpu_end_ns) end = ns < 0 ? INT64_MAX : INT64_MIN;
    }
    FakeStore store;
    const auto pushed = push_to(store, job.run);
    expect_whole(store, pushed);
  }
}

TEST(Batches, AreAsLargeAsTheyMayBe) {
  FakeStore store;
  const FleetJob job;
  const clickhouse::RunRows rows(job.run);
  expect_whole(store, push_to(store, job.run));
  auto address = clickhouse::parse_address(store.url());
  auto client = clickhouse::Client::open(*address, {});
  ASSERT_TRUE(client);
  for (const clickhouse::BatchLimits limits :
       {clickhouse::BatchLimits{.rows = 3}, clickhouse::BatchLimits{.rows = 1000, .bytes = 1}}) {
    clickhouse::Batches batches(*client, "fleet", rows.run(), rows.day(), limits);
    ASSERT_TRUE(rows.send(batches, {}));
    EXPECT_EQ(batches.rows(), 19u);
    EXPECT_GT(batches.batches(), 9u);
    EXPECT_EQ(batches.sent_rows(), 19u);
    for (const auto id : {clickhouse::TableId::kOps, clickhouse::TableId::kRuns})
      EXPECT_EQ(*batches.compare(id), "") << "the same rows in other batches are the same rows";
  }
}

}  // namespace
}  // namespace lockstep::store
