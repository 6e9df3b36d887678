// SPDX-License-Identifier: Apache-2.0
// What NCCL 2.28.9 answered to `ncclras -f json` on two H200s: a job that is well; rank 1 does not call the
// last all-reduce; its process is stopped, and killed. NCCL's JSON lacks a comma where a rank is missing.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "analysis/ras_rules/ras_rules.h"
#include "readers/ras/read_ras.h"
#include "tests/support/places.h"

namespace lockstep::golden {
namespace {

std::vector<analysis::Finding> judge(const std::vector<std::string>& names) {
  std::vector<std::string> paths;
  for (const std::string& name : names)
    paths.push_back(LOCKSTEP_SOURCE_DIR "/tests/data/ras/" + name + ".json");
  const auto model = readers::ras::read_ras(paths);
  EXPECT_TRUE(model) << model.error().message();
  if (!model) return {};
  for (const auto& snapshot : model->snapshots) {
    EXPECT_EQ(snapshot.comms.size(), 2u);
    EXPECT_FALSE(snapshot.cut);
    EXPECT_EQ(snapshot.bad_ranks + snapshot.left_out, 0u);
  }
  return analysis::ras_rules::judge(*model);
}

TEST(RasSnapshots, OfAHealthyJobSayNothing) { EXPECT_TRUE(judge({"healthy"}).empty()); }

TEST(RasSnapshots, RankOneIsBehindAndStandsStill) {
  const auto once = judge({"behind_1"});
  ASSERT_EQ(once.size(), 1u);
  EXPECT_EQ(once[0].severity, analysis::Severity::kWarning);
  EXPECT_EQ(once[0].ranks, std::vector<int32_t>{1});
  const auto twice = judge({"healthy", "behind_1", "behind_2"});
  ASSERT_EQ(twice.size(), 1u);
  EXPECT_EQ(id_text(twice[0].id), "never-joined.snapshot");
  EXPECT_EQ(twice[0].severity, analysis::Severity::kCritical);
  EXPECT_EQ(twice[0].ranks, std::vector<int32_t>{1});
  EXPECT_EQ(twice[0].func, "AllReduce");
  EXPECT_EQ(twice[0].op_index, 9u);
}

TEST(RasSnapshots, AStoppedProcessDoesNotAnswerAndAKilledOneIsDead) {
  for (const auto& [name, id] :
       {std::pair("stopped", "rank-unreachable.snapshot"), {"killed", "rank-dead.snapshot"}}) {
    const auto findings = judge({name});
    ASSERT_FALSE(findings.empty()) << name;
    EXPECT_EQ(id_text(findings[0].id), id);
    EXPECT_EQ(findings[0].severity, analysis::Severity::kCritical);
    EXPECT_EQ(findings[0].ranks, std::vector<int32_t>{1});
    EXPECT_EQ(findings[0].hosts, std::vector<std::string>{"192.0.2.2"});
    for (size_t i = 1; i < findings.size(); ++i) EXPECT_EQ(findings[i].severity, analysis::Severity::kNote);
  }
}

}  // namespace
}  // namespace lockstep::golden
