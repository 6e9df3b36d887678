// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <functional>

#include "analysis/analysis.h"
#include "analysis/testing/job_builder.h"

namespace lockstep::analysis::hang {
extern const Analysis kAnalysis;
namespace {

using testing::Call;
using testing::JobBuilder;

Call message(const char* func, int peer, double ms, double took_ms = 0.5) {
  return {.func = func,
          .called_ms = ms,
          .peer = peer,
          .gpu_start_ms = ms,
          .gpu_end_ms = took_ms < 0 ? -1 : ms + took_ms};
}
// Two sends of rank 0 to rank 1, of which the first alone is received; all of it has ended.
std::vector<Finding> findings_of(const std::function<void(JobBuilder&)>& change) {
  JobBuilder job(2);
  const uint32_t world = job.world("pp");
  job.call(0, world, message("Send", 1, 10));
  job.call(1, world, message("Recv", 0, 10));
  job.call(0, world, message("Send", 1, 20));
  change(job);
  std::vector<Finding> findings;
  kAnalysis.run(job.build(), findings);
  return findings;
}

TEST(Unreceived, ASendThatEndedWithoutItsReceiveIsANote) {
  const auto findings = findings_of([](JobBuilder&) {});
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(id_text(findings[0].id), "never-joined.unreceived");
  EXPECT_EQ(findings[0].severity, Severity::kNote);
  EXPECT_EQ(
      findings[0].statement,
      "rank 1 has not called its end of transfer 1 from rank 0 to rank 1 on pp (Send), which has ended without it");
  EXPECT_EQ(findings[0].ranks, std::vector<int32_t>{1});
  EXPECT_EQ(findings[0].op_index, 1u);
  EXPECT_EQ(findings[0].evidence, std::vector<std::string>{"rank 1 has called 1 receive for 2 sends"});
}

TEST(Unreceived, EqualNumbersAreNone) {
  EXPECT_TRUE(findings_of([](JobBuilder& job) { job.call(1, 0, message("Recv", 0, 30)); }).empty());
}

// Whoever has work under way may call the receive yet.
TEST(Unreceived, ABusyReceiverIsNotIdle) {
  EXPECT_TRUE(findings_of([](JobBuilder& job) {
                job.call(1, job.comm("own", {1}), {.called_ms = 20, .gpu_start_ms = 20});
              }).empty());
}

TEST(Unreceived, ABusySenderIsNotIdle) {
  EXPECT_TRUE(findings_of([](JobBuilder& job) {
                job.call(0, job.comm("own", {0}), {.called_ms = 20, .gpu_start_ms = 20});
              }).empty());
}

TEST(Unreceived, CountsOfAWrappedRingSayNothing) {
  EXPECT_TRUE(findings_of([](JobBuilder& job) { job.process(1).lost = 1; }).empty());
}

TEST(Unreceived, FourAreTold) {
  JobBuilder job(8);
  const uint32_t world = job.world("pp");
  for (uint32_t rank = 0; rank < 8; ++rank) {
    const int next = static_cast<int>((rank + 1) % 8), before = static_cast<int>((rank + 7) % 8);
    job.call(rank, world, message("Send", next, 10));
    job.call(rank, world, message("Recv", before, 10));
    job.call(rank, world, message("Send", next, 20));
  }
  std::vector<Finding> findings;
  kAnalysis.run(job.build(), findings);
  EXPECT_EQ(findings.size(), 4u);
}

}  // namespace
}  // namespace lockstep::analysis::hang
