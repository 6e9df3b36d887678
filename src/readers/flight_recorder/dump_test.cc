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
  document_["entries"] = Json::array({entry(0, "nccl:all_reduce", 1)});
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
  EXPECT_EQ(dump.places[first.place], "") << "a dump without frames";
}

TEST_F(FlightRecorderDump, KeepsEachPlaceOfTheProgramOnce) {
  const Json library = {{"name", "all_reduce"},
                        {"filename", "/usr/lib/python3/dist-packages/torch/distributed/distributed_c10d.py"},
                        {"line", 3068}};
  const Json step = {{"name", "step"}, {"filename", "/srv/job/train.py"}, {"line", 95}},
             main = {{"name", "<module>"}, {"filename", "/srv/job/main.py"}, {"line", 7}};
  document_["entries"] = {entry(0, "nccl:all_reduce", 1), entry(1, "nccl:all_reduce", 2),
                          entry(2, "nccl:broadcast", 3), entry(3, "nccl:broadcast", 4),
                          entry(4, "nccl:broadcast", 5)};
  document_["entries"][0]["frames"] = document_["entries"][2]["frames"] = {library, step, main};
  document_["entries"][1]["frames"] = Json::array({library});
  document_["entries"][3]["frames"] = {5, "x", {{"name", 1}}, Json::array()};
  document_["entries"][4]["frames"] = {{"name", "step"}};
  const Dump dump = read();
  ASSERT_EQ(dump.entries.size(), 5u);
  EXPECT_EQ(dump.places, (std::vector<std::string>{"", "train.py:95 (step), from main.py:7",
                                                   "distributed_c10d.py:3068 (all_reduce)"}));
  EXPECT_EQ(dump.entries[0].place, 1u);
  EXPECT_EQ(dump.entries[1].place, 2u);
  EXPECT_EQ(dump.entries[2].place, 1u);
  EXPECT_EQ(dump.entries[3].place, 0u) << "frames that are none";
  EXPECT_EQ(dump.entries[4].place, 0u) << "no list";
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

// What closes speaks for the operations of its number alone, and of its group alone.
TEST_F(FlightRecorderDump, WhatClosesAGroupLeavesOtherNumbersAlone) {
  Json entries = {entry(0, "nccl:_all_gather_base", 1), entry(1, "nccl:_all_gather_base", 2),
                  entry(2, "nccl:send 0->1", 7),        entry(3, "nccl:send 0->1", 7),
                  entry(4, "nccl:_all_gather_base", 2), entry(5, "nccl:coalesced", 2)};
  for (size_t i = 0; i < 5; ++i) {
    entries[i]["state"] = "scheduled";
    entries[i]["retired"] = false;
  }
  entries[2]["p2p_seq_id"] = 3;
  entries[3]["p2p_seq_id"] = 4;
  entries[5]["p2p_seq_id"] = 4;
  entries[4]["process_group"] = {"1", "tp"};
  document_["entries"] = entries;
  const Dump dump = read();
  ASSERT_EQ(dump.entries.size(), 5u);
  const Completion kOpen = Completion::kUnknown, kDone = Completion::kCompleted;
  const std::vector<Completion> expected = {kOpen, kDone, kOpen, kDone, kOpen};
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(dump.entries[i].completion, expected[i]) << i;
}

TEST_F(FlightRecorderDump, AllGroupsOfTheConfigurationAreRead) {
  document_["pg_config"]["7"] = {{"name", "7"}, {"desc", "tp"}, {"ranks", "[2, 3]"}};
  document_["pg_config"]["9"] = {{"desc", "by its key"}, {"ranks", "[0, 2]"}};
  Json of_last = entry(0, "nccl:all_reduce", 1);
  of_last["process_group"] = {"9", "by its key"};
  document_["entries"] = Json::array({of_last});
  const Dump dump = read();
  ASSERT_EQ(dump.groups.size(), 3u);
  EXPECT_EQ(dump.groups[1].name, "7");
  EXPECT_EQ(dump.groups[1].description, "tp");
  EXPECT_EQ(dump.groups[1].ranks, (std::vector<int32_t>{2, 3}));
  EXPECT_EQ(dump.groups[2].name, "9");
  EXPECT_EQ(dump.groups[2].ranks, (std::vector<int32_t>{0, 2}));
  EXPECT_EQ(dump.entries.at(0).group, 2u);
}

TEST_F(FlightRecorderDump, AnEndThatNobodyTimedIsJustBehindTheCall) {
  Json completed = entry(0, "nccl:all_reduce", 1), started = entry(1, "nccl:all_reduce", 2);
  completed.erase("time_discovered_completed_ns");
  started["state"] = "started";
  started.erase("time_discovered_completed_ns");
  started.erase("time_discovered_started_ns");
  document_["entries"] = {completed, started};
  const Dump dump = read();
  EXPECT_EQ(dump.entries.at(0).completed_ns, 1'000'001);
  EXPECT_EQ(dump.entries.at(0).started_ns, 0);
  EXPECT_EQ(dump.entries.at(1).started_ns, 1'000'002);
  EXPECT_EQ(dump.entries.at(1).completed_ns, 0);
  EXPECT_EQ(dump.last_ns, 1'000'002);
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

// Opcodes of pickle's protocol 2; a place of the memo is one byte.
std::string text_op(const std::string& value) {
  std::string out = "X";
  for (int i = 0; i < 4; ++i) out += static_cast<char>(value.size() >> 8 * i);
  return out + value;
}
std::string repeated(const std::string& part, size_t times) {
  std::string all;
  all.reserve(part.size() * times);
  for (size_t i = 0; i < times; ++i) all += part;
  return all;
}
std::string pickled(const std::string& items) {
  return "\x80\x02}(" + text_op("version") + text_op("2.10") + items + "u.";
}

TEST_F(FlightRecorderDump, AnEntryThatIsNamedAgainIsNoOther) {
  constexpr size_t kTimes = 1'000'000;
  const std::string one = "}q\x01(" + text_op("profiling_name") + text_op("nccl:all_reduce") + "u";
  const auto dump =
      read_text(pickled(text_op("entries") + "](" + one + repeated("h\x01", kTimes) + one + "e"));
  ASSERT_TRUE(dump) << dump.error().message();
  EXPECT_EQ(dump->entries.size(), 2u);
  EXPECT_EQ(dump->bad_entries, kTimes);
}

TEST_F(FlightRecorderDump, SizesThatAreNamedAgainAndAgainAreBounded) {
  // 2,000 entries of the same 3,000 tensors of the same 3,000 dimensions: 18 billion.
  using namespace std::string_literals;
  const std::string tensor = "]q\x01(" + repeated("K\x01"s, 3000) + "e";
  const std::string tensors = "]q\x02(" + tensor + repeated("h\x01", 2999) + "e";
  const std::string name = text_op("profiling_name") + text_op("nccl:all_reduce") + text_op("input_sizes");
  const auto dump = read_text(pickled(text_op("entries") + "](}(" + name + tensors + "u" +
                                      repeated("}(" + name + "h\x02u", 1999) + "e"));
  ASSERT_TRUE(dump) << dump.error().message();
  ASSERT_EQ(dump->entries.size(), 2000u);
  EXPECT_EQ(dump->entries[0].count, 3000u);
  EXPECT_EQ(dump->entries[1].count, 0u) << "no longer looked at";
  EXPECT_GE(dump->impossible, 2000u);
}

TEST_F(FlightRecorderDump, TextsThatAreNamedAgainAndAgainAreBounded) {
  std::string many = "0";
  while (many.size() < (1 << 20)) many += ",1";
  std::string groups = "}(" + text_op("x") + "}(" + text_op("ranks") + text_op(many) + "q\x01u";
  for (int i = 0; i < 1000; ++i)
    groups += text_op(std::to_string(i)) + "}(" + text_op("ranks") + "h\x01" + text_op("desc") + "h\x01u";
  const auto dump = read_text(pickled(text_op("pg_config") + groups + "u"));
  ASSERT_TRUE(dump) << dump.error().message();
  ASSERT_EQ(dump->groups.size(), 1001u);
  size_t ranks = 0, names = 0;
  for (const Group& group : dump->groups) {
    ranks += group.ranks.size();
    names += group.description.size();
  }
  EXPECT_LE(ranks, size_t{32} << 20);
  EXPECT_GT(ranks, size_t{30} << 20);
  EXPECT_LE(names, 1001u * 1024);
  EXPECT_GT(dump->impossible, 900u);
}

TEST_F(FlightRecorderDump, WhatIsNoDumpIsNamed) {
  for (const char* text : {"", "{}", "{\"version\":1}", "[]", "nonsense", "{\"entries\":["}) {
    auto dump = read_text(text);
    ASSERT_FALSE(dump) << text;
    EXPECT_NE(dump.error().message().find("trace_rank_2: not a Flight Recorder dump"), std::string::npos)
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
