// SPDX-License-Identifier: Apache-2.0
#include "live/rank_rows.h"

#include <gtest/gtest.h>

namespace lockstep::live {
namespace {

using model::Liveness;

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kNow = 1000 * kSecond;

SeenProcess process(int32_t rank, uint64_t newest, int64_t age_ns) {
  SeenProcess seen;
  seen.host = "node" + std::to_string(rank / 4);
  seen.device = rank % 4;
  seen.pid = 4000 + rank;
  seen.rank = rank;
  seen.liveness = Liveness::kRunning;
  seen.now_ns = kNow;
  seen.heartbeat_age_ns = kSecond / 2;
  SeenComm world{.key = "0xabc", .name = "world", .rank = rank, .ranks = 8, .ended = false, .functions = {}};
  world.functions["AllReduce"] = {newest, kNow - age_ns};
  seen.comms.push_back(world);
  seen.last = SeenOp{"AllReduce", "world", newest, age_ns};
  return seen;
}

std::vector<SeenProcess> ranks_in_step() {
  std::vector<SeenProcess> all;
  for (int32_t rank = 0; rank < 8; ++rank) all.push_back(process(rank, 8, kSecond / 10));
  return all;
}

TEST(RankRows, NobodyIsBehind) {
  RankRows seen = RankWatch().look(ranks_in_step());
  EXPECT_FALSE(seen.alarming);
  EXPECT_EQ(seen.verdict, "All 8 processes are in step.");
  for (const RankRow& row : seen.rows) {
    EXPECT_EQ(row.health, Health::kGood);
    EXPECT_EQ(row.behind, 0u);
  }
}

TEST(RankRows, NamesTheRankThatOthersWaitFor) {
  std::vector<SeenProcess> all;
  for (int32_t rank = 0; rank < 8; ++rank)
    all.push_back(rank == 5 ? process(5, 7, 15 * kSecond) : process(rank, 8, (10 + rank) * kSecond));
  RankRows seen = RankWatch().look(all);
  EXPECT_TRUE(seen.alarming);
  EXPECT_EQ(seen.rows[5].health, Health::kLate);
  EXPECT_EQ(seen.rows[5].behind, 1u);
  EXPECT_EQ(seen.rows[5].late_ns, 17 * kSecond) << "since the first of the others began";
  EXPECT_EQ(
      seen.verdict,
      "Rank 5 (GPU 1 of node1, pid 4005) is 1 operation behind on world: others began AllReduce 17.0 s ago.");
  EXPECT_EQ(seen.rows[4].health, Health::kWaits);
  EXPECT_EQ(seen.rows[4].waits_for, "rank 5");
}

TEST(RankRows, AMomentsLeadIsNoLateness) {
  std::vector<SeenProcess> all = ranks_in_step();
  all[2] = process(2, 6, kSecond / 5);
  RankRows seen = RankWatch().look(all);
  EXPECT_EQ(seen.rows[2].behind, 2u);
  EXPECT_EQ(seen.rows[2].health, Health::kGood);
  EXPECT_FALSE(seen.alarming);
}

TEST(RankRows, StandingWhileOthersRunAheadIsLateness) {
  RankWatch watch;
  for (int second = 0; second < 3; ++second) {
    std::vector<SeenProcess> all;
    for (int32_t rank = 0; rank < 8; ++rank) {
      SeenProcess seen = process(rank, rank == 2 ? 4 : 10 + static_cast<uint64_t>(second), kSecond / 10);
      seen.now_ns += second * kSecond;
      seen.comms[0].functions["AllReduce"].started_ns += second * kSecond;
      all.push_back(seen);
    }
    EXPECT_EQ(watch.look(all).rows[2].health, second < 2 ? Health::kGood : Health::kLate) << second;
  }
}

TEST(RankRows, AFunctionThatWasNeverSeenCountsOnlyWhenAllWasRead) {
  std::vector<SeenProcess> all = ranks_in_step();
  for (int32_t rank = 1; rank < 8; ++rank)
    all[static_cast<size_t>(rank)].comms[0].functions["Broadcast"] = {0, kNow - 9 * kSecond};
  all[0].comms[0].from_start = false;
  EXPECT_EQ(RankWatch().look(all).rows[0].behind, 0u);
  all[0].comms[0].from_start = true;
  EXPECT_EQ(RankWatch().look(all).rows[0].behind, 1u);
  EXPECT_EQ(RankWatch().look(all).rows[0].behind_func, "Broadcast");
}

TEST(RankRows, AnEndedCommunicatorHoldsNobodyUp) {
  std::vector<SeenProcess> all = ranks_in_step();
  all[3] = process(3, 2, 20 * kSecond);
  all[3].comms[0].ended = true;
  EXPECT_EQ(RankWatch().look(all).rows[3].behind, 0u);
}

TEST(RankRows, ClocksOfOtherHostsDoNotMatter) {
  std::vector<SeenProcess> all;
  for (int32_t rank = 0; rank < 8; ++rank) {
    SeenProcess seen = process(rank, rank == 5 ? 7 : 8, 10 * kSecond);
    if (rank >= 4) {  // another host, an hour ahead
      seen.now_ns += 3600 * kSecond;
      seen.comms[0].functions["AllReduce"].started_ns += 3600 * kSecond;
    }
    all.push_back(seen);
  }
  EXPECT_EQ(RankWatch().look(all).rows[5].late_ns, 10 * kSecond);
}

TEST(RankRows, WhoIsGoneComesBeforeWhoIsLate) {
  std::vector<SeenProcess> all = ranks_in_step();
  all[1] = process(1, 7, 20 * kSecond);
  all[6].liveness = Liveness::kGone;
  RankRows seen = RankWatch().look(all);
  EXPECT_EQ(seen.verdict, "Rank 6 (GPU 2 of node1, pid 4006) is gone without closing its file.");
  all[6].liveness = Liveness::kStopped;
  EXPECT_EQ(RankWatch().look(all).verdict,
            "Rank 6 (GPU 2 of node1, pid 4006) is stopped by a signal or a debugger.");
  all[6].closed = true;
  all[6].liveness = Liveness::kGone;
  EXPECT_EQ(RankWatch().look(all).rows[6].health, Health::kEnded);
}

// As a launcher leaves it that starts all ranks again after one has died.
TEST(RankRows, WhoWasStartedAgainIsReplaced) {
  std::vector<SeenProcess> all;
  for (int32_t rank = 0; rank < 8; ++rank) {
    SeenProcess old = process(rank, rank == 3 ? 7 : 8, 60 * kSecond);
    old.start_ns = kNow - 500 * kSecond;
    old.heartbeat_age_ns = 40 * kSecond;
    old.liveness = rank < 4 ? Liveness::kGone : Liveness::kUnknown;  // the other host's cannot be seen
    all.push_back(old);
  }
  EXPECT_TRUE(RankWatch().look(all).alarming);
  for (int32_t rank = 0; rank < 8; ++rank) {
    SeenProcess again = process(rank, 3, kSecond / 10);
    again.pid += 100;
    again.start_ns = kNow - 30 * kSecond;
    again.comms[0].key = "0xdef";
    all.push_back(again);
  }
  RankRows seen = RankWatch().look(all);
  EXPECT_FALSE(seen.alarming);
  EXPECT_EQ(seen.verdict, "All 8 processes are in step.");
  EXPECT_EQ(seen.rows[3].health, Health::kReplaced);
  EXPECT_EQ(seen.rows[3].behind, 0u);
  EXPECT_EQ(seen.rows[7].health, Health::kReplaced);

  // A debugger's process still has its GPU; another job's rank is another rank.
  all[2].liveness = Liveness::kStopped;
  all[8].job_id = "other";
  seen = RankWatch().look(all);
  EXPECT_EQ(seen.rows[0].health, Health::kGone);
  EXPECT_EQ(seen.rows[2].health, Health::kStopped);
  all[2].liveness = Liveness::kGone;
  all[8].job_id.clear();

  // The new ones are judged as ever, also when all are gone.
  for (size_t i = 8; i < 16; ++i) all[i].liveness = Liveness::kGone;
  EXPECT_EQ(RankWatch().look(all).verdict, "Ranks 0-7 are gone without closing their files.");
  for (size_t i = 8; i < 16; ++i) all[i].closed = true;
  EXPECT_EQ(RankWatch().look(all).verdict, "All 8 processes ended normally.");
}

TEST(RankRows, HelpersOfRanksAreNoRanks) {
  std::vector<SeenProcess> all = ranks_in_step();
  for (int32_t rank : {2, 6, -1}) {
    SeenProcess helper = process(rank, 0, 0);
    helper.comms.clear();
    helper.last.reset();
    helper.liveness = Liveness::kGone;
    all.push_back(helper);
  }
  RankRows seen = RankWatch().look(all);
  EXPECT_FALSE(seen.alarming) << seen.verdict;
  EXPECT_EQ(seen.rows.back().health, Health::kHelper);
  EXPECT_EQ(seen.verdict, "All 8 processes are in step.");
  // One that was to be a rank of its own is missed.
  all.back().rank = 8;
  EXPECT_TRUE(RankWatch().look(all).alarming);
}

TEST(RankRows, WithoutSightTheHeartbeatDecides) {
  std::vector<SeenProcess> all = ranks_in_step();
  all[6].liveness = Liveness::kUnknown;
  EXPECT_EQ(RankWatch().look(all).rows[6].health, Health::kGood);
  all[6].heartbeat_age_ns = 30 * kSecond;
  RankRows seen = RankWatch().look(all);
  EXPECT_EQ(seen.rows[6].health, Health::kSilent);
  EXPECT_EQ(seen.verdict, "Rank 6 (GPU 2 of node1, pid 4006) is silent: no heartbeat for 30.0 s.");
}

TEST(RankRows, ARunOfLongAgoIsNoListOfRanks) {
  std::vector<SeenProcess> all = ranks_in_step();
  for (SeenProcess& one : all) {
    one.liveness = Liveness::kUnknown;
    one.heartbeat_age_ns = 3600 * kSecond;
  }
  EXPECT_EQ(RankWatch().look(all).verdict,
            "No rank shows a sign of life: the job ended without closing its files, or its hosts hang.");
  --all[4].comms[0].functions["AllReduce"].newest;
  EXPECT_EQ(RankWatch().look(all).verdict,
            "No rank shows a sign of life: the job ended without closing its files, or its hosts hang. "
            "Rank 4 was behind.");
}

TEST(RankRows, SaysWhenAllStandStill) {
  std::vector<SeenProcess> all;
  for (int32_t rank = 0; rank < 8; ++rank) all.push_back(process(rank, 8, 30 * kSecond));
  RankRows seen = RankWatch().look(all);
  EXPECT_FALSE(seen.alarming);
  EXPECT_EQ(seen.verdict, "No rank is behind, and none has started an operation for 30.0 s.");
  for (SeenProcess& one : all) one.closed = true;
  EXPECT_EQ(RankWatch().look(all).verdict, "All 8 processes ended normally.");
}

}  // namespace
}  // namespace lockstep::live
