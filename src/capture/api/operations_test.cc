// SPDX-License-Identifier: Apache-2.0
#include <set>
#include <thread>
#include <vector>

#include "capture/api/api_test.h"

namespace lockstep::test {
namespace {

using format::ApiOpRecord;
using format::Def;
using format::Kind;
using OperationsTest = ApiCapture;

TEST_F(OperationsTest, AreRecordedWhole) {
  LksFile file = record([] {
    lockstep_group group = declare_pair();
    lockstep_op_info info = LOCKSTEP_OP_INFO_INIT;
    info.group = group;
    info.collective = "reduce_scatter";
    info.algorithm = "one-shot";
    info.dtype = "BFloat16";
    info.in_count = 4096;
    info.out_count = 2048;
    info.root = 1;
    info.stream = reinterpret_cast<void*>(0x7000);
    lockstep_gpu_times times = gpu_times(111, 222, LOCKSTEP_CLOCK_GPU_NS);
    lockstep_end(lockstep_begin_op(&info), &times);
    lockstep_end(lockstep_begin(group, "allreduce", 1, 1, "Float", nullptr), nullptr);
  });
  auto ops = file.all<ApiOpRecord>(Kind::kApiOp);
  ASSERT_EQ(ops.size(), 2u);
  EXPECT_EQ(ops[0].in_count, 4096u);
  EXPECT_EQ(ops[0].out_count, 2048u);
  EXPECT_EQ(ops[0].stream, 0x7000u);
  EXPECT_EQ(ops[0].element_bytes, 2u);
  EXPECT_EQ(ops[0].peer, -1);
  EXPECT_EQ(ops[0].comm, 0u);
  EXPECT_EQ(ops[0].seq, 0u);
  EXPECT_EQ(ops[0].gpu_start, 111u);
  EXPECT_EQ(ops[0].gpu_end, 222u);
  EXPECT_EQ(ops[0].gpu_clock, LOCKSTEP_CLOCK_GPU_NS);
  EXPECT_EQ(ops[0].head.flags, format::kFlagGpuTimes | format::kFlagStopped);
  EXPECT_NE(ops[0].head.stop_after, 0u);
  EXPECT_EQ(ops[1].seq, 1u);
  EXPECT_EQ(ops[1].head.flags, format::kFlagStopped);
  EXPECT_LE(ops[0].head.start + ops[0].head.stop_after, ops[1].head.start);
  format::ShapeDef shape = file.shape(1, ops[0].shape);
  EXPECT_STREQ(shape.func, "reduce_scatter");
  EXPECT_STREQ(shape.datatype, "BFloat16");
  EXPECT_STREQ(shape.algo, "one-shot");
  EXPECT_EQ(shape.root, 1);
  EXPECT_EQ(file.shape(1, ops[1].shape).root, -1);
  EXPECT_EQ(file.lost(), 0u);
}

TEST_F(OperationsTest, StepsAndMarks) {
  LksFile file = record([] {
    lockstep_step(41);
    lockstep_mark("checkpoint", -7);
  });
  auto marks = file.all<format::MarkRecord>(Kind::kMark);
  ASSERT_EQ(marks.size(), 2u);
  EXPECT_EQ(marks[0].value, 41u);
  EXPECT_EQ(marks[0].is_step, 1);
  EXPECT_EQ(static_cast<int64_t>(marks[1].value), -7);
  EXPECT_EQ(marks[1].is_step, 0);
  EXPECT_STREQ(file.shape(1, marks[1].shape).func, "checkpoint");
}

TEST_F(OperationsTest, CountersNumberTheirStepsAndMarks) {
  LksFile file = record([] {
    const lockstep_api_v1* api = lockstep_api_();
    lockstep_counter steps = {nullptr, 41}, loads = {"load", -1};
    for (int round = 0; round < 2; ++round) {
      api->count(&steps);
      api->count(&loads);
    }
  });
  auto marks = file.all<format::MarkRecord>(Kind::kMark);
  ASSERT_EQ(marks.size(), 4u);
  for (size_t i = 0; i < marks.size(); ++i) {
    const bool is_step = i % 2 == 0;
    EXPECT_EQ(marks[i].is_step, is_step) << i;
    EXPECT_EQ(static_cast<int64_t>(marks[i].value), static_cast<int64_t>(i / 2) + (is_step ? 41 : -1)) << i;
  }
  EXPECT_STREQ(file.shape(1, marks[1].shape).func, "load");
}

TEST_F(OperationsTest, NumbersCountCollectivesAndPairsApart) {
  LksFile file = record([] {
    lockstep_group group = declare_pair(), other = declare_progression("other", 0, 1, 8);
    lockstep_op_info send = LOCKSTEP_OP_INFO_INIT;
    send.group = group;
    send.collective = "send";
    send.peer = 0;
    lockstep_op_info numbered = LOCKSTEP_OP_INFO_INIT;
    numbered.group = group;
    numbered.seq = 1000;
    lockstep_begin(group, "a", 1, 1, "Float", nullptr);
    lockstep_begin_op(&send);
    lockstep_begin(other, "a", 1, 1, "Float", nullptr);
    lockstep_begin(group, "a", 1, 1, "Float", nullptr);
    lockstep_begin_op(&numbered);
    lockstep_begin_op(&send);
  });
  std::vector<uint64_t> numbers;
  for (const auto& op : file.all<ApiOpRecord>(Kind::kApiOp)) numbers.push_back(op.seq);
  EXPECT_EQ(numbers, (std::vector<uint64_t>{0, 0, 0, 1, 999, 1}));
}

TEST_F(OperationsTest, WhatElseWasSaidIsInTheFlags) {
  LksFile file = record([] {
    lockstep_op_info info = LOCKSTEP_OP_INFO_INIT;
    info.group = declare_pair();
    lockstep_begin_op(&info);
    info.flags = LOCKSTEP_OP_SEQ | LOCKSTEP_OP_SYNC;
    lockstep_begin_op(&info);
    info.seq = 7;
    info.peer = 1;
    info.flags = LOCKSTEP_OP_ASYNC;
    lockstep_begin_op(&info);
    info.flags = LOCKSTEP_OP_COLLECTIVE;  // as the `nccl2` backend numbers its sends
    lockstep_begin_op(&info);
  });
  std::vector<uint8_t> flags;
  std::vector<uint64_t> numbers;
  for (const auto& op : file.all<ApiOpRecord>(Kind::kApiOp)) {
    flags.push_back(op.head.flags);
    numbers.push_back(op.seq);
  }
  using namespace format;
  EXPECT_EQ(flags,
            (std::vector<uint8_t>{0, kFlagSeqKnown | kFlagAsyncKnown,
                                  kFlagSeqKnown | kFlagP2p | kFlagAsyncKnown | kFlagAsync, kFlagSeqKnown}));
  EXPECT_EQ(numbers, (std::vector<uint64_t>{0, UINT64_MAX, 6, 6}));
}

TEST_F(OperationsTest, SplitsAreKeptAsFarAsPyTorchPrintsThem) {
  LksFile file = record([] {
    int64_t many[100];
    for (int i = 0; i < 100; ++i) many[i] = i * 10;
    lockstep_op_info info = LOCKSTEP_OP_INFO_INIT;
    info.group = declare_pair();
    info.in_split = many;
    info.in_splits = 100;
    info.out_split = many + 5;
    info.out_splits = 1;
    lockstep_begin_op(&info);
  });
  std::vector<int64_t> in, out;
  for (const auto& piece : file.all<format::SplitsRecord>(Kind::kSplits)) {
    std::vector<int64_t>& list = piece.is_out != 0 ? out : in;
    EXPECT_EQ(piece.first, list.size());
    EXPECT_EQ(piece.total, piece.is_out != 0 ? 1u : 100u);
    list.insert(list.end(), piece.values, piece.values + piece.n);
  }
  ASSERT_EQ(in.size(), 30u);
  EXPECT_EQ(in[28], 280);
  EXPECT_EQ(in[29], 990);
  EXPECT_EQ(out, (std::vector<int64_t>{50}));
}

TEST_F(OperationsTest, TextsAreKnownByContentNotByAddress) {
  LksFile file = record([] {
    lockstep_group group = declare_pair();
    char text[32];
    for (int round = 0; round < 100; ++round) {
      snprintf(text, sizeof text, round % 2 == 0 ? "even" : "odd");
      lockstep_begin(group, text, 1, 1, std::string("Float").c_str(), nullptr);
    }
    std::string longer(100, 'x');
    lockstep_begin(group, longer.c_str(), 1, 1, nullptr, nullptr);
    lockstep_begin(group, nullptr, 1, 1, "", nullptr);
  });
  auto ops = file.all<ApiOpRecord>(Kind::kApiOp);
  ASSERT_EQ(ops.size(), 102u);
  EXPECT_STREQ(file.shape(1, ops[98].shape).func, "even");
  EXPECT_STREQ(file.shape(1, ops[99].shape).func, "odd");
  EXPECT_EQ(std::string(file.shape(1, ops[100].shape).func), std::string(39, 'x'));
  EXPECT_STREQ(file.shape(1, ops[101].shape).func, "");
  EXPECT_EQ(file.count(Def::kShape), 4u);
}

TEST_F(OperationsTest, TooManyTextsAreCounted) {
  LksFile file = record([] {
    lockstep_group group = declare_pair();
    for (int i = 0; i < 5000; ++i) lockstep_begin(group, std::to_string(i).c_str(), 1, 1, "Float", nullptr);
  });
  EXPECT_EQ(file.count(Kind::kApiOp) + file.lost_without_a_place(), 5000u);
  EXPECT_GT(file.lost(capture::kLoss_shape_table_full), 2000u);
}

TEST_F(OperationsTest, MayEndOnAnotherThread) {
  LksFile file = record([] {
    lockstep_op op = lockstep_begin(declare_pair(), "allreduce", 1, 1, "Float", nullptr);
    lockstep_op timed = lockstep_begin(declare_pair(), "allreduce", 1, 1, "Float", nullptr);
    std::thread([&] {
      lockstep_gpu_times times = gpu_times(10, 20);
      lockstep_end(op, &times);
      lockstep_set_gpu_times(timed, &times);
    }).join();
    lockstep_end(timed, nullptr);
  });
  auto records = file.records(Kind::kApiOp);
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].head().flags, 0);
  EXPECT_EQ(records[1].head().flags, format::kFlagStopped);
  auto states = file.all<format::StateRecord>(Kind::kState);
  ASSERT_EQ(states.size(), 5u);
  EXPECT_EQ(states[0].head.link, format::kStateStop);
  EXPECT_EQ(states[0].target, records[0].handle());
  EXPECT_EQ(states[1].head.link, format::kStateGpuStart);
  EXPECT_EQ(states[1].value, 10u);
  EXPECT_EQ(states[1].head.stop_after, static_cast<uint32_t>(LOCKSTEP_CLOCK_MONOTONIC));
  EXPECT_EQ(states[2].head.link, format::kStateGpuEnd);
  EXPECT_EQ(states[2].value, 20u);
  EXPECT_EQ(states[4].target, records[1].handle());
  EXPECT_EQ(file.lost(), 0u);
}

