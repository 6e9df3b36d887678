// SPDX-License-Identifier: Apache-2.0
// From dumps to the model: ranks, groups, and what became of each operation.
#include "readers/flight_recorder/flight_recorder.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "model/record_gaps.h"
#include "model/testing/spelled_types.h"
#include "readers/testing/format_test.h"

namespace lockstep::readers::flight_recorder {
namespace {

using Json = nlohmann::json;

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kStart = 1'760'000'000 * kSecond;

class FlightRecorder : public testing::FormatTest {
 protected:
  FlightRecorder() : FormatTest(kFormat) {}

  // Created at this second; ended a tenth later unless it is open.
  static Json entry(int id, int second, const std::string& state,
                    const std::string& name = "nccl:all_reduce") {
    const int64_t created = kStart + second * kSecond;
    return {{"record_id", id},
            {"process_group", {"0", "default_pg"}},
            {"collective_seq_id", id + 1},
            {"p2p_seq_id", 0},
            {"profiling_name", name},
            {"time_created_ns", created},
            {"input_sizes", {{8}}},
            {"input_dtypes", {"Half"}},
            {"state", state},
            {"time_discovered_completed_ns", state == "completed" ? created + kSecond / 10 : 0},
            {"time_discovered_started_ns", state == "started" ? created + kSecond / 20 : 0},
            {"retired", state == "completed"},
            {"timeout_ms", 30'000}};
  }
  void write(const std::string& name, const std::vector<Json>& entries) {
    write_text(name,
               Json{{"version", "2.10"},
                    {"comm_lib_version", "2.28.9"},
                    {"pg_config", {{"0", {{"name", "0"}, {"desc", "default_pg"}, {"ranks", "[1, 0]"}}}}},
                    {"entries", entries}}
                   .dump());
  }
};

TEST_F(FlightRecorder, ElementsAreAsLongAsTheirTypesInEverySpelling) {
  std::vector<Json> entries;
  for (const auto& type : model::testing::kSpelledTypes) {
    const int id = static_cast<int>(entries.size());
    entries.push_back(entry(id, id, "completed"));
    entries.back()["input_dtypes"] = entries.back()["output_dtypes"] = Json::array({type.name});
    entries.back()["input_sizes"] = entries.back()["output_sizes"] = {{6}};
  }
  write("fr_0", entries);
  const model::Trace trace = load(*open(), 0);
  ASSERT_EQ(trace.ops.size(), entries.size());
  for (size_t i = 0; i < entries.size(); ++i)
    EXPECT_EQ(trace.ops.bytes[i], 6 * model::testing::kSpelledTypes[i].bytes)
        << model::testing::kSpelledTypes[i].name;
}

TEST_F(FlightRecorder, AProcessIsADump) {
  write("fr_1", {entry(0, 0, "completed"), entry(1, 1, "started")});
  write("fr_0", {entry(0, 0, "completed"), entry(1, 1, "scheduled"), entry(2, 2, "scheduled")});
  auto source = open();
  ASSERT_EQ(source->processes(), 2u);
  const model::Trace first = load(*source, 0), second = load(*source, 1);
  EXPECT_EQ(first.processes.rank[0], 0);
  EXPECT_EQ(first.processes.world[0], 2);
  EXPECT_EQ(first.processes.nccl_version[0], 22809);
  EXPECT_EQ(second.processes.rank[0], 1);
  EXPECT_EQ(second.comms.rank[0], 0) << "the group's order is not that of the ranks";
  EXPECT_EQ(second.strings[second.comms.members[0]], "1,0");
  ASSERT_EQ(first.ops.size(), 3u);
  EXPECT_EQ(first.ops.bytes[0], 16u);
  EXPECT_EQ(first.ops.index[2], 2u);
  EXPECT_EQ(first.ops.gpu_end_ns[0], kStart + kSecond / 10);
  EXPECT_EQ(first.ops.gpu_start_ns[0], 0) << "nobody saw it begin";
  EXPECT_EQ(first.ops.gpu_start_ns[1], kStart + kSecond) << "the oldest open one runs";
  EXPECT_EQ(first.ops.gpu_start_ns[2], 0) << "behind it";
  EXPECT_EQ(second.ops.gpu_start_ns[1], kStart + kSecond + kSecond / 20);
}

TEST_F(FlightRecorder, WasWrittenWhenTheOldestOpenOperationTimedOut) {
  write("fr_0", {entry(0, 0, "completed"), entry(1, 5, "scheduled")});
  write("fr_1", {entry(0, 0, "completed")});
  auto source = open();
  for (size_t i = 0; i < 2; ++i)
    EXPECT_EQ(load(*source, i).processes.heartbeat_ns[0], kStart + 35 * kSecond) << i;
  model::Trace run;
  source->run_losses(run);
  EXPECT_EQ(lost(run, "dump_time"), 1u);
  // A file that is older than that was asked for.
  for (const std::string& path : paths_) {
    const timespec times[2] = {{kStart / kSecond + 9, 0}, {kStart / kSecond + 9, 0}};
    ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  }
  EXPECT_EQ(load(*open(), 0).processes.heartbeat_ns[0], kStart + 9 * kSecond);
}

TEST_F(FlightRecorder, ATimeWithoutATimeBehindItIsNone) {
  Json late = entry(1, 5, "completed");
  late["time_created_ns"] = INT64_MAX;
  late["time_discovered_completed_ns"] = 0;
  write("fr_0", {entry(0, 0, "completed"), late});
  const model::Trace trace = load(*open(), 0);
  EXPECT_EQ(trace.processes.heartbeat_ns[0], kStart + kSecond / 10);
  EXPECT_EQ(lost(trace, model::kLossUnproven), 1u);
}

// A file that is less than a second younger than its last entry was not written when a time limit had passed:
// it is a copy.
TEST_F(FlightRecorder, AFilesOwnTimeCountsFromASecondOn) {
  write("fr_0", {entry(0, 0, "completed"), entry(1, 5, "scheduled")});
  auto heartbeat = [&](int64_t modified_ns) {
    const timespec times[2] = {{modified_ns / kSecond, modified_ns % kSecond},
                               {modified_ns / kSecond, modified_ns % kSecond}};
    EXPECT_EQ(utimensat(AT_FDCWD, paths_[0].c_str(), times, 0), 0);
    return load(*open(), 0).processes.heartbeat_ns[0];
  };
  const int64_t last = kStart + 5 * kSecond;
  EXPECT_EQ(heartbeat(last + kSecond), last + kSecond);
  EXPECT_EQ(heartbeat(last + kSecond - 1), last + 30 * kSecond);
  EXPECT_EQ(heartbeat(last + 31 * kSecond), last + 30 * kSecond) << "it only shortens";
}

TEST_F(FlightRecorder, EightOperationsWithoutAnEndAreARecorderThatLearnsOfNone) {
  for (const int count : {7, 8}) {
    std::vector<Json> entries;
    for (int i = 0; i < count; ++i) {
      entries.push_back(entry(i, i, "scheduled"));
      entries.back()["retired"] = true;
    }
    paths_.clear();
    write("fr_0", entries);
    const model::Trace trace = load(*open(), 0);
    EXPECT_EQ(trace.ops.gpu_start_ns[0] != 0, count == 7) << "else the oldest one runs";
  }
}

TEST_F(FlightRecorder, SendsAreNeverTakenForTheOneThatRuns) {
  write("fr_0", {entry(0, 0, "scheduled", "nccl:send 0->1"), entry(1, 1, "scheduled")});
  write("fr_1", {entry(0, 0, "completed")});
  const model::Trace trace = load(*open(), 0);
  EXPECT_EQ(trace.ops.gpu_start_ns[0], 0);
  EXPECT_EQ(trace.ops.gpu_start_ns[1], kStart + kSecond);
  EXPECT_EQ(trace.ops.peer[0], 1);
  EXPECT_EQ(trace.ops.gpu_error_ns[1], -1);
}

TEST_F(FlightRecorder, WithoutAListAGroupIsThoseWhoUsedIt) {
  for (const int rank : {0, 2}) {
    Json tensor = entry(0, 0, "completed");
    tensor["process_group"] = {"3", "tp"};
    write("fr_" + std::to_string(rank), {tensor});
  }
  write("fr_1", {entry(0, 0, "completed")});
  auto source = open();
  const model::Trace trace = load(*source, 2);
  ASSERT_EQ(trace.comms.size(), 2u);
  EXPECT_EQ(trace.comms.rank[0], -1) << "rank 2 is not in the list of the first group";
  EXPECT_EQ(trace.comms.ranks[1], 2);
  EXPECT_EQ(trace.comms.rank[1], 1);
  EXPECT_EQ(trace.strings[trace.comms.members[1]], "0,2");
  for (const auto& column : {trace.comms.nodes[1], trace.comms.device[1], trace.comms.gpu[1]})
    EXPECT_EQ(column, -1);
  EXPECT_EQ(lost(trace, "unknown_rank"), 0u);
  EXPECT_EQ(lost(load(*source, 0), "unknown_rank"), 0u) << "0 is a rank";
}

TEST_F(FlightRecorder, ARecorderThatLearnsOfNoEndsSaysNothingOfThem) {
  std::vector<Json> entries;
  for (int i = 0; i < 10; ++i) {
    entries.push_back(entry(i, i, "scheduled"));
    entries.back()["retired"] = true;
  }
  write("fr_0", entries);
  auto source = open();
  const model::Trace trace = load(*source, 0);
  for (size_t i = 0; i < trace.ops.size(); ++i) {
    EXPECT_EQ(trace.ops.gpu_start_ns[i], 0);
    EXPECT_EQ(trace.ops.gpu_end_ns[i], 0);
  }
  EXPECT_EQ(trace.processes.heartbeat_ns[0], trace.processes.last_ns[0]);
}

TEST_F(FlightRecorder, CountsWhatIsNotThere) {
  write("fr_0", {entry(7, 0, "completed"), entry(8, 1, "completed", "nccl:recv 0<-?"), Json(3)});
  write("fr_1", {entry(0, 0, "completed")});
  write("fr_01", {});
  write("norank", {entry(0, 0, "completed")});
  std::ofstream(folder_ / "bad_2") << "{\"version\":";
  paths_.push_back(folder_ / "bad_2");
  auto source = open();
  ASSERT_EQ(source->processes(), 3u);
  const model::Trace unnamed = load(*source, 0), first = load(*source, 1);
  EXPECT_EQ(lost(unnamed, "unknown_rank"), 1u);
  EXPECT_EQ(lost(first, "older_operations"), 7u);
  EXPECT_EQ(first.ops.index[0], 7u) << "the group's number, not the ring's";
  EXPECT_EQ(lost(first, "any_source"), 1u);
  EXPECT_EQ(lost(first, "bad_record"), 1u);
  model::Trace run;
  source->run_losses(run);
  EXPECT_EQ(lost(run, "older_dump"), 1u);
  EXPECT_EQ(lost(run, "unreadable_file"), 1u);
}

// A dump has no checksum: what no recorder writes shows that it is damaged.
TEST_F(FlightRecorder, WhatNoRecorderWritesIsDamage) {
  const std::vector<Json> good = {entry(0, 0, "completed"), entry(1, 1, "completed"),
                                  entry(2, 2, "scheduled")};
  const auto with = [&](const char* key, Json value) {
    std::vector<Json> entries = good;
    entries[1][key] = std::move(value);
    return entries;
  };
  const std::vector<std::vector<Json>> damaged = {with("state", "complXted"),
                                                  with("record_id", 7),
                                                  with("time_created_ns", 1'000),
                                                  with("time_created_ns", kStart + 90 * 86'400 * kSecond),
                                                  with("collective_seq_id", 1'000),
                                                  with("profiling_name", "nccl:\x01"),
                                                  with("time_discovered_completed_ns", int64_t{1} << 62)};
  write("fr_0", good);
  for (size_t i = 0; i < damaged.size(); ++i)
    write("again_1_" + std::to_string(i) + "_fr_" + std::to_string(i + 1), damaged[i]);
  auto source = open();
  ASSERT_EQ(source->processes(), damaged.size() + 1);
  EXPECT_EQ(lost(load(*source, 0), model::kLossUnproven), 0u);
  for (size_t i = 1; i <= damaged.size(); ++i) {
    const model::Trace trace = load(*source, i);
    EXPECT_EQ(lost(trace, model::kLossUnproven), 1u) << i;
    EXPECT_GT(lost(trace, model::kLossIncompleteEnd), 0u) << i;
  }
}

TEST_F(FlightRecorder, OfARingThatWrappedSendsHaveNoPlace) {
  write("fr_0", {entry(3, 0, "completed", "nccl:send 0->1"), entry(4, 1, "completed")});
  write("fr_1", {entry(0, 0, "completed", "nccl:send 0->1"), entry(1, 1, "completed")});
  auto source = open();
  const model::Trace wrapped = load(*source, 0), whole = load(*source, 1);
  EXPECT_EQ(wrapped.ops.size(), 1u);
  EXPECT_EQ(lost(wrapped, "unplaced_p2p"), 1u);
  EXPECT_EQ(whole.ops.size(), 2u);
}

TEST_F(FlightRecorder, OperationsThatShareANumberStayInOrder) {
  std::vector<Json> entries;
  for (int i = 0; i < 5; ++i) entries.push_back(entry(i, i, "completed"));
  for (const size_t member : {2u, 3u}) entries[member]["collective_seq_id"] = 2;  // three of one group
  entries[4]["collective_seq_id"] = 3;
  write("fr_0", entries);
  const model::Trace trace = load(*open(), 0);
  for (uint32_t i = 0; i < 5; ++i) EXPECT_EQ(trace.ops.index[i], i);
}

TEST_F(FlightRecorder, IsRecognisedByItsContent) {
  auto sniffed = [](std::string_view text) { return kFormat.sniff(std::as_bytes(std::span(text))); };
  EXPECT_TRUE(sniffed(std::string_view("\x80\x02}(X\x07\0\0\0version...entries", 26)));
  EXPECT_TRUE(sniffed(" {\"comm_lib_version\":\"2.27.5\",\"entries\":["));
  for (const char* other : {"", "\x80", "\x80\x02", "{}", "{\"traceEvents\":[]}", "[]", "LKS", "pg_config"})
    EXPECT_FALSE(sniffed(other)) << other;
}

}  // namespace
}  // namespace lockstep::readers::flight_recorder
