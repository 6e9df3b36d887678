// SPDX-License-Identifier: Apache-2.0
#include "verdict/coverage.h"

#include <gtest/gtest.h>

namespace lockstep::verdict {
namespace {

// Each host by its name and its boot.
Coverage coverage_of(const std::vector<std::pair<const char*, const char*>>& hosts) {
  Evidence evidence;
  model::Job& job = evidence.job.emplace();
  for (const auto& [name, boot] : hosts) {
    model::JobHost& host = job.hosts.emplace_back();
    host.name = job.strings.intern(name);
    host.boot_id = job.strings.intern(boot);
  }
  return cover(evidence);
}

TEST(Coverage, ContainersOfOneBootShareAClock) {
  const Coverage coverage = coverage_of({{"c1", "boot"}, {"c2", "boot"}});
  EXPECT_EQ(coverage.clocks, 1u);
  EXPECT_EQ(coverage.unaligned_clocks, 1u);
}

TEST(Coverage, AHostWithoutABootHasAClockOfItsOwn) {
  const Coverage coverage = coverage_of({{"a", ""}, {"b", ""}});
  EXPECT_EQ(coverage.clocks, 2u);
  EXPECT_EQ(coverage.unaligned_clocks, 2u);
  EXPECT_NE(seen_sentence(coverage).find("clocks not aligned"), std::string::npos);
}

TEST(Coverage, OfAnotherRunNobodyIsMissed) {
  DiagnosedRun run;
  run.evidence.resize(2);
  run.evidence[0].source = "capture files";
  run.evidence[0].hosts = {{0, "a"}, {1, "a"}};
  run.evidence[0].span = {2'000'000'000'000'000'000, 2'000'000'060'000'000'000};
  run.evidence[1].source = "logs";
  run.evidence[1].hosts = {{0, "a"}, {1, "a"}, {2, "b"}};
  run.evidence[1].span = run.evidence[0].span;
  ASSERT_EQ(absent_from(run).size(), 1u);
  EXPECT_EQ(absent_from(run)[0].find("capture files: none of rank 2."), 0u) << absent_from(run)[0];
  run.evidence[1].span = {1'900'000'000'000'000'000, 1'900'000'060'000'000'000};
  EXPECT_TRUE(absent_from(run).empty());
}

}  // namespace
}  // namespace lockstep::verdict
