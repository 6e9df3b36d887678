// SPDX-License-Identifier: Apache-2.0
// Each line of known_issues.def is reported below its fix and not at it, nor without what it does.
#include "analysis/log_rules/known_issues.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "analysis/log_rules/log_rules.h"
#include "model/torch/process_group.h"
#include "readers/nccl_log/log_parser.h"

namespace lockstep::analysis::log_rules {
namespace {

using Trouble = KnownIssue::Trouble;
using Sign = KnownIssue::Sign;

constexpr char kHead[] = "h1:1:1 [0] NCCL INFO ", kOther[] = "h2:2:2 [0] NCCL INFO ";

std::string line(const char* head, const std::string& text) { return head + text + '\n'; }
std::string timeout_of(const std::string& op) {
  return "[rank0]:[E1 ProcessGroupNCCL.cpp:9] [PG ID 0 PG GUID 0 Rank 0] Watchdog caught collective "
         "operation timeout: WorkNCCL(SeqNum=9, OpType=" +
         op + ", NumelIn=2, NumelOut=2, Timeout(ms)=600000) ran for 600042 milliseconds\n";
}
std::string cpu(const char* head, const std::string& kind) {
  return line(head, "=== System : maxBw 48.0 totalBw 48.0 ===") + line(head, "CPU/0-0 (" + kind + "/1)");
}
std::string gpus(double first, double second) {
  const auto links = [](double gbps) { return "+ NVL[" + std::to_string(gbps) + "] - NVS/0"; };
  return line(kHead, "=== System : maxBw 48.0 totalBw 48.0 ===") +
         line(kHead, "+ PCI[24.0] - GPU/0-1b000 (0)") + line(kHead, links(first)) +
         line(kHead, "+ PCI[24.0] - GPU/0-43000 (1)") + line(kHead, links(second));
}
std::string pattern(const char* head, int cross) {
  return line(head, "Pattern 4, crossNic " + std::to_string(cross) +
                        ", nChannels 8, bw 30.0/30.0, type NVL/PIX, sameChannels 1");
}

// What shows a sign, and what comes near it.
std::string sign_of(Sign sign, bool shown) {
  switch (sign) {
    case Sign::kNone:
      return "";
    case Sign::kArm:
      return cpu(kHead, shown ? "3/-1" : "1/1");
    case Sign::kMixedCpus:
      return cpu(kHead, "1/1") + cpu(kOther, shown ? "1/2" : "1/1");
    case Sign::kRoce:
      return line(kHead, std::string("NET/IB : Using [0]mlx5_0:1/") + (shown ? "RoCE" : "IB") +
                             " [RO]; OOB eth0:192.0.2.1<0>");
    case Sign::kUnevenNvlink:
      return gpus(300, shown ? 250 : 300);
    case Sign::kTreeLl128:
      return line(kHead, std::string("AllReduce: 1024 Bytes -> Algo TREE proto ") + (shown ? "LL128" : "LL") +
                             " channel{Lo..Hi}={0..1}");
    case Sign::kSymmetricKernel:
      return line(kHead, std::string("AllGather [") + (shown ? "Symmetric" : "Hierarchical CE") +
                             "]: 1024 Bytes -> Kernel x");
    case Sign::kCrossNicDiffers:
      return pattern(kHead, 0) + pattern(kOther, shown ? 1 : 0);
    case Sign::kArmGdrOff:
      return cpu(kHead, "3/-1") +
             line(kHead, std::string("NCCL_NET_GDR_LEVEL set by environment to ") + (shown ? "LOC" : "PIX"));
    case Sign::kMnnvl:
      return line(kHead, std::string("comm 0xa0 rank 0 nRanks 2 nNodes 2 localRanks 1 localRank 0 MNNVL ") +
                             (shown ? "1" : "0"));
    case Sign::kCollNetFailed:
      return shown ? line(kHead, "Cannot initialize CollNet, using point-to-point network instead") : "";
    case Sign::kPluginFailed:
      return shown ? line(kHead, "Failed to initialize NET plugin x") : "";
    case Sign::kAborted:
      return line(kHead, std::string("comm 0xa0 rank 0 nRanks 1 cudaDev 0 busId 1b000 - ") +
                             (shown ? "Abort START" : "Init COMPLETE"));
    case Sign::kVirtualBridge:
      return line(kHead, std::string("Bootstrap: Using ") + (shown ? "virbr0" : "eth0") + ":192.0.2.1<0>");
  }
  return "";
}

std::string trouble_of(const KnownIssue& issue, bool shown) {
  const std::string words(issue.words.substr(0, issue.words.find('|')));
  switch (issue.trouble) {
    case Trouble::kWarned:
      return "h1:1:1 [0] " + std::string(issue.also) + " NCCL WARN " + (shown ? words : "something") + " x\n";
    case Trouble::kWaited:
      return shown           ? timeout_of(words == "AlltoAll" ? "ALLTOALL" : "ALLREDUCE")
             : words.empty() ? ""
                             : timeout_of("ALLREDUCE");
    case Trouble::kEnded:
      return "E0101 api.py:1] failed (exitcode: -" + (shown ? words : std::string("9")) +
             ") local_rank: 0 (pid: 88) of binary: /usr/bin/python\n";
    case Trouble::kWrong:
      return std::string("# Out of bounds values : ") + (shown ? "5 FAILED\n" : "0 OK\n");
    case Trouble::kAbortStuck:
      return shown ? "[rank0]:[F1 ProcessGroupNCCL.cpp:9] [PG ID 0 PG GUID 0 Rank 0] ProcessGroupNCCL's "
                     "watchdog got stuck "
                     "for 480 seconds without making progress in monitoring enqueued collectives.\n"
                   : "";
  }
  return "";
}

// What a log of this release shows where the issue struck.
std::string log_of(const KnownIssue& issue, int32_t version, bool troubled, bool signs) {
  const std::string release = model::nccl_version_text(version);
  std::string text;
  for (const char* head : {kHead, kOther})
    text += line(head, (issue.is_rccl ? "RCCL version " : "NCCL version ") + release + "+cuda12.4");
  return text + sign_of(issue.sign, signs) + trouble_of(issue, troubled);
}

bool speaks(const KnownIssue& issue, const std::string& text) {
  readers::nccl_log::LogParser parser;
  parser.begin_file("job.log");
  parser.feed(text);
  parser.end_file();
  const auto findings = judge(parser.take());
  return std::any_of(findings.begin(), findings.end(), [&](const Finding& finding) {
    return finding.id == FindingId::kMisconfiguredKnownIssue && finding.severity == Severity::kNote &&
           finding.statement.find(issue.what) != std::string::npos && finding.evidence.back() == issue.source;
  });
}

TEST(KnownIssues, SpeakBelowTheirFixAlone) {
  for (const KnownIssue& issue : known_issue_list()) {
    SCOPED_TRACE(std::string(issue.what));
    const int32_t within = issue.first > 0 ? issue.first : 21000;
    EXPECT_TRUE(speaks(issue, log_of(issue, within, true, true)));
    EXPECT_FALSE(speaks(issue, log_of(issue, within, false, true))) << "without what it does";
    if (issue.fixed > 0) {
      EXPECT_FALSE(speaks(issue, log_of(issue, issue.fixed, true, true))) << "the release with the fix";
    }
    if (issue.first > 0) {
      EXPECT_FALSE(speaks(issue, log_of(issue, issue.first - 100, true, true))) << "before it came";
    }
    if (issue.sign != Sign::kNone) {
      EXPECT_FALSE(speaks(issue, log_of(issue, within, true, false))) << "without what else shows it";
    }
  }
}

TEST(KnownIssues, AskForTheRelease) {
  for (const KnownIssue& issue : known_issue_list()) {
    SCOPED_TRACE(std::string(issue.what));
    const std::string text = log_of(issue, issue.first > 0 ? issue.first : 21000, true, true);
    EXPECT_FALSE(speaks(issue, text.substr(text.find('\n', text.find('\n') + 1) + 1)))
        << "no release is told";
  }
}

TEST(KnownIssues, KnowTheReleaseOfAnException) {
  const std::string raised =
      "RuntimeError: NCCL error in: NCCLUtils.cpp:77, unhandled cuda error, NCCL version 2.26.2\n";
  const std::string warned = "h1:1:1 [0] transport/nvls.cc:254 NCCL WARN Cuda failure 1 'invalid argument'\n";
  readers::nccl_log::LogParser parser;
  parser.begin_file("job.log");
  parser.feed(warned + raised);
  parser.end_file();
  const auto findings = judge(parser.take());
  EXPECT_TRUE(std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.id == FindingId::kMisconfiguredKnownIssue;
  }));
}

TEST(KnownIssues, TheBridgeOfVirtualMachinesMayHaveAnIndex) {
  const auto list = known_issue_list();
  const auto issue = std::find_if(list.begin(), list.end(),
                                  [](const KnownIssue& one) { return one.sign == Sign::kVirtualBridge; });
  ASSERT_NE(issue, list.end());
  const auto log = [&](const std::string& interface) {
    return log_of(*issue, issue->first > 0 ? issue->first : 21000, true, false) +
           line(kHead, "Bootstrap : Using [0]" + interface + ":192.0.2.1<0>");
  };
  EXPECT_TRUE(speaks(*issue, log("virbr0")));
  EXPECT_FALSE(speaks(*issue, log("eth0")));
}

TEST(KnownIssues, HaveASourceAndAnOrder) {
  EXPECT_GE(known_issue_list().size(), 25U);
  for (const KnownIssue& issue : known_issue_list()) {
    EXPECT_TRUE(issue.source.starts_with("https://github.com/")) << issue.what;
    if (issue.fixed > 0) {
      EXPECT_LT(issue.first, issue.fixed);
    }
    EXPECT_FALSE(issue.workaround.empty());
  }
}

}  // namespace
}  // namespace lockstep::analysis::log_rules
