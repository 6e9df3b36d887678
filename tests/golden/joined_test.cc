// SPDX-License-Identifier: Apache-2.0
// One recorded hang as three kinds of evidence tell it, together: what capture recorded, the Flight
// Recorder's dumps, and what PyTorch's watchdogs printed.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "analysis/log_rules/log_rules.h"
#include "golden/tape_run.h"
#include "job/gather/gather.h"
#include "readers/nccl_log/read_logs.h"
#include "readers/reader.h"
#include "tests/support/places.h"
#include "tests/support/sanitizers.h"
#include "verdict/join/join.h"

namespace lockstep::golden {
namespace {

constexpr uint32_t kEverybody = 0xff;
constexpr uint32_t kRankFive = 1u << 5;
// A sanitizer looks at the code, not at the judgement: a few of the sets do.
constexpr uint32_t kStep = test::kSanitized ? 23 : 1;

// Both kinds, for every set of ranks that left theirs.
class JoinedHang : public ::testing::Test {
 protected:
  static void TearDownTestSuite() {
    captures_ = {};
    dumps_ = {};
  }

  static verdict::join::Joined join(uint32_t captures, uint32_t dumps,
                                    const std::vector<verdict::join::EvidenceSource>& others = {}) {
    std::vector<verdict::join::EvidenceSource> all;
    if (captures != 0)
      all.push_back(read_once(captures_[captures], captures, capture_of).evidence("capture files", captures));
    if (dumps != 0)
      all.push_back(read_once(dumps_[dumps], dumps, dumps_of).evidence("Flight Recorder dumps", dumps));
    all.insert(all.end(), others.begin(), others.end());
    return verdict::join::join(std::move(all));
  }

 private:
  struct View {
    model::Job job;
    std::vector<analysis::Finding> findings;
    void read(std::unique_ptr<model::TraceSource> source) {
      auto gathered = job::gather::gather(*source, {.threads = 1, .progress = {}});
      ASSERT_TRUE(gathered);
      job = *std::move(gathered);
      findings = analysis::diagnose(job).findings;
    }
    verdict::join::EvidenceSource evidence(const char* source, uint32_t present) const {
      verdict::join::EvidenceSource made;
      made.source = source;
      made.job = &job;
      made.findings = findings;
      for (int32_t rank = 0; rank < 8; ++rank) {
        if ((present >> rank & 1) != 0) made.hosts.emplace(rank, "");
      }
      return made;
    }
  };
  static std::vector<std::string> paths(uint32_t present, const std::string& prefix,
                                        const std::string& suffix) {
    std::vector<std::string> list;
    for (uint32_t rank = 0; rank < 8; ++rank) {
      if ((present >> rank & 1) != 0)
        list.push_back(LOCKSTEP_SOURCE_DIR "/tests/data/" + prefix + std::to_string(rank) + suffix);
    }
    return list;
  }
  static std::unique_ptr<model::TraceSource> capture_of(uint32_t present) {
    auto run = TapeRun::open(paths(present, "runs/hang/rank", ".jsonl.gz"), true);
    EXPECT_TRUE(run);
    return *std::move(run);
  }
  static std::unique_ptr<model::TraceSource> dumps_of(uint32_t present) {
    auto source = readers::open(paths(present, "flight_recorder/hang/fr_", ""));
    EXPECT_TRUE(source);
    return *std::move(source);
  }

  static View& read_once(View& view, uint32_t present,
                         std::unique_ptr<model::TraceSource> (*open)(uint32_t)) {
    if (view.job.processes.empty()) view.read(open(present));
    return view;
  }

