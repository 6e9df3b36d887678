// SPDX-License-Identifier: Apache-2.0
// Files that end early, are corrupted, or are none.
#include <random>

#include "readers/kineto/trace_text.h"
#include "tests/support/sanitizers.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::readers::kineto::testing {
namespace {

using model::Trace;

TraceText some_trace() {
  TraceText text;
  text.step(0, 90, 500);
  for (int i = 0; i < 20; ++i) {
    text.call(100 + 100 * i, 40, i + 1, {.more = i % 2 == 0 ? ", \"Seq\": 3" : ", \"Rank\": 1"});
    text.launch(110 + 100 * i, i + 1).named_kernel(130 + 100 * i, 50, i + 1);
    text.kernel("void gemm<float>(float*)", 120 + 100 * i, 60, 100 + i);
  }
  return text;
}

void expect_sane(const Trace& trace) {
  ASSERT_EQ(trace.processes.size(), 1u);
  for (size_t i = 0; i < trace.ops.size(); ++i) {
    EXPECT_LT(trace.ops.comm[i], trace.comms.size());
    EXPECT_LT(trace.ops.shape[i], trace.shapes.size());
    EXPECT_LT(trace.ops.call[i], trace.calls.size());
    EXPECT_LT(trace.ops.thread[i], trace.threads.size());
  }
  for (uint32_t op : trace.kernels.all(&model::KernelTable::op))
    EXPECT_TRUE(op < trace.ops.size() || op == model::kNoRow);
}

using KinetoDamage = KinetoTest;

TEST_F(KinetoDamage, WhatIsNoTraceIsOneError) {
  EXPECT_NE(error("").find("not a trace of PyTorch's profiler: no JSON object"), std::string::npos)
      << error("");
  EXPECT_NE(error("[1, 2]").find("no JSON object"), std::string::npos);
  EXPECT_NE(error("{\"traceEvents\": [{\"ph\": \"X\", \"cat\": \"net\", \"name\": \"GET\", \"ts\": 1}]}")
                .find("nothing in it is from one"),
            std::string::npos)
      << "a timeline of something else";
  EXPECT_EQ(error(TraceText().text()), "none") << "a profiler that saw nothing";
}

TEST_F(KinetoDamage, OfACutFileWhatCameBeforeIsKept) {
  const std::string whole = some_trace().text();
  size_t most = 0;
  for (size_t size = 200; size < whole.size(); size += 97) {
    const Trace trace = read(whole.substr(0, size));
    expect_sane(trace);
    EXPECT_GE(trace.ops.size(), most) << size;
    most = trace.ops.size();
    EXPECT_EQ(trace.processes.closed[0], 0);
    EXPECT_EQ(lost(trace, "cut_file"), 1u) << size;
  }
  EXPECT_EQ(most, 20u);
  EXPECT_EQ(lost(read(whole), "cut_file"), 0u);
}

TEST_F(KinetoDamage, NumbersOfPyTorchsSurviveACut) {
  TraceText text;
  for (int i = 0; i < 9; ++i)
    text.call(100 + 10 * i, 4, i + 1, {.more = ", \"Seq\": " + std::to_string(i + 5)});
  const std::string whole = text.text();
  const Trace trace = read(whole.substr(0, whole.size() / 2));
  EXPECT_EQ(lost(trace, "cut_file"), 1u);
  EXPECT_EQ(trace.ops.index[0], 4u);
}

TEST_F(KinetoDamage, CorruptedFilesLoseEventsAndSayHowMany) {
  const std::string whole = some_trace().text();
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    std::string bytes = whole;
    for (int i = 0; i < 1 + round % 20; ++i)
      bytes[200 + random() % (bytes.size() - 200)] = static_cast<char>(random());
    const std::string path = write(bytes);
    auto source = kFormat.open({path});
    ASSERT_TRUE(source);
    Trace trace;
    if ((*source)->load(0, trace)) expect_sane(trace);
  }
  std::string one = whole;
  one[one.find("record_param_comms", 5000)] = '\x01';
  const Trace trace = read(one);
  EXPECT_EQ(trace.ops.size(), 19u);
  EXPECT_EQ(lost(trace, "bad_record"), 1u);
}

