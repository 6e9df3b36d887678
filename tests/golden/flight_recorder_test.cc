// SPDX-License-Identifier: Apache-2.0
// The dumps that PyTorch's Flight Recorder left of the recorded hang: one a rank.
#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <vector>

#include "analysis/analysis.h"
#include "job/gather/gather.h"
#include "readers/reader.h"
#include "tests/support/places.h"

namespace lockstep::golden {
namespace {

analysis::Diagnosis diagnose(const std::vector<std::string>& paths) {
  auto source = readers::open(paths);
  EXPECT_TRUE(source);
  auto job = job::gather::gather(**source, {.threads = 1, .progress = {}});
  EXPECT_TRUE(job);
  return analysis::diagnose(*job);
}

// Of the hang, with the dumps of these ranks.
analysis::Diagnosis diagnose_hang(uint32_t present) {
  std::vector<std::string> paths;
  for (uint32_t rank = 0; rank < 8; ++rank) {
    if ((present >> rank & 1) != 0)
      paths.push_back(LOCKSTEP_SOURCE_DIR "/tests/data/flight_recorder/hang/fr_" + std::to_string(rank));
  }
  return diagnose(paths);
}

TEST(FlightRecorderDumps, RankFiveNeverCalledTheNinthAllReduce) {
  const analysis::Diagnosis diagnosis = diagnose_hang(0xff);
  ASSERT_TRUE(diagnosis.verdict);
  const analysis::Finding& verdict = diagnosis.findings[*diagnosis.verdict];
  EXPECT_EQ(class_text(class_of(verdict.id)), "never-joined");
  EXPECT_EQ(verdict.severity, analysis::Severity::kCritical);
  EXPECT_EQ(verdict.ranks, std::vector<int32_t>{5});
  EXPECT_EQ(verdict.op_index, 8u);
  EXPECT_EQ(verdict.comm, "default_pg");
  EXPECT_NE(verdict.statement.find("never called operation 8 of"), std::string::npos) << verdict.statement;
  EXPECT_NE(verdict.statement.find("7 ranks have waited 12"), std::string::npos) << verdict.statement;
  for (const analysis::Finding& finding : diagnosis.findings)
    EXPECT_EQ(finding.comm.find("even"), std::string::npos);
}

bool says(const analysis::Finding& finding, const std::string& line) {
  return std::find(finding.evidence.begin(), finding.evidence.end(), line) != finding.evidence.end();
}

TEST(FlightRecorderDumps, SayWhereInTheProgramTheRanksAre) {
  const analysis::Diagnosis hang = diagnose_hang(0xff);
  EXPECT_TRUE(says(hang.findings[0],
                   "ranks 0-4, 6 and 7 are in AllReduce at workloads.py:95 (main), from workloads.py:106"));
  EXPECT_TRUE(says(hang.findings[0],
                   "the last call of rank 5 was AllReduce at workloads.py:91 (main), from workloads.py:106"));
  const analysis::Diagnosis other =
      diagnose({LOCKSTEP_SOURCE_DIR "/tests/data/flight_recorder/cases/other_op"});
  const std::string place =
      " at flight_recorder_cases.py:62 (<lambda>), from flight_recorder_cases.py:31 (run), from "
      "flight_recorder_cases.py:93 (rank_of_case)";
  EXPECT_TRUE(says(other.findings[0], "rank 0 is in AllReduce" + place));
  EXPECT_TRUE(says(other.findings[0], "the last call of rank 1 was Broadcast" + place));
}

// Two ranks on H200s whose last operation goes wrong in a known way: bench/gpu/flight_recorder_cases.py made
// them.
struct Case {
  const char* name;
  const char* verdict;  // empty: nothing is wrong
  std::vector<int32_t> ranks;
};

TEST(FlightRecorderDumps, OfKnownFaultsAreJudgedRight) {
  // Of two ranks that differ either may be wrong.
  for (const Case& known :
       std::initializer_list<Case>{{"healthy", "", {}},
                                   {"never_joined", "never-joined", {1}},
                                   {"subgroup_never_joined", "never-joined", {0}},
                                   {"other_op", "joined-other-op", {0, 1}},
                                   {"other_size", "joined-other-op", {0, 1}},
                                   {"other_type", "joined-other-op", {0, 1}},
                                   {"left_out", "joined-other-op", {0, 1}},
                                   {"crossed_groups", "cross-comm-deadlock", {0, 1}},
                                   {"second_receive_alone", "never-joined", {0}},
                                   {"second_send_alone", "", {}},  // NCCL ended it: nobody waits
                                   {"other_root", "", {}},         // each is its own root: all complete
                                   {"coalesced", "", {}},
                                   {"uneven_all_to_all", "", {}}}) {
    SCOPED_TRACE(known.name);
    const analysis::Diagnosis diagnosis =
        diagnose({LOCKSTEP_SOURCE_DIR "/tests/data/flight_recorder/cases/" + std::string(known.name)});
    if (*known.verdict == 0) {
      EXPECT_FALSE(diagnosis.verdict) << known.name << ": " << diagnosis.findings[0].statement;
      continue;
    }
    ASSERT_TRUE(diagnosis.verdict) << known.name;
    const analysis::Finding& verdict = diagnosis.findings[*diagnosis.verdict];
    EXPECT_EQ(class_text(class_of(verdict.id)), known.verdict) << known.name;
    EXPECT_EQ(verdict.ranks, known.ranks) << known.name << ": " << verdict.statement;
  }
}

TEST(FlightRecorderDumps, ASendWithoutReceiveThatEndedIsWorthANote) {
  const analysis::Diagnosis diagnosis =
      diagnose({LOCKSTEP_SOURCE_DIR "/tests/data/flight_recorder/cases/second_send_alone"});
  EXPECT_FALSE(diagnosis.verdict);
  ASSERT_EQ(diagnosis.findings.size(), 1u);
  EXPECT_EQ(id_text(diagnosis.findings[0].id), "never-joined.unreceived");
  EXPECT_EQ(
      diagnosis.findings[0].statement,
      "rank 1 has not called its end of transfer 1 from rank 0 to rank 1 on default_pg (Send), which has ended without it");
}

TEST(FlightRecorderDumps, WithoutSomeOfThemNobodyElseIsBlamed) {
  for (uint32_t present = 1; present < 0xff; ++present) {
    const analysis::Diagnosis diagnosis = diagnose_hang(present);
    if (!diagnosis.verdict) {
      // Nothing waits in what rank 5 alone tells.
      EXPECT_EQ(present, 1u << 5) << present;
      continue;
    }
    const analysis::Finding& verdict = diagnosis.findings[*diagnosis.verdict];
    const bool has_five = (present >> 5 & 1) != 0;
    if (has_five && present != 1u << 5 && class_of(verdict.id) == analysis::FindingClass::kNeverJoined) {
      EXPECT_EQ(verdict.ranks, std::vector<int32_t>{5}) << present << ": " << verdict.statement;
      continue;
    }
    EXPECT_TRUE(class_of(verdict.id) == analysis::FindingClass::kRankUnreachable ||
                class_of(verdict.id) == analysis::FindingClass::kEvidenceMissing ||
                class_of(verdict.id) == analysis::FindingClass::kTooManyFailed)
        << present << ": " << verdict.statement;
    for (const int32_t rank : verdict.ranks)
      EXPECT_EQ(present >> rank & 1, 0u) << present << " blames a rank that is there: " << verdict.statement;
  }
}

}  // namespace
}  // namespace lockstep::golden
