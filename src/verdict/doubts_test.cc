// SPDX-License-Identifier: Apache-2.0
#include "verdict/doubts.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "analysis/testing/job_builder.h"
#include "base/exit_codes.h"
#include "base/temporary_directory.h"
#include "readers/nccl_log/log_parser.h"

namespace lockstep::verdict {
namespace {

using analysis::Finding;
using analysis::FindingId;
using analysis::Severity;
using analysis::testing::JobBuilder;

Evidence evidence_of(model::Job job) {
  Evidence evidence;
  evidence.source = "capture files";
  evidence.job = std::move(job);
  evidence.matches = job::match::count_matches(*evidence.job);
  return evidence;
}
DiagnosedRun run_of(uint32_t ranks, const std::function<void(model::Job&)>& change = {}) {
  JobBuilder builder(ranks);
  builder.steps(builder.world(), 10, 10, 10);
  model::Job job = builder.build();
  if (change) change(job);
  DiagnosedRun run;
  run.evidence.push_back(evidence_of(std::move(job)));
  return run;
}
int code_of(const Finding& finding) { return exit_code(analysis::in_order({finding})); }
// The last process, once more, as another one.
model::JobProcess& again(model::Job& job) {
  model::JobProcess process;
  process.row = job.processes.back().row;
  process.host = job.processes.back().host;
  process.members = job.processes.back().members;
  process.row.pid += 100;
  return job.processes.emplace_back(std::move(process));
}

TEST(SeveralJobs, JobIdsThatDifferAreSaidFirst) {
  const DiagnosedRun run = run_of(4, [](model::Job& job) {
    for (size_t i = 0; i < 4; ++i) job.processes[i].row.job = job.strings.intern(i < 2 ? "4711" : "4712");
  });
  const auto finding = several_jobs(run, {});
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->statement, "these are files of 2 jobs: 4711 and 4712");
  EXPECT_EQ(code_of(*finding), kExitCannotTell);
  Finding heavy(FindingId::kNeverJoined);
  heavy.weight = 1e18;
  EXPECT_EQ(id_text(analysis::in_order({heavy, *finding}).findings[0].id), "evidence-missing.several-jobs");
}

TEST(SeveralJobs, OneIdOrNoneIsOneJob) {
  EXPECT_FALSE(several_jobs(run_of(4), {}));
  const DiagnosedRun run = run_of(4, [](model::Job& job) {
    for (auto& process : job.processes) process.row.job = job.strings.intern("4711");
    job.processes[1].row.job = 0;
    job.processes[2].row.job = job.strings.intern("none");  // torchrun's, of every job
  });
  EXPECT_FALSE(several_jobs(run, {}));
}

TEST(SeveralJobs, ARankTwiceAtOneTime) {
  const DiagnosedRun run = run_of(4, [](model::Job& job) { again(job); });
  const auto finding = several_jobs(run, {});
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->statement,
            "rank 3 appears twice at the same time (pid 1003 on node0, pid 1103 on node0): these are not "
            "the files of one run");
  EXPECT_EQ(finding->ranks, std::vector<int32_t>{3});
}

TEST(SeveralJobs, ACopyOfAFile) {
  const DiagnosedRun run = run_of(4, [](model::Job& job) { again(job).row.pid -= 100; });
  const auto finding = several_jobs(run, {});
  ASSERT_TRUE(finding);
  EXPECT_NE(finding->statement.find("a copy of its file"), std::string::npos) << finding->statement;
}

TEST(SeveralJobs, ARestartedRankIsNoSecondJob) {
  const DiagnosedRun run = run_of(4, [](model::Job& job) {
    model::JobProcess& second = again(job);
    second.row.start_ns = job.processes[3].row.heartbeat_ns + 1;
  });
  EXPECT_FALSE(several_jobs(run, {}));
}

// A trainer and the engine that it started carry the rank and the id of one job.
TEST(SeveralJobs, TwoProcessesOfOneJobMayCarryOneRank) {
  const DiagnosedRun run = run_of(4, [](model::Job& job) {
    again(job);
    for (auto& process : job.processes) process.row.job = job.strings.intern("4711");
  });
  EXPECT_FALSE(several_jobs(run, {}));
}

TEST(SeveralJobs, OtherToolsFilesAreNotCompared) {
  const DiagnosedRun run = run_of(4, [](model::Job& job) {
    again(job);
    job.files = "Flight Recorder dumps";
  });
  EXPECT_FALSE(several_jobs(run, {}));
}