TEST_F(OperationsTest, GpuTimesMayFollowTheEnd) {
  LksFile file = record([] {
    lockstep_op op = lockstep_begin(declare_pair(), "allreduce", 1, 1, "Float", nullptr);
    lockstep_end(op, nullptr);
    lockstep_gpu_times times = gpu_times(10, 20, LOCKSTEP_CLOCK_REALTIME);
    lockstep_set_gpu_times(op, &times);
  });
  auto op = file.one<ApiOpRecord>(Kind::kApiOp);
  EXPECT_EQ(op.gpu_start, 10u);
  EXPECT_EQ(op.gpu_clock, LOCKSTEP_CLOCK_REALTIME);
  EXPECT_EQ(op.head.flags, format::kFlagGpuTimes | format::kFlagStopped);
}

TEST_F(OperationsTest, WrongCallsAreCountedAndHarmless) {
  LksFile file = record([] {
    lockstep_group group = declare_pair();
    lockstep_op op = lockstep_begin(group, "allreduce", 1, 1, "Float", nullptr);
    lockstep_gpu_times times = gpu_times(1, 2), bad_clock = gpu_times(1, 2), shorter = gpu_times(1, 2);
    bad_clock.clock = 77;
    shorter.size = 4;
    lockstep_end(op, &times);
    lockstep_end(op, nullptr);               // repeated_stop
    lockstep_set_gpu_times(op, &times);      // repeated_state
    lockstep_set_gpu_times(op, &bad_clock);  // unknown_state
    lockstep_set_gpu_times(op, &shorter);    // unknown_state
    lockstep_set_gpu_times(op, nullptr);     // unknown_state
    lockstep_end(0, nullptr);
    lockstep_end(group, nullptr);                // unknown_handle
    lockstep_end(~uint64_t{0}, nullptr);         // unknown_handle
    lockstep_end(op + 1000, &times);             // in the log, but of no record: a state that finds no target
    lockstep_set_gpu_times(0xdeadbeef, &times);  // unknown_handle
    lockstep_begin(0, "allreduce", 1, 1, "Float", nullptr);          // unknown_context
    lockstep_begin(group + 1, "allreduce", 1, 1, "Float", nullptr);  // unknown_context
    lockstep_op_info small = LOCKSTEP_OP_INFO_INIT;
    small.size = 8;
    EXPECT_EQ(lockstep_begin_op(&small), 0u);   // unknown_type
    EXPECT_EQ(lockstep_begin_op(nullptr), 0u);  // unknown_type
    lockstep_op elsewhere = lockstep_begin(group, "allreduce", 1, 1, "Float", nullptr);
    std::thread([&] { lockstep_end(elsewhere, &bad_clock); }).join();  // unknown_state
  });
  EXPECT_EQ(file.count(Kind::kApiOp), 4u);
  EXPECT_EQ(file.all<ApiOpRecord>(Kind::kApiOp)[1].comm, format::kNoComm);
  EXPECT_EQ(file.lost(capture::kLoss_repeated_stop), 1u);
  EXPECT_EQ(file.lost(capture::kLoss_repeated_state), 1u);
  EXPECT_EQ(file.lost(capture::kLoss_unknown_state), 4u);
  EXPECT_EQ(file.lost(capture::kLoss_unknown_handle), 3u);
  EXPECT_EQ(file.lost(capture::kLoss_unknown_context), 2u);
  EXPECT_EQ(file.lost(capture::kLoss_unknown_type), 2u);
}

