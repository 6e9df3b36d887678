// SPDX-License-Identifier: Apache-2.0
// Records -> rows: each kind, parents, states that came elsewhere, threads, losses.
#include "job/assemble/assemble.h"
#include "model/testing/spelled_types.h"
#include "readers/native/test_run.h"

namespace lockstep::readers::native {
namespace {

using model::kNoRow;

TEST(Events, CollectiveWithItsParents) {
  FileBuilder file;
  uint32_t comm = file.comm(0xabc, 3, 8, "world");
  FileBuilder::Log& caller = file.log(100, "python");
  FileBuilder::Log& progress = file.log(101, "NCCL Progress");
  add_allreduce(caller, progress, comm, 5000);
  model::Trace trace = load_one(file);

  ASSERT_EQ(trace.calls.size(), 4u);
  EXPECT_EQ(trace.calls.start_ns[0], at(5000));
  EXPECT_EQ(trace.calls.end_ns[0], at(5900));
  EXPECT_EQ(trace.calls.group_start_ns[0], at(5010));
  EXPECT_EQ(trace.calls.group_end_ns[0], at(5200));
  EXPECT_EQ(trace.calls.depth[0], 1);
  EXPECT_EQ(trace.calls.parent[1], 0u);
  EXPECT_EQ(trace.calls.count[1], 1024u);
  ASSERT_EQ(trace.tasks.size(), 1u);
  EXPECT_EQ(trace.tasks.call[0], 1u);
  EXPECT_EQ(trace.tasks.plan[0], 3u);
  EXPECT_EQ(trace.tasks.channels[0], 2);
  EXPECT_EQ(trace.tasks.seq[0], 5000u);
  ASSERT_EQ(trace.channels.size(), 2u);
  EXPECT_EQ(trace.channels.task[1], 0u);
  EXPECT_EQ(trace.channels.channel[1], 1);
  EXPECT_EQ(trace.channels.gpu_stop[1], 6501u);
  EXPECT_EQ(trace.channels.stop_seen_ns[1], at(7600));
  EXPECT_EQ(trace.comms.comm_id[0], 0xabcu);
  EXPECT_EQ(trace.comms.rank[0], 3);
  EXPECT_EQ(trace.strings[trace.threads.name[trace.channels.thread[0]]], "NCCL Progress");
  EXPECT_EQ(trace.processes.first_ns[0], at(5000));
  EXPECT_EQ(trace.processes.last_ns[0], at(7600));
  EXPECT_EQ(trace.losses.size(), 0u) << losses_text(trace);
}

TEST(Events, EachKindIsARowAndIsCounted) {
  FileBuilder file;
  uint32_t comm = file.comm(1, 0, 2);
  FileBuilder::Log& log = file.log(100);
  uint16_t shape = log.shape("Recv", "ncclInt8");
  uint64_t call =
      log.add(Kind::kP2pApi, format::P2pApiRecord{head(1000, 5), 7, comm, shape, log.stream(0xfeed)});
  uint64_t p2p =
      log.add_child(Kind::kP2p, format::P2pRecord{head(1100, 5), 7, 0x77, comm, 1, 0, shape, 2, 0}, call);
  uint64_t op =
      log.add(Kind::kProxyOp,
              format::ProxyOpRecord{
                  head(1200, 900), p2p, format::make_context(0x7a9, comm), 100, 1, 4, 65536, 0, 30, 3, {}});
  uint64_t step =
      log.add(Kind::kProxyStep, format::ProxyStepRecord{head(1300, 100), op, 10, 20, 30, 4096, 2, 1, 0});
  format::NetPluginRecord net{head(1310, 50), step, 0x20001, 1, 0, {}};
  int32_t fd = 9, opcode = 2;
  uint64_t bytes = 4096;
  std::memcpy(net.payload + 8, &fd, 4);
  std::memcpy(net.payload + 12, &opcode, 4);
  std::memcpy(net.payload + 16, &bytes, 8);
  log.add(Kind::kNetPlugin, net);
  log.add(Kind::kProxyCtrl, format::ProxyCtrlRecord{head(1500, 10), comm, 1, 9, 5, 17, 18});
  uint64_t ce =
      log.add(Kind::kCeColl, format::CeCollRecord{head(2000, 10), 64, 1, 2, 3, comm, shape, 0, 4, 0, 0, {}});
  log.add_child(Kind::kCeSync, format::CeSyncRecord{head(2001, 2), comm, 2, 0}, ce);
  log.add_child(Kind::kCeBatch, format::CeBatchRecord{head(2005, 2), 512, comm, 3}, ce);
  format::KernelPhaseRecord phase{head(2100, 20), p2p, 50, 60, comm, log.shape("compute"), 1, 0};
  phase.head.link = 6;
  log.add(Kind::kKernelPhase, phase);
  log.add(Kind::kApiOp, format::ApiOpRecord{head(2200, 30, format::kFlagGpuTimes), 10, 20, 0xbeef, 111, 222,
                                            5, comm, log.shape("my_all_reduce", "Float"),
                                            static_cast<uint16_t>(format::ApiClock::kRealtime), -1, 4});
  log.add(Kind::kMark, format::MarkRecord{head(2300), 12, 0, 1, 0});
  model::Trace trace = load_one(file);

  model::EventCounts counts = model::count_events(trace);
  for (const char* kind : {"P2pApi", "P2p", "ProxyOp", "ProxyStep", "NetPlugin", "ProxyCtrl", "CeColl",
                           "CeSync", "CeBatch", "KernelPhase", "ApiOp", "Mark"}) {
    uint64_t found = 0;
    for (uint8_t i = 0; i < counts.size(); ++i) found += model::event_name(i) == kind ? counts[i] : 0;
    EXPECT_EQ(found, 1u) << kind;
  }
  EXPECT_EQ(events(trace), 12u);
  EXPECT_EQ(trace.calls.stream[0], 0xfeedu);
  EXPECT_EQ(trace.tasks.recv_buffer[0], 0x77u);
  EXPECT_EQ(trace.proxy_ops.task[0], 0u);
  EXPECT_EQ(trace.proxy_ops.comm[0], 0u);
  EXPECT_EQ(trace.proxy_ops.progress_ns[0], at(1230));
  EXPECT_EQ(trace.proxy_steps.proxy_op[0], 0u);
  EXPECT_EQ(trace.proxy_steps.wait3_ns[0], at(1330));
  EXPECT_EQ(trace.proxy_steps.end_ns[0], at(1400));
  EXPECT_EQ(trace.net_events.proxy_step[0], 0u);
  EXPECT_EQ(trace.net_events.qp[0], 9);
  EXPECT_EQ(trace.net_events.opcode[0], 2);
  EXPECT_EQ(trace.net_events.bytes[0], 4096u);
  EXPECT_EQ(trace.proxy_ctrls.second_state[0], 18);
  EXPECT_EQ(trace.proxy_ctrls.appended[0], 5u);
  EXPECT_EQ(trace.calls.parent[1], 1u);  // CeSync: row of tasks
  EXPECT_EQ(trace.calls.count[2], 512u);
  EXPECT_EQ(trace.channels.phase[0], 1);
  EXPECT_EQ(trace.channels.channel[0], 6);
  EXPECT_EQ(trace.tasks.gpu_start_ns[2], 111);
  EXPECT_EQ(trace.tasks.out_count[2], 20u);
  EXPECT_EQ(trace.strings[trace.marks.name[0]], "step");
  EXPECT_EQ(trace.marks.value[0], 12);
  EXPECT_EQ(trace.losses.size(), 0u) << losses_text(trace);
}

TEST(Events, ElementsAreAsLongAsTheirTypesInEverySpelling) {
  FileBuilder file;
  const uint32_t comm = file.comm(1, 0, 2);
  FileBuilder::Log& log = file.log(100);
  uint64_t at_tick = 1000;
  for (const auto& type : model::testing::kSpelledTypes) {
    const uint16_t shape = log.shape("my_all_reduce", type.name);
    log.add(Kind::kApiOp,
            format::ApiOpRecord{head(at_tick += 100, 30), 6, 6, 0, 0, 0, 0, comm, shape, 0, -1, 0});
  }
  model::Trace trace = load_one(file);
  ASSERT_TRUE(job::assemble::assemble(trace));
  ASSERT_EQ(trace.ops.size(), std::size(model::testing::kSpelledTypes));
  for (size_t i = 0; i < trace.ops.size(); ++i)
    EXPECT_EQ(trace.ops.bytes[i], 6 * model::testing::kSpelledTypes[i].bytes)
        << model::testing::kSpelledTypes[i].name;
}

TEST(Events, GpuTimesOfDeclaredOperations) {
  FileBuilder file;
  uint32_t comm = file.comm(1, 0, 2);
  FileBuilder::Log& log = file.log(100);
  FileBuilder::Log& other = file.log(101);
  uint16_t shape = log.shape("my_all_reduce", "Float");
  auto op = [&](format::ApiClock clock, uint64_t start, uint64_t end) {
    uint8_t flags = clock == format::ApiClock::kNone ? 0 : format::kFlagGpuTimes;
    return log.add(Kind::kApiOp, format::ApiOpRecord{head(2200, 30, flags), 10, 20, 0, start, end, 0, comm,
                                                     shape, static_cast<uint16_t>(clock), -1, 4});
  };
  op(format::ApiClock::kMonotonic, 2210, 2220);
  op(format::ApiClock::kRealtime, static_cast<uint64_t>(at(2230)), ~uint64_t{0});
  op(format::ApiClock::kGpuNs, 111, 222);
  uint64_t late = op(format::ApiClock::kNone, 0, 0), odd = op(format::ApiClock::kNone, 0, 0);
  auto state = [&](uint64_t target, uint16_t number, uint32_t clock, uint64_t value) {
    format::StateRecord record{head(2300, 0), target, value};
    record.head.stop_after = clock;
    record.head.link = number;
    other.add(Kind::kState, record);
  };
  state(late, format::kStateGpuStart, 1, 2240);
  state(late, format::kStateGpuEnd, 1, 2250);
  state(odd, format::kStateGpuStart, 3, 1);
  state(odd, 21, 0, 0);
  model::Trace trace = load_one(file);

  auto& tasks = trace.tasks;
  ASSERT_EQ(tasks.size(), 5u);
  EXPECT_EQ(tasks.gpu_start_ns[0], at(2210));
  EXPECT_EQ(tasks.gpu_end_ns[0], at(2220));
  EXPECT_EQ(tasks.gpu_start_ns[1], at(2230));
  EXPECT_EQ(tasks.gpu_end_ns[1], INT64_MAX);
  EXPECT_EQ(tasks.flags[2] & format::kFlagGpuTimes, 0);
  EXPECT_EQ(tasks.gpu_start_ns[2], 0);
  EXPECT_EQ(tasks.gpu_start_ns[3], at(2240));
  EXPECT_EQ(tasks.gpu_end_ns[3], at(2250));
  EXPECT_NE(tasks.flags[3] & format::kFlagGpuTimes, 0);
  EXPECT_EQ(tasks.flags[4] & format::kFlagGpuTimes, 0);
  EXPECT_EQ(loss(trace, "gpu_clock"), 3u);
  EXPECT_EQ(loss(trace, "state_mismatch"), 1u);
}

TEST(Events, OpenEventsHaveNoEnd) {
  FileBuilder file;
  FileBuilder::Log& log = file.log(100);
  log.add(Kind::kProxyStep, format::ProxyStepRecord{head(1300), 0, 10, 0, 0, 0, 0, 0, 0});
  model::Trace trace = load_one(file);
  EXPECT_EQ(trace.proxy_steps.end_ns[0], 0);
  EXPECT_EQ(trace.proxy_steps.wait1_ns[0], at(1310));
  EXPECT_EQ(trace.proxy_steps.wait2_ns[0], 0);
}

TEST(Events, AnotherThreadCompletesAnEvent) {
  FileBuilder file;
  uint32_t comm = file.comm(1, 0, 2);
  FileBuilder::Log& helper = file.log(200, "helper");  // read before the log that it names
  FileBuilder::Log& log = file.log(100);
  uint64_t task = log.add(Kind::kColl, format::CollRecord{head(900), 1, 0, 0, 0, comm, 0, 1, 1, 0, 0});
  uint64_t kernel = log.add(Kind::kKernelCh, format::KernelChRecord{head(1000), task, 50, 0, comm, 0});
  uint64_t step = log.add(Kind::kProxyStep, format::ProxyStepRecord{head(1000), 0, 0, 0, 0, 0, 0, 0, 0});
  auto state = [&](uint64_t target, uint16_t number, uint64_t when, uint64_t value) {
    format::StateRecord record{head(when), target, value};
    record.head.link = number;
    helper.add(Kind::kState, record);
  };
  state(kernel, 22, 1500, 70);
  state(kernel, format::kStateStop, 1501, 0);
  state(step, 8, 1100, 0);
  state(step, 20, 1200, 0);
  state(step, 20, 1250, 0);
  state(step, 9, 1300, 4096);
  state(step, format::kStateStop, 1400, 0);
  state(task, format::kStateStop, 950, 0);
  model::Trace trace = load_one(file);
  EXPECT_EQ(trace.channels.gpu_stop[0], 70u);
  EXPECT_EQ(trace.channels.stop_seen_ns[0], at(1500));
  EXPECT_EQ(trace.proxy_steps.is_send[0], 1);
  EXPECT_EQ(trace.proxy_steps.wait1_ns[0], at(1100));
  EXPECT_EQ(trace.proxy_steps.wait2_ns[0], at(1200));  // the first report
  EXPECT_EQ(trace.proxy_steps.peer_waits[0], 2);
  EXPECT_EQ(trace.proxy_steps.bytes[0], 4096u);
  EXPECT_EQ(trace.proxy_steps.end_ns[0], at(1400));
  EXPECT_EQ(trace.tasks.end_ns[0], at(950));
  EXPECT_EQ(trace.losses.size(), 0u) << losses_text(trace);
}

TEST(Events, AShortCollIsAColl) {
  FileBuilder file;
  uint32_t comm = file.comm(1, 0, 2);
  FileBuilder::Log& log = file.log(100);
  uint64_t call = log.add(Kind::kCollApi, format::CollApiRecord{head(900, 5), 1, comm, 0, 0});
  format::ShortCollRecord coll{head(1000, 5), 7, 0x1000, 0x2000, 0x7f00, 0x7f01, 0xfffffffe, 0, 0, 8, 16, 0};
  log.add_child(Kind::kShortColl, coll, call);
  model::Trace trace = load_one(file);
  ASSERT_EQ(trace.tasks.size(), 1u);
  EXPECT_EQ(trace.tasks.kind[0], static_cast<uint8_t>(Kind::kColl));
  EXPECT_EQ(trace.tasks.call[0], 0u);
  EXPECT_EQ(trace.tasks.count[0], 7u);
  EXPECT_EQ(trace.tasks.seq[0], 0xfffffffeu);
  EXPECT_EQ(trace.tasks.send_buffer[0], 0x7f0000001000u);
  EXPECT_EQ(trace.tasks.recv_buffer[0], 0x7f0100002000u);
  EXPECT_EQ(trace.tasks.channels[0], 8);
  EXPECT_EQ(trace.tasks.warps[0], 16);
}

// Ring retention: the event was issued under a handle whose chunk has gone, and is known by it.
TEST(Events, AMovedEventIsFoundByItsFirstHandle) {
  FileBuilder file;
  uint32_t comm = file.comm(1, 0, 2);
  FileBuilder::Log& helper = file.log(200, "helper");
  FileBuilder::Log& log = file.log(100);
  uint64_t issued =
      format::make_handle(static_cast<uint32_t>(Kind::kColl), 2, 90 * format::kUnitsPerChunk + 8);
  helper.add(Kind::kKernelCh, format::KernelChRecord{head(1000), issued, 50, 0, comm, 0});
  format::StateRecord stop{head(1500), issued, 0};
  stop.head.link = format::kStateStop;
  helper.add(Kind::kState, stop);
  uint64_t now = log.add(Kind::kColl, format::CollRecord{head(900), 1, 0, 0, 0, comm, 0, 1, 1, 0, 0});
  format::LinkRecord name{head(0), now, issued};
  name.head.flags = format::kFlagMoved;
  log.add(Kind::kLink, name);
  model::Trace trace = load_one(file);
  EXPECT_EQ(trace.channels.task[0], 0u);
  EXPECT_EQ(trace.tasks.end_ns[0], at(1500));
  EXPECT_EQ(trace.tasks.call[0], model::kNoRow);
  EXPECT_EQ(trace.losses.size(), 0u);
}

TEST(Events, LongEventsTakeTheirTimesFromStateRecords) {
  FileBuilder file;
  uint32_t comm = file.comm(1, 0, 2);
  FileBuilder::Log& log = file.log(100);
  uint64_t group = log.add(Kind::kGroupApi, format::GroupApiRecord{head(1000, format::kSaturated), comm, 5,
                                                                   format::kSaturated, 1});
  log.add(Kind::kGroup,
          format::GroupRecord{head(1000, format::kSaturated), comm, 0, 0});  // its StateRecord is missing
  format::StateRecord end{head(10'000'000'000), group, 0};
  end.head.link = format::kStateStop;
  log.add(Kind::kState, end);
  end.head = head(9'000'000'000);
  end.head.link = 24;
  log.add(Kind::kState, end);
  model::Trace trace = load_one(file);
  EXPECT_EQ(trace.calls.end_ns[0], at(10'000'000'000));
  EXPECT_EQ(trace.calls.group_end_ns[0], at(9'000'000'000));
  EXPECT_EQ(trace.calls.end_ns[1], at(1000 + uint64_t{format::kSaturated}));
  EXPECT_EQ(loss(trace, "missing_time"), 1u);
}

TEST(Events, FarParentsTagsAndV4Plans) {
  FileBuilder file;
  uint32_t comm = file.comm(1, 0, 2);
  FileBuilder::Log& callback = file.log(200);
  FileBuilder::Log& caller = file.log(100);
  uint16_t shape = caller.shape("AllReduce");
  uint64_t call = caller.add(
      Kind::kCollApi, format::CollApiRecord{head(1000, 5, format::kFlagGraphCaptured), 1, comm, shape, 0});
  format::CollRecord replay{head(5000, 5), 1, 0, 0, 0, comm, callback.shape("AllReduce"), 1, 1, 0, 0};
  replay.head.link = format::kFarLink;
  uint64_t task = callback.add(Kind::kColl, replay);
  callback.add(Kind::kLink, format::LinkRecord{head(0), task, call});
  callback.add(Kind::kUserTag, format::UserTagRecord{head(0), task, 42});
  uint64_t plan = callback.add(Kind::kGroup, format::GroupRecord{head(6000, 9), comm, 0, 0});
  callback.add_child(Kind::kColl, format::CollRecord{head(6001, 5), 1, 0, 0, 0, comm, 1, 1, 1, 0, 0},
                     plan);  // v1..v4
  model::Trace trace = load_one(file);
  EXPECT_EQ(trace.tasks.call[0], 1u);  // row 0 is the plan: its log comes first
  EXPECT_EQ(trace.tasks.user_tag[0], 42u);
  EXPECT_EQ(trace.tasks.plan[1], 0u);
  EXPECT_EQ(trace.tasks.call[1], kNoRow);
  EXPECT_EQ(trace.losses.size(), 0u) << losses_text(trace);
}

TEST(Events, ForeignProxyOperationsKeepWhatNamesTheirOrigin) {
  FileBuilder file;
  file.comm(1, 0, 2);
  FileBuilder::Log& log = file.log(100);
  format::ProxyOpRecord op{head(1000, 5, format::kFlagForeign | format::kFlagSend),
                           0x1234,
                           format::make_context(0x666, 0),
                           4711,
                           1,
                           4,
                           1,
                           7,
                           0,
                           3,
                           {}};
  log.add(Kind::kProxyOp, op);
  model::Trace trace = load_one(file);
  EXPECT_EQ(trace.proxy_ops.originator_pid[0], 4711);
  EXPECT_EQ(trace.proxy_ops.parent[0], 0x1234u);
  EXPECT_EQ(trace.proxy_ops.rank[0], 7);
  EXPECT_EQ(trace.proxy_ops.comm[0], kNoRow);
  EXPECT_EQ(trace.proxy_ops.task[0], kNoRow);
  EXPECT_EQ(trace.proxy_ops.context[0], format::make_context(0x666, 0));
  EXPECT_EQ(loss(trace, "foreign_parent"), 0u) << "whether its originator is there, the run tells";
}

TEST(Events, BadNumbersKeepTheirRowsAndCount) {
  FileBuilder file;
  uint32_t comm = file.comm(1, 0, 2);
  FileBuilder::Log& log = file.log(100);
  uint16_t shape = log.shape("AllReduce");
  uint64_t step = log.add(Kind::kProxyStep, format::ProxyStepRecord{head(1), 0, 0, 0, 0, 0, 0, 0, 0});
  log.add(Kind::kColl, format::CollRecord{head(1000, 5), 1, 0, 0, 0, comm + 77, 999, 1, 1, 0, 0});
  log.add(Kind::kKernelCh,
          format::KernelChRecord{head(1000, 5), format::make_handle(6, 1, 123456), 1, 2, comm, 3});
  log.add(Kind::kKernelCh,
          format::KernelChRecord{head(1000, 5), format::make_handle(6, 32767, 4), 1, 2, comm, 3});
  log.add(Kind::kKernelCh,
          format::KernelChRecord{head(1000, 5), step, 1, 2, comm, 3});  // a parent of the wrong kind
  log.add_child(Kind::kCollApi, format::CollApiRecord{head(1000, 5), 1, format::kNoComm, shape, 0}, step);
  format::StateRecord state{head(5), step, 0};
  state.head.link = 23;
  log.add(Kind::kState, state);
  log.add(Kind::kState, format::StateRecord{head(5), format::make_handle(9, 3, 3), 0});
  log.add(Kind::kUserTag, format::UserTagRecord{head(0), step, 1});
  model::Trace trace = load_one(file);
  EXPECT_EQ(events(trace), 6u);
  EXPECT_EQ(loss(trace, "unknown_comm"), 1u);
  EXPECT_EQ(loss(trace, "unknown_shape"), 1u);
  EXPECT_EQ(loss(trace, "unresolved_parent"), 4u);
  EXPECT_EQ(loss(trace, "state_mismatch"), 1u);
  EXPECT_EQ(loss(trace, "unresolved_state"), 1u);
  EXPECT_EQ(loss(trace, "bad_user_tag"), 1u);
}

TEST(Events, ALogPassesToTheNextThread) {
  FileBuilder file;
  FileBuilder::Log& log = file.log(100, "first");
  log.add(Kind::kMark, format::MarkRecord{head(1000), 1, 0, 1, 0});
  log.thread(200, "second");
  log.add(Kind::kMark, format::MarkRecord{head(2000), 2, 0, 1, 0});
  model::Trace trace = load_one(file);
  EXPECT_EQ(trace.threads.tid[trace.marks.thread[0]], 100);
  EXPECT_EQ(trace.threads.tid[trace.marks.thread[1]], 200);
  EXPECT_EQ(trace.strings[trace.threads.name[trace.marks.thread[1]]], "second");
}

TEST(Events, CaptureLossesBecomeRows) {
  FileBuilder file;
  file.header().losses[1] = 7;
  FileBuilder::Log& a = file.log(100);
  FileBuilder::Log& b = file.log(101);
  a.losses()[5] = 2;
  b.losses()[5] = 3;
  b.losses()[23] = 4;
  model::Trace trace = load_one(file);
  EXPECT_EQ(loss(trace, "disk_full"), 7u);
  EXPECT_EQ(loss(trace, "unknown_handle"), 5u);
  EXPECT_EQ(loss(trace, "sample_missed"), 4u);
  EXPECT_EQ(trace.strings[trace.losses.stage[0]], "capture");
}

TEST(Events, ALogThatTimedNothingLeavesTheLeastTimeToOthers) {
  for (const bool timed_first : {true, false}) {
    FileBuilder file;
    const uint32_t comm = file.comm(1, 0, 2);
    FileBuilder::Log& log = file.log(100);
    format::HistogramCell cell{};
    cell.key = uint64_t{comm} << 32 | uint64_t{log.shape("AllReduce")} << 16 | 12 << 8 | 6;
    cell.shape_log = log.number();
    cell.ops = 1;
    for (const bool timed : {timed_first, !timed_first}) {
      cell.timed = timed ? 1 : 0;
      cell.min_ns = cell.max_ns = cell.sum_ns = timed ? 70 : 0;
      (timed == timed_first ? log : file.log(101)).histogram(cell);
    }
    const model::Trace trace = load_one(file);
    EXPECT_EQ(trace.histograms.min_ns[0], 70u);
    EXPECT_EQ(trace.histograms.max_ns[0], 70u);
  }
}

// Up to NCCL 2.25 the states of an operation's steps are reported for the operation, by any thread and in any
// order.
TEST(Events, TheEarliestStateOfAProxyOperationIsItsProgress) {
  FileBuilder file;
  FileBuilder::Log& log = file.log(100);
  format::ProxyOpRecord record{};
  record.head = head(1000, 9000);
  const uint64_t op = log.add(Kind::kProxyOp, record);
  for (const uint64_t when : {3000, 2000, 4000}) {
    format::StateRecord state{head(when), op, 0};
    state.head.link = 1;
    log.add(Kind::kState, state);
  }
  const model::Trace trace = load_one(file);
  ASSERT_EQ(trace.proxy_ops.size(), 1u);
  EXPECT_EQ(trace.proxy_ops.progress_ns[0], at(2000));
}

TEST(Events, HistogramsOfAllLogsAddUp) {
  FileBuilder file;
  uint32_t comm = file.comm(1, 0, 2);
  FileBuilder::Log& a = file.log(100);
  FileBuilder::Log& b = file.log(101);
  uint16_t shape = b.shape("AllReduce", "ncclFloat32");
  format::HistogramCell cell{};
  cell.key = uint64_t{comm} << 32 | uint64_t{shape} << 16 | 12 << 8 | 6;
  cell.ops = 10;
  cell.bytes = 40960;
  cell.first_ticks = 2000;
  cell.last_ticks = 3000;
  cell.timed = 4;
  cell.sum_ns = 250;
  cell.min_ns = 50;
  cell.max_ns = 90;
  cell.shape_log = b.number();
  b.histogram(cell);
  cell.ops = 7;
  cell.bytes = 28672;
  cell.first_ticks = 1500;
  cell.last_ticks = 2900;
  cell.timed = 3;
  cell.sum_ns = 120;
  cell.min_ns = 40;
  cell.max_ns = 80;
  a.histogram(cell);                                         // the operation started in b's log
  cell.timed = cell.sum_ns = cell.min_ns = cell.max_ns = 0;  // a third that timed none of its operations
  file.log(102).histogram(cell);
  cell.shape_log = 999;
  a.histogram(cell);
  model::Trace trace = load_one(file);
  ASSERT_EQ(trace.histograms.size(), 1u);
  EXPECT_EQ(trace.histograms.ops[0], 24u);
  EXPECT_EQ(trace.histograms.bytes[0], 40960u + 2 * 28672);
  EXPECT_EQ(trace.histograms.timed[0], 7u);
  EXPECT_EQ(trace.histograms.sum_ns[0], 370u);
  EXPECT_EQ(trace.histograms.min_ns[0], 40u);
  EXPECT_EQ(trace.histograms.max_ns[0], 90u);
  EXPECT_EQ(trace.histograms.first_ns[0], at(1500));
  EXPECT_EQ(trace.histograms.last_ns[0], at(3000));
  EXPECT_EQ(trace.histograms.size_bucket[0], 12);
  EXPECT_EQ(trace.strings[trace.shapes.func[trace.histograms.shape[0]]], "AllReduce");
  EXPECT_EQ(loss(trace, "unknown_histogram"), 1u);
}

}  // namespace
}  // namespace lockstep::readers::native
