// SPDX-License-Identifier: Apache-2.0
#include "readers/flight_recorder/dump.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/temporary_folder.h"

namespace lockstep::readers::flight_recorder {
namespace {

using Json = nlohmann::json;

Json entry(int id, const std::string& name, int seq) {
  return {{"record_id", id},
          {"pg_id", 0},
          {"process_group", {"0", "default_pg"}},
          {"collective_seq_id", seq},
          {"p2p_seq_id", 0},
          {"profiling_name", name},
          {"time_created_ns", 1'000'000 + id},
          {"input_sizes", {{4, 8}, {2}}},
          {"output_sizes", {{4, 8}}},
          {"input_dtypes", {"Float", "Float"}},
          {"output_dtypes", {"Float"}},
          {"state", "completed"},
          {"time_discovered_completed_ns", 2'000'000 + id},
          {"time_discovered_started_ns", 0},
          {"retired", true},
          {"timeout_ms", 600'000},
          {"is_p2p", false}};
}

class FlightRecorderDump : public ::testing::Test {
 protected:
  FlightRecorderDump() {
    document_ = {{"version", "2.10"},
                 {"comm_lib_version", "2.28.9"},
                 {"pg_config", {{"0", {{"name", "0"}, {"desc", "default_pg"}, {"ranks", "[3, 1, 2, 0]"}}}}},
                 {"entries", Json::array()}};
  }

  Result<Dump> read_text(const std::string& text, const std::string& name = "trace_rank_2") const {
    const std::string path = folder_ / name;
    std::ofstream(path, std::ios::binary) << text;
    return read_dump(path);
  }
  Dump read() const {
    auto dump = read_text(document_.dump());
    EXPECT_TRUE(dump) << dump.error().message();
    return dump ? std::move(*dump) : Dump{};
  }

  const test::TemporaryFolder folder_;
  Json document_;
};

TEST_F(FlightRecorderDump, TellsWhatARankIssued) {
  document_["entries"] = {entry(0, "nccl:all_reduce", 1)};
  const Dump dump = read();
  EXPECT_EQ(dump.rank, 2);
  EXPECT_EQ(dump.version, "2.10");
  EXPECT_EQ(dump.library_version, "2.28.9");
  ASSERT_EQ(dump.groups.size(), 1u);
  EXPECT_EQ(dump.groups[0].ranks, (std::vector<int32_t>{3, 1, 2, 0})) << "in the group's order";
  ASSERT_EQ(dump.entries.size(), 1u);
  const Entry& first = dump.entries[0];
  EXPECT_EQ(first.func, "AllReduce");
  EXPECT_EQ(first.datatype, "ncclFloat32");
  EXPECT_EQ(first.count, 34u);
  EXPECT_EQ(first.seq, 1);
  EXPECT_EQ(first.completion, Completion::kCompleted);
  EXPECT_EQ(first.completed_ns, 2'000'000);
  EXPECT_EQ(first.timeout_ns, 600'000'000'000);
  EXPECT_EQ(dump.last_ns, 2'000'000);
}

TEST_F(FlightRecorderDump, SizesThatRanksNeedNotShareAreNone) {
  document_["entries"] = {entry(0, "nccl:all_to_all", 1), entry(1, "nccl:scatter", 2),
                          entry(2, "nccl:gather", 3), entry(3, "nccl:_reduce_scatter_base", 4)};
  document_["entries"][2]["input_sizes"] = Json::array();
  const Dump dump = read();
  ASSERT_EQ(dump.entries.size(), 4u);
  EXPECT_EQ(dump.entries[0].count, 0u);
  EXPECT_EQ(dump.entries[1].count, 32u);
  EXPECT_EQ(dump.entries[2].count, 0u);
  EXPECT_EQ(dump.entries[3].count, 32u);
}

TEST_F(FlightRecorderDump, SendsNameTheirPeerInTheGroup) {
  document_["entries"] = {entry(5, "nccl:send 0->3", 1), entry(6, "nccl:recv 0<-2", 1),
                          entry(7, "nccl:recv 0<-?", 1)};
  const Dump dump = read();
  ASSERT_EQ(dump.entries.size(), 2u);
  EXPECT_TRUE(dump.entries[0].is_p2p);
  EXPECT_EQ(dump.entries[0].func, "Send");
  EXPECT_EQ(dump.entries[0].peer, 3);
  EXPECT_EQ(dump.entries[1].peer, 2);
  EXPECT_EQ(dump.any_source, 1u);
  EXPECT_EQ(dump.overwritten, 5u) << "records begin at 5";
}

TEST_F(FlightRecorderDump, WhatClosesAGroupOfOperationsSpeaksForThem) {
  Json entries = {entry(0, "nccl:all_reduce", 1),          entry(1, "nccl:_all_gather_base", 2),
                  entry(2, "nccl:_all_gather_base", 2),    entry(3, "nccl:coalesced", 2),
                  entry(4, "nccl:allreduce_coalesced", 3), entry(5, "nccl:coalesced", 3)};
  for (const int member : {1, 2}) {
    entries[static_cast<size_t>(member)]["state"] = "scheduled";
    entries[static_cast<size_t>(member)]["retired"] = false;
  }
  document_["entries"] = entries;
  const Dump dump = read();
  ASSERT_EQ(dump.entries.size(), 4u) << "the closing entry with members is none itself";
  for (const Entry& entry : dump.entries) EXPECT_EQ(entry.completion, Completion::kCompleted) << entry.func;
  EXPECT_EQ(dump.entries[1].completed_ns, 2'000'003);
  EXPECT_EQ(dump.entries[3].func, "AllReduce") << "before version 2.7 only the closing entry was there";
}

TEST_F(FlightRecorderDump, FirstVersionsNameGroupsByNumber) {
  Json old = entry(0, "nccl:all_reduce", 1);
  for (const char* key : {"process_group", "collective_seq_id", "p2p_seq_id", "input_dtypes", "output_dtypes",
                          "record_id", "timeout_ms"})
    old.erase(key);
  old["seq_id"] = 7;
  old["pg_id"] = 3;
  document_ = {{"version", "1.1"}, {"entries", {old}}};
  const Dump dump = read();
  ASSERT_EQ(dump.entries.size(), 1u);
  EXPECT_EQ(dump.entries[0].seq, 7);
  EXPECT_EQ(dump.groups.at(0).name, "3");
  EXPECT_TRUE(dump.groups[0].ranks.empty());
}

TEST_F(FlightRecorderDump, HostileValuesAreBounded) {
  Json bad = entry(0, "nccl:all_reduce", 1);
  bad["input_sizes"] = {{INT64_MAX, 8}};
  bad["output_sizes"] = {{-5}};
  bad["timeout_ms"] = INT64_MAX;
  bad["time_created_ns"] = -5;
  bad["profiling_name"] = "\xff\xfe";
  document_["pg_config"]["0"]["ranks"] = "[99999999999999999999, 1]";
  document_["entries"] = {bad, 5, "x", Json::array()};
  auto dump = read_text(document_.dump(-1, ' ', false, Json::error_handler_t::replace));
  ASSERT_TRUE(dump);
  ASSERT_EQ(dump->entries.size(), 1u);
  EXPECT_EQ(dump->bad_entries, 3u);
  EXPECT_EQ(dump->entries[0].count, 0u);
  EXPECT_EQ(dump->entries[0].created_ns, 0);
  EXPECT_EQ(dump->groups[0].ranks, std::vector<int32_t>{1});
}

TEST_F(FlightRecorderDump, WhatIsNoDumpIsNamed) {
  for (const char* text : {"", "{}", "{\"version\":1}", "[]", "nonsense", "{\"entries\":["}) {
    auto dump = read_text(text);
    ASSERT_FALSE(dump) << text;
    EXPECT_NE(dump.error().message().find("trace_rank_2: no Flight Recorder dump"), std::string::npos)
        << dump.error().message();
  }
  EXPECT_FALSE(read_dump("/nonexistent"));
}

TEST_F(FlightRecorderDump, TheRankIsWhatPyTorchPutBehindTheName) {
  const std::string text = "{\"version\": \"2.10\", \"entries\": []}";
  const auto rank = [&](const std::string& name) {
    auto dump = read_text(text, name);
    EXPECT_TRUE(dump) << dump.error().message();
    return dump ? dump->rank : -2;
  };
  EXPECT_EQ(rank("trace_rank_12"), 12);
  EXPECT_EQ(rank("mydump3"), 3) << "what the user names is a beginning";
  EXPECT_EQ(rank("rank_4.pickle"), 4);
  EXPECT_EQ(rank("resnet50.json"), -1);
}

}  // namespace
}  // namespace lockstep::readers::flight_recorder
