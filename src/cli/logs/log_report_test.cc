// SPDX-License-Identifier: Apache-2.0
// What `lockstep logs` prints for recorded logs, and how it ends.
#include "cli/logs/log_report.h"

#include <gtest/gtest.h>

#include "analysis/log_rules/log_rules.h"
#include "cli/command.h"
#include "readers/nccl_log/read_logs.h"
#include "readers/reader.h"
#include "tests/support/places.h"

namespace lockstep::cli::logs {
namespace {

const std::string kTwoHosts = LOCKSTEP_SOURCE_DIR "/tests/data/logs/two_hosts";

LogReport report_of(const std::string& path) {
  auto inputs = readers::sort({path});
  EXPECT_TRUE(inputs);
  auto model = readers::nccl_log::read_logs(inputs->formats.back().files);
  EXPECT_TRUE(model);
  LogReport report{std::move(*model), {}, {}};
  report.findings = analysis::log_rules::judge(report.model);
  return report;
}

TEST(LogReport, SaysFindingsFirstThenWhatTheLogsTell) {
  const std::string text = report_text(report_of(kTwoHosts), Style(false), false);
  EXPECT_EQ(text.find("WARNING: ranks 0 and 4: data between hosts goes over TCP sockets"), 0u);
  size_t at = 0;
  for (const char* part :
       {"[fallback.net-socket]", "Processes", "2.28.9+cuda13.0", "Communicators", "0x81835c1f57f8f067 ",
        "Wiring", "0 3 2 1 4 7 6 5", "NVLS    off", "Connections", "NET/Socket", "P2P/CUMEM", "Settings",
        "NCCL_HOSTID", "Unknown   none", "Lost      nothing"}) {
    at = text.find(part, at);
    ASSERT_NE(at, std::string::npos) << part << " in\n" << text;
  }
}

TEST(LogReport, JsonHoldsTheSame) {
  const Json document = report_json(report_of(kTwoHosts));
  EXPECT_EQ(document["findings"][0]["id"], "fallback.net-socket");
  EXPECT_EQ(document["hosts"][0]["network"], "Socket");
  EXPECT_EQ(document["comms"][0]["ranks"], 8);
  EXPECT_EQ(document["comms"][0]["nodes"], 2);
  EXPECT_EQ(document["coverage"]["torn_lines"], 0);
  EXPECT_EQ(document["losses"], Json::array());
}

TEST(LogReport, NamesWhatCouldNotBeRead) {
  LogReport report = report_of(kTwoHosts);
  report.troubles.push_back({ErrorCode::kNotFound, "cannot open", "rank7.log"});
  EXPECT_NE(report_text(report, Style(false), false).find("Lost      rank7.log: cannot open"),
            std::string::npos);
  EXPECT_EQ(report_json(report)["losses"], Json::array({"rank7.log: cannot open"}));
}

TEST(LogReport, CallsADoubtWhatDiagnoseCallsIt) {
  LogReport report = report_of(kTwoHosts);
  report.findings = {analysis::Finding(analysis::FindingId::kEvidenceMissingWatchdog)};
  report.findings[0].statement = "who held it up is not in these logs";
  EXPECT_TRUE(report_text(report, Style(false), false).starts_with("CANNOT TELL: "));
}

int run(const std::vector<const char*>& words) {
  const Command* command = find_command("logs");
  auto arguments = parse_arguments(command->options, command->operands, words);
  EXPECT_TRUE(arguments);
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  const int code = command->run(*arguments);
  ::testing::internal::GetCapturedStdout();
  ::testing::internal::GetCapturedStderr();
  return code;
}

TEST(LogsCommand, ItsExitCodeIsTheAnswer) {
  EXPECT_EQ(run({kTwoHosts.c_str()}), kExitFindings);
  EXPECT_EQ(run({LOCKSTEP_SOURCE_DIR "/tests/data/logs/hang/rank0.log", "--json"}), kExitOk);
  EXPECT_EQ(run({LOCKSTEP_SOURCE_DIR "/tests/data/logs/absent"}), kExitUsage);
  EXPECT_EQ(run({LOCKSTEP_SOURCE_DIR "/CMakeLists.txt"}), kExitCannotTell);
}

TEST(LogsCommand, AsksForALog) {
  const Command* command = find_command("logs");
  EXPECT_FALSE(parse_arguments(command->options, command->operands, {}));
}

}  // namespace
}  // namespace lockstep::cli::logs