TEST(SeveralJobs, RanksThatTwoInputsHold) {
  const DiagnosedRun run = run_of(4);
  const std::vector<Sighting> two_runs = {{"good", 0, "b", 10}, {"good", 1, "b", 11}, {"new", 0, "b", 20}};
  const auto finding = several_jobs(run, two_runs);
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->statement, "these are files of two runs: good and new both hold rank 0");
  // The same process seen in both, a host each, a restart in one directory, files without a rank.
  EXPECT_FALSE(several_jobs(run, {{"run", 0, "b", 10}, {"run2", 0, "b", 10}}));
  EXPECT_FALSE(several_jobs(run, {{"node0", 0, "b", 10}, {"node1", 1, "c", 10}}));
  EXPECT_FALSE(several_jobs(run, {{"run", 0, "b", 10}, {"run", 0, "b", 20}}));
  EXPECT_FALSE(several_jobs(run, {{"a", -1, "b", 10}, {"b", -1, "b", 20}}));
}

// Whatever they are called.
TEST(SeveralJobs, RanksThatTwoDatabasesHold) {
  DiagnosedRun run = run_of(4);
  run.evidence.push_back(std::move(run_of(4).evidence[0]));
  for (auto& process : run.evidence[1].job->processes) process.row.pid += 100;
  run.evidence[0].source = "a.sqlite";
  run.evidence[1].source = "b.sqlite";
  const auto finding = several_jobs(run, {});
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->statement, "these are files of two runs: a.sqlite and b.sqlite both hold ranks 0-3");
  for (auto& process : run.evidence[1].job->processes) process.row.pid -= 100;
  EXPECT_FALSE(several_jobs(run, {})) << "one run, merged twice";
}

TEST(SeveralJobs, AFileThatTwoInputsHold) {
  const DiagnosedRun run = run_of(4);
  const auto finding = several_jobs(run, {{"a", 0, "b", 10, "x.nccl.lks"}, {"c", 0, "b", 10, "x.nccl.lks"}});
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->statement, "the same files were given twice: a and c both hold x.nccl.lks");
  // Two libraries of one process write a file each.
  EXPECT_FALSE(several_jobs(run, {{"a", 0, "b", 10, "x.nccl.lks"}, {"c", 0, "b", 10, "x.cuda.lks"}}));
}

TEST(InProgress, ALogsUnfinishedCommunicatorOfALiveRunThatWasBusyAMomentAgo) {
  const Finding stuck(FindingId::kInitStuckLog);
  const auto is_reported = [&](model::Liveness liveness, double quiet_s, const Finding& finding) {
    const DiagnosedRun run = run_of(2, [&](model::Job& job) {
      for (model::JobProcess& process : job.processes) {
        process.row.closed = 0;
        process.liveness = liveness;
        process.row.heartbeat_ns = process.row.last_ns + static_cast<int64_t>(quiet_s * 1e9);
      }
    });
    return !is_in_progress(finding, run);
  };
  EXPECT_FALSE(is_reported(model::Liveness::kRunning, 29.9, stuck));
  EXPECT_TRUE(is_reported(model::Liveness::kRunning, 30, stuck));
  EXPECT_TRUE(is_reported(model::Liveness::kGone, 1, stuck));
  const Finding other(FindingId::kRankDeadLauncher);
  EXPECT_TRUE(is_reported(model::Liveness::kRunning, 1, other));
  EXPECT_FALSE(is_in_progress(stuck, DiagnosedRun())) << "a pasted log stays as it is";
}

TEST(InProgress, OthersThatAreBusyHideNoRankThatIsNot) {
  const DiagnosedRun run = run_of(2, [](model::Job& job) {
    for (model::JobProcess& process : job.processes) {
      process.row.closed = 0;
      process.liveness = model::Liveness::kRunning;
      process.row.heartbeat_ns = process.row.last_ns + (process.row.rank == 0 ? 3'600'000'000'000 : 1);
    }
  });
  Finding stuck(FindingId::kInitStuckLog);
  for (const auto& [ranks, hides] : std::initializer_list<std::pair<std::vector<int32_t>, bool>>{
           {{}, true}, {{0}, false}, {{1}, true}, {{0, 1}, false}, {{1, 7}, true}}) {
    stuck.ranks = ranks;
    EXPECT_EQ(is_in_progress(stuck, run), hides);
  }
}

TEST(UnreadInputs, ChangeTheExitCode) {
  DiagnosedRun run = run_of(4);
  EXPECT_FALSE(unread_inputs(run));
  run.troubles.push_back({-1, "read", "unreadable_file", "x.lks: the file is empty", 1});
  const auto finding = unread_inputs(run);
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->statement, "an input could not be read and was left out: x.lks: the file is empty");
  EXPECT_EQ(code_of(*finding), kExitCannotTell);
  run.troubles.push_back({-1, "read", "unreadable_file", "y.lks: the file is empty", 1});
  EXPECT_EQ(unread_inputs(run)->evidence.size(), 2u);
}

