// SPDX-License-Identifier: Apache-2.0
#include "analysis/straggler/lateness/group_comparer.h"

#include <gtest/gtest.h>

#include "analysis/testing/job_builder.h"

namespace lockstep::analysis::straggler {
namespace {

constexpr uint32_t kRanks = 4, kOps = 5000;

model::Job job_with_delays(bool timed) {
  testing::JobBuilder builder(kRanks);
  const uint32_t world = builder.world();
  for (uint32_t op = 0; op < kOps; ++op) {
    for (uint32_t rank = 0; rank < kRanks; ++rank) {
      const double late = 0.04 * ((op * 7 + rank * 13 + op / 64) % 5) + (op % 97 == rank ? 3 : 0);
      testing::Call call{.called_ms = op * 10 + late, .bytes = 1024u << (op % 3)};
      if (timed) {
        call.gpu_start_ms = op * 10 + 0.5 + late;
        call.gpu_end_ms = op * 10 + 5;
      }
      builder.call(rank, world, call);
    }
  }
  return builder.build();
}

GroupLateness compare(const model::Job& job, const std::vector<uint32_t>& members, size_t threads) {
  std::vector<ExclusiveTimes> times;
  const LastArrivals last(job);
  for (uint32_t i = 0; i < job.processes.size(); ++i) times.push_back(exclusive_times(job, i, last));
  const MemberTable table(job, times);
  GroupComparer comparer(job, times, table, members);
  comparer.compare(threads);
  return comparer.finish();
}

void expect_equal(const GroupLateness& a, const GroupLateness& b) {
  EXPECT_EQ(a.compared, b.compared);
  EXPECT_EQ(a.timed, b.timed);
  EXPECT_EQ(a.first_ns, b.first_ns);
  EXPECT_EQ(a.last_ns, b.last_ns);
  ASSERT_EQ(a.members.size(), b.members.size());
  for (size_t m = 0; m < a.members.size(); ++m) {
    EXPECT_EQ(a.members[m].ops, b.members[m].ops);
    EXPECT_EQ(a.members[m].waiting_ns, b.members[m].waiting_ns);
    EXPECT_EQ(a.members[m].moving_ns, b.members[m].moving_ns);
    EXPECT_EQ(a.members[m].lateness.quantile(0.9), b.members[m].lateness.quantile(0.9));
  }
  ASSERT_EQ(a.late.size(), b.late.size());
  for (size_t i = 0; i < a.late.size(); ++i) {
    EXPECT_EQ(a.late[i].member, b.late[i].member);
    EXPECT_EQ(a.late[i].op, b.late[i].op);
    EXPECT_EQ(a.late[i].blame_ns, b.late[i].blame_ns);
    EXPECT_EQ(a.late[i].host_part_ns, b.late[i].host_part_ns);
  }
}

TEST(GroupComparer, FindsTheSameOnAnyNumberOfThreads) {
  for (bool timed : {false, true}) {
    const model::Job job = job_with_delays(timed);
    std::vector<uint32_t> members = job.comms[0].members;
    const GroupLateness one = compare(job, members, 1);
    EXPECT_EQ(one.compared, kOps);
    EXPECT_EQ(one.timed, timed ? kOps : 0);
    EXPECT_FALSE(one.late.empty());
    expect_equal(compare(job, members, 3), one);
    members.pop_back();  // the last arrival is not seen: it is inferred from the ends
    expect_equal(compare(job, members, 3), compare(job, members, 1));
  }
}

TEST(GroupComparer, TellsTheWaitFromTheMoving) {
  testing::JobBuilder builder(2);
  const uint32_t world = builder.world();
  for (uint32_t rank = 0; rank < 2; ++rank)
    builder.call(rank, world, {.called_ms = 1, .gpu_start_ms = rank == 0 ? 2.0 : 5.0, .gpu_end_ms = 6});
  const model::Job job = builder.build();
  const GroupLateness result = compare(job, job.comms[0].members, 1);
  EXPECT_EQ(result.members[0].waiting_ns, 3e6);
  EXPECT_EQ(result.members[1].waiting_ns, 0);
  EXPECT_EQ(result.members[0].moving_ns, 1e6);
  EXPECT_EQ(result.last_ns, testing::at_ms(5));
}

TEST(GroupComparer, WhoIsThroughWaitsForNobody) {
  testing::JobBuilder builder(3);
  const uint32_t world = builder.world();
  for (uint32_t rank = 0; rank < 3; ++rank) {
    const double start = rank == 2 ? 9.0 : 2.0;  // as the last of a broadcast, after the others' end
    builder.call(rank, world, {.called_ms = 1, .gpu_start_ms = start, .gpu_end_ms = start + 0.5});
  }
  const model::Job job = builder.build();
  const GroupLateness result = compare(job, job.comms[0].members, 1);
  EXPECT_EQ(result.members[0].waiting_ns, 0.5e6);
  EXPECT_EQ(result.members[0].moving_ns, 0);
  EXPECT_EQ(result.members[2].waiting_ns, 0);
}

// By how much the arrivals of the late one and of the usual one may be wrong, together.
TEST(GroupComparer, KnowsHowWrongALatenessMayBe) {
  for (const int32_t error_ns : {9'000, 30'000}) {
    testing::JobBuilder builder(4);
    const uint32_t world = builder.world();
    for (uint32_t op = 0; op < 8; ++op) {
      for (uint32_t rank = 0; rank < 4; ++rank) {
        const double start = op * 10.0 + 1 + (rank == 2 && op == 5 ? 3 : 0);
        builder.call(rank, world,
                     {.called_ms = op * 10.0 + 0.5,
                      .gpu_start_ms = start,
                      .gpu_end_ms = op * 10.0 + (op == 5 ? 5 : 2)});
      }
    }
    model::Job job = builder.build();
    for (model::JobProcess& process : job.processes)
      std::fill(process.ops.gpu_error_ns.begin(), process.ops.gpu_error_ns.end(), error_ns);
    const GroupLateness result = compare(job, job.comms[0].members, 1);
    ASSERT_FALSE(result.late.empty());
    for (const LateOp& late : result.late) EXPECT_EQ(late.error_ns, 2.0f * static_cast<float>(error_ns));
  }
}

// Each rank on a host of its own, whose clock is known within 0.4 ms. One is late by 0.6 ms at an operation
// that takes 0.1 ms from then on, so the others were in it for 0.5 ms longer than two transfers explain.
TEST(GroupComparer, KnowsLatenessByHowLongMembersWereInAnOperationThatWaitsForAll) {
  for (const char* func : {"AllReduce", "Broadcast"}) {
    testing::JobBuilder builder(4, 1);
    const uint32_t world = builder.world();
    for (uint32_t op = 0; op < 8; ++op) {
      for (uint32_t rank = 0; rank < 4; ++rank) {
        const double begin = op * 10.0, start = begin + 1 + (rank == 2 && op == 5 ? 0.6 : 0);
        builder.call(
            rank, world,
            {.func = func, .called_ms = begin + 0.5, .gpu_start_ms = start, .gpu_end_ms = begin + 1.7});
      }
    }
    model::Job job = builder.build();
    for (model::JobHost& host : job.hosts)
      host.clock = model::HostClock(
          {{testing::at_ms(0), -400'000, 400'000, true}, {testing::at_ms(100), -400'000, 400'000, false}});
    const GroupLateness result = compare(job, job.comms[0].members, 1);
    const auto late =
        std::find_if(result.late.begin(), result.late.end(), [](const LateOp& of) { return !of.together; });
    ASSERT_NE(late, result.late.end());
    EXPECT_NEAR(late->blame_ns, 600e3, 10e3);
    if (func == std::string_view("AllReduce"))
      EXPECT_NEAR(late->error_ns, 100e3, 10e3);
    else
      EXPECT_GE(late->error_ns, 800e3);
  }
}

// By hosts alone. Rank 1 is late by 4 ms at an operation of one communicator, by `between_ms` at one of
// another, and by 4 ms again.
size_t times_blamed(double between_ms) {
  testing::JobBuilder builder(4);
  const uint32_t a = builder.world("a"), b = builder.world("b");
  const double late_ms[] = {0, 0, 4, between_ms, 4};
  for (uint32_t op = 0; op < 10; ++op) {
    for (uint32_t rank = 0; rank < 4; ++rank) {
      const double late = rank == 1 && op >= 5 ? late_ms[op - 5] : 0;
      builder.call(rank, op == 0 || op == 8 ? b : a, {.called_ms = 20.0 * op + late});
    }
  }
  const model::Job job = builder.build();
  return compare(job, job.comms[a].members, 1).late.size();
}

TEST(GroupComparer, AHostBringsNothingOnceItIsDownToAQuarterOfItsLateness) {
  EXPECT_EQ(times_blamed(0.9), 2u);
  EXPECT_EQ(times_blamed(1.1), 1u);
}

TEST(GroupComparer, ComparesNothingOverIndexesThatOnlyADamagedFileHas) {
  constexpr uint32_t kFew = 20;
  for (const uint64_t indexes : {most_indexes(kFew), most_indexes(kFew) + 1}) {
    testing::JobBuilder builder(2);
    builder.steps(builder.world(), kFew, 1, 1);
    model::Job job = builder.build();
    for (model::JobProcess& process : job.processes)
      process.ops.index.back() = static_cast<uint32_t>(indexes - 1);
    EXPECT_EQ(compare(job, job.comms[0].members, 1).compared, indexes == most_indexes(kFew) ? kFew : 0u);
  }
}

}  // namespace
}  // namespace lockstep::analysis::straggler
