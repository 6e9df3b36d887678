// SPDX-License-Identifier: Apache-2.0
// Eight ranks on H200s: eight all-reduces, one on the group of the even ranks, then rank 5 stays away from
// the ninth.
#include <gtest/gtest.h>

#include "analysis/analysis.h"
#include "golden/tape_run.h"
#include "job/gather/gather.h"
#include "tests/support/places.h"

namespace lockstep::golden {
namespace {

analysis::Diagnosis diagnose(const std::string& folder, bool gpu_times) {
  std::vector<std::string> paths;
  for (int rank = 0; rank < 8; ++rank)
    paths.push_back(LOCKSTEP_SOURCE_DIR "/" + folder + "/rank" + std::to_string(rank) + ".jsonl.gz");
  auto run = TapeRun::open(paths, gpu_times);
  EXPECT_TRUE(run);
  auto job = job::gather::gather(**run, {.threads = 1, .progress = {}});
  EXPECT_TRUE(job);
  return analysis::diagnose(*job);
}

TEST(RecordedHang, RankFiveNeverCalledTheNinthAllReduce) {
  for (bool gpu_times : {true, false}) {
    analysis::Diagnosis diagnosis = diagnose("tests/data/runs/hang", gpu_times);
    ASSERT_TRUE(diagnosis.verdict);
    const analysis::Finding& verdict = diagnosis.findings[*diagnosis.verdict];
    EXPECT_EQ(class_text(class_of(verdict.id)), "never-joined");
    EXPECT_EQ(verdict.severity, analysis::Severity::kCritical);
    EXPECT_EQ(verdict.ranks, std::vector<int32_t>{5});
    EXPECT_EQ(verdict.op_index, 8u);
    EXPECT_EQ(verdict.comm, "0x27946d05ec4ea4ba");
    EXPECT_NE(verdict.statement.find("never called operation 8 of world"), std::string::npos)
        << verdict.statement;
    EXPECT_NE(verdict.statement.find("7 ranks have waited"), std::string::npos) << verdict.statement;
    // The group of the even ranks is well.
    for (const analysis::Finding& finding : diagnosis.findings) EXPECT_NE(finding.comm, "0x912c346bf0d2e2a6");
  }
}

TEST(RecordedHang, AHealthyRunHoldsNobodyUp) {
  for (const analysis::Finding& finding : diagnose("examples/recordings/train2h", true).findings)
    EXPECT_LT(finding.severity, analysis::Severity::kCritical) << finding.statement;
}

}  // namespace
}  // namespace lockstep::golden
