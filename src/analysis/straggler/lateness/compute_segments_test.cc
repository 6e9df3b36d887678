// SPDX-License-Identifier: Apache-2.0
#include "analysis/straggler/lateness/compute_segments.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "analysis/analysis.h"
#include "analysis/testing/job_builder.h"

namespace lockstep::analysis::straggler {

extern const Analysis kAnalysis;

namespace {

using testing::JobBuilder;

std::vector<ExclusiveTimes> all_times(const model::Job& job) {
  std::vector<ExclusiveTimes> times;
  const LastArrivals last(job);
  for (uint32_t i = 0; i < job.processes.size(); ++i) times.push_back(exclusive_times(job, i, last));
  return times;
}

// Position of the n-th collective of a rank on a communicator.
uint32_t nth(const JobBuilder& builder, const model::Job& job, uint32_t comm, uint32_t rank, uint32_t n) {
  return job.members[builder.member(comm, rank)].first + n;
}

// A rank that works 3 ms from a collective to a send, which its receiver lets wait for 4 ms; and 5 ms beside
// that and after it until the next send. What it works from then on leads up to the collective.
model::Job one_stage(JobBuilder& builder, uint32_t& replicas, double called_ms = 0.2) {
  const auto later = [&](double ms) { return called_ms + ms; };
  replicas = builder.comm("dp", {0, 2});
  const uint32_t pipeline = builder.comm("pp", {0, 1});
  builder.call(0, replicas, {.called_ms = 0.1, .gpu_start_ms = 1, .gpu_end_ms = 2});
  builder.call(0, pipeline,
               {.func = "Send", .called_ms = later(0), .peer = 1, .gpu_start_ms = 5, .gpu_end_ms = 9});
  builder.call(0, pipeline,
               {.func = "Send", .called_ms = later(0.1), .peer = 1, .gpu_start_ms = 10, .gpu_end_ms = 11});
  builder.call(0, replicas, {.called_ms = later(0.2), .gpu_start_ms = 13, .gpu_end_ms = 14});
  builder.call(0, replicas, {.called_ms = later(0.3), .gpu_start_ms = 16, .gpu_end_ms = 17});
  for (double begin : {1.0, 13.0, 16.0})
    builder.call(2, replicas, {.called_ms = 0.4, .gpu_start_ms = begin, .gpu_end_ms = begin + 1});
  return builder.build();
}

TEST(Segments, AreBoundedFromBothSides) {
  JobBuilder builder(3);
  uint32_t replicas = 0;
  const model::Job job = one_stage(builder, replicas);
  const std::vector<ExclusiveTimes> times = all_times(job);
  const ExclusiveTimes& own = times[0];
  const uint32_t second = nth(builder, job, replicas, 0, 1), third = nth(builder, job, replicas, 0, 2);
  EXPECT_EQ(own.least_segments[second], 3e6 + 1e6) << "beside the first send, it may have worked or waited";
  EXPECT_EQ(own.most_segments[second], 3e6 + 5e6);
  EXPECT_EQ(own.gpu_own[second], 2e6) << "what leads up to the collective is no segment";
  EXPECT_EQ(own.least_segments[third], 0) << "segments are for the next collective alone";
  EXPECT_EQ(own.most_segments[third], 0);
  EXPECT_TRUE(times[2].least_segments.empty());
  EXPECT_EQ(times[2].stage, 0u);
}

TEST(Segments, OfWhatTheHostLaunchedLateAreNotTheGpus) {
  JobBuilder builder(3);
  uint32_t replicas = 0;
  const model::Job job = one_stage(builder, replicas, 4.495);  // and launches it 0.005 later
  const ExclusiveTimes own = all_times(job)[0];
  const uint32_t second = nth(builder, job, replicas, 0, 1);
  EXPECT_EQ(own.least_segments[second], 0.5e6 + 1e6);
  EXPECT_EQ(own.most_segments[second], 3e6 + 5e6);
}

TEST(Segments, HaveNoUpperBoundWithoutGpuTimes) {
  JobBuilder builder(2);
  const uint32_t world = builder.world(), pipeline = builder.comm("pp", {0, 1});
  builder.call(0, world, {.called_ms = 1, .gpu_start_ms = 1, .gpu_end_ms = 2});
  builder.call(0, pipeline, {.func = "Send", .called_ms = 5, .peer = 1});
  builder.call(0, world, {.called_ms = 6, .gpu_start_ms = 7, .gpu_end_ms = 8});
  const model::Job job = builder.build();
  const ExclusiveTimes own = all_times(job)[0];
  EXPECT_EQ(own.least_segments[nth(builder, job, world, 0, 1)], 0);
  EXPECT_TRUE(std::isinf(own.most_segments[nth(builder, job, world, 0, 1)]));
}

// Ranks 0 to 2 and 3 to 5 are pipelines; ranks 6 to 8 and 9 to 11 exchange all with all.
TEST(Segments, CompareRanksOfTheSamePart) {
  JobBuilder builder(12);
  const auto transfer = [&](uint32_t comm, uint32_t first, int from, int to) {
    builder.call(first + static_cast<uint32_t>(from), comm, {.func = "Send", .called_ms = 1, .peer = to});
    builder.call(first + static_cast<uint32_t>(to), comm, {.func = "Recv", .called_ms = 1, .peer = from});
  };
  for (uint32_t first : {0u, 3u, 6u, 9u}) {
    const uint32_t comm = builder.comm("p2p" + std::to_string(first), {first, first + 1, first + 2});
    for (int from = 0; from < 3; ++from) {
      for (int to = 0; to < 3; ++to) {
        if (first >= 6 || from - to == 1 || to - from == 1) transfer(comm, first, from, to);
      }
    }
  }
  const std::vector<ExclusiveTimes> times = all_times(builder.build());
  for (uint32_t rank : {0u, 1u, 2u}) EXPECT_EQ(times[rank].stage, times[rank + 3].stage);
  EXPECT_NE(times[0].stage, times[1].stage);
  EXPECT_NE(times[0].stage, times[2].stage);
  for (uint32_t rank : {7u, 8u, 9u, 10u, 11u}) EXPECT_EQ(times[rank].stage, times[6].stage);
  EXPECT_NE(times[6].stage, times[1].stage);
}

// Pipelines of kStages ranks: rank = replica + kReplicas * stage. In a step, each stage takes every
// microbatch forward from the stage before to the next, then all of them back; then the replicas of a stage
// reduce their gradients, and all ranks meet. A rank's GPU works between a receive and the send that follows;
// a send goes on beside that, and until it is received, the next receive waits behind it.
constexpr uint32_t kReplicas = 3, kStages = 3, kMicrobatches = 4, kSteps = 12;

class Pipelines {
 public:
  // ms that a rank works longer on a microbatch.
  using Extra = std::function<double(uint32_t rank, uint32_t step)>;

