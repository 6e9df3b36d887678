// SPDX-License-Identifier: Apache-2.0
#include "readers/kineto/kineto.h"

#include "model/event_kind.h"
#include "model/testing/spelled_types.h"
#include "model/torch/comms_id.h"
#include "readers/kineto/recording.h"
#include "readers/kineto/trace_text.h"

namespace lockstep::readers::kineto::testing {
namespace {

using model::kNoRow;
using model::Trace;

TEST_F(KinetoTest, AnOperationHasItsCallItsLaunchAndItsKernel) {
  TraceText text;
  text.step(3, 90, 500).call(100, 40, 7).launch(120, 7).named_kernel(150, 80, 7);
  text.kernel("void gemm<float>(float*)", 10, 30, 99);
  text.raw(
      "{\"name\": \"thread_name\", \"ph\": \"M\", \"ts\": 0, \"pid\": 4711, \"tid\": 4711, \"args\": "
      "{\"name\": \"thread 4711 "
      "(pt_main_thread)\"}}");
  const Trace trace = read(text.text());
  ASSERT_EQ(trace.ops.size(), 1u);
  EXPECT_EQ(func(trace, 0), "AllReduce");
  EXPECT_EQ(trace.strings[trace.shapes.datatype[trace.ops.shape[0]]], "ncclFloat32");
  EXPECT_EQ(trace.ops.called_ns[0], kBase + 100'000);
  EXPECT_EQ(trace.ops.launched_ns[0], kBase + 120'000);
  EXPECT_EQ(trace.ops.gpu_start_ns[0], kBase + 150'000);
  EXPECT_EQ(trace.ops.gpu_end_ns[0], kBase + 230'000);
  EXPECT_EQ(trace.ops.gpu_source[0], static_cast<uint8_t>(model::GpuTimeSource::kCupti));
  EXPECT_EQ(trace.ops.bytes[0], 4096u);
  EXPECT_EQ(trace.ops.stream[0], 23u);
  EXPECT_EQ(trace.calls.end_ns[trace.ops.call[0]], kBase + 140'000);
  EXPECT_EQ(trace.comms.rank[0], 1);
  EXPECT_EQ(trace.comms.ranks[0], 4);
  EXPECT_EQ(trace.strings[trace.comms.name[0]], "default_pg");
  EXPECT_EQ(trace.strings[trace.comms.members[0]], "0,1,2,3");
  EXPECT_EQ(trace.strings[trace.threads.name[trace.ops.thread[0]]], "pt_main_thread");
  ASSERT_EQ(trace.calls.size(), 2u);
  EXPECT_EQ(trace.calls.kind[1], number(model::EventKind::kKernelLaunch));
  EXPECT_EQ(trace.calls.start_ns[1], kBase + 120'000);
  EXPECT_EQ(trace.calls.end_ns[1], kBase + 123'000);
  EXPECT_EQ(trace.calls.parent[1], trace.ops.call[0]);
  ASSERT_EQ(trace.kernels.size(), 2u);
  EXPECT_EQ(trace.kernels.op[0], 0u);
  EXPECT_EQ(trace.kernels.kind[0], static_cast<uint8_t>(model::KernelKind::kCommunication));
  EXPECT_EQ(trace.kernels.op[1], kNoRow);
  EXPECT_EQ(trace.kernels.kind[1], static_cast<uint8_t>(model::KernelKind::kCompute));
  EXPECT_EQ(trace.kernels.start_ns[1], kBase + 10'000);
  ASSERT_EQ(trace.marks.size(), 1u);
  EXPECT_EQ(trace.marks.value[0], 3);
  EXPECT_EQ(trace.marks.time_ns[0], kBase + 90'000);
  EXPECT_EQ(trace.processes.rank[0], 1);
  EXPECT_EQ(trace.processes.world[0], 4);
  EXPECT_EQ(trace.processes.nccl_version[0], 22809);
  EXPECT_EQ(trace.processes.gpu[0], 1) << "ranks do not share a device";
  EXPECT_EQ(trace.strings[trace.processes.gpu_model[0]], "NVIDIA H200");
  EXPECT_EQ(trace.processes.closed[0], 1);
  EXPECT_EQ(trace.losses.size(), 0u);
}

TEST_F(KinetoTest, TheBaseTimeMayComeLateOrNotAtAll) {
  TraceText late;
  late.call(100, 40, 7).launch(120, 7).named_kernel(150, 80, 7);
  late.after = ", \"baseTimeNanoseconds\": " + std::to_string(kBase) + late.after;
  late.base.clear();
  const Trace trace = read(late.text());
  EXPECT_EQ(trace.ops.called_ns[0], kBase + 100'000);
  EXPECT_EQ(trace.kernels.end_ns[0], kBase + 230'000);
  TraceText absent;
  absent.base.clear();
  absent.call(1'700'000'000'000'000, 40, 7);
  EXPECT_EQ(read(absent.text()).ops.called_ns[0], 1'700'000'000'000'000'000);
}

TEST_F(KinetoTest, WhatIsNoOperationIsLeftOut) {
  TraceText text;
  for (const char* pseudo : {"wait", "init", "broadcastUniqueNCCLID", "allgatherUniqueNCCLIDs"})
    text.call(100, 4, 7,
              {.collective = pseudo, .in = 0, .group_size = 1, .ranks = "\"[]\"", .start = -1, .stride = -1});
  const Trace trace = read(text.text());
  EXPECT_EQ(trace.ops.size(), 0u);
  EXPECT_EQ(trace.comms.size(), 0u);
  EXPECT_EQ(trace.losses.size(), 0u);
}

TEST_F(KinetoTest, ElementsAreAsLongAsTheirTypesInEverySpelling) {
  TraceText text;
  int64_t calls = 0;
  for (const auto& type : model::testing::kSpelledTypes) {
    text.call(100 + 10 * calls, 4, static_cast<int>(calls) + 1,
              {.collective = "allreduce", .dtype = type.name, .in = 6, .out = 6});
    ++calls;
  }
  const Trace trace = read(text.text());
  ASSERT_EQ(trace.ops.size(), static_cast<size_t>(calls));
  for (size_t i = 0; i < trace.ops.size(); ++i)
    EXPECT_EQ(trace.ops.bytes[i], 6 * model::testing::kSpelledTypes[i].bytes)
        << model::testing::kSpelledTypes[i].name;
}

// Spelling, count of one rank, root.
TEST_F(KinetoTest, EveryFunctionHasTheCountThatAllRanksShare) {
  struct Case {
    Comms comms;
    const char* func;
    uint64_t count;
    int32_t root;
  };
  const std::vector<Case> cases = {
      {{.collective = "_allgather_base", .in = 8, .out = 32}, "AllGather", 8, 0},
      {{.collective = "all_gather", .in = 8, .out = 33}, "AllGatherV", 8, 0},
      {{.collective = "_reduce_scatter_base", .in = 32, .out = 8}, "ReduceScatter", 8, 0},
      {{.collective = "reduce_scatter", .in = 33, .out = 8}, "ReduceScatter", 0, 0},
      {{.collective = "all_to_allv", .in = 32, .out = 32}, "AlltoAll", 8, 0},
      {{.collective = "broadcast", .in = 8, .out = 8, .more = ", \"Rank\": 2"}, "Broadcast", 8, 2},
      {{.collective = "gather", .in = 8, .out = 32, .more = ", \"Rank\": 3"}, "Gather", 8, 3},
      {{.collective = "allreduce_coalesced", .in = 8, .out = 8}, "AllReduce", 8, 0},
      {{.collective = "barrier", .dtype = "Byte", .in = 0, .out = 0}, "Barrier", 0, 0},
      {{.collective = "some_new_thing", .in = 8, .out = 8}, "some_new_thing", 8, 0},
  };
  TraceText text;
  for (size_t i = 0; i < cases.size(); ++i)
    text.call(100 + 10 * static_cast<int64_t>(i), 4, static_cast<int>(i) + 1, cases[i].comms);
  const Trace trace = read(text.text());
  ASSERT_EQ(trace.ops.size(), cases.size());
  for (size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(func(trace, i), cases[i].func) << i;
    EXPECT_EQ(trace.ops.count[i], cases[i].count) << cases[i].func;
    EXPECT_EQ(trace.shapes.root[trace.ops.shape[i]], cases[i].root) << cases[i].func;
    EXPECT_EQ(trace.ops.index[i], i);
  }
}

TEST_F(KinetoTest, AnUnevenAllToAllHasNoCount) {
  TraceText text;
  text.event(
      "cpu_op", "record_param_comms", 100, 4,
      "\"External id\": 1, \"Collective name\": \"all_to_allv\", \"dtype\": \"Half\", \"In msg nelems\": "
      "32, \"Out msg nelems\": 32, \"In split size\": \"[30, 2]\", \"Out split size\": \"[30, 2]\", "
      "\"Group size\": 2, \"Process Group Name\": \"3\", \"Global rank start\": 0, \"Global rank stride\": "
      "1");
  const Trace trace = read(text.text());
  EXPECT_EQ(trace.ops.count[0], 0u);
  EXPECT_EQ(trace.strings[trace.comms.name[0]], "group 3");
  EXPECT_EQ(trace.strings[trace.comms.members[0]], "0,1") << "made of start, stride and size";
}

TEST_F(KinetoTest, AnAllToAllIsEvenIfBothItsListsAndSizesAre) {
  auto count = [&](const char* in_split, const char* out_split, int out) {
    TraceText text;
    text.event("cpu_op", "record_param_comms", 100, 4,
               "\"External id\": 1, \"Collective name\": \"all_to_allv\", \"dtype\": \"Half\", \"In msg "
               "nelems\": 32, \"Out msg nelems\": " +
                   std::to_string(out) + ", \"In split size\": \"" + in_split + "\", \"Out split size\": \"" +
                   out_split +
                   "\", \"Group size\": 2, \"Process Group Name\": \"3\", \"Global rank start\": 0, \"Global "
                   "rank stride\": 1");
    return read(text.text()).ops.count[0];
  };
  EXPECT_EQ(count("[]", "[]", 32), 16u);
  EXPECT_EQ(count("[30, 2]", "[]", 32), 0u);
  EXPECT_EQ(count("[]", "[30, 2]", 32), 0u);
  EXPECT_EQ(count("[]", "[]", 30), 0u);
}

TEST_F(KinetoTest, MembersComeFromTheConfigurationTheListOrTheStride) {
  TraceText text;
  text.info =
      "\"distributedInfo\": {\"rank\": 5, \"world_size\": 64, \"nccl_version\": \"2.28.9\", \"pg_config\": ["
      "{\"pg_name\": \"7\", \"pg_desc\": \"odd\", \"pg_size\": 3, \"ranks\": [1, 5, 6]},"
      "{\"pg_name\": \"8\", \"pg_desc\": \"cut\", \"pg_size\": 40, \"ranks\": \"[0, 1, ..., 39]\"},"
      "{\"pg_name\": \"9\", \"pg_desc\": \"text\", \"pg_size\": 2, \"ranks\": \"[5, 9]\"}]}, ";
  text.call(
      100, 4, 1,
      {.group_size = 3, .name = "7", .description = "odd", .ranks = "\"[]\"", .start = 1, .stride = -1});
  text.call(110, 4, 2, {.group_size = 40, .name = "8", .description = "cut", .ranks = "\"[0, 1, ..., 39]\""});
  text.call(120, 4, 3,
            {.group_size = 3,
             .name = "11",
             .description = "lost",
             .ranks = "\"[]\"",
             .start = 1,
             .stride = -1,
             .more = ", \"Rank\": 2"});
  text.call(
      130, 4, 4,
      {.group_size = 1, .name = "12", .description = "own", .ranks = "\"[]\"", .start = 5, .stride = 0});
  const Trace trace = read(text.text(), "x.json");
  auto comm = [&](size_t op) { return trace.comms.row(trace.ops.comm[op]); };
  ASSERT_EQ(trace.ops.size(), 4u);
  EXPECT_EQ(trace.strings[comm(0).members], "1,5,6");
  EXPECT_EQ(comm(0).rank, 1);
  EXPECT_EQ(trace.strings[comm(0).name], "odd (group 7)");
  EXPECT_EQ(comm(1).ranks, 40);
  EXPECT_TRUE(trace.strings[comm(1).members].ends_with(",37,38,39"));
  EXPECT_EQ(comm(1).rank, 5);
  EXPECT_EQ(trace.strings[comm(2).members], "");
  EXPECT_EQ(comm(2).comm_id, 0u) << "nothing tells whose it is";
  EXPECT_EQ(comm(2).rank, 2) << "the operation says";
  EXPECT_EQ(trace.strings[comm(3).members], "5");
  EXPECT_EQ(lost(trace, "unknown_members"), 1u);
  EXPECT_EQ(trace.strings[trace.comms.members[1]], "5,9") << "a group that the window does not use";
}

TEST_F(KinetoTest, OneNameMayBeTwoGroups) {
  TraceText text;
  text.call(100, 4, 1, {.group_size = 2, .name = "5", .description = "tp", .ranks = "\"[0, 1]\""});
  text.call(
      110, 4, 2,
      {.group_size = 2, .name = "5", .description = "tp", .ranks = "\"[1, 3]\"", .start = 1, .stride = 2});
  const Trace trace = read(text.text());
  EXPECT_NE(trace.ops.comm[0], trace.ops.comm[1]);
  EXPECT_NE(trace.comms.comm_id[0], trace.comms.comm_id[1]);
}

// `Rank` of an operation is the root's or a peer's in some.
TEST_F(KinetoTest, TheRankIsTheProfilersElseThatOfAnUnrootedOperationElseTheNames) {
  const std::string on_demand =
      "\"distributedInfo\": {\"rank\": 3, \"world_size\": 4, \"nccl_version\": \"unknown\"}, ";
  TraceText text;
  text.info = on_demand;
  text.call(100, 4, 1, {.collective = "broadcast", .more = ", \"Rank\": 3"});
  EXPECT_EQ(read(text.text(), "trace.json").processes.rank[0], 3) << "nothing better is known";
  EXPECT_EQ(read(text.text(), "rank-0.json").processes.rank[0], 0);
  text.call(110, 4, 2,
            {.group_size = 2,
             .name = "1",
             .ranks = "\"[1, 3]\"",
             .start = 1,
             .stride = 2,
             .more = ", \"Rank\": 0"});
  EXPECT_EQ(read(text.text(), "rank-0.json").processes.rank[0], 1);
  text.info.clear();
  EXPECT_EQ(read(text.text(), "trace.json").processes.rank[0], 1);
  EXPECT_EQ(read(TraceText().text(), "rank9.json").processes.rank[0], 1) << "the profiler says 1";
}

TEST_F(KinetoTest, NamesThatTellARank) {
  EXPECT_EQ(rank_of_trace_name("/a7/kineto_rank12.json"), 12);
  EXPECT_EQ(rank_of_trace_name("rank-3.json"), 3);
  EXPECT_EQ(rank_of_trace_name("trace_5.json"), 5);
  EXPECT_EQ(rank_of_trace_name("node0_4711.1760000000000.pt.trace.json"), -1);
  EXPECT_EQ(rank_of_trace_name("trace_20260102030405.json"), -1) << "a date";
  EXPECT_EQ(rank_of_trace_name("trace.json"), -1);
  EXPECT_EQ(rank_of_trace_name("rank3.1760000000000.pt.trace.json"), 3) << "a worker that the user has named";
  EXPECT_EQ(rank_of_trace_name("frank_4711.1760000000000.pt.trace.json"), -1);
  EXPECT_EQ(rank_of_trace_name("resnet50.json"), -1);
  TraceText text;
  text.info.clear();
  const Trace trace = read(text.text(), "node_a_4711.1760000000000.pt.trace.json");
  EXPECT_EQ(trace.processes.rank[0], -1);
  EXPECT_EQ(trace.strings[trace.processes.host[0]], "node_a");
  EXPECT_EQ(trace.processes.pid[0], 4711);
  EXPECT_EQ(lost(trace, "unknown_rank"), 1u);
}

TEST_F(KinetoTest, SendsAndReceivesFindTheirPeers) {
  const Comms group = {.group_size = 4,
                       .name = "1",
                       .description = "pp",
                       .ranks = "\"[1, 3, 5, 7]\"",
                       .start = 1,
                       .stride = 2};
  auto with = [&](const char* what, const char* more) {
    Comms comms = group;
    comms.collective = what;
    comms.more = more;
    return comms;
  };
  TraceText text;
  text.call(100, 4, 1, with("send", ", \"Dst Rank\": 5, \"Rank\": 2"));
  text.call(110, 4, 2, with("recv", ", \"Src Rank\": 7"));
  text.call(120, 4, 3, with("send", ", \"Rank\": 3"));
  text.call(130, 4, 4, with("recv", ""));
  text.call(140, 4, 5, with("allreduce", ""));
  const Trace trace = read(text.text());
  ASSERT_EQ(trace.ops.size(), 4u);
  EXPECT_EQ(trace.ops.peer[0], 2);
  EXPECT_EQ(trace.ops.peer[1], 3);
  EXPECT_EQ(trace.ops.peer[2], 3) << "the group rank of the destination";
  EXPECT_EQ(trace.ops.kind[0], number(model::EventKind::kP2p));
  EXPECT_EQ(trace.ops.index[2], 2u);
  EXPECT_EQ(trace.ops.index[3], 0u) << "collectives count apart";
  EXPECT_EQ(lost(trace, "unplaced_p2p"), 1u);
}

TEST_F(KinetoTest, PyTorchsNumbersPlaceOperations) {
  const model::CommsTuple tuple{
      .pg_name = "0", .seq = 12, .is_p2p = false, .start = 0, .stride = 1, .world = 8};
  EXPECT_EQ(model::comms_id(tuple), 2297668046887140139u);
  Comms comms{.group_size = 8,
              .ranks = "\"[0, 1, 2, 3, 4, 5, 6, 7]\"",
              .more = ", \"Seq\": 12, \"Comms Id\": 2297668046887140139"};
  TraceText text;
  text.call(100, 4, 1, comms);
  comms.more = ", \"Seq\": \"14\", \"Comms Id\": 17";
  text.call(110, 4, 2, comms);
  comms.more = ", \"Seq\": 14";
  text.call(120, 4, 3, comms);
  const Trace trace = read(text.text());
  EXPECT_EQ(trace.ops.index[0], 11u);
  EXPECT_EQ(trace.ops.index[1], 13u);
  EXPECT_EQ(trace.ops.index[2], 14u) << "coalesced operations share a number";
  EXPECT_EQ(trace.processes.window[0], static_cast<uint8_t>(model::Window::kNumbered));
  EXPECT_EQ(lost(trace, "comms_id_mismatch"), 1u);
  TraceText unnumbered;
  unnumbered.call(100, 4, 1);
  EXPECT_EQ(read(unnumbered.text()).processes.window[0], static_cast<uint8_t>(model::Window::kCounted));
}

// Also where they are of a scheme that is not known here: another string hash, another list of what is
// hashed.
TEST_F(KinetoTest, CommsIdsAreKeptAsTheFileHasThem) {
  Comms comms{.group_size = 8,
              .ranks = "\"[0, 1, 2, 3, 4, 5, 6, 7]\"",
              .more =
                  ", \"Global rank start\": 0, \"Global rank stride\": 1, \"Seq\": 12, \"Comms Id\": "
                  "2297668046887140139"};
  TraceText text;
  text.call(100, 4, 1, comms);
  comms.more = ", \"Global rank start\": 0, \"Global rank stride\": 1, \"Seq\": 13, \"Comms Id\": 17";
  text.call(110, 4, 2, comms);
  comms.more = ", \"Global rank start\": 0, \"Global rank stride\": 1, \"Seq\": 14";
  text.call(120, 4, 3, comms);
  comms.more = "";
  text.call(130, 4, 4, comms);
  const Trace trace = read(text.text());
  EXPECT_EQ(trace.ops.torch_comms_id[0], 2297668046887140139u);
  EXPECT_EQ(trace.ops.torch_comms_id[1], 17u);
  EXPECT_EQ(trace.ops.torch_comms_id[2], model::comms_id({"0", 14, false, 0, 1, 8}))
      << "traces of early 2026 have Seq alone";
  EXPECT_EQ(trace.ops.torch_comms_id[3], 0u);
  EXPECT_EQ(trace.ops.torch_seq[2], 14);
  EXPECT_EQ(lost(trace, "comms_id_mismatch"), 1u);
}

TEST_F(KinetoTest, ValuesMayBeTextsNumbersOrTruthValues) {
  TraceText text;
  text.raw(
      "{\"args\":{\"Group size\":\"4\",\"Seq\":true,\"Process Group Ranks\":[0,1,2,3],\"In msg nelems\":8.0,"
      "\"Out msg nelems\":\"8\",\"Process Group Name\":0,\"dtype\":\"BFloat16\",\"External id\":\"9\","
      "\"Collective name\":\"all\\u0072educe\",\"Global rank start\":0,\"Global rank stride\":1,"
      "\"Is asynchronized op\":true,\"a key of "
      "tomorrow\":{\"deep\":[[[]]]}},\"dur\":\"4.5\",\"ts\":\"100.25\","
      "\"tid\":\"main\",\"pid\":4711,\"name\":\"record_param_comms\",\"cat\":\"cpu_op\",\"ph\":\"X\"}");
  const Trace trace = read(text.text());
  ASSERT_EQ(trace.ops.size(), 1u);
  EXPECT_EQ(func(trace, 0), "AllReduce");
  EXPECT_EQ(trace.ops.bytes[0], 16u);
  EXPECT_EQ(trace.ops.called_ns[0], kBase + 100'250);
  EXPECT_EQ(trace.calls.end_ns[0], kBase + 104'750);
  EXPECT_EQ(trace.ops.index[0], 0u);
  EXPECT_EQ(trace.strings[trace.comms.members[0]], "0,1,2,3");
}

TEST_F(KinetoTest, ABatchOfSendsAndReceivesSharesTheKernelThatWasLaunchedBehindIt) {
  TraceText text;
  text.call(100, 4, 1, {.collective = "send", .more = ", \"Dst Rank\": 2"});
  text.call(110, 4, 2, {.collective = "recv", .more = ", \"Src Rank\": 0"});
  text.launch(120, 50);
  text.kernel("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", 140, 60, 50);
  // Another one behind it, of its own.
  text.call(200, 4, 3, {.collective = "send", .more = ", \"Dst Rank\": 2"});
  text.launch(210, 51);
  text.kernel("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", 240, 10, 51);
  const Trace trace = read(text.text());
  for (size_t op : {0, 1}) {
    EXPECT_EQ(trace.ops.gpu_start_ns[op], kBase + 140'000) << op;
    EXPECT_EQ(trace.ops.gpu_end_ns[op], kBase + 200'000) << op;
    EXPECT_EQ(trace.ops.launched_ns[op], kBase + 120'000) << op;
  }
  EXPECT_EQ(trace.ops.gpu_start_ns[2], kBase + 240'000);
  EXPECT_EQ(trace.kernels.op[0], 0u);
  EXPECT_EQ(trace.kernels.op[1], 2u);
  EXPECT_EQ(lost(trace, "unlinked_kernel"), 0u);
}

TEST_F(KinetoTest, AKernelIsNotGivenToWhatItCannotHaveDone) {
  TraceText text;
  text.call(100, 4, 1);
  text.launch(110, 50).kernel("ncclDevKernel_AllGather_RING_LL(x)", 140, 10, 50);
  // Long after, and on another thread.
  text.launch(90'000, 51).kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", 90'020, 10, 51);
  text.launch(111, 52, 4999).kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", 150, 10, 52);
  const Trace trace = read(text.text());
  EXPECT_EQ(trace.ops.gpu_start_ns[0], 0);
  EXPECT_EQ(lost(trace, "unlinked_kernel"), 3u);
  EXPECT_EQ(lost(trace, "call_without_kernel"), 1u);
  EXPECT_EQ(trace.kernels.kind[0], static_cast<uint8_t>(model::KernelKind::kCommunication));
}

TEST_F(KinetoTest, KernelsOfGraphsAreCommunicationOfNoCall) {
  TraceText text;
  text.call(100, 400, 1).launch(110, 50, 4711, "cudaGraphLaunch");
  text.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", 140, 10, 50,
              "\"graph id\": 5, \"graph node id\": 17");
  const Trace trace = read(text.text());
  EXPECT_EQ(trace.kernels.graph[0], 5u);
  EXPECT_EQ(trace.kernels.graph_node[0], 17u);
  EXPECT_EQ(trace.kernels.op[0], kNoRow);
  EXPECT_EQ(trace.ops.gpu_start_ns[0], 0);
  EXPECT_EQ(lost(trace, "graph_kernel"), 1u);
}

TEST_F(KinetoTest, AnIdThatIsOnlyACorrelationProvesNothing) {
  // Files of 2023: the kernel's id is its own correlation, here that of another thread's call.
  TraceText text;
  text.call(100, 4, 50, {}, 4712).call(200, 40, 2);
  text.launch(210, 50);
  text.kernel("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", 240, 10, 50, "\"External id\": 50");
  const Trace trace = read(text.text());
  EXPECT_EQ(trace.ops.gpu_start_ns[0], 0);
  EXPECT_EQ(trace.ops.gpu_start_ns[1], kBase + 240'000) << "in which it was launched";
}

TEST_F(KinetoTest, AnArrowTellsALaunchThatIsNotRecorded) {
  TraceText text;
  text.call(100, 40, 1);
  text.raw(
      "{\"ph\": \"s\", \"id\": 50, \"pid\": 4711, \"tid\": 4711, \"ts\": 120.000, \"cat\": \"ac2g\", "
      "\"name\": \"ac2g\"}");
  text.kernel("ncclDevKernel_Generic(x)", 140, 10, 50);
  const Trace trace = read(text.text());
  EXPECT_EQ(trace.ops.launched_ns[0], kBase + 120'000);
  EXPECT_EQ(trace.ops.gpu_start_ns[0], kBase + 140'000);
}

TEST_F(KinetoTest, OperationsOfSeveralKernelsSpanThem) {
  TraceText text;
  text.call(100, 40, 1).launch(110, 1).named_kernel(140, 10, 1);
  text.kernel("ncclDevKernel_Reduce_Sum_f32_RING_LL(x)", 155, 20, 2, "\"External id\": 1, " + Comms().text());
  const Trace trace = read(text.text());
  EXPECT_EQ(trace.ops.gpu_start_ns[0], kBase + 140'000);
  EXPECT_EQ(trace.ops.gpu_end_ns[0], kBase + 175'000);
}

TEST_F(KinetoTest, ACustomAllReduceWithArgumentsIsTheOperations) {
  TraceText text;
  text.call(100, 40, 1, {.name = "aiter_custom_ar", .description = ""}).launch(110, 1);
  text.named_kernel(140, 10, 1, {}, "void aiter::cross_device_reduce_2stage<__half, 8>(x)");
  text.kernel("void vllm::cross_device_reduce_1stage<__half, 4>(x)", 200, 10, 9);
  const Trace trace = read(text.text());
  EXPECT_EQ(trace.ops.gpu_start_ns[0], kBase + 140'000);
  EXPECT_EQ(trace.kernels.kind[1], static_cast<uint8_t>(model::KernelKind::kCommunication));
  EXPECT_EQ(lost(trace, "unlinked_kernel"), 1u);
}

TEST_F(KinetoTest, KernelsBeforeTheirLaunchWidenTheError) {
  TraceText text;
  text.call(100, 40, 1).launch(130, 1).named_kernel(118, 10, 1);
  const Trace trace = read(text.text());
  EXPECT_EQ(trace.ops.gpu_error_ns[0], 12'000);
}

TEST_F(KinetoTest, CallsWithoutArgumentsAreCounted) {
  TraceText text;
  text.event("cpu_op", "record_param_comms", 100, 4, "\"External id\": 1").call(110, 4, 2);
  const Trace trace = read(text.text());
  EXPECT_EQ(trace.ops.size(), 1u);
  EXPECT_EQ(lost(trace, "unnamed_call"), 1u);
}

TEST_F(KinetoTest, OfOneRankTheLatestFileCounts) {
  TraceText early, late;
  early.call(100, 4, 1);
  late.call(900, 4, 1).call(910, 4, 2);
  auto source = kFormat.open({write(late.text(), "b_rank1.json"), write(early.text(), "a_rank1.json")});
  ASSERT_TRUE(source);
  ASSERT_EQ((*source)->processes(), 1u);
  Trace trace, run;
  ASSERT_TRUE((*source)->load(0, trace));
  EXPECT_EQ(trace.ops.size(), 2u);
  (*source)->run_losses(run);
  EXPECT_EQ(lost(run, "older_trace"), 1u);
}

TEST_F(KinetoTest, ATraceWithoutEventsIsNotUsed) {
  TraceText whole, empty;
  whole.call(100, 4, 1);
  empty.base = "\"baseTimeNanoseconds\": " + std::to_string(kBase + 1'000'000'000) + ", ";
  empty.raw(
      "{\"name\": \"process_labels\", \"ph\": \"M\", \"ts\": 900, \"pid\": 4711, \"tid\": 0, \"args\": "
      "{\"labels\": \"CPU\"}}");
  auto source = kFormat.open({write(whole.text(), "a_rank1.json"), write(empty.text(), "b_rank1.json")});
  ASSERT_TRUE(source);
  ASSERT_EQ((*source)->processes(), 1u);
  Trace trace, run;
  ASSERT_TRUE((*source)->load(0, trace));
  EXPECT_EQ(trace.ops.size(), 1u);
  (*source)->run_losses(run);
  EXPECT_EQ(lost(run, "empty_trace"), 1u);
}

TEST_F(KinetoTest, HostsShareAClock) {
  TraceText text;
  text.before += "\"host_name\": \"node7\", ";
  const Trace trace = read(text.text());
  EXPECT_EQ(trace.strings[trace.processes.host[0]], "node7");
  EXPECT_EQ(trace.strings[trace.processes.boot_id[0]], "clock of node7");
}

TEST_F(KinetoTest, IsKnownByWhatItBeginsWith) {
  auto sniff = [](std::string_view text) {
    return kFormat.sniff(std::as_bytes(std::span(text.data(), text.size())));
  };
  EXPECT_TRUE(sniff(TraceText().text()));
  EXPECT_TRUE(sniff("\n {\"traceEvents\": ["));
  EXPECT_TRUE(sniff("{\"job\": \"x\", \"distributedInfo\": {\"pg_config\": ["))
      << "a dump has groups, but not there";
  EXPECT_FALSE(sniff("{\"version\": \"2.10\", \"pg_config\": {}, \"entries\": []}"));
  EXPECT_FALSE(sniff("[{\"ph\": \"X\"}]"));
  EXPECT_FALSE(sniff(""));
}

}  // namespace
}  // namespace lockstep::readers::kineto::testing
