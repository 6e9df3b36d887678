// SPDX-License-Identifier: Apache-2.0
#include "cli/compare/report.h"

#include <gtest/gtest.h>

namespace lockstep::cli::compare {
namespace {

using analysis::compare::Change;
using analysis::compare::Level;
using analysis::compare::Metric;
using analysis::compare::Ratio;
using analysis::compare::Row;

Row step(Change change, double ratio, double low, double high) {
  Row row;
  row.change = change;
  row.a = 100e6;
  row.b = ratio * 100e6;
  row.cost_ns = row.b - row.a;
  row.ratio = Ratio{ratio, low, high, 0.001};
  return row;
}
Row bandwidth(const std::string& comm, Change change, double ratio, double cost_ns) {
  Row row;
  row.metric = Metric::kBusbw;
  row.level = Level::kComm;
  row.func = "AllReduce";
  row.size_from = 64 << 20;
  row.size_to = 128 << 20;
  row.comm = comm;
  row.time = "Cupti";
  row.a = 400;
  row.b = ratio * 400;
  row.ratio = Ratio{ratio, ratio - 0.03, ratio + 0.03, 0.001};
  row.change = change;
  row.cost_ns = cost_ns;
  return row;
}
ComparedRuns runs_of(std::vector<Row> rows) {
  ComparedRuns runs;
  runs.a.path = "good";
  runs.b.path = "new";
  runs.comparison.rows = std::move(rows);
  runs.comparison.begin_ns_b = 1'000;
  return runs;
}
std::string text(const ComparedRuns& runs, TextOptions options = {}) {
  return report_text(runs, {}, Style(false), options);
}

TEST(CompareReport, SaysHowMuchSlowerAndWhatCostsMost) {
  Row slow = bandwidth("dp", Change::kWorse, 0.88, 5e6);
  slow.since.emplace();
  slow.since->step = 210;
  slow.since->begin_ns = 5'000;
  const ComparedRuns runs =
      runs_of({step(Change::kWorse, 1.08, 1.07, 1.09), bandwidth("tp", Change::kWorse, 0.97, 1e6), slow});
  const Verdict found = verdict(runs);
  EXPECT_EQ(found.state, Verdict::State::kSlower);
  EXPECT_EQ(found.cause, 2U);
  EXPECT_EQ(
      found.headline,
      "B is 8.0 % slower: a step takes 108 ms instead of 100 ms (95 %: 7.0 % to 9.0 %). The largest cost: AllReduce of 64 MiB+, worst in dp, lost 12.0 % of its bandwidth (95 %: 9.0 % to 15.0 "
      "%), as in 2 of 2 communicators, since step 210.");
  const Json json = comparison_json(runs, 100);
  EXPECT_EQ(json["verdict"]["cause"], 2);
  EXPECT_EQ(json["rows"][2]["since"]["at_ns"], 4'000) << "from the begin of B";
  EXPECT_EQ(json["rows"][2]["a_gbps"], 400.0);
  EXPECT_TRUE(json["rows"][2]["a_ns"].is_null());
  EXPECT_EQ(json["rows"][0]["b_ns"], 108'000'000);
  EXPECT_TRUE(json["rows"][0]["since"].is_null());
}

TEST(CompareReport, SaysWhatGotWorseThoughStepsDidNot) {
  EXPECT_EQ(verdict(runs_of({step(Change::kNone, 1.002, 0.99, 1.01),
                             bandwidth("mesh_dp:1", Change::kWorse, 0.914, 1e6)}))
                .headline,
            "B is as fast as A, as far as the data shows: a step takes 1.002 times as long (95 %: 0.990 to "
            "1.010). But AllReduce of 64 MiB+ in mesh_dp:1 lost 8.6 % of its bandwidth (95 %: 5.6 % to "
            "11.6 %).");
}

// "As in" takes more than half of the communicators that are alike.
TEST(CompareReport, ACauseOfMoreThanHalfIsSaidToBeOfAll) {
  auto headline = [](int worse, int others) {
    std::vector<Row> rows = {step(Change::kWorse, 1.08, 1.07, 1.09)};
    for (int i = 0; i < worse + others; ++i)
      rows.push_back(
          bandwidth("dp" + std::to_string(i), i < worse ? Change::kWorse : Change::kNone, 0.88, 5e6 - i));
    Row another_size = bandwidth("dp0", Change::kWorse, 0.9, 1);
    another_size.size_from = 1 << 20;
    rows.push_back(another_size);
    return verdict(runs_of(rows)).headline;
  };
  EXPECT_NE(headline(3, 2).find("worst in dp0, lost"), std::string::npos) << headline(3, 2);
  EXPECT_NE(headline(3, 2).find(", as in 3 of 5 communicators"), std::string::npos);
  EXPECT_NE(headline(2, 2).find(" in dp0 lost"), std::string::npos) << headline(2, 2);
  EXPECT_EQ(headline(2, 2).find("as in"), std::string::npos);
  EXPECT_EQ(headline(1, 0).find("as in"), std::string::npos) << "of one alone there are no others";
}

TEST(CompareReport, NamesTheRankThatOthersWaitFor) {
  Row late;
  late.metric = Metric::kLateness;
  late.level = Level::kRank;
  late.rank = 5;
  late.a = 20e3;
  late.b = 8e6;
  late.cost_ns = 7.98e6;
  late.change = Change::kWorse;
  late.ratio = Ratio{1.08, 1.07, 1.09, 0};
  EXPECT_NE(verdict(runs_of({step(Change::kWorse, 1.08, 1.07, 1.09), late}))
                .headline.find("rank 5 costs the other ranks 8.00 ms per step on average (20.0 us in A)"),
            std::string::npos);
}

TEST(CompareReport, DoesNotSayMoreThanItKnows) {
  EXPECT_EQ(verdict(runs_of({step(Change::kNone, 1.002, 0.99, 1.01)})).headline,
            "B is as fast as A, as far as the data shows: a step takes 1.002 times as long (95 %: 0.990 to "
            "1.010).");
  Row unknown;
  unknown.reason = "only 6 steps in A; at least 16 are needed";
  const Verdict found = verdict(runs_of({unknown}));
  EXPECT_EQ(found.state, Verdict::State::kCannotTell);
  EXPECT_EQ(found.headline, "Cannot tell whether B is slower: only 6 steps in A; at least 16 are needed.");
  EXPECT_EQ(verdict(runs_of({})).state, Verdict::State::kCannotTell);
  EXPECT_EQ(verdict(runs_of({bandwidth("dp", Change::kNone, 1, 0)})).state, Verdict::State::kSame);
}

TEST(CompareReport, ShowsWhatChangedAndAllRowsIfAsked) {
  const ComparedRuns runs =
      runs_of({step(Change::kBetter, 0.9, 0.89, 0.91), bandwidth("dp", Change::kWorse, 0.88, 5e6),
               bandwidth("tp", Change::kNone, 1, 0)});
  EXPECT_EQ(text(runs).find(" in tp"), std::string::npos);
  EXPECT_NE(text(runs, {.limit = 20, .all = true}).find(" in tp"), std::string::npos);
  EXPECT_NE(text(runs).find("Changed: 2 of 3 rows"), std::string::npos) << text(runs);
  EXPECT_NE(text(runs, {.limit = 1, .all = false}).find("and 1 more"), std::string::npos);
  EXPECT_EQ(comparison_json(runs, 1)["omitted"], 2);
  EXPECT_EQ(comparison_json(runs, 1)["rows"].size(), 1U);
}

TEST(CompareReport, SaysHowToSeeTheRestIfThereIsOne) {
  const Row better = step(Change::kBetter, 0.9, 0.89, 0.91), same = bandwidth("tp", Change::kNone, 1, 0);
  constexpr const char* kHow = "; --all shows all rows\n";
  EXPECT_NE(text(runs_of({better, same})).find(kHow), std::string::npos);
  EXPECT_EQ(text(runs_of({better})).find(kHow), std::string::npos) << "all are shown";
  EXPECT_EQ(text(runs_of({better, same}), {.limit = 20, .all = true}).find(kHow), std::string::npos);
}

TEST(CompareReport, OnlyASlowerRunIsRed) {
  auto red = [](const Row& row) {
    return report_text(runs_of({row}), {}, Style(true), {}).find(Style(true).bad("B is").substr(0, 7)) !=
           std::string::npos;
  };
  EXPECT_TRUE(red(step(Change::kWorse, 1.08, 1.07, 1.09)));
  EXPECT_FALSE(red(step(Change::kNone, 1.0, 0.99, 1.01)));
  EXPECT_FALSE(red(step(Change::kBetter, 0.9, 0.89, 0.91)));
}

TEST(CompareReport, AGateHasTheRatioThatItWasJudgedBy) {
  Row slow = bandwidth("dp", Change::kWorse, 0.85, 5e6);
  slow.level = Level::kFunc;
  slow.since.emplace();
  slow.since->step = 50;
  slow.since->ratio = Ratio{0.67, 0.66, 0.68, 0};
  const ComparedRuns runs = runs_of({slow});
  GateReport gates;
  gates.gates = parse_gates("busbw:allreduce>=0.8,step<=1.03").value();
  for (const Gate& gate : gates.gates) gates.results.push_back(judge(gate, runs.comparison));
  const Json json = report_json(runs, gates)["gates"];
  EXPECT_EQ(json[0]["state"], "regressed");
  EXPECT_EQ(json[0]["ratio"], 0.67);
  EXPECT_EQ(json[0]["low"], 0.66);
  EXPECT_EQ(json[0]["high"], 0.68);
  EXPECT_NE(report_text(runs, gates, Style(false), {}).find("regressed: 0.670 (95 %: 0.660 to 0.680) since"),
            std::string::npos);
  EXPECT_TRUE(json[1]["ratio"].is_null());
}

TEST(CompareReport, SaysLossesOfBothRunsFirst) {
  ComparedRuns runs = runs_of({step(Change::kNone, 1, 0.99, 1.01)});
  EXPECT_EQ(text(runs).rfind("Losses: none in either run.\n", 0), 0U);
  runs.b.overview.losses.push_back({-1, "capture", "dropped", "events that found no room", 7});
  runs.b.lost = 7;
  EXPECT_EQ(text(runs).rfind("B lost: 7 x events that found no room\nThe figures lack what was lost", 0), 0U)
      << text(runs);
  EXPECT_EQ(comparison_json(runs, 9)["b"]["lost_events"], 7);
  EXPECT_EQ(comparison_json(runs, 9)["b"]["losses"].size(), 1U);
}

}  // namespace
}  // namespace lockstep::cli::compare
