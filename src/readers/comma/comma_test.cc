// SPDX-License-Identifier: Apache-2.0
// From CoMMA's lines to the model: operations, network operations, steps on one clock, and what is missing.
#include "readers/comma/comma.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "readers/testing/format_test.h"

namespace lockstep::readers::comma {
namespace {

using Json = nlohmann::json;

constexpr int64_t kUs = 1'000;
constexpr int64_t kStartUs = 1'795'203'349'000'000;

class Comma : public testing::FormatTest {
 protected:
  Comma() : FormatTest(kFormat) {}

  static Json coll(int rank, int seq, int64_t at_us, const std::string& name = "all_reduce") {
    return {{"ph", "X"},
            {"ts", kStartUs + at_us},
            {"dur", 12},
            {"cat", "COLL"},
            {"rank", rank},
            {"args", {{"size", 1 << 20}}},
            {"comm_hash", "0x58aecebabb9e37af"},
            {"name", name},
            {"seq_num", seq},
            {"algo", "ring"},
            {"proto", "ll128"},
            {"n_max_channel", 8}};
  }
  // Steps count from the process' start, 5 s before kStartUs.
  static Json network_op(bool is_send, int64_t at_us, int dur_us) {
    const int64_t step = 5'000'000 + at_us;
    Json op = {{"ph", "X"},
               {"cat", "PROXY"},
               {"name", "ProxyOp"},
               {"rank", 0},
               {"pid", 169},
               {"peer", 1},
               {"is_send", is_send},
               {"n_steps", 2},
               {"chunk_size", 1 << 19},
               {"channel_id", 3},
               {"ts", kStartUs + at_us},
               {"dur", dur_us}};
    op["steps"] = {{{"step", 1}, {"size", 4096}, {"start_time", step}, {"end_time", step + dur_us / 2}},
                   {{"step", 2}, {"size", 100}, {"start_time", step + 1}, {"end_time", step + dur_us}}};
    if (is_send) op["steps"][1]["fifo_ready_time"] = step + 4;
    return op;
  }
  void write(const std::string& name, const std::vector<Json>& lines) { write_lines(name, lines); }
};

TEST_F(Comma, AProcessIsAFile) {
  write("latency-7.txt", {coll(0, 0, 10), coll(0, 1, 30)});
  write("latency-8.txt", {coll(1, 0, 11), coll(1, 2, 31)});
  auto source = open();
  ASSERT_EQ(source->processes(), 2u);
  const model::Trace first = load(*source, 0), second = load(*source, 1);
  EXPECT_EQ(first.processes.pid[0], 7) << "the last number of its name";
  EXPECT_EQ(second.processes.rank[0], 1);
  EXPECT_EQ(first.processes.world[0], 2);
  EXPECT_EQ(first.comms.ranks[0], 2);
  EXPECT_EQ(first.comms.comm_id[0], 0x58aecebabb9e37afu);
  ASSERT_EQ(second.ops.size(), 2u);
  EXPECT_EQ(second.ops.index[1], 2u);
  EXPECT_EQ(second.ops.seq[1], 2u);
  EXPECT_EQ(second.ops.bytes[1], 1u << 20);
  EXPECT_EQ(second.ops.channels[1], 8);
  EXPECT_EQ(second.ops.enqueued_ns[1], (kStartUs + 31) * kUs);
  EXPECT_EQ(second.ops.gpu_end_ns[1], 0) << "its duration is that of its enqueueing";
  EXPECT_EQ(second.strings[second.shapes.func[0]], "AllReduce");
  EXPECT_EQ(second.strings[second.shapes.algo[0]], "RING");
  EXPECT_EQ(second.strings[second.shapes.proto[0]], "LL128");
  EXPECT_EQ(lost(first, "missing_record"), 0u);
  EXPECT_EQ(lost(second, "missing_record"), 1u);
}

TEST_F(Comma, TheNetworksTimeIsTheOperations) {
  Json with_start = coll(0, 0, 10), without = coll(0, 1, 100), open_one = coll(0, 2, 200);
  with_start["dur"] = 500;
  with_start["child_start_ts"] = kStartUs + 40;
  with_start["child_dur"] = 470;
  without["dur"] = 50;
  without["child_dur"] = 30;  // as older ones have it
  open_one["reclaimed"] = true;
  open_one["dur"] = 0;
  open_one["timeout_dur"] = 10'000'000;
  open_one["child_start_ts"] = kStartUs + 220;
  write("a", {with_start, without, open_one});
  const model::Trace trace = load(*open(), 0);
  EXPECT_EQ(trace.ops.gpu_start_ns[0], (kStartUs + 40) * kUs);
  EXPECT_EQ(trace.ops.gpu_end_ns[0], (kStartUs + 510) * kUs);
  EXPECT_EQ(trace.ops.gpu_source[0], static_cast<uint8_t>(model::GpuTimeSource::kNetwork));
  EXPECT_EQ(trace.ops.gpu_start_ns[1], (kStartUs + 120) * kUs);
  EXPECT_EQ(trace.ops.gpu_end_ns[1], (kStartUs + 150) * kUs);
  EXPECT_EQ(trace.ops.gpu_start_ns[2], (kStartUs + 220) * kUs);
  EXPECT_EQ(trace.ops.gpu_end_ns[2], 0) << "given up: it had not ended";
  EXPECT_EQ(lost(trace, "unended"), 1u);
  EXPECT_EQ(trace.processes.last_ns[0], (kStartUs + 200 + 10'000'000) * kUs);
}

TEST_F(Comma, StepsAreBroughtToTheClockOfOperations) {
  Json op = coll(0, 0, 10);
  op["proxyops"] = Json::array({network_op(true, 20, 80), network_op(false, 22, 60)});
  Json later = coll(0, 1, 1'000'000);
  later["proxyops"] = Json::array({network_op(true, 1'000'010, 20)});
  write("latency-1.txt", {op, later, network_op(false, 2'000'000, 40)});
  const model::Trace trace = load(*open(), 0);
  ASSERT_EQ(trace.proxy_ops.size(), 4u);
  ASSERT_EQ(trace.proxy_steps.size(), 8u);
  EXPECT_EQ(trace.processes.pid[0], 169) << "of its network operations";
  EXPECT_EQ(trace.ops.task[0], 0u);
  EXPECT_EQ(trace.proxy_ops.task[1], 0u);
  EXPECT_EQ(trace.proxy_ops.task[2], 1u);
  EXPECT_EQ(trace.proxy_ops.comm[3], model::kNoRow) << "of no operation that is told";
  EXPECT_EQ(trace.proxy_ops.channel[0], 3);
  EXPECT_EQ(trace.proxy_ops.chunk_size[0], 1 << 19);
  EXPECT_EQ(trace.proxy_ops.end_ns[0], (kStartUs + 100) * kUs);
  for (size_t i = 0; i < trace.proxy_steps.size(); ++i) {
    const uint32_t of = trace.proxy_steps.proxy_op[i];
    EXPECT_GE(trace.proxy_steps.start_ns[i], trace.proxy_ops.start_ns[of]) << i;
    EXPECT_LE(trace.proxy_steps.end_ns[i], trace.proxy_ops.end_ns[of]) << i;
  }
  EXPECT_EQ(trace.proxy_steps.wait3_ns[0], trace.proxy_steps.start_ns[0]) << "no wait for the peer is told";
  EXPECT_EQ(trace.proxy_steps.wait3_ns[1] - trace.proxy_steps.wait2_ns[1], 3 * kUs);
  EXPECT_EQ(trace.proxy_steps.wait2_ns[2], trace.proxy_steps.end_ns[2]) << "received";
  EXPECT_EQ(lost(trace, "step_clock"), 0u);
}

TEST_F(Comma, OfOneClockNothingIsMoved) {
  Json op = coll(0, 0, 10);
  op["ts"] = 9'615'369;
  op["proxyops"] = Json::array({network_op(true, 0, 1379)});
  op["proxyops"][0]["ts"] = 5'000'000 - 1;
  write("a", {op});
  const model::Trace trace = load(*open(), 0);
  EXPECT_EQ(trace.proxy_steps.start_ns[0], 5'000'000 * kUs);
}

TEST_F(Comma, StepsThatFitNoClockAreSaidToBe) {
  Json op = coll(0, 0, 10);
  op["proxyops"] = Json::array({network_op(true, 20, 80), network_op(true, 20, 80)});
  for (Json& step : op["proxyops"][1]["steps"]) {
    for (const char* key : {"start_time", "end_time"}) step[key] = step[key].get<int64_t>() + 500;
    step.erase("fifo_ready_time");
  }
  write("a", {op});
  EXPECT_EQ(lost(load(*open(), 0), "step_clock"), 1u);
}

TEST_F(Comma, SendsAndReceivesHaveNoNumber) {
  Json send = coll(0, 0, 10);
  send["cat"] = "P2P";
  send["name"] = "send";
  send["peer"] = 1;
  send.erase("seq_num");
  write("a", {send, send});
  const model::Trace trace = load(*open(), 0);
  ASSERT_EQ(trace.ops.size(), 2u);
  EXPECT_EQ(trace.ops.peer[1], 1);
  EXPECT_EQ(trace.ops.index[1], 1u);
  EXPECT_EQ(lost(trace, "missing_record"), 1u) << "so nothing pairs them with the other end's";
}

TEST_F(Comma, KeepsWhatIsGoodOfADamagedFile) {
  Json bad_rank = coll(-1, 0, 1), bad_func = coll(0, 0, 1, "all_to_nobody"), bad_step = coll(0, 1, 5);
  bad_step["proxyops"] = Json::array({network_op(true, 20, 80), Json(3)});
  bad_step["proxyops"][0]["steps"][0]["end_time"] = 1;
  const Json group = {{"ph", "X"}, {"ts", kStartUs}, {"dur", 4}, {"cat", "GROUP"}, {"name", "Group"}};
  write_text("a", coll(0, 0, 1).dump() + "\n{\"cat\":\n" + bad_rank.dump() + "\n" + bad_func.dump() + "\n" +
                      group.dump() + "\n" + bad_step.dump() + "\n" + coll(0, 2, 9).dump().substr(0, 90));
  const model::Trace trace = load(*open(), 0);
  EXPECT_EQ(trace.ops.size(), 2u);
  EXPECT_EQ(trace.proxy_steps.size(), 1u);
  EXPECT_EQ(lost(trace, "bad_record"), 3u + 2u);
  EXPECT_EQ(lost(trace, "cut_file"), 1u);
  EXPECT_EQ(lost(trace, "group"), 1u);
}

TEST_F(Comma, AFileWithoutAnOperationIsAnErrorOrALoss) {
  write_text("a", coll(0, 0, 1).dump().substr(0, 90));
  EXPECT_FALSE(kFormat.open(paths_));
  Json newer = coll(0, 0, 1);
  newer["gpu_dur"] = {{"start", 1}};
  write("b", {newer});
  auto source = open();
  EXPECT_EQ(load(*source, 0).ops.size(), 1u) << "with a key that is not known";
  model::Trace run;
  source->run_losses(run);
  EXPECT_EQ(lost(run, "unreadable_file"), 1u);
  EXPECT_EQ(lost(run, "network_time"), 1u);
}

TEST_F(Comma, IsRecognisedByItsContent) {
  auto sniffed = [](const std::string& text) { return kFormat.sniff(std::as_bytes(std::span(text))); };
  EXPECT_TRUE(sniffed(coll(0, 0, 1).dump()));
  EXPECT_TRUE(sniffed(network_op(true, 1, 2).dump()));
  EXPECT_TRUE(sniffed(R"({"cat":"GROUP","dur":3,"name":"Group","ph":"X","ts":1})"));
  for (const char* other : {"", "{}", R"({"ph":"X","cat":"kernel","name":"all_reduce"})",
                            R"({"traceEvents":[{"ph":"X","cat":"COLL","comm_hash":1}]})", R"([{"ph":"X"}])"})
    EXPECT_FALSE(sniffed(other)) << other;
}

}  // namespace
}  // namespace lockstep::readers::comma
