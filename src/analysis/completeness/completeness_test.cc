// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "analysis/analysis.h"
#include "analysis/testing/job_builder.h"
#include "model/record_gaps.h"

namespace lockstep::analysis {
namespace {

using testing::JobBuilder;

void lose(model::Job& job, uint32_t process, std::string_view kind, uint64_t count, std::string_view detail) {
  job.losses.append({.process = process,
                     .stage = job.strings.intern("read"),
                     .kind = job.strings.intern(kind),
                     .count = count,
                     .detail = job.strings.intern(detail)});
}

JobBuilder healthy() {
  JobBuilder builder(4);
  builder.steps(builder.world(), 20, 0, 100);
  return builder;
}

TEST(Completeness, AWholeRecordIsHealthy) {
  model::Job job = healthy().build();
  lose(job, 2, "proxy_op_states", 7, "states: /run/2.lks");
  EXPECT_FALSE(diagnose(job).verdict);
}

TEST(Completeness, WhatIsIncompleteIsNotCalledHealthy) {
  model::Job job = healthy().build();
  lose(job, 2, model::kLossIncompleteMiddle, 3, "of 11 chunks cannot be read: /run/2.lks");
  const Diagnosis diagnosis = diagnose(job);
  ASSERT_TRUE(diagnosis.verdict);
  const Finding& finding = diagnosis.findings[*diagnosis.verdict];
  EXPECT_EQ(id_text(finding.id), "evidence-missing.incomplete");
  EXPECT_EQ(finding.ranks, std::vector<int32_t>{2});
  EXPECT_EQ(finding.statement,
            "rank 2's file is incomplete: 3 of 11 chunks cannot be read; what can be read shows no problem");
}

TEST(Completeness, ASmallHoleDoesNotHideThatARunIsHealthy) {
  model::Job job = healthy().build();
  lose(job, 2, model::kLossIncompleteSlightly, 3, "of its records cannot be read: /run/2.lks");
  EXPECT_FALSE(diagnose(job).verdict);
  lose(job, 2, model::kLossUnproven, 1, "damaged: /run/2.lks");
  EXPECT_TRUE(diagnose(job).verdict);
}

TEST(Completeness, FewerThanHalfOfTheKernelsAreNoted) {
  model::Job job = healthy().build();
  for (uint32_t i = 0; i < 4; ++i) job.processes[i].kernels = i == 2 ? 100 : 364;
  Diagnosis diagnosis = diagnose(job);
  EXPECT_FALSE(diagnosis.verdict) << "ranks may have unequal work";
  ASSERT_EQ(diagnosis.findings.size(), 1u);
  EXPECT_EQ(id_text(diagnosis.findings[0].id), "evidence-missing.uneven-kernels");
  EXPECT_EQ(diagnosis.findings[0].ranks, std::vector<int32_t>{2});
  EXPECT_EQ(diagnosis.findings[0].statement,
            "rank 2 ran 100 kernels, rank 0 364 kernels: less work, or a recording that lacks a part");
  job.processes[2].kernels = 182;
  EXPECT_TRUE(diagnose(job).findings.empty());
}

TEST(Completeness, AVerdictStandsBesideGaps) {
  JobBuilder builder(4);
  const uint32_t world = builder.world();
  builder.steps(world, 20, 0, 100);
  for (uint32_t rank : {0u, 1u, 2u}) builder.call(rank, world, {.called_ms = 2000, .gpu_start_ms = 2000.1});
  builder.all_killed_at(60'000);
  model::Job job = builder.build();
  lose(job, 2, model::kLossIncompleteMiddle, 3, "of 11 chunks cannot be read: /run/2.lks");
  const Diagnosis diagnosis = diagnose(job);
  ASSERT_TRUE(diagnosis.verdict);
  EXPECT_EQ(id_text(diagnosis.findings[*diagnosis.verdict].id), "never-joined");
  EXPECT_EQ(diagnosis.findings[*diagnosis.verdict].ranks, std::vector<int32_t>{3});
}

}  // namespace
}  // namespace lockstep::analysis
