// SPDX-License-Identifier: Apache-2.0
// What people and programs read, for fixed findings over a made-up job: eight ranks on two hosts of one
// clock.
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <set>

#include "analysis/testing/job_builder.h"
#include "cli/command.h"
#include "cli/diagnose/report_text.h"
#include "report/diagnosis_json.h"
#include "tests/support/temporary_folder.h"
#include "verdict/coverage.h"
#include "verdict/outcome.h"

namespace lockstep::cli::diagnose {
namespace {

using analysis::Finding;
using analysis::FindingId;
using analysis::Severity;
using analysis::testing::at_ms;
using analysis::testing::JobBuilder;

Finding absent_rank() {
  Finding finding(FindingId::kNeverJoined);
  finding.severity = Severity::kCritical;
  finding.statement =
      "Rank 5 (node1, GPU 1) has not called the 9th AllReduce of communicator world; 7 ranks have waited "
      "for it for 12.0 s.";
  finding.ranks = {5};
  finding.hosts = {"node1"};
  finding.comm = "world";
  finding.func = "AllReduce";
  finding.op_index = 8;
  finding.since_ns = at_ms(100);
  finding.effect = analysis::Effect{.value = 12e9, .unit = "ns", .low = 11.9e9, .high = 12.1e9};
  finding.evidence = {
      "ranks 0-4, 6 and 7 called it between 100.0 ms and 100.2 ms after the start",
      "rank 5 called the 8th one at 90.1 ms, and nothing since; its process runs and its capture library "
      "is alive (heartbeat 0.4 s ago)"};
  finding.sources = {"capture files"};
  finding.advice = "Look at what the host code of rank 5 does: `py-spy dump --pid 4005` on node1.";
  return finding;
}

Finding note(const std::string& statement) {
  Finding finding(FindingId::kImbalanceOnce);
  finding.severity = Severity::kNote;
  finding.statement = statement;
  finding.evidence = {"some evidence"};
  finding.advice = "Some advice.";
  return finding;
}

Finding missing_evidence() {
  Finding finding(FindingId::kEvidenceMissingRasRanks);
  finding.severity = Severity::kWarning;
  finding.statement = "Rank 3 left no file, so Lockstep cannot tell who is late.";
  finding.needed_evidence = "The file of rank 3.";
  return finding;
}

verdict::DiagnosedRun run_with(std::vector<Finding> findings, std::optional<size_t> verdict,
                               const std::function<void(JobBuilder&)>& change = {}) {
  JobBuilder builder(8, 4);
  uint32_t world = builder.world();
  builder.steps(world, 10, 10, 10);
  if (change) change(builder);
  verdict::DiagnosedRun run;
  verdict::Evidence& evidence = run.evidence.emplace_back();
  evidence.source = "capture files";
  evidence.job = builder.build();
  evidence.matches = job::match::count_matches(*evidence.job);
  run.diagnosis = {std::move(findings), verdict};
  return run;
}

std::string plain(const verdict::DiagnosedRun& run, bool verbose = false) {
  return report_text(run, Style(false), verbose);
}

TEST(ReportText, DistancesAreWithinOneRun) {
  Finding late = absent_rank();
  late.effect->unit = "ns/step";  // of a wait the effect says how long it is
  verdict::DiagnosedRun run = run_with({late}, 0);
  const std::string alone = report_text(run, Style(false, 100), false);
  ASSERT_NE(alone.find(" before the newest record"), std::string::npos) << alone;
  // Dumps of another year.
  verdict::Evidence& dumps = run.evidence.emplace_back();
  dumps.source = "Flight Recorder dumps";
  dumps.job = std::move(run_with({}, std::nullopt).evidence.front().job);
  for (model::JobProcess& process : dumps.job->processes) process.row.last_ns += 407LL * 86'400'000'000'000;
  const std::string both = report_text(run, Style(false, 100), false);
  const auto facts = [](const std::string& text) { return text.substr(0, text.find("Why")); };
  EXPECT_EQ(facts(both), facts(alone));
}

TEST(ReportText, HealthySaysWhatWasSeen) {
  EXPECT_EQ(plain(run_with({}, std::nullopt)),
            R"(No problem found: 8 ranks on 2 hosts, 80 operations matched across ranks, one clock.

Lost      nothing.
)");
}

TEST(ReportText, OlderProcessesOfRanksThatWereStartedAgainAreNotMissed) {
  verdict::DiagnosedRun run = run_with({}, std::nullopt, [](JobBuilder& builder) {
    for (uint32_t rank = 0; rank < 8; ++rank) builder.killed(rank);
  });
  model::Job& job = *run.evidence[0].job;
  for (uint32_t rank = 0; rank < 8; ++rank) {
    job.processes[rank].liveness = rank < 4 ? model::Liveness::kGone : model::Liveness::kUnknown;
    model::JobProcess again;
    again.row = job.processes[rank].row;
    again.row.start_ns = again.row.heartbeat_ns = at_ms(60'000);
    again.host = job.processes[rank].host;
    again.liveness = model::Liveness::kRunning;
    job.processes.push_back(std::move(again));
  }
  const std::string text = plain(run);
  EXPECT_NE(text.find("Now       processes: 8 running, 8 replaced by newer processes of their ranks.\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("still run"), std::string::npos) << text;
}

TEST(ReportText, TheVerdictComesFirst) {
  verdict::DiagnosedRun run = run_with(
      {absent_rank(),
       note(
           "Rank 2 was late once, in the 7th AllReduce of communicator world, by 12.0 ms, and never again.")},
      0, [](JobBuilder& builder) {
        for (uint32_t rank = 0; rank < 8; ++rank) builder.killed(rank);
        builder.process(3).liveness = model::Liveness::kStopped;
        builder.process(5).liveness = model::Liveness::kRunning;
        builder.without(7);
      });
  model::StringPool& texts = run.evidence[0].job->strings;
  run.evidence[0].job->losses.append(
      {.process = 0,
       .stage = texts.intern("capture"),
       .kind = texts.intern("no_chunk"),
       .count = 1234,
       .detail = texts.intern("events dropped because no prepared chunk was free")});
  EXPECT_EQ(
      plain(run),
      R"(CRITICAL: Rank 5 (node1, GPU 1) has not called the 9th AllReduce of communicator world; 7 ranks have
waited for it for 12.0 s.
  [never-joined; since 2025-10-09 08:53:20 UTC; effect 12.0 s (11.9 s to 12.1 s)]

Why
  * ranks 0-4, 6 and 7 called it between 100.0 ms and 100.2 ms after the start
  * rank 5 called the 8th one at 90.1 ms, and nothing since; its process runs and its capture
    library is alive (heartbeat 0.4 s ago)

Do next
  Look at what the host code of rank 5 does: `py-spy dump --pid 4005` on node1.

Other findings
  * note: Rank 2 was late once, in the 7th AllReduce of communicator world, by 12.0 ms, and never
    again.
      - some evidence
      > Some advice.

Seen      7 ranks on 2 hosts, 0 operations matched across ranks, one clock.
Now       processes: 1 running, 1 stopped.
Not seen  Rank 7 of 8 left no file.
          70 operations not matched on every rank: rank absent (70).
          Lockstep cannot see from here whether 5 processes on node0, node1 still run; run `lockstep
          diagnose` there.
Lost      1,234 x events dropped because no prepared chunk was free [rank 0]
)");
}

// A circle stands in the statement, link by link.
TEST(ReportText, WhatTheStatementHasToldIsNotToldAgain) {
  Finding finding(FindingId::kCrossCommDeadlock);
  finding.statement =
      "ranks 0 and 7 wait for each other: rank 0 in b for rank 7, rank 7 in a for rank 0, for 12.5 s";
  finding.effect = analysis::Effect{.value = 12.5e9, .unit = "ns", .low = 12.5e9, .high = 12.5e9};
  finding.evidence = {"rank 0 in b for rank 7", "capture files: rank 7 in a for rank 0",
                      "waiting: ranks 0-6"};
  finding.sources = {"capture files"};
  const auto head = [&] {
    const std::string text = plain(run_with({finding}, 0));
    return text.substr(0, text.find("\nSeen"));
  };
  EXPECT_EQ(
      head(),
      R"(CRITICAL: ranks 0 and 7 wait for each other: rank 0 in b for rank 7, rank 7 in a for rank 0, for
12.5 s
  [cross-comm-deadlock]

Why
  * waiting: ranks 0-6
)");
  finding.effect = analysis::Effect{.value = 2.5e9, .unit = "ns", .low = 2.5e9, .high = 2.5e9};
  finding.evidence.resize(2);
  EXPECT_NE(head().find("effect 2.50 s]"), std::string::npos) << "another number";
  EXPECT_EQ(head().find("Why"), std::string::npos) << head();
}

TEST(ReportText, ItCannotTell) {
  EXPECT_EQ(plain(run_with({missing_evidence()}, 0)),
            R"(CANNOT TELL: Rank 3 left no file, so Lockstep cannot tell who is late.
  [evidence-missing.ras-ranks]

What would decide it
  The file of rank 3.

Seen      8 ranks on 2 hosts, 80 operations matched across ranks, one clock.
Not seen  No Flight Recorder dumps; they might show the cause. To get them:
          TORCH_FR_BUFFER_SIZE=2000 TORCH_FR_DUMP_ON_TIMEOUT=1
          TORCH_FR_DUMP_TEMP_FILE=/shared/job/fr_ (names of older PyTorch: docs/inputs.md)
          No snapshots of NCCL's RAS; they might show the cause. To get them: ncclras -f json >
          ras.json on a host of the job, while it hangs
          No logs; they might show the cause. To get them: NCCL_DEBUG=INFO
          NCCL_DEBUG_FILE=/shared/job/nccl.%h.%p.log
Lost      nothing.
)");
}

TEST(ReportText, ManyFindingsTakeALineEach) {
  std::vector<Finding> findings;
  for (int i = 0; i < 25; ++i) findings.push_back(note("Note " + std::to_string(i) + "."));
  std::string text = plain(run_with(findings, std::nullopt));
  EXPECT_NE(text.find("  * note: Note 19.\n  * ... and 5 more; -v shows all\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("some evidence"), std::string::npos) << text;
  text = plain(run_with(findings, std::nullopt), true);
  EXPECT_NE(text.find("  * note: Note 24.\n      - some evidence\n      > Some advice.\n"), std::string::npos)
      << text;
}

TEST(ReportText, LinesAreAsWideAsTheTerminal) {
  const auto widest = [](const std::string& text) {
    size_t most = 0;
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size());
      most = std::max(most, end - at);
      at = end + 1;
    }
    return most;
  };
  Finding finding = note("A note of words without end, ");
  for (int i = 0; i < 40; ++i) finding.statement += "words and words, ";
  finding.advice = finding.evidence.emplace_back(finding.statement);
  const verdict::DiagnosedRun run = run_with({finding}, std::nullopt);
  for (const size_t columns : {size_t{60}, size_t{80}, size_t{100}, size_t{132}}) {
    const size_t width = widest(report_text(run, Style(false, columns), false));
    EXPECT_LE(width, columns);
    EXPECT_GT(width, columns - 12) << "words have up to 11 letters";
  }
}

TEST(ReportText, ColoursAreOnlyEmphasis) {
  verdict::DiagnosedRun run = run_with({absent_rank(), note("A note.")}, 0);
  std::string coloured = report_text(run, Style(true), false);
  EXPECT_NE(coloured.find("\033[1;31mCRITICAL\033[0m: Rank 5"), std::string::npos) << coloured;
  for (size_t at = 0; (at = coloured.find("\033[", at)) != std::string::npos;)
    coloured.erase(at, coloured.find('m', at) - at + 1);
  EXPECT_EQ(coloured, plain(run));
}

TEST(ExitCode, FollowsTheVerdict) {
  auto code = [](std::vector<Finding> findings, std::optional<size_t> verdict) {
    return verdict::exit_code({std::move(findings), verdict});
  };
  EXPECT_EQ(code({}, std::nullopt), kExitOk);
  EXPECT_EQ(code({note("n")}, std::nullopt), kExitOk);
  EXPECT_EQ(code({absent_rank()}, 0), kExitFindings);
  EXPECT_EQ(code({missing_evidence()}, 0), kExitCannotTell);
  EXPECT_EQ(code({absent_rank(), missing_evidence()}, 0), kExitFindings);
}

// `--watch` prints again when who, what or where has changed, not when numbers have moved on.
TEST(Essence, ChangesWithTheVerdictAndNotWithItsNumbers) {
  auto of = [](const std::function<void(Finding&)>& change) {
    Finding finding = absent_rank();
    change(finding);
    return verdict::essence({{finding}, 0});
  };
  const std::string before = of([](Finding&) {});
  EXPECT_EQ(of([](Finding& finding) {
              finding.statement = "7 ranks have waited for it for 14.0 s";
              finding.weight += 1;
              finding.effect->value += 1;
              finding.evidence.pop_back();
            }),
            before);
  const std::function<void(Finding&)> changes[] = {[](Finding& f) { f.id = FindingId::kRankDead; },
                                                   [](Finding& f) { f.comm = "dp"; },
                                                   [](Finding& f) { f.func = "AllGather"; },
                                                   [](Finding& f) { f.op_index = 9; },
                                                   [](Finding& f) { f.op_index.reset(); },
                                                   [](Finding& f) { f.ranks = {6}; },
                                                   [](Finding& f) {
                                                     f.ranks = {5, 6};
                                                   },
                                                   [](Finding& f) { f.severity = Severity::kNote; }};
  std::set<std::string> seen = {before};
  for (const auto& change : changes) EXPECT_TRUE(seen.insert(of(change)).second) << of(change);
  EXPECT_EQ(verdict::essence({{note("one"), absent_rank(), note("two")}, 1}), before)
      << "notes are not the verdict";
}

TEST(Diagnose, AFileThatCannotBeOpenedIsAnError) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "torn_inspector.log";
  std::ofstream(path)
      << R"({"header":{"id":"0x1","rank":0,"n_ranks":2,"nnodes":1},"metadata":{"inspector_output_format_version":"v4.0")";
  auto run = verdict::diagnose({path}, {});
  ASSERT_FALSE(run);
  EXPECT_NE(run.error().message().find(path), std::string::npos) << run.error().message();
  EXPECT_FALSE(verdict::diagnose({path, folder / "absent"}, {}));
}

TEST(ReportText, SeveralKindsOfEvidenceAreNamed) {
  Finding finding = absent_rank();
  finding.evidence = {"capture files: ranks 0-4 called it", "logs: the watchdog gave up",
                      "logs: a second line"};
  finding.sources = {"capture files", "logs"};
  verdict::DiagnosedRun run = run_with({finding}, 0);
  run.evidence[0].hosts = {{0, "node0"}, {1, "node0"}};
  verdict::Evidence& logs = run.evidence.emplace_back();
  logs.source = "logs";
  logs.content = "2 files, 100 lines of NCCL";
  logs.hosts = {{0, "node0"}};
  const std::string text = plain(run);
  size_t at = 0;
  for (const char* part : {"Why\n  According to the capture files\n  * ranks 0-4 called it\n  According to "
                           "the logs\n  * the watchdog",
                           "  * a second line\n", "Seen      capture files: 8 ranks",
                           "          logs: 2 files, 100 lines of NCCL.",
                           "Not seen  logs: none of rank 1. To get them: NCCL_DEBUG=INFO"}) {
    at = text.find(part, at);
    ASSERT_NE(at, std::string::npos) << part << " in\n" << text;
  }
  EXPECT_NE(plain([&] {
              run.diagnosis = {};
              return std::move(run);
            }())
                .find("No problem found: capture files and logs show none."),
            std::string::npos);
}

TEST(ReportJson, HasEveryKeyOfAFinding) {
  Json finding = report::finding_json(absent_rank());
  EXPECT_EQ(finding["evidence"].size(), 2u);
  finding.erase("evidence");
  finding.erase("statement");
  finding.erase("advice");
  EXPECT_EQ(
      finding.dump(),
      R"({"id":"never-joined","class":"never-joined","severity":"critical","ranks":[5],"hosts":["node1"],"who":[],)"
      R"("comm":"world","func":"AllReduce","op_index":8,"operation":null,"torch_comms_id":null,"since":1760000000100000000,)"
      R"("effect":{"value":12000000000.0,"unit":"ns","low":11900000000.0,"high":12100000000.0},"next":[],"needed_evidence":"","sources":["capture files"]})");
  analysis::Finding numbered = note("n");
  numbered.comms_id = 17483303525057187894u;
  EXPECT_EQ(report::finding_json(numbered)["torch_comms_id"], "17483303525057187894")
      << "a text: it may not fit a signed number";
  Json bare = report::finding_json(note("n"));
  for (const char* key : {"comm", "func", "op_index", "since", "effect"})
    EXPECT_TRUE(bare[key].is_null()) << key;
  for (const char* key : {"ranks", "hosts", "evidence"}) EXPECT_TRUE(bare[key].is_array()) << key;
}

TEST(ReportJson, HasTheVerdictAndWhatItRestsOn) {
  Json document = report::diagnosis_json(run_with({absent_rank(), note("A note.")}, 0));
  std::vector<std::string> keys;
  for (const auto& [key, value] : document.items()) keys.push_back(key);
  EXPECT_EQ(keys, (std::vector<std::string>{"schema", "verdict", "findings", "losses", "inputs", "clock",
                                            "match", "links"}));
  EXPECT_EQ(document["verdict"], document["findings"][0]);
  EXPECT_EQ(document["findings"].size(), 2u);
  EXPECT_EQ(document["inputs"].size(), 8u);
  EXPECT_EQ(document["inputs"][5]["rank"], 5);
  EXPECT_EQ(document["inputs"][5]["liveness"], "unknown");
  EXPECT_EQ(document["match"][0]["comm"], "world");
  EXPECT_EQ(document["match"][0]["matched"], 80);
  EXPECT_EQ(document["match"][0]["unmatched"], Json::object());
  EXPECT_TRUE(report::diagnosis_json(run_with({}, std::nullopt))["verdict"].is_null());
}

TEST(ReportJson, TellsEachHostsClock) {
  verdict::DiagnosedRun run = run_with({}, std::nullopt);
  std::vector<model::HostClock::Knot> knots;
  for (int i = 0; i < 100; ++i) knots.push_back({at_ms(i), 1000 + i, 1010 + i, i == 0});
  ASSERT_EQ(run.evidence[0].job->hosts.size(), 2u);
  run.evidence[0].job->hosts[0].clock = model::HostClock::same();
  run.evidence[0].job->hosts[1].boot_id = run.evidence[0].job->strings.intern("another boot");
  run.evidence[0].job->hosts[1].clock = model::HostClock(knots);
  run.evidence[0].job->hosts[1].contradictions = 3;
  Json clock = report::diagnosis_json(run)["clock"];
  ASSERT_EQ(clock.size(), 6u);
  EXPECT_EQ(clock[0]["reference"], true);
  EXPECT_EQ(clock[0]["offset_ns"], 0);
  EXPECT_EQ(clock[1]["same_boot"], false);
  EXPECT_EQ(clock[1]["at_ns"], at_ms(0));
  EXPECT_EQ(clock[1]["offset_ns"], 1005);
  EXPECT_EQ(clock[1]["half_width_ns"], 5);
  EXPECT_EQ(clock[5]["at_ns"], at_ms(99));
  EXPECT_EQ(clock[5]["contradictions"], 3);
  run.evidence[0].job->hosts[0].boot_id = run.evidence[0].job->hosts[1].boot_id = 0;
  clock = report::diagnosis_json(run)["clock"];
  EXPECT_EQ(clock[0]["same_boot"], true);
  EXPECT_TRUE(clock[1]["same_boot"].is_null()) << "two hosts without a boot id are not one";
  run.evidence[0].job->hosts[1].clock = {};
  clock = report::diagnosis_json(run)["clock"];
  ASSERT_EQ(clock.size(), 2u);
  EXPECT_TRUE(clock[1]["offset_ns"].is_null());
  EXPECT_EQ(plain(run).find("clocks not aligned") != std::string::npos, true);
}

}  // namespace
}  // namespace lockstep::cli::diagnose
