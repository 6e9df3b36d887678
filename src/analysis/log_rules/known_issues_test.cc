// SPDX-License-Identifier: Apache-2.0
// Each line of known_issues.def speaks below its fix and not at it, nor without what it does.
#include "analysis/log_rules/known_issues.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "analysis/log_rules/log_rules.h"
#include "model/process_group.h"
#include "readers/nccl_log/log_parser.h"

namespace lockstep::analysis::log_rules {
namespace {

// What a log of this release shows where the issue struck. `signs`: whether it does.
std::string log_of(const KnownIssue& issue, int32_t version, bool signs) {
  std::string text = "h1:1:1 [0] NCCL INFO NCCL version " + model::nccl_version_text(version) + "+cuda12.4\n";
  if (!issue.is_wait) {
    return text + "h1:1:1 [0] misc/x.cc:1 NCCL WARN " + (signs ? std::string(issue.words) : "something") +
           " x " + std::string(issue.also) + "\n";
  }
  const std::string op = signs ? "ALLTOALL" : "ALLREDUCE";
  return text +
         "[rank0]:[E1 ProcessGroupNCCL.cpp:9] [PG ID 0 PG GUID 0 Rank 0] Watchdog caught collective "
         "operation timeout: "
         "WorkNCCL(SeqNum=9, OpType=" +
         op + ", NumelIn=2, NumelOut=2, Timeout(ms)=600000) ran for 600042 milliseconds\n";
}

bool speaks(const KnownIssue& issue, int32_t version, bool signs) {
  readers::nccl_log::LogParser parser;
  parser.begin_file("job.log");
  parser.feed(log_of(issue, version, signs));
  parser.end_file();
  const auto findings = judge(parser.take());
  return std::any_of(findings.begin(), findings.end(), [&](const Finding& finding) {
    return finding.id == "misconfigured.known-issue" && finding.severity == Severity::kNote &&
           finding.statement.find(issue.what) != std::string::npos && finding.evidence.back() == issue.source;
  });
}

TEST(KnownIssues, SpeakBelowTheirFixAlone) {
  for (const KnownIssue& issue : known_issue_list()) {
    SCOPED_TRACE(std::string(issue.what));
    const int32_t within = std::max<int32_t>(issue.first, 21000);
    EXPECT_TRUE(speaks(issue, within, true));
    EXPECT_FALSE(speaks(issue, issue.fixed, true)) << "the release with the fix";
    EXPECT_FALSE(speaks(issue, within, false)) << "without what it does";
    if (issue.first > 0) {
      EXPECT_FALSE(speaks(issue, issue.first - 100, true)) << "before it came";
    }
  }
}

TEST(KnownIssues, HaveASourceAndAnOrder) {
  for (const KnownIssue& issue : known_issue_list()) {
    EXPECT_TRUE(issue.source.starts_with("https://github.com/")) << issue.what;
    EXPECT_LT(issue.first, issue.fixed);
    EXPECT_FALSE(issue.workaround.empty());
    EXPECT_FALSE(issue.words.empty());
  }
}

}  // namespace
}  // namespace lockstep::analysis::log_rules