TEST(UnreadInputs, OfADirectoryAreLossesOfTheRun) {
  const auto lossy = [](std::string_view kind) {
    return run_of(4, [&](model::Job& job) {
      job.losses.append({.process = model::kNoRow,
                         .stage = job.strings.intern("read"),
                         .kind = job.strings.intern(kind),
                         .count = 1,
                         .detail = job.strings.intern("run/zero.lks: the file is empty")});
    });
  };
  EXPECT_TRUE(unread_inputs(lossy("unreadable_file")));
  EXPECT_FALSE(unread_inputs(lossy("bad_value")));
}

Coverage seen(uint64_t ops, uint64_t matched, size_t ranks = 4, size_t missing = 0) {
  Coverage coverage;
  coverage.ops = ops;
  coverage.matched = matched;
  coverage.ranks.resize(ranks);
  coverage.missing_ranks.resize(missing);
  return coverage;
}

TEST(Enough, NeedsHalfOfTheOperationsAndOfTheRanks) {
  EXPECT_TRUE(is_enough(seen(100, 50)));
  EXPECT_FALSE(is_enough(seen(100, 49)));
  EXPECT_FALSE(is_enough(seen(0, 0)));
  EXPECT_TRUE(is_enough(seen(100, 100, 4, 4)));
  EXPECT_FALSE(is_enough(seen(100, 100, 4, 5)));
}

TEST(Enough, IsSaidOfTheRunAsAWhole) {
  DiagnosedRun run = run_of(4);
  EXPECT_FALSE(too_little(run));
  JobBuilder alone(4);
  alone.steps(alone.world(), 10, 10, 10);
  for (uint32_t rank = 1; rank < 4; ++rank) alone.without(rank);
  DiagnosedRun one;
  one.evidence.push_back(evidence_of(alone.build()));
  const auto finding = too_little(one);
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->statement,
            "no problem was seen, but of 10 operations only 0 were seen on all their ranks: too little to "
            "call the job healthy");
  EXPECT_EQ(code_of(*finding), kExitCannotTell);
  // A job that has only begun.
  one.evidence[0].job->processes[0].row.closed = 0;
  one.evidence[0].job->processes[0].liveness = model::Liveness::kRunning;
  EXPECT_FALSE(too_little(one));
  one.evidence[0].job->processes[0].liveness = model::Liveness::kGone;
  EXPECT_TRUE(too_little(one));
  // Another kind that saw all of them.
  one.evidence.push_back(std::move(run.evidence[0]));
  EXPECT_FALSE(too_little(one));
}

TEST(Enough, LogsAloneAreNot) {
  DiagnosedRun logs;
  Evidence& evidence = logs.evidence.emplace_back();
  evidence.source = "logs";
  evidence.logs = std::make_shared<const readers::nccl_log::LogModel>();
  ASSERT_TRUE(too_little(logs));
  EXPECT_EQ(too_little(logs)->statement, "the logs show no problem, but cannot show that the job is healthy");
  // RAS counts the operations of all ranks itself.
  DiagnosedRun ras;
  ras.evidence.emplace_back().source = "snapshots of NCCL's RAS";
  EXPECT_FALSE(too_little(ras));
  ras.evidence[0].is_empty = true;
  EXPECT_TRUE(too_little(ras));
  logs.evidence.push_back(std::move(run_of(4).evidence[0]));
  EXPECT_FALSE(too_little(logs));
}

TEST(Enough, OfLogsAloneIsSaidWhatTheyShow) {
  const auto little_of = [](const std::string& text) {
    readers::nccl_log::LogParser parser;
    parser.begin_file("job.log");
    parser.feed(text);
    parser.end_file();
    DiagnosedRun run;
    run.evidence.emplace_back().logs = std::make_shared<const readers::nccl_log::LogModel>(parser.take());
    return *too_little(run);
  };
  const std::string start = "h1:7:7 [0] NCCL INFO Bootstrap : Using eth0:198.51.100.7<0>\n";
  EXPECT_EQ(little_of(start).statement,
            "the logs show how NCCL starts, and no communicator that is complete");
  EXPECT_NE(little_of(start).advice.find("`Bootstrap`"), std::string::npos);
  const std::string made =
      "h1:7:7 [0] NCCL INFO ncclCommInitRank comm 0xa0 rank 0 nranks 1 cudaDev 0 busId 1b000 - Init COMPLETE\n";
  EXPECT_EQ(little_of(start + made).statement,
            "the logs show no problem, but cannot show that the job is healthy");
  const Finding described = little_of("The trainer hangs at its start.\n" + start);
  EXPECT_EQ(id_text(described.id), "evidence-missing.symptom");
  EXPECT_EQ(
      described.statement,
      "the logs show how NCCL starts, and no communicator that is complete; the text describes a hang: The "
      "trainer hangs at its start.");
  EXPECT_EQ(described.evidence, std::vector<std::string>{"job.log:1: The trainer hangs at its start."});
  EXPECT_NE(described.advice.find("py-spy"), std::string::npos);
  EXPECT_NE(described.advice.find("`Bootstrap`"), std::string::npos);
  const Finding finding = little_of(start + "widget: error: the frobnicator is empty\n");
  EXPECT_EQ(finding.statement, "1 line may report an error in words that Lockstep does not know");
  EXPECT_EQ(finding.evidence, std::vector<std::string>{"job.log:2: widget: error: the frobnicator is empty"});
}