  explicit Pipelines(Extra gpu, bool timed = true)
      : builder_(kReplicas * kStages), gpu_(std::move(gpu)), timed_(timed) {
    for (uint32_t replica = 0; replica < kReplicas; ++replica) {
      std::vector<uint32_t> ranks;
      for (uint32_t stage = 0; stage < kStages; ++stage) ranks.push_back(replica + kReplicas * stage);
      pipelines_.push_back(builder_.comm("pp" + std::to_string(replica), ranks));
    }
    for (uint32_t stage = 0; stage < kStages; ++stage) {
      std::vector<uint32_t> ranks;
      for (uint32_t replica = 0; replica < kReplicas; ++replica) ranks.push_back(replica + kReplicas * stage);
      replicas_.push_back(builder_.comm("dp" + std::to_string(stage), ranks));
    }
    world_ = builder_.world();
    for (uint32_t step = 0; step < kSteps; ++step) play(step);
  }

  std::vector<Finding> findings() {
    std::vector<Finding> out;
    kAnalysis.run(builder_.build(), out);
    return out;
  }

 private:
  struct Rank {
    double free = 0;    // its work so far is done
    double stream = 0;  // and its sends and receives
  };

  void play(uint32_t step) {
    launched_ = now_ + 0.1;
    ranks_.assign(kReplicas * kStages, {now_ + 0.2, now_ + 0.2});
    for (uint32_t replica = 0; replica < kReplicas; ++replica) {
      for (uint32_t m = 0; m < kMicrobatches; ++m) {
        for (uint32_t stage = 0; stage < kStages; ++stage) {
          work(replica, stage, step, m, 4);
          if (stage + 1 < kStages) transfer(replica, stage, stage + 1);
        }
      }
      for (uint32_t m = 0; m < kMicrobatches; ++m) {
        for (uint32_t stage = kStages; stage-- > 0;) {
          work(replica, stage, step, m, 8);
          if (stage > 0) transfer(replica, stage, stage - 1);
        }
      }
    }
    for (uint32_t stage = 0; stage < kStages; ++stage) {
      std::vector<uint32_t> members;
      for (uint32_t replica = 0; replica < kReplicas; ++replica)
        members.push_back(replica + kReplicas * stage);
      reduce(replicas_[stage], members);
    }
    std::vector<uint32_t> all;
    for (uint32_t rank = 0; rank < kReplicas * kStages; ++rank) all.push_back(rank);
    reduce(world_, all);
    now_ = ranks_[0].free + 0.1;
  }