  static inline std::array<View, kEverybody + 1> captures_, dumps_;
};

const analysis::Finding* verdict_of(const verdict::join::Joined& joined) {
  return joined.diagnosis.verdict ? &joined.diagnosis.findings[*joined.diagnosis.verdict] : nullptr;
}

TEST_F(JoinedHang, BothKindsAreOneFinding) {
  const auto joined = join(kEverybody, kEverybody);
  const analysis::Finding* verdict = verdict_of(joined);
  ASSERT_NE(verdict, nullptr);
  EXPECT_EQ(id_text(verdict->id), "never-joined");
  EXPECT_EQ(verdict->ranks, std::vector<int32_t>{5});
  EXPECT_EQ(verdict->op_index, 8u);
  EXPECT_EQ(verdict->sources, (std::vector<std::string>{"capture files", "Flight Recorder dumps"}));
  EXPECT_EQ(std::count_if(joined.diagnosis.findings.begin(), joined.diagnosis.findings.end(),
                          [](const auto& finding) { return finding.severity > analysis::Severity::kNote; }),
            1);
  // The world has one name here and another there; the group of the even ranks, too.
  ASSERT_EQ(joined.links.size(), 2u);
  for (const auto& link : joined.links) {
    EXPECT_EQ(link.by, verdict::join::CommLink::By::kMembers);
    EXPECT_GT(link.compared, 0u);
    EXPECT_EQ(link.agreeing, link.compared);
  }
}

// What the logs of these ranks say.
verdict::join::EvidenceSource logs_of(uint32_t present) {
  std::vector<std::string> paths;
  verdict::join::EvidenceSource made;
  made.source = "logs";
  for (int32_t rank = 0; rank < 8; ++rank) {
    if ((present >> rank & 1) == 0) continue;
    paths.push_back(LOCKSTEP_SOURCE_DIR "/tests/data/logs/hang/rank" + std::to_string(rank) + ".err");
    made.hosts.emplace(rank, "vm");
  }
  auto model = readers::nccl_log::read_logs(paths);
  EXPECT_TRUE(model);
  made.findings = analysis::log_rules::judge(*model);
  return made;
}

TEST_F(JoinedHang, AllThreeKindsAreOneFinding) {
  const auto joined = join(kEverybody, kEverybody, {logs_of(kEverybody)});
  const analysis::Finding* verdict = verdict_of(joined);
  ASSERT_NE(verdict, nullptr);
  EXPECT_EQ(id_text(verdict->id), "never-joined");
  EXPECT_EQ(verdict->ranks, std::vector<int32_t>{5});
  EXPECT_EQ(verdict->hosts.back(), "vm") << "a dump does not know its host; a log does";
  EXPECT_EQ(verdict->sources, (std::vector<std::string>{"capture files", "Flight Recorder dumps", "logs"}));
  EXPECT_EQ(std::count_if(joined.diagnosis.findings.begin(), joined.diagnosis.findings.end(),
                          [](const auto& finding) { return finding.severity > analysis::Severity::kNote; }),
            1);
}

TEST_F(JoinedHang, LogsOfAPartOfTheRanksBlameNobodyElse) {
  for (uint32_t logs = 1; logs <= kEverybody; logs += kStep) {
    const verdict::join::EvidenceSource from_logs = logs_of(logs);
    for (uint32_t others : {0u, kRankFive, kEverybody & ~kRankFive, 0x0fu, ~logs & kEverybody}) {
      SCOPED_TRACE("logs " + std::to_string(logs) + ", dumps " + std::to_string(others));
      for (const analysis::Finding& finding : join(0, others, {from_logs}).diagnosis.findings) {
        if (finding.severity < analysis::Severity::kCritical ||
            class_of(finding.id) == analysis::FindingClass::kEvidenceMissing)
          continue;
        for (const int32_t rank : finding.ranks)
          EXPECT_TRUE(rank == 5 || ((logs | others) >> rank & 1) == 0)
              << id_text(finding.id) << ": " << finding.statement;
      }
    }
  }
}

// Whoever is blamed is rank 5, or a rank that nobody has anything of; else it says that it cannot tell.
TEST_F(JoinedHang, WithFilesMissingNobodyElseIsBlamed) {
  uint32_t named = 0, known = 0;
  for (uint32_t captures = 0; captures <= kEverybody; captures += kStep) {
    for (uint32_t dumps = 0; dumps <= kEverybody; dumps += kStep) {
      if ((captures | dumps) == 0) continue;
      SCOPED_TRACE("captures " + std::to_string(captures) + ", dumps " + std::to_string(dumps));
      const auto joined = join(captures, dumps);
      for (const analysis::Finding& finding : joined.diagnosis.findings) {
        if (finding.severity < analysis::Severity::kCritical ||
            class_of(finding.id) == analysis::FindingClass::kEvidenceMissing)
          continue;
        for (const int32_t rank : finding.ranks) {
          EXPECT_TRUE(rank == 5 || ((captures | dumps) >> rank & 1) == 0)
              << id_text(finding.id) << ": " << finding.statement;
        }
      }
      const analysis::Finding* verdict = verdict_of(joined);
      const bool names_five = verdict != nullptr && verdict->ranks == std::vector<int32_t>{5};
      named += names_five;
      // Tapes end with the last call: how long others waited then shows in rank 5's alone, which goes on.
      // Dumps tell.
      const bool waits = (dumps & ~kRankFive) != 0 || ((captures & kRankFive) != 0 && captures != kRankFive);
      if (((captures | dumps) & kRankFive) != 0 && waits) {
        EXPECT_TRUE(names_five) << (verdict != nullptr ? verdict->statement : "no verdict");
        ++known;
      }
    }
  }
  EXPECT_GT(named, known);
}

TEST_F(JoinedHang, WhoIsInNeitherOfTwoKindsThatCannotTellIsNamed) {
  for (const auto& [dumps, from_logs] :
       {std::pair(kEverybody & ~kRankFive, kEverybody & ~kRankFive), {0x0fu, 0xd0u}, {0x4fu, 0x9fu}}) {
    const auto joined = join(0, dumps, {logs_of(from_logs)});
    const analysis::Finding* verdict = verdict_of(joined);
    ASSERT_NE(verdict, nullptr);
    EXPECT_EQ(verdict->ranks, std::vector<int32_t>{5}) << verdict->statement;
    EXPECT_EQ(verdict->severity, analysis::Severity::kCritical);
    EXPECT_EQ(verdict->sources, (std::vector<std::string>{"Flight Recorder dumps", "logs"}));
  }
}

// How much a verdict tells: 3 names rank 5 and nobody else, 2 blames ranks of which it is one, 1 says what it
// lacks.
int strength(const verdict::join::Joined& joined) {
  const analysis::Finding* verdict = verdict_of(joined);
  if (verdict == nullptr) return 0;
  const bool has_five = std::count(verdict->ranks.begin(), verdict->ranks.end(), 5) > 0;
  if (verdict->severity < analysis::Severity::kCritical || !has_five) return 1;
  return verdict->ranks.size() == 1 ? 3 : 2;
}
bool names_a_contradiction(const verdict::join::Joined& joined) {
  return std::any_of(joined.diagnosis.findings.begin(), joined.diagnosis.findings.end(),
                     [](const auto& finding) {
                       return finding.id == analysis::FindingId::kEvidenceMissingDisagreement ||
                              finding.id == analysis::FindingId::kEvidenceMissingOtherTime;
                     });
}

TEST_F(JoinedHang, OneFileMoreNeverMakesTheAnswerWeaker) {
  std::vector<verdict::join::EvidenceSource> logs;
  for (uint32_t present = 0; present <= kEverybody; ++present) {
    logs.emplace_back();
    if (present != 0) logs.back() = logs_of(present);
  }
  const auto joined = [&](uint32_t captures, uint32_t dumps, uint32_t from_logs) {
    std::vector<verdict::join::EvidenceSource> others;
    if (from_logs != 0) others.push_back(logs[from_logs]);
    return join(captures, dumps, others);
  };
  // Every set of logs and of dumps, captures beside them in some, and each file more.
  size_t weaker = 0, looked = 0;
  for (uint32_t dumps = 0; dumps <= kEverybody; dumps += kStep) {
    for (uint32_t from_logs = dumps % 3; from_logs <= kEverybody; from_logs += 7) {
      const uint32_t captures = (dumps + from_logs) % 5 == 0 ? (dumps * 37 + from_logs) & kEverybody : 0;
      if ((dumps | from_logs | captures) == 0) continue;
      const int before = strength(joined(captures, dumps, from_logs));
      const uint32_t rank = 1u << (dumps + from_logs) % 8;
      for (const auto& [c, d, l] : {std::array{captures | rank, dumps, from_logs},
                                    {captures, dumps | rank, from_logs},
                                    {captures, dumps, from_logs | rank}}) {
        const auto after = joined(c, d, l);
        ++looked;
        if (strength(after) >= before || names_a_contradiction(after)) continue;
        const analysis::Finding* verdict = verdict_of(after);
        if (weaker++ < 5)
          ADD_FAILURE() << "captures " << captures << "+" << (c & ~captures) << ", dumps " << dumps << "+"
                        << (d & ~dumps) << ", logs " << from_logs << "+" << (l & ~from_logs) << ": from "
                        << before << " to "
                        << (verdict == nullptr
                                ? "none"
                                : std::string(id_text(verdict->id)) + ": " + verdict->statement);
      }
    }
  }
  EXPECT_EQ(weaker, 0u) << "of " << looked;
}

}  // namespace
}  // namespace lockstep::golden
