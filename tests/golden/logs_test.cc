// SPDX-License-Identifier: Apache-2.0
// Logs of real jobs on eight H200s, cut to two ranks each, and what Lockstep finds in them.
#include <gtest/gtest.h>

#include "analysis/log_rules/log_rules.h"
#include "readers/nccl_log/read_logs.h"
#include "readers/reader.h"

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
  for (const analysis::Finding& finding : findings) list.push_back(finding.id);
  return list;
}

TEST(RecordedLogs, TwoHostsFallBackToSockets) {
  const auto findings = findings_of({folder("two_hosts")});
  ASSERT_EQ(ids(findings), (std::vector<std::string>{"fallback.net-socket", "fallback.nvls-disabled",
                                                     "evidence-missing.rank-logs"}));
  EXPECT_EQ(findings[0].statement,
            "ranks 0 and 4: data goes between hosts over TCP sockets: no InfiniBand or RoCE card was found");
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
    EXPECT_EQ(finding.severity, analysis::Severity::kNote) << finding.id;
}

TEST(RecordedLogs, TheWatchdogsTellWhoWasBehind) {
  const auto findings = findings_of({folder("hang")});
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].id, "never-joined.watchdog");
  EXPECT_EQ(findings[0].ranks, std::vector<int32_t>{5});
}

}  // namespace
}  // namespace lockstep::golden