  // A little noise, so that no two ranks are equal, and none is in two steps.
  void work(uint32_t replica, uint32_t stage, uint32_t step, uint32_t microbatch, double ms) {
    const uint32_t rank = replica + kReplicas * stage;
    noise_ = (noise_ + rank + step + microbatch) * 1'103'515'245 + 12'345;
    ranks_[rank].free += ms + gpu_(rank, step) + 0.01 * (noise_ >> 16 & 7);
  }

  void transfer(uint32_t replica, uint32_t from_stage, uint32_t to_stage) {
    const uint32_t from = replica + kReplicas * from_stage, to = replica + kReplicas * to_stage;
    Rank &sender = ranks_[from], &receiver = ranks_[to];
    const double sent = std::max(sender.free, sender.stream) + 0.01;
    const double posted = std::max(receiver.free, receiver.stream) + 0.01;
    const double end = std::max(sent, posted) + 0.05;
    call(from, pipelines_[replica],
         {.func = "Send", .peer = static_cast<int>(to_stage), .gpu_start_ms = sent, .gpu_end_ms = end});
    call(to, pipelines_[replica],
         {.func = "Recv", .peer = static_cast<int>(from_stage), .gpu_start_ms = posted, .gpu_end_ms = end});
    sender.stream = end;
    receiver.stream = receiver.free = end;
  }

  void reduce(uint32_t comm, const std::vector<uint32_t>& members) {
    double last = 0;
    for (uint32_t rank : members) last = std::max(last, ranks_[rank].free + 0.01);
    for (uint32_t rank : members) {
      call(rank, comm, {.gpu_start_ms = ranks_[rank].free + 0.01, .gpu_end_ms = last + 0.5});
      ranks_[rank].free = last + 0.5;
    }
  }

  // The hosts are far ahead of their GPUs.
  void call(uint32_t rank, uint32_t comm, testing::Call call) {
    launched_ += 1e-4;
    call.called_ms = launched_;
    call.launched_ms = launched_;
    if (!timed_) call.gpu_start_ms = call.gpu_end_ms = -1;
    builder_.call(rank, comm, call);
  }

  JobBuilder builder_;
  Extra gpu_;
  bool timed_;
  std::vector<uint32_t> pipelines_, replicas_;
  uint32_t world_ = 0, noise_ = 0;
  std::vector<Rank> ranks_;
  double now_ = 0, launched_ = 0;
};

double nothing(uint32_t, uint32_t) { return 0; }

TEST(Pipelines, HaveNoFindingWhereNobodyIsLate) {
  for (const Finding& finding : Pipelines(nothing).findings()) ADD_FAILURE() << finding.statement;
}

// Its whole pipeline comes late to the reductions: ranks 1, 4 and 7.
TEST(Pipelines, NameTheStageThatWorksLongerAndNotThoseThatWaitForIt) {
  for (uint32_t late : {1u, 4u, 7u}) {
    auto extra = [&](uint32_t rank, uint32_t step) { return rank == late && step >= 5 ? 1.5 : 0; };
    const std::vector<Finding> findings = Pipelines(extra).findings();
    ASSERT_EQ(findings.size(), 1u) << "rank " << late;
    EXPECT_EQ(id_text(findings[0].id), "gpu-late");
    EXPECT_EQ(findings[0].ranks, std::vector<int32_t>{static_cast<int32_t>(late)});
    EXPECT_EQ(findings[0].comm, "dp" + std::to_string(late / kReplicas));
    ASSERT_TRUE(findings[0].effect);
    EXPECT_LE(findings[0].effect->value, 1.5e6 * 2 * kMicrobatches);
    EXPECT_GE(findings[0].effect->value, 1.5e6 * kMicrobatches);
    EXPECT_NE(findings[0].statement.find("step 5"), std::string::npos) << findings[0].statement;
  }
}

// A slow stage has no faster one to be compared with: that is the model's doing.
TEST(Pipelines, DoNotBlameAStageThatIsSlowEverywhere) {
  auto extra = [](uint32_t rank, uint32_t) { return rank / kReplicas == 1 ? 1.5 : 0; };
  for (const Finding& finding : Pipelines(extra).findings()) ADD_FAILURE() << finding.statement;
}

TEST(Pipelines, BlameNobodyWithoutGpuTimes) {
  auto extra = [](uint32_t rank, uint32_t step) { return rank == 1 && step >= 5 ? 1.5 : 0; };
  for (const Finding& finding : Pipelines(extra, false).findings()) ADD_FAILURE() << finding.statement;
}

}  // namespace
}  // namespace lockstep::analysis::straggler
