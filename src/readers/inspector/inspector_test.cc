// SPDX-License-Identifier: Apache-2.0
// From Inspector's lines to the model: whose they are, how long operations took, and what is missing.
#include "readers/inspector/inspector.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "readers/testing/format_test.h"

namespace lockstep::readers::inspector {
namespace {

using Json = nlohmann::json;

constexpr int64_t kUs = 1'000;
constexpr int64_t kStartUs = 1'795'203'349'000'000;

class Inspector : public testing::FormatTest {
 protected:
  Inspector() : FormatTest(kFormat) {}

  // Rank r is process 100 + r. Written so many us after the start.
  static Json line(int rank, int us, Json work, const std::string& id = "0xabc", int ranks = 2) {
    const char* key = work.contains("coll") ? "coll_perf" : "p2p_perf";
    return {
        {"header", {{"id", id}, {"comm_name", "unknown"}, {"rank", rank}, {"n_ranks", ranks}, {"nnodes", 1}}},
        {"metadata",
         {{"inspector_output_format_version", "v4.0"},
          {"dump_timestamp_us", kStartUs + us},
          {"hostname", "node"},
          {"pid", 100 + rank}}},
        {key, std::move(work)}};
  }
  static Json coll(int seq, uint64_t bytes = 1024, int exec_us = 5, const std::string& func = "AllReduce",
                   const std::string& source = "kernel_gpu") {
    return {{"coll", func},
            {"coll_sn", seq},
            {"coll_msg_size_bytes", bytes},
            {"coll_exec_time_us", exec_us},
            {"coll_timing_source", source}};
  }
  static Json p2p(int seq, int peer, const std::string& func) {
    return {{"p2p", func},           {"p2p_sn", seq},
            {"p2p_peer", peer},      {"p2p_msg_size_bytes", 64},
            {"p2p_exec_time_us", 3}, {"p2p_timing_source", "kernel_gpu"}};
  }
  void write(const std::string& name, const std::vector<Json>& lines) { write_lines(name, lines); }
};

TEST_F(Inspector, AProcessIsItsHostAndNumber) {
  write("a", {line(0, 10, coll(0)), line(1, 12, coll(0))});
  write("b", {line(0, 20, coll(1, 4096, 7))});
  auto source = open();
  ASSERT_EQ(source->processes(), 2u);
  const model::Trace first = load(*source, 0), second = load(*source, 1);
  EXPECT_EQ(first.processes.pid[0], 100);
  EXPECT_EQ(first.processes.rank[0], 0);
  EXPECT_EQ(first.processes.world[0], 2);
  EXPECT_EQ(first.strings[first.processes.host[0]], "node");
  EXPECT_EQ(second.processes.rank[0], 1);
  ASSERT_EQ(first.ops.size(), 2u);
  EXPECT_EQ(first.ops.bytes[1], 4096u);
  EXPECT_EQ(first.ops.seq[1], 1u);
  EXPECT_EQ(first.ops.gpu_end_ns[1], (kStartUs + 20) * kUs) << "where it was written";
  EXPECT_EQ(first.ops.gpu_end_ns[1] - first.ops.gpu_start_ns[1], 7 * kUs);
  EXPECT_EQ(first.ops.gpu_source[1], static_cast<uint8_t>(model::GpuTimeSource::kInspector));
  EXPECT_EQ(first.ops.enqueued_ns[1], 0) << "Inspector does not tell";
  EXPECT_EQ(first.comms.comm_id[0], 0xabcu);
  EXPECT_EQ(first.strings[first.comms.name[0]], "");
  EXPECT_EQ(lost(first, "missing_record"), 0u);
  EXPECT_EQ(lost(first, "unwritten_tail"), 1u);
}

TEST_F(Inspector, ContainersThatAreCalledAlikeStayApart) {
  const auto in_container = [](Json record) {
    record["metadata"]["pid"] = 1;
    return record;
  };
  write("a", {in_container(line(0, 10, coll(0)))});
  write("b", {in_container(line(1, 12, coll(0)))});
  write("c", {in_container(line(1, 20, coll(1)))});
  auto source = open();
  ASSERT_EQ(source->processes(), 2u);
  for (const int rank : {0, 1}) {
    const model::Trace trace = load(*source, static_cast<size_t>(rank));
    EXPECT_EQ(trace.processes.rank[0], rank);
    EXPECT_EQ(trace.processes.pid[0], 1);
    EXPECT_EQ(trace.comms.size(), 1u);
    EXPECT_EQ(trace.ops.size(), rank == 0 ? 1u : 2u) << "the file of rank 1 that was written later";
  }
  EXPECT_EQ(lost(run(*source), "equal_names"), 1u);
  const model::Trace first = load(*source, 0), second = load(*source, 1);
  EXPECT_NE(first.strings[first.processes.boot_id[0]], second.strings[second.processes.boot_id[0]]);
}

TEST_F(Inspector, CountsWhatIsMissingByItsNumber) {
  write("a", {line(0, 1, coll(3)), line(0, 2, coll(9)), line(0, 3, coll(9)),
              line(0, 4, coll(1, 8, 1, "Broadcast"))});
  auto source = open();
  const model::Trace trace = load(*source, 0);
  EXPECT_EQ(trace.ops.size(), 3u);
  EXPECT_EQ(lost(trace, "missing_record"), 8u + 1u) << "numbers 0-2 and 4-8; Broadcast 0";
  EXPECT_EQ(lost(trace, "repeated_record"), 1u);
}

TEST_F(Inspector, OneIndexIsOneOperationOnAllRanks) {
  write("a", {line(0, 1, coll(0)), line(0, 2, coll(0, 64, 1, "AllGather")), line(0, 5, coll(2))});
  write("b", {line(1, 1, coll(0)), line(1, 3, coll(1)), line(1, 6, coll(2))});
  auto source = open();
  const model::Trace first = load(*source, 0), second = load(*source, 1);
  // AllReduce 0, AllGather 0, AllReduce 1, AllReduce 2
  ASSERT_EQ(first.ops.size(), 3u);
  EXPECT_EQ(first.ops.index[0], 0u);
  EXPECT_EQ(first.ops.index[1], 1u);
  EXPECT_EQ(first.ops.index[2], 3u);
  EXPECT_EQ(second.ops.index[0], 0u);
  EXPECT_EQ(second.ops.index[1], 2u);
  EXPECT_EQ(second.ops.index[2], 3u);
  EXPECT_EQ(first.comms.numbered[0], 1);
}

TEST_F(Inspector, AVerboseFileTellsWhenTheHostEnqueued) {
  Json work = coll(0, 1024, 5);
  work["event_trace_ts"] = {{"coll_start_ts", kStartUs + 100},
                            {"kernel_events",
                             {{{"channel_id", 0}, {"kernel_stop_ts", kStartUs + 130}},
                              {{"channel_id", 1}, {"kernel_stop_ts", kStartUs + 140}}}}};
  write("a", {line(0, 900, work)});
  const model::Trace trace = load(*open(), 0);
  EXPECT_EQ(trace.ops.enqueued_ns[0], (kStartUs + 100) * kUs);
  EXPECT_EQ(trace.ops.gpu_end_ns[0], (kStartUs + 140) * kUs);
  EXPECT_EQ(trace.ops.gpu_start_ns[0], (kStartUs + 135) * kUs);
  EXPECT_EQ(trace.processes.first_ns[0], (kStartUs + 100) * kUs);
}

TEST_F(Inspector, SendsAndReceivesKeepTheirPeer) {
  write("a", {line(0, 1, p2p(1, 1, "Send")), line(0, 2, p2p(2, 1, "Recv")), line(0, 3, p2p(5, 1, "Send"))});
  const model::Trace trace = load(*open(), 0);
  ASSERT_EQ(trace.ops.size(), 3u);
  EXPECT_EQ(trace.ops.peer[2], 1);
  EXPECT_EQ(trace.ops.index[2], 4u);
  EXPECT_EQ(trace.ops.seq[0], model::kNoSeq);
  EXPECT_EQ(lost(trace, "missing_record"), 2u);
}

TEST_F(Inspector, TakesNoDurationFromTheHost) {
  write("a", {line(0, 10, coll(0, 1024, 5, "AllReduce", "kernel_cpu"))});
  const model::Trace trace = load(*open(), 0);
  EXPECT_EQ(trace.ops.gpu_start_ns[0], 0);
  EXPECT_NE(trace.ops.gpu_end_ns[0], 0) << "it had ended";
  EXPECT_EQ(lost(trace, "no_gpu_time"), 1u);
}

TEST_F(Inspector, KeepsWhatIsGoodOfADamagedFile) {
  const std::string good = line(0, 1, coll(0)).dump() + "\n";
  Json bad_rank = line(0, 1, coll(1)), bad_seq = line(0, 1, coll(1)), huge = line(0, 1, coll(2));
  bad_rank["header"]["rank"] = 2;
  bad_seq["coll_perf"]["coll_sn"] = -1;
  huge["coll_perf"]["coll_msg_size_bytes"] = UINT64_MAX - 7;
  write_text("a", good + "{\"header\":\n" + bad_rank.dump() + "\n\n[]\n" + bad_seq.dump() + "\n" +
                      std::string(300 << 10, ' ') + "\n" + huge.dump() + "\n" + good.substr(0, 200));
  auto source = open();
  const model::Trace trace = load(*source, 0), losses = run(*source);
  EXPECT_EQ(trace.ops.size(), 2u);
  EXPECT_EQ(trace.ops.bytes[1], 0u);
  EXPECT_EQ(lost(losses, "bad_record"), 5u);
  EXPECT_EQ(lost(losses, "cut_file"), 1u);
  EXPECT_EQ(lost(losses, "unknown_size"), 1u);
}

TEST_F(Inspector, ReadsANewerVersionByItsKeys) {
  Json newer = line(0, 1, coll(0));
  newer["metadata"]["inspector_output_format_version"] = "v5.0";
  newer["coll_perf"]["something_new"] = {1, 2};
  write("a", {newer});
  auto source = open();
  EXPECT_EQ(load(*source, 0).ops.size(), 1u);
  EXPECT_EQ(lost(run(*source), "newer_version"), 1u);
}

// As v4.3 writes lines that say whose they are: a marker, then as many lines as it counts.
class InspectorBatches : public Inspector {
 protected:
  static Json marker(const Json& line, int colls, int p2ps, const std::string& version = "v4.3") {
    Json marker = {{"header", line["header"]}, {"metadata", line["metadata"]}};
    marker["metadata"]["inspector_output_format_version"] = version;
    marker["dump_stats"] = {
        {"coll_records", colls}, {"coll_dropped_total", 0}, {"p2p_records", p2ps}, {"p2p_dropped_total", 0}};
    return marker;
  }
  static Json payload(const Json& line) {
    const char* key = line.contains("coll_perf") ? "coll_perf" : "p2p_perf";
    return {{key, line[key]}};
  }
};

TEST_F(InspectorBatches, HoldWhatTheSameLinesHoldThatSayWhoseTheyAre) {
  const std::vector<Json> alone = {line(0, 10, coll(0)), line(0, 10, coll(1, 4096, 7)),
                                   line(0, 10, p2p(1, 1, "Send")), line(1, 10, coll(0)),
                                   line(0, 20, coll(2))};
  write("v40", alone);
  std::vector<model::Trace> loaded;
  {
    auto source = open();
    for (size_t i = 0; i < 2; ++i) loaded.push_back(load(*source, i));
  }
  paths_.clear();
  write("v43", {marker(alone[0], 2, 1), payload(alone[0]), payload(alone[1]), payload(alone[2]),
                marker(alone[3], 1, 0), payload(alone[3]), marker(alone[4], 1, 0), payload(alone[4])});
  auto source = open();
  ASSERT_EQ(source->processes(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    const model::Trace trace = load(*source, i);
    EXPECT_EQ(trace.processes.pid[0], loaded[i].processes.pid[0]);
    ASSERT_EQ(trace.ops.size(), loaded[i].ops.size());
    for (size_t op = 0; op < trace.ops.size(); ++op) {
      EXPECT_EQ(trace.ops.index[op], loaded[i].ops.index[op]);
      EXPECT_EQ(trace.ops.bytes[op], loaded[i].ops.bytes[op]);
      EXPECT_EQ(trace.ops.peer[op], loaded[i].ops.peer[op]);
      EXPECT_EQ(trace.ops.gpu_end_ns[op], loaded[i].ops.gpu_end_ns[op]);
    }
  }
  const model::Trace losses = run(*source);
  for (const char* kind : {"bad_record", "no_owner", "newer_version", "overwritten"})
    EXPECT_EQ(lost(losses, kind), 0u) << kind;
}

TEST_F(InspectorBatches, TellWhatTheWriterItselfLost) {
  Json first = marker(line(0, 10, coll(0)), 1, 0, "v4.2"), second = first,
       other = marker(line(1, 10, coll(0)), 0, 0, "v4.2");
  first["dump_stats"]["coll_dropped_total"] = 5;
  second["dump_stats"]["coll_dropped_total"] = 9;
  other["dump_stats"]["p2p_dropped_total"] = 2;
  Json last = line(0, 20, coll(10));
  last["coll_perf"]["coll_algo"] = "RING";
  last["coll_perf"]["coll_proto"] = "LL";
  write("a", {first, line(0, 10, coll(0)), second, last, other});
  auto source = open();
  EXPECT_EQ(lost(run(*source), "overwritten"), 9u + 2u) << "counts of the whole life of a communicator";
  const model::Trace trace = load(*source, 0);
  ASSERT_EQ(trace.ops.size(), 2u);
  EXPECT_EQ(trace.strings[trace.shapes.algo[trace.ops.shape[1]]], "RING");
  EXPECT_EQ(trace.strings[trace.shapes.proto[trace.ops.shape[1]]], "LL");
  EXPECT_EQ(trace.strings[trace.shapes.algo[trace.ops.shape[0]]], "");
}

TEST_F(InspectorBatches, GiveNoLineToACommunicatorThatMayNotBeIts) {
  const Json mine = line(0, 10, coll(0)), others = line(1, 10, coll(3));
  const std::string torn = marker(others, 1, 0).dump().substr(0, 150);
  write_text("a", payload(mine).dump() + "\n" + marker(mine, 2, 0).dump() + "\n" + payload(mine).dump() +
                      "\n" + torn + "\n" + payload(others).dump() + "\n");
  auto source = open();
  ASSERT_EQ(source->processes(), 1u);
  EXPECT_EQ(load(*source, 0).ops.size(), 1u)
      << "the line behind the torn marker may be of another communicator";
  const model::Trace losses = run(*source);
  EXPECT_EQ(lost(losses, "no_owner"), 2u);
  EXPECT_EQ(lost(losses, "bad_record"), 1u);
}

TEST_F(InspectorBatches, LoseTheLineThatIsTornAlone) {
  const Json first = line(0, 10, coll(0)), last = line(0, 10, coll(2));
  write_text("a", marker(first, 3, 0).dump() + "\n" + payload(first).dump() + "\n" +
                      payload(first).dump().substr(0, 40) + "\n" + payload(last).dump() + "\n");
  EXPECT_EQ(load(*open(), 0).ops.size(), 2u);
}

TEST_F(InspectorBatches, CountTransfersThatAreNotRead) {
  Json begin = marker(line(0, 10, coll(0)), 1, 0, "v4.4");
  begin["dump_stats"]["proxy_records"] = 1;
  write("a", {begin, payload(line(0, 10, coll(0))), {{"proxy_trace", {{"record_type", "proxy_op"}}}}});
  auto source = open();
  EXPECT_EQ(load(*source, 0).ops.size(), 1u);
  EXPECT_EQ(lost(run(*source), "unread_transfers"), 1u);
  EXPECT_EQ(lost(run(*source), "newer_version"), 0u);
}

// What the user could have done is not the reason where the format is.
TEST_F(InspectorBatches, AreSaidToBeNewerWhereNothingOfThemIsKnown) {
  Json newer = marker(line(0, 10, coll(0)), 1, 0, "v6.0");
  newer.erase("dump_stats");
  newer["work"] = Json::array();
  write("a", {newer});
  auto opened = kFormat.open(paths_);
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().message().find("v6.0, newer than this reader"), std::string::npos)
      << opened.error().message();
  paths_.clear();
  write("b", {payload(line(0, 10, coll(0)))});
  opened = kFormat.open(paths_);
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().message().find("beginning is missing"), std::string::npos)
      << opened.error().message();
}

TEST_F(Inspector, AFileWithoutAWholeRecordIsAnErrorOrALoss) {
  write_text("a", line(0, 1, coll(0)).dump().substr(0, 300));
  EXPECT_FALSE(kFormat.open(paths_));
  write("b", {line(0, 1, coll(0))});
  EXPECT_EQ(lost(run(*open()), "unreadable_file"), 1u);
}

TEST_F(Inspector, ProcessesThatShareNoCommunicatorHaveNoRank) {
  write("a", {line(0, 1, coll(0), "0x1"), line(1, 1, coll(0), "0x2")});
  auto source = open();
  EXPECT_EQ(load(*source, 0).processes.rank[0], -1);
  EXPECT_EQ(load(*source, 1).processes.rank[0], -1);
  EXPECT_EQ(lost(run(*source), "guessed_rank"), 0u);
}

TEST_F(Inspector, IsRecognisedByItsContent) {
  auto sniffed = [](std::string_view text) { return kFormat.sniff(std::as_bytes(std::span(text))); };
  EXPECT_TRUE(sniffed(line(0, 1, coll(0)).dump()));
  for (const char* other : {"", "{}", "{\"header\":{}}", "[{\"inspector_output_format_version\":1}]"})
    EXPECT_FALSE(sniffed(other)) << other;
}

}  // namespace
}  // namespace lockstep::readers::inspector
