// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "analysis/analysis.h"
#include "analysis/testing/job_builder.h"

namespace lockstep::analysis::hang {
extern const Analysis kAnalysis;
namespace {

using model::Liveness;
using testing::JobBuilder;

std::vector<Finding> findings_of(const model::Job& job) {
  std::vector<Finding> findings;
  kAnalysis.run(job, findings);
  return findings;
}
Finding only(const model::Job& job) {
  const std::vector<Finding> findings = findings_of(job);
  EXPECT_EQ(findings.size(), 1u);
  return findings.empty() ? Finding(FindingId{}) : findings.front();
}

// Ten all-reduces, 100 ms apart, until 1000 ms.
JobBuilder ten_steps(uint32_t ranks, double gpu_ms = 0.5) {
  JobBuilder job(ranks);
  job.steps(job.world(), 10, 0, 100, gpu_ms);
  return job;
}
// All but one are in the 11th when everybody is killed, 50 ms later.
JobBuilder eleventh_without(uint32_t ranks, uint32_t missing, double gpu_ms = 0.5) {
  JobBuilder job = ten_steps(ranks, gpu_ms);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    if (rank != missing) job.call(rank, 0, {.called_ms = 1000});
  }
  job.all_killed_at(1050);
  return job;
}
void all(JobBuilder& job, uint32_t ranks, Liveness liveness) {
  for (uint32_t rank = 0; rank < ranks; ++rank) job.process(rank).liveness = liveness;
}

TEST(BrokeOff, InsideAnOperationWithAndWithoutGpuTimes) {
  for (const double gpu_ms : {0.5, 0.0}) {
    const Finding finding = only(eleventh_without(8, 5, gpu_ms).build());
    EXPECT_EQ(id_text(finding.id), "evidence-missing.broke-off");
    EXPECT_EQ(class_text(class_of(finding.id)), "evidence-missing");
    EXPECT_EQ(finding.severity, Severity::kWarning);
    EXPECT_EQ(finding.statement,
              "the run broke off inside operation 10 of world (its 11th AllReduce): ranks 0-4, 6 and 7 "
              "were in it, rank 5 had not called it");
    EXPECT_TRUE(finding.ranks.empty());  // a moment later it might have called it
    EXPECT_EQ(finding.op_index, 10u);
    EXPECT_EQ(finding.comm, "world");
    EXPECT_FALSE(finding.needed_evidence.empty());
  }
}

// A rank that ended in order, as one that others wait for.
TEST(BrokeOff, SaysWhoEndedInOrder) {
  JobBuilder job = eleventh_without(4, 2);
  job.process(2).row.closed = 1;
  const Finding finding = only(job.build());
  EXPECT_EQ(finding.evidence[1],
            "not closed: the files of ranks 0, 1 and 3; closed normally: those of rank 2");
}

TEST(BrokeOff, UnequalCallsAreToldThoughAllEndedInOrder) {
  JobBuilder job = ten_steps(4);
  for (uint32_t rank = 0; rank < 3; ++rank) job.call(rank, 0, {.called_ms = 1000});
  const Finding finding = only(job.build());
  EXPECT_EQ(id_text(finding.id), "evidence-missing.broke-off");
  EXPECT_EQ(finding.evidence[1], "all processes closed their files normally");
}

// NCCL had room for the data: a note, as ever.
TEST(BrokeOff, ASendWithoutReceiveOfAJobThatEndedInOrderIsNone) {
  JobBuilder job = ten_steps(2);
  job.call(0, 0,
           {.func = "Send", .called_ms = 1000, .peer = 1, .gpu_start_ms = 1000.1, .gpu_end_ms = 1000.2});
  EXPECT_EQ(id_text(only(job.build()).id), "never-joined.unreceived");
}

TEST(BrokeOff, ASendWithoutReceiveOfAJobThatWasKilledIsOne) {
  JobBuilder job = ten_steps(2);
  job.call(0, 0, {.func = "Send", .called_ms = 1000, .peer = 1});
  job.all_killed_at(1050);
  EXPECT_EQ(only(job.build()).statement,
            "the run broke off inside transfer 0 from rank 0 to rank 1 on world (Send): rank 0 was in it, "
            "rank 1 had not called its end of it");
}

TEST(BrokeOff, InsideWhatAllHaveCalled) {
  JobBuilder job = ten_steps(2);
  for (uint32_t rank = 0; rank < 2; ++rank) job.call(rank, 0, {.called_ms = 1000, .gpu_start_ms = 1000.1});
  job.all_killed_at(1050);
  EXPECT_EQ(only(job.build()).statement,
            "the run broke off inside operation 10 of world (its 11th AllReduce), which all had called: "
            "nothing shows that it ended on ranks 0 and 1");
}

// Hosts call more than a second ahead of their GPUs: nobody waits before their kernels have begun.
TEST(BrokeOff, AWaitBeginsWithTheKernel) {
  const auto id_where_others_begin_at = [](double ms) {
    JobBuilder job = ten_steps(4);
    for (uint32_t rank = 0; rank < 4; ++rank)
      job.call(rank, 0, {.called_ms = 1000, .gpu_start_ms = rank == 3 ? -1 : ms});
    job.all_killed_at(2200);
    return id_text(only(job.build()).id);
  };
  EXPECT_EQ(id_where_others_begin_at(1100), "stuck-in-gpu");
  EXPECT_EQ(id_where_others_begin_at(1300), "evidence-missing.broke-off");
}

TEST(BrokeOff, BetweenOperationsNobodyIsNamed) {
  JobBuilder job = ten_steps(4);
  job.all_killed_at(60'000);
  Finding finding = only(job.build());
  EXPECT_EQ(id_text(finding.id), "evidence-missing.broke-off");
  EXPECT_EQ(finding.statement,
            "the recordings of all 4 ranks end without being closed; what ended the run is not in the files");
  EXPECT_TRUE(finding.comm.empty());

  JobBuilder some = ten_steps(4);
  some.killed(3);
  EXPECT_EQ(only(some.build()).statement,
            "the recording of rank 3 ends without being closed; what ended the run is not in the files");
}

TEST(BrokeOff, ALiveRunIsNoProblemSoFar) {
  for (const bool seen : {true, false}) {
    JobBuilder job = eleventh_without(4, 2);
    for (uint32_t rank = 0; rank < 4; ++rank) {
      job.process(rank).liveness = seen ? Liveness::kRunning : Liveness::kUnknown;
      job.process(rank).beats = !seen;
    }
    EXPECT_TRUE(findings_of(job.build()).empty());
  }
  JobBuilder ended = eleventh_without(4, 2);
  all(ended, 4, Liveness::kGone);
  EXPECT_EQ(findings_of(ended.build()).size(), 1u);
}

// Where a process runs, one that is gone was not ended with all the others.
TEST(BrokeOff, AProcessThatIsGoneWhileOthersRunIsDead) {
  JobBuilder job = eleventh_without(4, 2);
  all(job, 4, Liveness::kRunning);
  job.process(2).liveness = Liveness::kGone;
  const Finding finding = only(job.build());
  EXPECT_EQ(id_text(finding.id), "rank-dead");
  EXPECT_EQ(finding.severity, Severity::kWarning);
  EXPECT_EQ(finding.ranks, std::vector<int32_t>{2});
  EXPECT_EQ(finding.hosts, std::vector<std::string>{"node0"});
}

// Files of other tools are not closed by a process.
TEST(BrokeOff, OtherToolsFilesDoNotBreakOff) {
  JobBuilder job = eleventh_without(4, 2);
  for (uint32_t rank = 0; rank < 4; ++rank) job.process(rank).row.retention = 0;
  EXPECT_TRUE(findings_of(job.build()).empty());
  model::Job dumps = eleventh_without(4, 2).build();
  dumps.files = "Flight Recorder dumps";
  EXPECT_TRUE(findings_of(dumps).empty());
}

// The restarted attempt is what counts.
TEST(BrokeOff, AnAttemptThatWasReplacedIsHistory) {
  JobBuilder job = ten_steps(4);
  job.killed(3);
  model::Job built = job.build();
  model::JobProcess again;
  again.row = built.processes[3].row;
  again.row.pid += 100;
  again.row.closed = 1;
  again.row.start_ns = again.row.first_ns = built.processes[3].row.heartbeat_ns + 1;
  again.row.heartbeat_ns = again.row.last_ns = again.row.start_ns + 1;
  again.host = built.processes[3].host;
  built.processes.push_back(std::move(again));
  EXPECT_TRUE(findings_of(built).empty());
}

// Operations that differ are a fault at once, whether or not the processes ended in order.
TEST(Mismatch, NeedsNoPatience) {
  for (const bool killed : {true, false}) {
    JobBuilder job = ten_steps(4);
    for (uint32_t rank = 0; rank < 4; ++rank)
      job.call(rank, 0, {.func = rank == 2 ? "AllGather" : "AllReduce", .called_ms = 1000});
    if (killed) job.all_killed_at(1010);
    const Finding finding = only(job.build());
    EXPECT_EQ(id_text(finding.id), "joined-other-op");
    EXPECT_EQ(finding.severity, Severity::kWarning);
    EXPECT_EQ(finding.ranks, std::vector<int32_t>{2});
    EXPECT_TRUE(finding.needed_evidence.empty()) << finding.needed_evidence;
    EXPECT_GT(finding.weight, 10'000 * 86'400e9) << "whatever lateness there was before";
  }
}

// Two ranks that differ, of four: those that left no file may be with either.
TEST(Mismatch, WithoutAMajorityOfAllRanksNamesBothAndBlamesNobody) {
  JobBuilder job = ten_steps(4);
  for (uint32_t rank = 0; rank < 4; ++rank)
    job.call(rank, 0, {.func = rank == 2 ? "AllGather" : "AllReduce", .called_ms = 1000});
  job.without(0);
  job.without(3);
  const Finding finding = only(job.build());
  EXPECT_EQ(id_text(finding.id), "evidence-missing.majority");
  EXPECT_EQ(class_of(finding.id), FindingClass::kEvidenceMissing);
  EXPECT_EQ(finding.ranks, (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(
      finding.statement,
      "ranks 1 and 2 called different operations as operation 10 of world: rank 2 AllGather of 1 MiB "
      "ncclFloat32, rank 1 AllReduce of 1 MiB ncclFloat32; to tell which is wrong, Lockstep needs what 2 other ranks called");
}

TEST(Mismatch, OfTwoNamesBoth) {
  JobBuilder job = ten_steps(2);
  for (uint32_t rank = 0; rank < 2; ++rank)
    job.call(rank, 0, {.func = rank == 1 ? "AllGather" : "AllReduce", .called_ms = 1000});
  const Finding finding = only(job.build());
  EXPECT_EQ(id_text(finding.id), "joined-other-op");
  EXPECT_EQ(finding.ranks, (std::vector<int32_t>{0, 1}));
  EXPECT_EQ(finding.statement,
            "ranks 0 and 1 called different operations as operation 10 of world: rank 1 AllGather of 1 MiB "
            "ncclFloat32, rank 0 AllReduce of 1 MiB ncclFloat32");
}

TEST(Mismatch, OfAnyPartIsToldThoughAllEndedOnTheGpu) {
  for (const auto& [bytes, datatype, root] :
       {std::tuple(uint64_t{2} << 20, "ncclFloat32", 0), std::tuple(uint64_t{1} << 20, "ncclFloat16", 0),
        std::tuple(uint64_t{1} << 20, "ncclFloat32", 1)}) {
    JobBuilder job = ten_steps(4);
    for (uint32_t rank = 0; rank < 4; ++rank) {
      testing::Call call{
          .func = "Broadcast", .called_ms = 1000, .gpu_start_ms = 1000.1, .gpu_end_ms = 1000.2};
      if (rank == 1) call.bytes = bytes, call.datatype = datatype, call.root = root;
      job.call(rank, 0, call);
    }
    const Finding finding = only(job.build());
    EXPECT_EQ(id_text(finding.id), "joined-other-op");
    EXPECT_EQ(finding.ranks, std::vector<int32_t>{1});
  }
}

// Sizes that each rank may choose are in other tools' files, and a job that ended them all did not hang.
TEST(Mismatch, OfOtherToolsFilesNeedsAHang) {
  JobBuilder job = ten_steps(4);
  for (uint32_t rank = 0; rank < 4; ++rank) {
    job.process(rank).row.retention = 0;
    job.call(rank, 0,
             {.called_ms = 1000,
              .bytes = uint64_t{1} << (20 + rank % 2),
              .gpu_start_ms = 1000.1,
              .gpu_end_ms = 1000.2});
  }
  EXPECT_TRUE(findings_of(job.build()).empty());
}

// Two hosts; node1's files reach the machine that reads them `late_ms` late.
JobBuilder seen_from_node0(double late_ms, uint32_t per_host = 2) {
  JobBuilder job(2 * per_host, per_host);
  job.steps(job.world(), 10, 0, 100);
  for (uint32_t rank = 0; rank < 2 * per_host; ++rank) {
    job.killed(rank);
    if (rank < per_host) {
      job.process(rank).liveness = Liveness::kRunning;
      job.call(rank, 0, {.called_ms = 1000, .gpu_start_ms = 1000.1});
      job.heartbeat(rank, 30'000);
    } else {
      job.heartbeat(rank, 30'000 - late_ms);
    }
  }
  return job;
}

TEST(Stale, WhatReachesUsLateBlamesNobody) {
  for (const uint32_t per_host : {1u, 2u}) {
    const Finding finding = only(seen_from_node0(29'000, per_host).build());
    EXPECT_EQ(id_text(finding.id), "evidence-missing.stale") << finding.statement;
    EXPECT_EQ(finding.ranks.front(), static_cast<int32_t>(per_host));
    EXPECT_EQ(finding.hosts, std::vector<std::string>{"node1"});
  }
}

TEST(Stale, WhoWasWatchedForLongEnoughIsNamed) {
  // Seen until 20 s: for 19 s it did not call.
  EXPECT_EQ(id_text(only(seen_from_node0(10'000).build()).id), "never-joined");
  // And one that is seen as long as the others are.
  EXPECT_EQ(id_text(only(seen_from_node0(0).build()).id), "never-joined");
}

// What of its host came later shows that its files reach us.
TEST(Stale, OneOfAHostWhoseOthersAreSeenIsDead) {
  JobBuilder job = seen_from_node0(29'000);
  job.heartbeat(2, 30'000);
  job.call(2, 0, {.called_ms = 1000, .gpu_start_ms = 1000.1});
  const Finding finding = only(job.build());
  EXPECT_EQ(id_text(finding.id), "rank-dead");
  EXPECT_EQ(finding.ranks, std::vector<int32_t>{3});
}

// Its process runs on this very host; its file shows nothing new.
TEST(Stale, ARunningProcessWhoseFileStandsStillBlamesNobody) {
  JobBuilder job(2);
  job.steps(job.world(), 10, 0, 100);
  for (uint32_t rank = 0; rank < 2; ++rank) {
    job.killed(rank);
    job.process(rank).liveness = Liveness::kRunning;
  }
  job.call(0, 0, {.called_ms = 1000, .gpu_start_ms = 1000.1});
  job.heartbeat(0, 30'000);
  job.heartbeat(1, 1'400);
  EXPECT_EQ(id_text(only(job.build()).id), "evidence-missing.stale");
}

// Once nobody runs any more, the files are what they are.
TEST(Stale, FilesOfAJobThatEndedAreWhole) {
  JobBuilder job = seen_from_node0(29'000, 1);
  job.process(0).liveness = Liveness::kUnknown;
  EXPECT_EQ(id_text(only(job.build()).id), "rank-dead");
}

}  // namespace
}  // namespace lockstep::analysis::hang
