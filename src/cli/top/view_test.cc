// SPDX-License-Identifier: Apache-2.0
#include "cli/top/view.h"

#include <gtest/gtest.h>

namespace lockstep::cli::top {
namespace {

live::RankRows many(size_t ranks) {
  live::RankRows seen;
  for (size_t i = 0; i < ranks; ++i) {
    live::RankRow row;
    row.rank = static_cast<int32_t>(i);
    row.who = std::to_string(i);
    row.host = "node" + std::to_string(i / 8);
    row.device = static_cast<int32_t>(i % 8);
    row.last = live::SeenOp{"AllReduce", "world", 8, 2'000'000};
    row.ops_per_s = static_cast<double>(i);
    row.bytes_per_s = 1e9 * static_cast<double>(ranks - i);
    row.heartbeat_age_ns = 500'000'000;
    seen.rows.push_back(row);
  }
  seen.verdict = "A verdict.";
  return seen;
}

std::string first_word(const Line& line) {
  size_t from = line.text.find_first_not_of(' ');
  return line.text.substr(from, line.text.find(' ', from) - from);
}

TEST(View, ShowsAllThatFit) {
  View view = make_view(many(8), {.rows = 10});
  ASSERT_EQ(view.table.size(), 8u);
  EXPECT_EQ(view.more, 0u);
  EXPECT_EQ(view.sums.text, "8 ranks, 8 good; 28 ops/s, 36.00 GB/s");
  EXPECT_NE(view.table[3].text.find("9th AllReduce world"), std::string::npos) << view.table[3].text;
}

TEST(View, DoesNotFoldForHelpersThatAreNotShown) {
  live::RankRows seen = many(12);
  for (size_t i = 8; i < 12; ++i) seen.rows[i].health = live::Health::kHelper;
  EXPECT_EQ(make_view(seen, {.rows = 10}).table.size(), 8u);
}

TEST(View, FoldsGoodRanksWhereAllDoNotFit) {
  live::RankRows seen = many(1000);
  for (size_t i : {5, 77}) {
    seen.rows[i].health = live::Health::kLate;
    seen.rows[i].behind = 1;
    seen.rows[i].late_ns = 12'000'000'000;
  }
  for (size_t i = 994; i < 1000; ++i) seen.rows[i].health = live::Health::kEnded;
  View view = make_view(seen, {.rows = 20});
  ASSERT_EQ(view.table.size(), 4u);
  EXPECT_EQ(first_word(view.table[0]), "5");
  EXPECT_EQ(view.table[0].mood, Mood::kWarning);
  EXPECT_EQ(first_word(view.table[1]), "77");
  EXPECT_EQ(view.table[2].text, "992 ranks healthy: ranks 0-4, 6-76 and 78-993");
  EXPECT_EQ(view.table[3].text, "6 ranks ended normally: ranks 994-999");
  for (size_t i = 996; i < 1000; ++i) {
    seen.rows[i].health = live::Health::kReplaced;
    seen.rows[i].rank = static_cast<int32_t>(i % 2);
  }
  view = make_view(seen, {.rows = 20});
  EXPECT_EQ(view.table[4].text, "4 processes replaced: ranks 0 and 1");
  EXPECT_EQ(view.sums.text.substr(0, 49), "996 ranks, 2 late, 992 good, 2 ended, 4 replaced;");
  View whole = make_view(seen, {.fold = false, .rows = 20});
  EXPECT_EQ(whole.table.size(), 20u);
  EXPECT_EQ(whole.more, 980u);
  seen.rows[0].health = live::Health::kHelper;
  whole = make_view(seen, {.fold = false, .rows = 20});
  EXPECT_EQ(first_word(whole.table[0]), "1");
  EXPECT_EQ(whole.sums.text.substr(0, 9), "995 ranks");
  EXPECT_EQ(view_json(seen)["ranks"].size(), 999u);
}

TEST(View, SortsAndScrolls) {
  auto first = [](ViewOptions options) { return first_word(make_view(many(30), options).table[0]); };
  EXPECT_EQ(first({.sort = SortKey::kRank, .fold = false, .rows = 5}), "0");
  EXPECT_EQ(first({.sort = SortKey::kOps, .fold = false, .rows = 5}), "29");
  EXPECT_EQ(first({.sort = SortKey::kBandwidth, .fold = false, .rows = 5}), "0");
  EXPECT_EQ(first({.sort = SortKey::kRank, .reverse = true, .fold = false, .rows = 5}), "29");
  EXPECT_EQ(first({.sort = SortKey::kRank, .fold = false, .first = 7, .rows = 5}), "7");
  EXPECT_EQ(first({.sort = SortKey::kRank, .fold = false, .first = 1000, .rows = 5}), "29");
}

TEST(View, KeepsToTheWidth) {
  live::RankRows seen = many(3);
  seen.rows[0].host = "h\u00f6st";
  View view = make_view(seen, {.rows = 5, .width = 12});
  EXPECT_EQ(view.heading.text, "rank  state");
  EXPECT_EQ(view.table[0].text, "   0  good");
  EXPECT_EQ(view.hidden.text, "no room for ");
  for (const Line& line : {view.verdict[0], view.sums, view.heading}) EXPECT_LE(line.text.size(), 12u);
  view = make_view(seen, {.rows = 5, .width = 200});
  EXPECT_NE(view.table[0].text.find("h\u00f6st"), std::string::npos) << view.table[0].text;
}

TEST(View, DropsWholeColumnsByPriority) {
  live::RankRows seen = many(16);
  seen.verdict =
      "Rank 15 (node1, pid 14998) has stood still for 26.4 s: the others began AllReduce on mesh_dp:1, which it "
      "has not called.";
  for (live::RankRow& row : seen.rows) {
    row.last = live::SeenOp{"AllReduce", "mesh_dp:1", 1329, 26'400'000'000};
    row.oldest_open = row.last;
    row.open = 1;
    row.health = live::Health::kWaits;
    row.waits_for = "rank 15";
  }
  seen.rows[15].health = live::Health::kLate;
  seen.rows[15].behind = 1;
  seen.rows[15].late_ns = 26'400'000'000;
  View view = make_view(seen, {.rows = 18, .width = 80});
  EXPECT_EQ(view.heading.text,
            "rank  state                behind    late  last operation                  ago");
  EXPECT_EQ(view.table[0].text,
            "   0  waiting for rank 15       -       -  1,330th AllReduce mesh_dp:1  26.4 s");
  EXPECT_EQ(view.hidden.text, "no room for host, GPU, in flight, for, ops/s, GB/s, dropped, beat");
  ASSERT_EQ(view.verdict.size(), 2u);
  EXPECT_EQ(view.verdict[1].text, "AllReduce on mesh_dp:1, which it has not called.");
  EXPECT_EQ(view.table.size() + view.verdict.size() - 1, 17u);
  for (SortKey key : {SortKey::kBandwidth, SortKey::kDropped, SortKey::kOps}) {
    view = make_view(seen, {.sort = key, .rows = 18, .width = 80});
    const char* heading = key == SortKey::kBandwidth ? "GB/s"
                          : key == SortKey::kDropped ? "dropped"
                                                     : "ops/s";
    EXPECT_NE(view.heading.text.find(heading), std::string::npos) << view.heading.text;
    for (const Line& line : view.table) EXPECT_LE(line.text.size(), 80u) << line.text;
  }
  view = make_view(seen, {.rows = 18, .width = 200});
  EXPECT_EQ(view.hidden.text, "");
  EXPECT_NE(view.heading.text.find("beat"), std::string::npos);
  EXPECT_EQ(view.verdict.size(), 1u);
}

TEST(View, OneLineOfRoomIsEnough) {
  View view = make_view(many(50), {.rows = 1, .width = 1});
  EXPECT_FALSE(view.table.empty());
  EXPECT_TRUE(make_view({}, {}).table.empty());
}

TEST(View, JsonHasEveryRank) {
  live::RankRows seen = many(100);
  seen.alarming = true;
  seen.rows[1].oldest_open = live::SeenOp{"Send", "", std::nullopt, 7};
  seen.rows[1].open = 2;
  Json document = view_json(seen);
  EXPECT_EQ(document["alarming"], true);
  ASSERT_EQ(document["ranks"].size(), 100u);
  EXPECT_EQ(document["ranks"][1]["oldest_in_flight"]["func"], "Send");
  EXPECT_TRUE(document["ranks"][1]["oldest_in_flight"]["number"].is_null());
  EXPECT_EQ(document["ranks"][1]["in_flight"], 2);
  EXPECT_EQ(document["ranks"][0]["state"], "good");
}

}  // namespace
}  // namespace lockstep::cli::top
