// SPDX-License-Identifier: Apache-2.0
#include "analysis/straggler/lateness/exclusive_times.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "analysis/testing/job_builder.h"

namespace lockstep::analysis::straggler {
namespace {

constexpr uint32_t kOps = 20, kGone = 10'000'000;

// Two ranks, of which the second is later by 0.5 ms, and what a ring kept of each.
model::Job end_of_a_long_job(uint32_t more_of_second = 0) {
  testing::JobBuilder builder(2);
  const uint32_t world = builder.world();
  for (uint32_t op = 0; op < kOps; ++op) {
    builder.call(0, world, {.called_ms = 1.0 + op, .launched_ms = 1.0 + op});
    builder.call(1, world, {.called_ms = 1.5 + op, .launched_ms = 1.5 + op});
  }
  model::Job job = builder.build();
  for (model::JobProcess& process : job.processes) {
    for (uint32_t& index : process.ops.index) index += kGone;
  }
  job.processes[1].ops.index.back() += more_of_second;
  return job;
}

TEST(LastArrivals, ReachFromTheOldestIndexThatIsKept) {
  const model::Job job = end_of_a_long_job();
  const LastArrivals last(job);
  EXPECT_EQ(last.of(0).size(), kOps);
  EXPECT_EQ(&last.of(0), &last.of(1));
  EXPECT_EQ(last.of(0).at(kGone), testing::at_ms(1.5));
  EXPECT_EQ(last.of(0).at(kGone + kOps - 1), testing::at_ms(1.5 + kOps - 1));
  EXPECT_EQ(last.of(0).at(kGone + kOps), 0);
  EXPECT_EQ(last.of(0).at(kGone - 1), 0);
}

TEST(LastArrivals, HaveNoRoomForIndexesThatOnlyADamagedFileHas) {
  const auto most = static_cast<uint32_t>(most_indexes(2 * kOps));
  const auto with_last = [](uint32_t after) { return end_of_a_long_job(after - (kOps - 1)); };
  const model::Job sparse = with_last(most - 1);
  EXPECT_EQ(LastArrivals(sparse).of(0).size(), most);
  const model::Job job = with_last(most);
  const LastArrivals last(job);
  EXPECT_EQ(last.of(0).size(), kOps);
  EXPECT_EQ(last.of(1).at(kGone), testing::at_ms(1.5));
  EXPECT_EQ(last.of(1).at(kGone + kOps - 1), testing::at_ms(1.0 + kOps - 1));
}

// Rank 0 sends three times; rank 1 receives twice, and sends at 50 ms.
TEST(ExclusiveTimes, ASendThatNobodyReceivesHasNoEnd) {
  testing::JobBuilder builder(2);
  const uint32_t world = builder.world(), pipeline = builder.comm("pp", {0, 1});
  for (double ms : {1.0, 2.0, 3.0}) {
    builder.call(0, pipeline, {.func = "Send", .called_ms = ms, .peer = 1, .launched_ms = ms});
    if (ms < 3) builder.call(1, pipeline, {.func = "Recv", .called_ms = ms + 0.1, .peer = 0});
  }
  builder.call(1, pipeline, {.func = "Send", .called_ms = 50, .peer = 0});
  builder.call(0, world, {.called_ms = 58, .launched_ms = 58});
  builder.call(0, world, {.called_ms = 60, .launched_ms = 60});
  const model::Job job = builder.build();
  const ExclusiveTimes own = exclusive_times(job, 0, LastArrivals(job));
  const uint32_t first = job.members[builder.member(world, 0)].first;
  EXPECT_EQ(own.cadence[first], 55e6) << "since its own call at 3 ms, and no end at 50 ms";
  EXPECT_EQ(own.host_own[first + 1], 2e6);
}

// Ranks 0 and 1 share a clock, ranks 2 and 3 another. What a call of rank 0 follows: `calls`, each "world",
// "host" (ranks 0 and 1), "across" (0 and 2), "transfer" (to rank 2).
std::vector<bool> unseen_before(const std::vector<std::string>& calls, bool timed = false) {
  testing::JobBuilder builder(4, 2);
  const std::map<std::string, uint32_t> comms = {{"world", builder.world()},
                                                 {"host", builder.comm("tp", {0, 1})},
                                                 {"across", builder.comm("dp", {0, 2})},
                                                 {"transfer", builder.comm("pp", {0, 2})}};
  double ms = 1;
  for (const std::string& name : calls) {
    testing::Call call{.called_ms = ms++};
    if (timed) call.gpu_start_ms = call.called_ms + 0.1, call.gpu_end_ms = call.called_ms + 0.2;
    if (name == "transfer") call.func = "Send", call.peer = 1;
    builder.call(0, comms.at(name), call);
    if (name == "transfer") call.func = "Recv", call.peer = 0;
    for (uint32_t rank = 1; rank < 4; ++rank) {
      if (name == "world" || (rank == 1 ? name == "host" : rank == 2 && name != "host"))
        builder.call(rank, comms.at(name), call);
    }
  }
  const model::Job job = builder.build(false);
  const ExclusiveTimes own = exclusive_times(job, 0, LastArrivals(job));
  std::vector<bool> out;
  for (uint32_t op : own.order) out.push_back(!own.unseen.empty() && own.unseen[op] != 0);
  return out;
}

TEST(ExclusiveTimes, KnowWhetherSomebodyUnseenMayHaveHeldTheProcess) {
  using Unseen = std::vector<bool>;
  EXPECT_EQ(unseen_before({"world", "host", "host"}), (Unseen{false, false, false}));
  EXPECT_EQ(unseen_before({"world", "across", "host", "world", "host"}),
            (Unseen{false, false, true, true, false}));
  EXPECT_EQ(unseen_before({"transfer", "host", "world", "host"}), (Unseen{false, true, true, false}));
  EXPECT_EQ(unseen_before({"transfer", "across", "host"}, true), (Unseen{false, false, false}));
}

}  // namespace
}  // namespace lockstep::analysis::straggler
