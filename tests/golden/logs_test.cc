// SPDX-License-Identifier: Apache-2.0
// Logs of real jobs on eight H200s, cut to two ranks each, and what Lockstep finds in them.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "analysis/log_rules/log_rules.h"
#include "readers/nccl_log/read_logs.h"
#include "readers/reader.h"
#include "tests/support/places.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::golden {
namespace {

std::string folder(const std::string& name) { return LOCKSTEP_SOURCE_DIR "/tests/data/logs/" + name; }

std::vector<analysis::Finding> findings_of(const std::vector<std::string>& paths) {
  auto inputs = readers::sort(paths);
  EXPECT_TRUE(inputs);
  auto model = readers::nccl_log::read_logs(inputs->formats.back().files);
  EXPECT_TRUE(model);
  EXPECT_TRUE(model->unknown.empty());
  EXPECT_EQ(model->coverage.torn, 0u);
  return analysis::log_rules::judge(*model);
}

std::vector<std::string> ids(const std::vector<analysis::Finding>& findings) {
  std::vector<std::string> list;
  for (const analysis::Finding& finding : findings) list.emplace_back(id_text(finding.id));
  return list;
}

TEST(RecordedLogs, TwoHostsFallBackToSockets) {
  const auto findings = findings_of({folder("two_hosts")});
  ASSERT_EQ(ids(findings), (std::vector<std::string>{"fallback.net-socket", "fallback.nvls-disabled",
                                                     "evidence-missing.rank-logs"}));
  EXPECT_EQ(findings[0].statement,
            "ranks 0 and 4: data between hosts goes over TCP sockets: no InfiniBand or RoCE card was found");
  EXPECT_EQ(findings[0].evidence[0],
            folder("two_hosts") + "/rank0.log:7: vm:1551:1551 [0] NCCL INFO NET/IB : No device found.");
}

TEST(RecordedLogs, PeerToPeerIsSwitchedOff) {
  const auto findings = findings_of({folder("no_p2p")});
  ASSERT_EQ(ids(findings), (std::vector<std::string>{"fallback.p2p-disabled", "fallback.nvls-disabled",
                                                     "evidence-missing.rank-logs"}));
  EXPECT_EQ(findings[0].evidence[0],
            folder("no_p2p") +
                "/rank0.log:14: vm:6187:6187 [0] NCCL INFO NCCL_P2P_DISABLE set by environment to 1");
}

// The communicators of a job that hangs are in order: NCCL's own lines blame nobody.
TEST(RecordedLogs, AHangGivesNoFalseAlarm) {
  const auto findings = findings_of({folder("hang") + "/rank0.log", folder("hang") + "/rank5.log"});
  for (const analysis::Finding& finding : findings)
    EXPECT_EQ(finding.severity, analysis::Severity::kNote) << id_text(finding.id);
}

// What the watchdogs of these ranks of the hang wrote.
std::vector<analysis::Finding> watchdogs(uint32_t present) {
  std::vector<std::string> paths;
  for (uint32_t rank = 0; rank < 8; ++rank) {
    if ((present >> rank & 1) != 0) paths.push_back(folder("hang") + "/rank" + std::to_string(rank) + ".err");
  }
  return findings_of(paths);
}

TEST(RecordedLogs, TheWatchdogsTellThatRankFiveNeverCalledTheNinthAllReduce) {
  for (const auto& findings : {watchdogs(0xff), findings_of({folder("hang")})}) {
    ASSERT_FALSE(findings.empty());
    const analysis::Finding& first = findings[0];
    EXPECT_EQ(id_text(first.id), "never-joined.watchdog");
    EXPECT_EQ(first.statement,
              "rank 5 never called operation 8 of default_pg (AllReduce); 7 ranks waited for it for "
              "12.1 s, until "
              "PyTorch's watchdog gave up");
    EXPECT_EQ(first.ranks, std::vector<int32_t>{5});
    EXPECT_EQ(first.comm, "default_pg");
    EXPECT_EQ(first.func, "AllReduce");
    EXPECT_EQ(first.op_index, 8u);
    for (size_t i = 1; i < findings.size(); ++i)
      EXPECT_EQ(findings[i].severity, analysis::Severity::kNote) << findings[i].statement;
  }
}

TEST(RecordedLogs, WithoutSomeOfThemNobodyElseIsBlamed) {
  for (uint32_t present = 1; present < 0xff; ++present) {
    const auto findings = watchdogs(present);
    ASSERT_EQ(findings.size(), 1u) << present;
    const bool is_decided = (present >> 5 & 1) != 0 && present != 1U << 5;
    EXPECT_EQ(id_text(findings[0].id), is_decided ? "never-joined.watchdog" : "evidence-missing.watchdog")
        << present;
    if (is_decided) {
      EXPECT_EQ(findings[0].ranks, std::vector<int32_t>{5}) << present;
      continue;
    }
    EXPECT_FALSE(findings[0].needed_evidence.empty()) << present;
    for (const int32_t rank : findings[0].ranks)
      EXPECT_EQ(present >> rank & 1, 0u) << present << " names a rank that speaks: " << findings[0].statement;
  }
}

// As a launcher collects them: a mark before each line, and the ranks' lines between each other's.
TEST(RecordedLogs, OneStreamOfAllRanksTellsTheSame) {
  const test::TemporaryFolder folder_of_stream;
  const std::string path = folder_of_stream / "one_stream";
  for (const char* mark :
       {"", "[default0]:", "(RayWorkerWrapper pid=7, ip=198.51.100.9) ", "2031-02-03T04:05:06Z "}) {
    std::vector<std::vector<std::string>> ranks(8);
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      std::ifstream file(folder("hang") + "/rank" + std::to_string(rank) + ".err");
      for (std::string line; std::getline(file, line);) ranks[rank].push_back(line);
    }
    std::ofstream out(path);
    for (size_t line = 0; line < 16; ++line) {
      for (const auto& lines : ranks) {
        if (line < lines.size()) out << mark << lines[line] << '\n';
      }
    }
    out.close();
    const auto findings = findings_of({path});
    ASSERT_EQ(findings.size(), 1u) << mark;
    EXPECT_EQ(id_text(findings[0].id), "never-joined.watchdog") << mark;
    EXPECT_EQ(findings[0].ranks, std::vector<int32_t>{5}) << mark;
    EXPECT_EQ(findings[0].op_index, 8u) << mark;
  }
}

TEST(RecordedLogs, EverySubsystemIsUnderstood) {
  for (const analysis::Finding& finding : findings_of({folder("every_subsystem")}))
    EXPECT_EQ(finding.severity, analysis::Severity::kNote) << finding.statement;
}

TEST(RecordedLogs, EightRanksOnTwoHostsAgree) {
  const auto findings = findings_of({folder("eight_ranks")});
  ASSERT_EQ(ids(findings), (std::vector<std::string>{"fallback.net-socket", "fallback.nvls-disabled"}));
  EXPECT_EQ(findings[0].ranks, (std::vector<int32_t>{0, 1, 2, 3, 4, 5, 6, 7}));
}

}  // namespace
}  // namespace lockstep::golden
