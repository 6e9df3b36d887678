// SPDX-License-Identifier: Apache-2.0
#include "cli/exporter/findings.h"

#include <gtest/gtest.h>

namespace lockstep::cli::exporter {
namespace {

TEST(Findings, AreReadFromADiagnosis) {
  Findings findings;
  auto read = read_findings(R"({"verdict":null,"findings":[
      {"id":"never-joined","class":"never-joined","severity":"critical","ranks":[3],"comm":"world","func":null},
      {"id":"host-late","class":"host-late","severity":"warning","ranks":[1,2],"comm":null},
      {"id":"host-late","class":"host-late","severity":"warning","ranks":[4,5],"comm":null},
      {"id":"fallback","class":"fallback","severity":"note","ranks":[]}]})",
                            findings);
  ASSERT_TRUE(read);
  ASSERT_EQ(findings.list.size(), 2u) << "notes are only counted, equal ones are one";
  EXPECT_EQ(findings.list[0].rank, "3");
  EXPECT_EQ(findings.list[0].comm, "world");
  EXPECT_EQ(findings.list[1].rank, "several");
  EXPECT_EQ(findings.by_severity["warning"], 2u);
  EXPECT_EQ(findings.by_severity["note"], 1u);
}

TEST(Findings, AreBoundedAndKeptWhereTheNextAnswerIsNone) {
  std::string many = R"({"findings":[)";
  for (int i = 0; i < 100; ++i)
    many += (i > 0 ? "," : "") + std::string(R"({"id":"x","class":"x","severity":"warning","ranks":[)") +
            std::to_string(i) + "]}";
  Findings findings;
  ASSERT_TRUE(read_findings(many + "]}", findings));
  EXPECT_EQ(findings.list.size(), Findings::kMost);
  EXPECT_EQ(findings.by_severity["warning"], 100u);
  for (const char* bad : {"", "nothing", "[]", "{}", R"({"findings":3})", R"({"findings":[1]})",
                          R"({"findings":[{"severity":"terrible"}]})"})
    EXPECT_FALSE(read_findings(bad, findings)) << bad;
  EXPECT_EQ(findings.list.size(), Findings::kMost);
}

}  // namespace
}  // namespace lockstep::cli::exporter
