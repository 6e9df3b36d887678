// SPDX-License-Identifier: Apache-2.0
#include "exporters/prometheus/findings.h"

#include <gtest/gtest.h>

namespace lockstep::exporters::metrics {
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

TEST(Findings, ClocksAreThoseThatWereAligned) {
  Findings findings;
  ASSERT_TRUE(read_findings(R"({"findings":[],"clock":[
      {"boot_id":"a","same_boot":true,"at_ns":50,"offset_ns":0,"half_width_ns":0},
      {"boot_id":"-b-","same_boot":false,"at_ns":2000,"offset_ns":-700,"half_width_ns":20},
      {"boot_id":"b","same_boot":false,"at_ns":1000,"offset_ns":-500,"half_width_ns":10},
      {"boot_id":"c","same_boot":false,"at_ns":50,"offset_ns":null,"half_width_ns":null},
      {"boot_id":"d","same_boot":false,"at_ns":"x","offset_ns":1,"half_width_ns":1},
      {"boot_id":"e","same_boot":false,"at_ns":5,"offset_ns":9223372036854775807,"half_width_ns":9223372036854775807},
      {"boot_id":7}, 3]})",
                            findings));
  ASSERT_EQ(findings.clocks.size(), 2u);
  EXPECT_TRUE(findings.clocks["a"].is_same());
  EXPECT_EQ(findings.clocks["b"].offset(1000)->ns, -500);
  EXPECT_EQ(findings.clocks["b"].offset(2100)->ns, -700);
  EXPECT_EQ(findings.clocks["b"].offset(1000)->half_width_ns, 10);
  ASSERT_TRUE(read_findings(R"({"findings":[],"clock":7})", findings));
  EXPECT_TRUE(findings.clocks.empty());
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
}  // namespace lockstep::exporters::metrics