TEST_F(KinetoDamage, EventsWithoutATimeAreLost) {
  TraceText text;
  text.call(100, 4, 1);
  for (const char* time : {"nan", "-5", "\"x\"", "1e30", "null"})
    text.raw(std::string("{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"gemm\", \"ts\": ") + time +
             ", \"dur\": 1}");
  text.call(110, 4, 2);
  const Trace trace = read(text.text());
  EXPECT_EQ(trace.ops.size(), 2u);
  EXPECT_EQ(trace.kernels.size(), 0u);
  EXPECT_EQ(lost(trace, "bad_record"), 5u);
}

TEST_F(KinetoDamage, HostileGroupsAndRanksAreBounded) {
  TraceText text;
  text.info =
      "\"distributedInfo\": {\"rank\": 99999999999, \"world_size\": 2000000000, \"pg_config\": "
      "[{\"pg_name\": \"0\", \"pg_size\": 2000000000, \"ranks\": [0]}]}, ";
  text.call(100, 4, 1, {.group_size = 2'000'000'000, .ranks = "\"[]\"", .start = 0, .stride = 1});
  text.call(
      110, 4, 2,
      {.group_size = 1'000, .name = "1", .ranks = "\"[]\"", .start = 2'000'000'000, .stride = 2'000'000'000});
  text.call(120, 4, 3,
            {.collective = "send", .more = ", \"Dst Rank\": 9223372036854775807, \"Rank\": 5000000000"});
  text.call(130, 4, 4,
            {.in = 18'446'744'073'709'551'615u, .out = 1, .more = ", \"Seq\": 9223372036854775807"});
  const Trace trace = read(text.text(), "trace.json");
  expect_sane(trace);
  EXPECT_EQ(trace.processes.rank[0], -1);
  EXPECT_EQ(trace.processes.world[0], -1);
  EXPECT_EQ(trace.ops.size(), 3u);
  EXPECT_EQ(lost(trace, "unplaced_p2p"), 1u);
}

TEST_F(KinetoDamage, GroupsThatClaimMillionsOfRanksCostLittle) {
  if (test::kSanitized) GTEST_SKIP() << "sixteen million numbers, for minutes";
  TraceText text;
  for (int i = 0; i < 200; ++i)
    text.call(
        100 + 10 * i, 4, i + 1,
        {.group_size = 4'000'000, .name = std::to_string(i), .ranks = "\"[]\"", .start = i, .stride = 1});
  const Trace trace = read(text.text());
  EXPECT_EQ(trace.comms.size(), 200u);
  size_t known = 0;
  for (const model::StringId members : trace.comms.all(&model::CommTable::members)) known += members != 0;
  EXPECT_EQ(lost(trace, "unknown_members"), 196u);
  EXPECT_EQ(known, 4u) << "the others cannot be checked and would take gigabytes";
}

TEST_F(KinetoDamage, AFileOfManyIsARunLoss) {
  const std::string good = write(some_trace().text(), "rank1.json"), bad = write("[]", "rank2.json");
  auto source = kFormat.open({good, bad, folder_ / "rank3.json"});
  ASSERT_TRUE(source);
  EXPECT_EQ((*source)->processes(), 1u);
  Trace run;
  (*source)->run_losses(run);
  EXPECT_EQ(run.losses.size(), 2u);
}

// What a version of tomorrow may add.
TEST_F(KinetoDamage, NewKeysPhasesAndKindsAreNoDamage) {
  TraceText text;
  text.before += "\"schemaVersion\": 9, \"new section\": {\"traceEvents\": [{\"ph\": 1}]}, ";
  text.call(100, 4, 1, {.more = ", \"New arg\": {\"x\": [1, {\"y\": \"}\"}]}"});
  text.raw("{\"ph\": \"Z\", \"cat\": \"quantum\", \"name\": \"x\", \"ts\": {\"s\": 1}}");
  text.raw("{\"ph\": \"X\", \"cat\": \"kernel_v2\", \"name\": \"x\", \"ts\": 1}");
  const Trace trace = read(text.text());
  EXPECT_EQ(trace.ops.size(), 1u);
  EXPECT_EQ(trace.losses.size(), 1u) << "no kernel";
  EXPECT_EQ(lost(trace, "call_without_kernel"), 1u);
}

}  // namespace
}  // namespace lockstep::readers::kineto::testing
