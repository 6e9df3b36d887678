// SPDX-License-Identifier: Apache-2.0
#include "model/restarts.h"

#include <gtest/gtest.h>

namespace lockstep::model {
namespace {

struct Row {
  int32_t rank;
  int64_t start_ns, last_ns, heartbeat_ns;
};

std::vector<bool> replaced(const std::vector<Row>& rows) {
  Job job;
  for (const Row& life : rows) {
    JobProcess& process = job.processes.emplace_back();
    process.row.rank = life.rank;
    process.row.start_ns = life.start_ns;
    process.row.last_ns = life.last_ns;
    process.row.heartbeat_ns = life.heartbeat_ns;
  }
  return replaced_processes(job);
}

TEST(Restarts, AProcessBeforeTheNewestOfItsRankIsReplaced) {
  EXPECT_EQ(
      replaced({{0, 100, 150, 160}, {1, 100, 155, 0}, {0, 200, 250, 260}, {1, 200, 0, 0}, {0, 300, 0, 0}}),
      (std::vector<bool>{true, true, true, false, false}));
}

TEST(Restarts, TwoAtTheSameTimeAreNot) {
  EXPECT_EQ(replaced({{0, 100, 120, 200}, {0, 150, 160, 200}}), (std::vector<bool>{false, false}))
      << "the first still gave a sign of life when the second began";
}

TEST(Restarts, ProcessesOfUnknownRankOrStartAreNot) {
  EXPECT_EQ(replaced({{-1, 100, 120, 0}, {-1, 150, 160, 0}, {2, 0, 120, 0}, {2, 0, 500, 0}}),
            (std::vector<bool>{false, false, false, false}));
}

TEST(Restarts, AProcessOfWhichNoTimeIsKnownIsNot) {
  EXPECT_EQ(replaced({{0, 0, 0, 0}, {0, 200, 260, 0}}), (std::vector<bool>{false, false}));
  EXPECT_EQ(replaced({{0, 0, 120, 0}, {0, 200, 260, 0}}), (std::vector<bool>{true, false}));
}

TEST(Restarts, RanksOfOtherJobsAreOtherRanks) {
  const Life lives[] = {{.job = "a", .rank = 0, .start_ns = 100, .seen_ns = 160},
                        {.job = "b", .rank = 0, .start_ns = 200, .seen_ns = 260},
                        {.job = "a", .rank = 0, .start_ns = 300, .seen_ns = 360}};
  EXPECT_EQ(replaced(std::span<const Life>(lives)), (std::vector<bool>{true, false, false}));
}

// Ranks 0 and 1 shared a communicator; rank 0 alone was started again.
Job gone_on_with_fewer(int64_t begun_ns) {
  Job job;
  for (const Row& life : {Row{0, 100, 150, 160}, Row{1, 100, 155, 165}, Row{0, begun_ns, 250, 260}}) {
    JobProcess& process = job.processes.emplace_back();
    process.row.rank = life.rank;
    process.row.start_ns = life.start_ns;
    process.row.last_ns = life.last_ns;
    process.row.heartbeat_ns = life.heartbeat_ns;
  }
  job.comms.emplace_back().members = {0, 1, kNoRow};
  for (uint32_t p : {0u, 1u}) {
    Member& member = job.members.emplace_back();
    member.comm = 0;
    member.process = p;
    job.processes[p].members = {p};
  }
  return job;
}

TEST(Restarts, RanksThatTheNextAttemptDoesWithoutAreReplaced) {
  EXPECT_EQ(replaced_processes(gone_on_with_fewer(200)), (std::vector<bool>{true, true, false}));
}

TEST(Restarts, ARankThatStillLivedWhenAnotherBeganAnewIsNot) {
  EXPECT_EQ(replaced_processes(gone_on_with_fewer(163)), (std::vector<bool>{true, false, false}));
}

}  // namespace
}  // namespace lockstep::model
