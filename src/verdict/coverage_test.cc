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

}  // namespace
}  // namespace lockstep::verdict