TEST_F(OperationsTest, OfManyThreadsAreThereOrCounted) {
  constexpr int kThreads = 8, kOps = 3000;
  LksFile file = record([] {
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([t] {
        lockstep_group group = declare_progression("shared", 0, 1, 8);
        std::string name = "collective " + std::to_string(t % 3);
        for (int i = 0; i < kOps; ++i) {
          lockstep_end(lockstep_begin(group, name.c_str(), 1, 1, "Float", nullptr), nullptr);
        }
      });
    }
    for (auto& thread : threads) thread.join();
  });
  std::set<uint64_t> numbers;
  for (const auto& op : file.all<ApiOpRecord>(Kind::kApiOp)) {
    numbers.insert(op.seq);
    EXPECT_EQ(op.comm, 0u);
    EXPECT_EQ(op.head.flags, format::kFlagStopped);
  }
  // Threads that outrun the preparation of the file lose operations, but no number is given twice.
  EXPECT_EQ(numbers.size(), file.count(Kind::kApiOp));
  EXPECT_EQ(numbers.size() + file.lost_without_a_place(), static_cast<size_t>(kThreads * kOps));
  EXPECT_GT(numbers.size(), static_cast<size_t>(kOps));
  EXPECT_LT(*numbers.rbegin(), static_cast<uint64_t>(kThreads * kOps));
  EXPECT_EQ(file.count(Def::kComm), 1u);
  EXPECT_EQ(file.lost(), file.lost_without_a_place());
}