TEST(Enough, ASnapshotWithoutACommunicatorIsNot) {
  const auto folder = TemporaryDirectory::make();
  ASSERT_TRUE(folder);
  const auto code = [&](const std::string& comms) {
    const std::string path = folder->path() + "/ras.json";
    std::ofstream(path)
        << "{\"nccl_version\": \"2.28.9\", \"timestamp\": \"2026-11-20 10:00:00\", \"communicators_count\": 1,\n"
           "\"communicators\": [" +
               comms + "], \"ras\": {}}\n";
    const auto run = diagnose({path}, [](double) {});
    EXPECT_TRUE(run);
    if (!run) return -1;
    // So that what is days apart is not taken for one run; a host's local time may be hours from UTC.
    EXPECT_EQ(run->evidence[0].span.last_ns, 1'795'168'800'000'000'000);
    EXPECT_EQ(run->evidence[0].span.zone_ns, 14 * 3'600'000'000'000);
    return exit_code(run->diagnosis);
  };
  EXPECT_EQ(code(""), kExitCannotTell);
  EXPECT_EQ(code(R"({"hash": "0xab", "size": 1, "ranks": [{"rank": 0, "host": "h", "pid": 7, "cuda_dev": 0,
    "status": {"init_state": 0}, "collective_counts": {"AllReduce": 8}}], "missing_ranks": []})"),
            kExitOk);
}

// The table of docs/diagnose.md.
TEST(Outcome, OfEveryRowOfTheTable) {
  const auto of = [](FindingId id, Severity severity) {
    Finding finding(id);
    finding.severity = severity;
    return finding;
  };
  using enum FindingId;
  struct Row {
    Finding finding;
    int code;
    std::string_view word;
  };
  for (const Row& row : {Row{of(kImbalanceFew, Severity::kNote), kExitOk, "note"},
                         Row{of(kEvidenceMissingFiles, Severity::kNote), kExitOk, "note"},
                         Row{of(kNeverJoined, Severity::kCritical), kExitFindings, "CRITICAL"},
                         Row{of(kHostLate, Severity::kWarning), kExitFindings, "WARNING"},
                         Row{of(kEvidenceMissingFiles, Severity::kWarning), kExitCannotTell, "CANNOT TELL"},
                         Row{of(kTooManyFailed, Severity::kCritical), kExitCannotTell, "CANNOT TELL"}}) {
    EXPECT_EQ(code_of(row.finding), row.code) << row.word;
    EXPECT_EQ(word(row.finding), row.word);
  }
  EXPECT_EQ(exit_code({}), kExitOk);
  EXPECT_EQ(healthy_words(false), "No problem found");
  EXPECT_EQ(healthy_words(true), "No problem so far");
  EXPECT_EQ(healthy_words(false, false), "Nobody is stuck");
}

TEST(Outcome, SoFarIsSaidWhereSomethingRuns) {
  struct Case {
    model::Liveness liveness;
    bool beats, closed, runs;
  };
  for (const Case& with : {Case{model::Liveness::kRunning, false, false, true},
                           Case{model::Liveness::kStopped, false, false, true},
                           Case{model::Liveness::kUnknown, true, false, true},
                           Case{model::Liveness::kUnknown, false, false, false},
                           Case{model::Liveness::kGone, false, false, false},
                           Case{model::Liveness::kRunning, false, true, false}}) {
    const DiagnosedRun run = run_of(2, [&](model::Job& job) {
      job.processes[0].row.closed = with.closed;
      job.processes[0].liveness = with.liveness;
      job.processes[0].beats = with.beats;
    });
    EXPECT_EQ(cover(run.evidence[0]).still_runs(), with.runs);
  }
}

}  // namespace
}  // namespace lockstep::verdict
