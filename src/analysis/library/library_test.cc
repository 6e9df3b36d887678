// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "analysis/analysis.h"
#include "analysis/testing/job_builder.h"

namespace lockstep::analysis {
namespace {

using testing::JobBuilder;

JobBuilder healthy() {
  JobBuilder builder(4);
  const uint32_t world = builder.world();
  builder.steps(world, 8, 1, 10);
  for (uint32_t rank = 0; rank < 4; ++rank) {
    model::Process& row = builder.process(rank).row;
    row.nccl_version = 22809;
    row.nccl_library = builder.text("/env/libnccl.so.2");
    row.nccl_build_id = builder.text("aa11");
  }
  return builder;
}

const Finding* find(const Diagnosis& diagnosis, std::string_view id) {
  for (const Finding& finding : diagnosis.findings) {
    if (id_text(finding.id) == id) return &finding;
  }
  return nullptr;
}

TEST(Library, OneForAllIsNoFinding) {
  JobBuilder builder = healthy();
  builder.process(2).row.nccl_library = builder.text("/elsewhere/libnccl.so.2");
  builder.process(3).row.nccl_build_id = 0;
  model::Job job = builder.build();
  const Diagnosis diagnosis = diagnose(job);
  for (const char* id :
       {"misconfigured.nccl-release", "misconfigured.nccl-build", "misconfigured.nccl-twice"})
    EXPECT_EQ(find(diagnosis, id), nullptr) << id;
}

TEST(Library, TheRankWithAnotherReleaseIsNamed) {
  JobBuilder builder = healthy();
  builder.process(2).row.nccl_version = 22703;
  builder.process(2).row.nccl_build_id = builder.text("bb22");
  model::Job job = builder.build();
  const Diagnosis diagnosis = diagnose(job);
  const Finding* finding = find(diagnosis, "misconfigured.nccl-release");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->ranks, std::vector<int32_t>{2});
  EXPECT_NE(finding->statement.find("rank 2 runs another release of NCCL"), std::string::npos)
      << finding->statement;
  EXPECT_EQ(find(diagnosis, "misconfigured.nccl-build"), nullptr) << "said once";
}

TEST(Library, NobodyIsNamedWhereAsManyRunTheOneAsTheOther) {
  JobBuilder builder = healthy();
  for (const uint32_t rank : {2u, 3u}) builder.process(rank).row.nccl_build_id = builder.text("bb22");
  model::Job job = builder.build();
  const Diagnosis diagnosis = diagnose(job);
  const Finding* finding = find(diagnosis, "misconfigured.nccl-build");
  ASSERT_NE(finding, nullptr);
  EXPECT_TRUE(finding->ranks.empty());
  EXPECT_EQ(finding->evidence.size(), 2u);
}

// A trainer and a server that do not talk to each other may run what they like.
TEST(Library, OnlyWhoSharesACommunicatorIsCompared) {
  JobBuilder builder(4);
  const uint32_t a = builder.comm("a", {0, 1}), b = builder.comm("b", {2, 3});
  builder.steps(a, 8, 1, 10);
  builder.steps(b, 8, 1, 10);
  for (const uint32_t rank : {0u, 1u}) builder.process(rank).row.nccl_version = 22703;
  for (const uint32_t rank : {2u, 3u}) builder.process(rank).row.nccl_version = 22809;
  model::Job job = builder.build();
  EXPECT_EQ(find(diagnose(job), "misconfigured.nccl-release"), nullptr);
}

TEST(Library, TwoInOneProcessAreANote) {
  JobBuilder builder = healthy();
  builder.process(1).row.other_nccl = builder.text("cc33 /usr/lib/libnccl.so.2");
  builder.process(0).row.other_nccl = builder.text("aa11 /link/libnccl.so.2");
  model::Job job = builder.build();
  const Diagnosis diagnosis = diagnose(job);
  const Finding* finding = find(diagnosis, "misconfigured.nccl-twice");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->severity, Severity::kNote);
  EXPECT_EQ(finding->ranks, std::vector<int32_t>{1});
}

}  // namespace
}  // namespace lockstep::analysis
