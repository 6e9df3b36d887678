// SPDX-License-Identifier: Apache-2.0
// A rank's GPU stamps may be lost: KernelCh's are stale where its handles are. What is lost must never make a
// rank that is in an operation one that never came.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "analysis/analysis.h"
#include "analysis/testing/job_builder.h"

namespace lockstep::analysis::hang {
extern const Analysis kAnalysis;
namespace {

using testing::JobBuilder;

constexpr uint32_t kRanks = 8;

// Of each operation of the ranks that lose some, whether its start and its end are lost.
struct Lost {
  std::mt19937 random;
  double share;

  bool operator()() { return std::uniform_real_distribution<>(0, 1)(random) < share; }
};

// Steps of an all-reduce in groups of four and one of all. In the last, `odd` calls them in the other order.
model::Job deadlock(uint32_t odd, int steps, const std::vector<uint32_t>& stale, Lost lost) {
  JobBuilder job(kRanks);
  const uint32_t world = job.world(),
                 groups[] = {job.comm("low", {0, 1, 2, 3}), job.comm("high", {4, 5, 6, 7})};
  const auto call = [&](uint32_t rank, uint32_t comm, double ms, bool ends) {
    testing::Call of{.called_ms = ms, .gpu_start_ms = ms + 0.1, .gpu_end_ms = ends ? ms + 1 : -1};
    if (std::find(stale.begin(), stale.end(), rank) != stale.end()) {
      if (lost()) of.gpu_end_ms = -1;
      if (lost()) of.gpu_start_ms = of.gpu_end_ms = -1;
    }
    job.call(rank, comm, of);
  };
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    for (int step = 0; step < steps; ++step) {
      call(rank, groups[rank / 4], 20.0 * step, true);
      call(rank, world, 20.0 * step + 5, true);
    }
    const double ms = 20.0 * steps;
    if (rank == odd) {
      call(rank, world, ms, false);
    } else {
      call(rank, groups[rank / 4], ms, rank / 4 != odd / 4);
      if (rank / 4 != odd / 4) call(rank, world, ms + 5, false);
    }
    job.heartbeat(rank, 30'000);
  }
  return job.build();
}

TEST(StaleStamps, ADeadlockStaysADeadlock) {
  std::mt19937 random(20261125);
  for (int round = 0; round < 300; ++round) {
    const uint32_t odd = random() % kRanks;
    std::vector<uint32_t> stale = {random() % 4 == 0 ? static_cast<uint32_t>(random() % kRanks) : odd};
    if (random() % 2 == 0) stale.push_back(random() % kRanks);
    const int steps = 1 + static_cast<int>(random() % 12);
    const Lost lost{std::mt19937(random()), 0.2 * static_cast<double>(1 + random() % 5)};
    std::vector<Finding> findings;
    kAnalysis.run(deadlock(odd, steps, stale, lost), findings);
    ASSERT_FALSE(findings.empty()) << round;
    for (const Finding& finding : findings)
      EXPECT_EQ(class_of(finding.id), FindingClass::kCrossCommDeadlock)
          << "round " << round << ", rank " << odd << ", " << lost.share << " of the stamps of rank "
          << stale[0] << " lost: " << finding.statement;
  }
}

}  // namespace
}  // namespace lockstep::analysis::hang