TEST_F(OperationsTest, RingKeepsStatisticsOfWhatItOverwrites) {
  constexpr int kOps = 100000;
  LksFile file = record(settings("default", "ring:1M"), [] {
    lockstep_group group = declare_pair();
    for (int i = 0; i < kOps; ++i) {
      if (i == 1) sleep_ms(25);  // durations count from 20 ms on, when the clock's rate is known
      lockstep_end(lockstep_begin(group, "allreduce", 1000, 1000, "Half", nullptr), nullptr);
    }
  });
  EXPECT_GT(file.lost(capture::kLoss_overwritten), 0u);
  auto cells = file.histogram();
  ASSERT_EQ(cells.size(), 1u);
  EXPECT_EQ(cells[0].ops, static_cast<uint64_t>(kOps));
  EXPECT_EQ(cells[0].bytes, kOps * uint64_t{2000});
  EXPECT_EQ(cells[0].key >> 8 & 0xff, 11u) << "2,000 bytes";
  EXPECT_GE(cells[0].timed, static_cast<uint64_t>(kOps - 1));
  EXPECT_GE(cells[0].max_ns, cells[0].min_ns);
  EXPECT_LT(cells[0].sum_ns / cells[0].timed, 1000000u);
}

// Begun by one thread and ended by a watcher: over, though its record does not say so.
TEST_F(OperationsTest, ThatEndedElsewhereGoWithTheirChunksInARing) {
  constexpr uint64_t kHanded = 100;
  LksFile file = record(settings("default", "ring:1M"), [] {
    lockstep_group group = declare_pair();
    const auto begin = [&](uint64_t count) {
      return lockstep_begin(group, "allreduce", count, count, "Half", nullptr);
    };
    std::vector<lockstep_op> handed;
    for (uint64_t i = 0; i < kHanded; ++i) handed.push_back(begin(2));
    begin(1);
    std::thread([&] {
      for (lockstep_op op : handed) lockstep_end(op, nullptr);
    }).join();
    for (int i = 0; i < 50'000; ++i) lockstep_end(begin(3), nullptr);
  });
  std::vector<uint64_t> open;
  for (const auto& op : file.all<format::ApiOpRecord>(Kind::kApiOp)) {
    if (op.head.stop_after == 0) open.push_back(op.in_count);
  }
  EXPECT_EQ(open, std::vector<uint64_t>{1});
  EXPECT_EQ(file.count(Kind::kState), kHanded);
  EXPECT_EQ(file.lost(), file.lost(capture::kLoss_overwritten));
}

TEST_F(OperationsTest, ParamComms) {
  LksFile file = record([] {
    const std::vector<int64_t> splits;
    const auto group = std::make_tuple(std::string("0"), std::string("default_pg"));
    LOCKSTEP_RECORD_PARAM_COMMS(std::make_tuple(int64_t{12}, false), group, 5, "allreduce", 16, 16, "Float",
                                splits, splits, 0, 1, 8, false);
    LOCKSTEP_RECORD_PARAM_COMMS(std::make_tuple(int64_t{13}, false), group, 3, "broadcast", 16, 16, "Float",
                                splits, splits, 0, 1, 8, false);
    LOCKSTEP_RECORD_PARAM_COMMS_DATA(std::make_tuple(int64_t{1}, true), group, splits, splits, 2, "send", 16,
                                     16, "Float", splits, splits, 0, 1, 8);
    const auto wordy = std::make_tuple(std::string(40, 'a'), std::string(100, 'd'));
    LOCKSTEP_RECORD_PARAM_COMMS(14, wordy, 0, "barrier", 0, 0, "Byte", splits, splits, 5, 0, 1);
  });
  auto ops = file.all<ApiOpRecord>(Kind::kApiOp);
  ASSERT_EQ(ops.size(), 4u);
  EXPECT_EQ(ops[0].seq, 11u);
  EXPECT_EQ(ops[0].peer, -1);
  EXPECT_EQ(file.shape(1, ops[0].shape).root, -1);
  EXPECT_EQ(file.shape(1, ops[1].shape).root, 3);
  EXPECT_EQ(ops[2].peer, 2);
  auto comms = file.all<format::CommDef>(Def::kComm);
  ASSERT_EQ(comms.size(), 2u);
  EXPECT_STREQ(comms[0].name, "default_pg:0");
  EXPECT_EQ(comms[0].rank, 5);
  EXPECT_EQ(members(file, 0).size(), 8u);
  EXPECT_EQ(comms[1].name, std::string(22, 'd') + ":" + std::string(40, 'a'));
  EXPECT_EQ(members(file, 1), (std::vector<int32_t>{5}));
  EXPECT_EQ(comms[1].rank, 0);
}

}  // namespace
}  // namespace lockstep::test
