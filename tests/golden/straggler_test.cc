// SPDX-License-Identifier: Apache-2.0
// Recordings of eight H200s. tests/data/straggler: data-parallel x tensor-parallel pairs, in which rank 3
// sleeps 20 ms before the forward pass from step 2 on (the first eight steps, one channel of each kernel, no
// proxy events). examples/recordings/train2h: the same job in good health.
#include <gtest/gtest.h>

#include "analysis/analysis.h"
#include "golden/tape_run.h"
#include "job/gather/gather.h"
#include "tests/support/places.h"

namespace lockstep::golden {
namespace {

std::vector<analysis::Finding> findings(const std::string& folder, bool gpu_times) {
  std::vector<std::string> tapes;
  for (int rank = 0; rank < 8; ++rank)
    tapes.push_back(std::string(LOCKSTEP_SOURCE_DIR "/") + folder + "/rank" + std::to_string(rank) +
                    ".jsonl.gz");
  auto run = TapeRun::open(tapes, gpu_times);
  EXPECT_TRUE(run) << run.error().message();
  if (!run) return {};
  auto job = job::gather::gather(**run, {});
  EXPECT_TRUE(job);
  return analysis::diagnose(*job).findings;
}

TEST(StragglerTape, NamesRank3FromStep2On) {
  for (bool gpu_times : {true, false}) {
    std::vector<analysis::Finding> found = findings("tests/data/straggler", gpu_times);
    ASSERT_EQ(found.size(), 1u) << "nobody else is to blame";
    EXPECT_EQ(id_text(found[0].id), "host-late");
    EXPECT_EQ(found[0].ranks, std::vector<int32_t>{3});
    EXPECT_NE(found[0].statement.find("since step 2,"), std::string::npos) << found[0].statement;
    ASSERT_TRUE(found[0].effect);
    EXPECT_GT(found[0].effect->value, 19e6);
    EXPECT_LT(found[0].effect->value, 23e6);
  }
}

TEST(StragglerTape, SaysNothingOfAHealthyJob) {
  for (bool gpu_times : {true, false}) {
    for (const analysis::Finding& finding : findings("examples/recordings/train2h", gpu_times))
      ADD_FAILURE() << id_text(finding.id) << ": " << finding.statement;
  }
}

}  // namespace
}  // namespace lockstep::golden
