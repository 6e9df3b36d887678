// SPDX-License-Identifier: Apache-2.0
#include "job/gather/gather.h"

#include <gtest/gtest.h>

#include <functional>
#include <new>

#include "base/column_memory.h"
#include "job/match/match.h"
#include "model/event_kind.h"
#include "model/testing/synthetic_run.h"

namespace lockstep::job::gather {
namespace {

using model::EventKind;
using model::Job;
using model::kNoRow;
using model::Trace;
using model::testing::SyntheticRun;

// A run of which a test writes each trace.
class WrittenRun : public model::TraceSource {
 public:
  using Write = std::function<Result<void>(size_t, Trace&)>;
  WrittenRun(size_t processes, Write write) : processes_(processes), write_(std::move(write)) {}
  size_t processes() const override { return processes_; }
  Result<void> load(size_t i, Trace& trace) override { return write_(i, trace); }
  void run_losses(Trace&) override {}
  std::string name() const override { return "written"; }

 private:
  size_t processes_;
  Write write_;
};

void add_process(Trace& trace, int32_t rank, std::string_view host = "node0", std::string_view host_id = "",
                 std::string_view boot = "boot") {
  model::Process row;
  row.host = trace.strings.intern(host);
  row.host_id = trace.strings.intern(host_id);
  row.boot_id = trace.strings.intern(boot);
  row.rank = rank;
  trace.processes.append(row);
}
uint32_t add_comm(Trace& trace, uint64_t id, int32_t rank, int32_t ranks) {
  model::Comm row;
  row.comm_id = id;
  row.rank = rank;
  row.ranks = ranks;
  row.api_version = 5;
  return trace.comms.append(row);
}
void add_op(Trace& trace, uint32_t comm, std::string_view func, int64_t called_ns, int32_t peer = -1,
            uint8_t flags = 0) {
  model::Op op;
  op.comm = comm;
  op.kind = model::number(peer < 0 ? EventKind::kColl : EventKind::kP2p);
  op.shape = trace.intern_shape({trace.strings.intern(func), trace.strings.intern("ncclFloat32"), 0, 0, 0});
  op.seq = model::kNoSeq;
  op.peer = peer;
  op.flags = flags;
  op.called_ns = called_ns;
  for (size_t i = 0; i < trace.ops.size(); ++i)
    op.index += peer < 0 && trace.ops.comm[i] == comm && trace.ops.peer[i] < 0;
  trace.ops.append(op);
}
Job gathered(model::TraceSource& source, unsigned threads = 1) {
  auto job = gather(source, {.threads = threads, .progress = {}});
  EXPECT_TRUE(job) << job.error().message();
  return job ? std::move(*job) : Job{};
}

TEST(Gather, IsTheSameOnAnyNumberOfThreads) {
  SyntheticRun run({.ranks = 13, .ops = 40});
  Job one = gathered(run, 1), four = gathered(run, 4);
  ASSERT_EQ(one.processes.size(), 13u);
  ASSERT_EQ(four.processes.size(), 13u);
  EXPECT_EQ(one.signatures, four.signatures);
  EXPECT_EQ(one.hosts.size(), 7u);
  ASSERT_EQ(one.comms.size(), 1u);
  EXPECT_EQ(one.comms[0].members, four.comms[0].members);
  for (uint32_t i = 0; i < 13; ++i) {
    EXPECT_EQ(one.processes[i].row.rank, static_cast<int32_t>(i));
    EXPECT_EQ(one.processes[i].ops.signature, four.processes[i].ops.signature);
    EXPECT_EQ(one.processes[i].ops.called_ns, four.processes[i].ops.called_ns);
    EXPECT_EQ(one.processes[i].host, four.processes[i].host);
    const model::Member& member = one.members[one.comms[0].members[i]];
    EXPECT_EQ(member.process, i);
    EXPECT_EQ(member.ops, 40u);
    ASSERT_EQ(member.lanes.size(), 1u);
    EXPECT_EQ(member.lanes[0].peer, static_cast<int32_t>(i ^ 1));
    EXPECT_EQ(member.lanes[0].is_send, i % 2 == 0);
    EXPECT_EQ(member.lanes[0].ops, 5u);
  }
  EXPECT_EQ(one.losses.size(), four.losses.size());
}

// Memory ends while the first process' losses join the job's, for whose turn all others wait.
TEST(Gather, WithoutMemoryForTheFirstNobodyWaitsForIt) {
  WrittenRun run(4, [](size_t i, Trace& trace) -> Result<void> {
    add_process(trace, static_cast<int32_t>(i));
    if (i > 0) return {};
    for (size_t row = 0; row < kLeastPassingBytes / sizeof(uint64_t); ++row)
      trace.losses.append({.process = 0, .stage = 0, .kind = 0, .count = 1, .detail = 0});
    set_column_limit({.bytes = 0, .directory = "/nonexistent"});
    return {};
  });
  EXPECT_THROW((void)gather(run, {.threads = 4, .progress = {}}), ColumnMemoryError);
  set_column_limit({});
}

TEST(Gather, OperationsOfACommunicatorAndOfAPairLieTogether) {
  WrittenRun run(1, [](size_t, Trace& trace) -> Result<void> {
    add_process(trace, 0);
    uint32_t a = add_comm(trace, 1, 0, 2), b = add_comm(trace, 2, 0, 2);
    for (int i = 0; i < 6; ++i) {
      add_op(trace, i % 2 ? a : b, "AllReduce", 10 * i + 1);
      add_op(trace, a, i % 3 ? "Send" : "Recv", 10 * i + 2, i % 2);
      add_op(trace, a, "Send", 10 * i + 3, 0);  // to itself
    }
    return {};
  });
  Job job = gathered(run);
  const model::JobOps& ops = job.processes[0].ops;
  ASSERT_EQ(ops.size(), 18u);
  const model::Member &a = job.members[0], &b = job.members[1];
  EXPECT_EQ(a.ops, 3u);
  EXPECT_EQ(b.ops, 3u);
  ASSERT_EQ(a.lanes.size(), 4u);
  EXPECT_TRUE(b.lanes.empty());
  for (size_t i = 1; i < a.lanes.size(); ++i)
    EXPECT_LT(std::pair(a.lanes[i - 1].peer, a.lanes[i - 1].is_send),
              std::pair(a.lanes[i].peer, a.lanes[i].is_send));
  auto ordered = [&](uint32_t first, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      EXPECT_EQ(ops.index[first + i], i);
      if (i > 0) {
        EXPECT_LT(ops.called_ns[first + i - 1], ops.called_ns[first + i]);
      }
    }
  };
  ordered(a.first, a.ops);
  ordered(b.first, b.ops);
  for (const model::Lane& lane : a.lanes) ordered(lane.first, lane.ops);
}

TEST(Gather, HostsAreClocksAndNcclsHostsAreApart) {
  WrittenRun run(4, [](size_t i, Trace& trace) -> Result<void> {
    add_process(trace, static_cast<int32_t>(i), i < 3 ? "node0" : "node1", i == 1 ? "h1" : "",
                i < 3 ? "a" : "b");
    return {};
  });
  Job job = gathered(run);
  ASSERT_EQ(job.hosts.size(), 3u);
  EXPECT_EQ(job.processes[0].host, job.processes[2].host);
  EXPECT_NE(job.processes[0].host, job.processes[1].host);
  EXPECT_EQ(job.hosts[0].boot_id, job.hosts[1].boot_id);
  EXPECT_EQ(job.text(job.hosts[1].name), "h1");
}

TEST(Gather, DeclaredGroupsOfOneNameAndOtherRanksStayApart) {
  WrittenRun run(4, [](size_t i, Trace& trace) -> Result<void> {
    add_process(trace, static_cast<int32_t>(i));
    model::Comm group;
    group.name = trace.strings.intern("tp");
    group.members = trace.strings.intern(i < 2 ? "0,1" : "2,3");
    group.rank = static_cast<int32_t>(i % 2);
    group.ranks = 2;
    trace.comms.append(group);
    return {};
  });
  Job job = gathered(run);
  ASSERT_EQ(job.comms.size(), 2u);
  for (const model::JobComm& comm : job.comms) {
    EXPECT_TRUE(comm.declared);
    EXPECT_EQ(comm.members.size(), 2u);
    EXPECT_TRUE(comm.unranked.empty());
  }
}

TEST(Gather, ACommunicatorMadeAgainIsAnotherOne) {
  WrittenRun run(2, [](size_t i, Trace& trace) -> Result<void> {
    add_process(trace, static_cast<int32_t>(i));
    for (int generation = 0; generation < 2; ++generation) {
      uint32_t comm = add_comm(trace, 7, static_cast<int32_t>(i), 2);
      for (int n = 0; n <= generation; ++n) add_op(trace, comm, "AllReduce", 10 + n);
    }
    return {};
  });
  Job job = gathered(run);
  match::align(job);
  ASSERT_EQ(job.comms.size(), 2u);
  EXPECT_EQ(match::count_matches(job)[0].matched, 2u);
  EXPECT_EQ(match::count_matches(job)[1].matched, 4u);
}

TEST(Gather, CapturedCallsAndReplaysAreMarked) {
  WrittenRun run(1, [](size_t, Trace& trace) -> Result<void> {
    add_process(trace, 0);
    uint32_t comm = add_comm(trace, 1, 0, 2);
    add_op(trace, comm, "AllReduce", 10);
    add_op(trace, comm, "AllReduce", 20, -1, model::kFlagGraphCaptured);
    return {};
  });
  Job job = gathered(run);
  EXPECT_TRUE(job.processes[0].graphs);
  EXPECT_EQ(job.processes[0].ops.flags[1], model::kFlagGraphCaptured);
}

TEST(Gather, OnlyWhatIsGoneCountsAsLost) {
  WrittenRun run(1, [](size_t, Trace& trace) -> Result<void> {
    add_process(trace, 0);
    trace.lose(0, "capture", "overwritten", 40, "");
    trace.lose(0, "capture", "clamped", 3, "");
    trace.lose(0, "assemble", "fewer_channels", 3, "");
    return {};
  });
  Job job = gathered(run);
  EXPECT_EQ(job.processes[0].lost, 40u);
  EXPECT_EQ(job.losses.size(), 3u);
}

TEST(Gather, WhatARingOverwroteIsNoHole) {
  for (const char* kind : {"overwritten", "overwritten_chunk", "missing_chunk"}) {
    SCOPED_TRACE(kind);
    WrittenRun run(1, [&](size_t, Trace& trace) -> Result<void> {
      add_process(trace, 0);
      trace.lose(0, "read", kind, 3, "");
      return {};
    });
    const Job job = gathered(run);
    EXPECT_EQ(job.processes[0].lost, 3u);
    EXPECT_EQ(job.processes[0].holes, std::string_view(kind) == "missing_chunk" ? 3u : 0u);
  }
}

TEST(Gather, ABadProcessIsALossAndNoneIsAnError) {
  auto write = [](size_t i, Trace& trace) -> Result<void> {
    if (i != 1) return Error{ErrorCode::kIo, "unreadable", "file" + std::to_string(i)};
    add_process(trace, 1);
    return {};
  };
  WrittenRun some(3, write);
  Job job = gathered(some, 3);
  EXPECT_EQ(job.processes.size(), 1u);
  EXPECT_EQ(job.losses.size(), 2u);
  WrittenRun none(1, write);
  EXPECT_FALSE(gather(none, {}));
  WrittenRun empty(0, write);
  EXPECT_FALSE(gather(empty, {}));
}

TEST(Gather, HostileNumbersAreHarmless) {
  WrittenRun run(1, [](size_t, Trace& trace) -> Result<void> {
    add_process(trace, INT32_MAX);
    constexpr int32_t kHuge[] = {INT32_MAX, INT32_MIN, 4'000'000, -1, 5};
    for (uint32_t i = 0; i < 200'000; ++i) {
      add_comm(trace, i % 3 == 0 ? 0 : i, kHuge[i % 5], kHuge[i % 7 % 5]);
    }
    for (int32_t peer : kHuge) {
      add_op(trace, 1, "Send", 10, peer);
      add_op(trace, 1, "Recv", 10, peer);
      add_op(trace, UINT32_MAX, "Recv", 10, peer);
    }
    return {};
  });
  Job job = gathered(run);
  match::align(job);
  match::count_matches(job);
  match::differences(job);
  EXPECT_EQ(job.comms.size(), 200'000u);
  size_t places = 0;
  int64_t members = 0;
  for (const model::JobComm& comm : job.comms) {
    places += comm.members.size();
    members += std::max(comm.ranks, 0);
  }
  EXPECT_LE(places, size_t{1} << 24);
  EXPECT_LE(members, int64_t{1} << 24);  // lists are made of those that left no file
  EXPECT_EQ(job.text(job.losses.kind[job.losses.size() - 1]), "bad_value");
  EXPECT_EQ(job.processes[0].ops.size(), 10u);
  EXPECT_EQ(job.members[1].lanes.size(), 6u);
}

// Rank 1 lies nearer to the card and drives the network of rank 0, which it names by what rank 0 gave NCCL.
class Pxn : public ::testing::Test {
 protected:
  static constexpr uint64_t kContext = 0x5555'0000'0001;
  static Result<void> write(size_t i, Trace& trace) {
    add_process(trace, static_cast<int32_t>(i));
    trace.processes.pid[0] = 100 + static_cast<int64_t>(i);
    const uint32_t comm = add_comm(trace, 7, static_cast<int32_t>(i), 4);
    trace.comms.context[comm] = i == 0 ? kContext : 0x6666'0000'0001;
    if (i != 1) return {};
    for (const int64_t end_ns : {int64_t{2000}, int64_t{0}}) {
      model::ProxyOp op{};
      op.comm = op.task = kNoRow;
      op.originator_pid = 100;
      op.context = kContext;
      op.rank = 0;
      op.peer = 2;
      op.is_send = 1;
      op.steps = 1;
      model::ProxyStep step{};
      step.proxy_op = trace.proxy_ops.append(op);
      step.is_send = 1;
      step.bytes = 4096;
      step.start_ns = 1000;
      step.wait1_ns = step.wait2_ns = 1100;
      step.wait3_ns = 1500;
      step.end_ns = end_ns;
      trace.proxy_steps.append(step);
    }
    return {};
  }
  static uint64_t lost(const Job& job) {
    uint64_t count = 0;
    for (size_t i = 0; i < job.losses.size(); ++i)
      count += job.text(job.losses.kind[i]) == "foreign_parent" ? job.losses.count[i] : 0;
    return count;
  }
};

TEST_F(Pxn, WorkForAnotherProcessIsTheOthers) {
  WrittenRun run(2, write);
  const auto job = gather(run, {.threads = 1, .progress = {}});
  ASSERT_TRUE(job);
  EXPECT_TRUE(job->processes[1].net_pairs.empty());
  EXPECT_TRUE(job->processes[1].open_steps.empty());
  ASSERT_EQ(job->processes[0].net_pairs.size(), 1u);
  const model::NetPair& pair = job->processes[0].net_pairs[0];
  EXPECT_EQ(job->members[pair.member].process, 0u);
  EXPECT_EQ(pair.peer, 2);
  EXPECT_EQ(pair.wire_ns, 500);
  ASSERT_EQ(job->processes[0].open_steps.size(), 1u);
  EXPECT_EQ(job->processes[0].open_steps[0].member, pair.member);
  EXPECT_EQ(lost(*job), 0u);
}

TEST_F(Pxn, WithoutItsFileIsALoss) {
  WrittenRun run(1, [](size_t, Trace& trace) { return write(1, trace); });
  const auto job = gather(run, {.threads = 1, .progress = {}});
  ASSERT_TRUE(job);
  EXPECT_TRUE(job->processes[0].net_pairs.empty());
  EXPECT_EQ(lost(*job), 2u);
}

TEST_F(Pxn, OfAnotherHostOrAnEarlierProcessNobodyIsTaken) {
  for (const bool other_boot : {true, false}) {
    WrittenRun run(2, [other_boot](size_t i, Trace& trace) -> Result<void> {
      LOCKSTEP_TRY(write(i, trace));
      if (i == 0 && other_boot) trace.processes.boot_id[0] = trace.strings.intern("another");
      if (i == 0 && !other_boot) trace.comms.context[0] = kContext + (uint64_t{1} << 32);
      return {};
    });
    const auto job = gather(run, {.threads = 1, .progress = {}});
    ASSERT_TRUE(job);
    EXPECT_TRUE(job->processes[0].net_pairs.empty());
    EXPECT_EQ(lost(*job), 2u);
  }
}

}  // namespace
}  // namespace lockstep::job::gather
