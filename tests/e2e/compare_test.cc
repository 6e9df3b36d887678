// SPDX-License-Identifier: Apache-2.0
// `lockstep compare` as a CI job calls it.
#include "tests/e2e/workplace.h"
#include "tests/support/places.h"

namespace lockstep::test {
namespace {

class Compare : public Workplace {
 protected:
  void simulate(const std::string& run, const Argv& more, const std::string& steps = "120") const {
    Argv argv = {LOCKSTEP_BIN_DIR "/lockstep-sim-job",
                 "--layout",
                 "tp=2",
                 "--ops-per-step",
                 "20",
                 "--mode",
                 "deep",
                 "--steps",
                 steps,
                 "-o",
                 path(run)};
    argv.insert(argv.end(), more.begin(), more.end());
    const Finished finished = do_here(argv);
    ASSERT_EQ(finished.code, 0) << finished;
  }
  void SetUp() override {
    simulate("a", {});
    simulate("same", {"--again", "1"});
    simulate("slow", {"--again", "2", "--slow", "AllReduce=1.1@60"});
    simulate("short", {"--again", "3"}, "10");
  }
  Finished compare(Argv words) const {
    words.insert(words.begin(), "compare");
    return do_here(lockstep(words));
  }
  int code(const std::string& b, const std::string& gate) const {
    return compare({"a", b, "--gate", gate}).code;
  }
};

TEST_F(Compare, TheExitCodeIsTheAnswer) {
  EXPECT_EQ(compare({"a", "same"}).code, 0);
  EXPECT_EQ(compare({"a", "slow"}).code, 1);
  EXPECT_EQ(compare({"a", "short"}).code, 3);
  EXPECT_EQ(code("same", "busbw:allreduce>=0.97,step<=1.03"), 0);
  EXPECT_EQ(code("slow", "busbw:allreduce>=0.97,step<=1.03"), 1);
  EXPECT_EQ(code("slow", "busbw:broadcast>=0.97"), 0) << "only what a gate asks for counts";
  EXPECT_EQ(code("short", "step<=1.03"), 3);
  EXPECT_EQ(code("same", "busbw:alltoall>=0.97"), 3) << "neither run has any";
  EXPECT_EQ(code("same", "busbw:allreduce>=1.0001"), 3) << "the interval straddles it";
  EXPECT_EQ(code("same", "busbw:allreduce=1"), 2);
  EXPECT_EQ(compare({"a"}).code, 2);
  EXPECT_EQ(compare({"a", "nowhere"}).code, 2);
  EXPECT_EQ(compare({"a", "same", "slow"}).code, 2);
}

TEST_F(Compare, TheFirstLinesAreLossesAndTheVerdict) {
  const Finished slow = compare({"a", "slow"});
  EXPECT_TRUE(has(slow.out, "Losses: none in either run.\nB ")) << slow;
  EXPECT_TRUE(has(slow.out, "AllReduce")) << slow;
  EXPECT_TRUE(has(slow.out, "since step 60")) << slow;
  EXPECT_FALSE(has(slow.out, "cannot tell")) << "only with --all: " << slow;
  const Finished gate = compare({"a", "slow", "--gate", "busbw:allreduce>=0.97"});
  EXPECT_TRUE(has(gate.out, "Gate busbw:allreduce>=0.97: regressed: ")) << gate;
  const Finished wrong = compare({"a", "slow", "--gate", "busbw:allreduce=1"});
  EXPECT_EQ(wrong.out, "");
  EXPECT_TRUE(has(wrong.err, "character 16")) << wrong;
}

TEST_F(Compare, JsonHoldsWhatTheTextSays) {
  const Finished finished = compare({"a", "slow", "--json", "--gate", "busbw:allreduce>=0.97,step<=1.05"});
  EXPECT_EQ(finished.code, 1);
  const auto document = nlohmann::json::parse(finished.out, nullptr, false);
  ASSERT_TRUE(document.is_object()) << finished;
  EXPECT_EQ(document["gates"][0]["state"], "regressed");
  EXPECT_EQ(document["gates"][1]["state"], "pass");
  const auto& comparison = document["comparison"];
  EXPECT_EQ(comparison["a"]["path"], "a");
  EXPECT_EQ(comparison["b"]["lost_events"], 0);
  EXPECT_EQ(comparison["omitted"], 0);
  const auto& cause = comparison["rows"][comparison["verdict"]["cause"].get<size_t>()];
  EXPECT_EQ(cause["metric"], "busbw");
  EXPECT_EQ(cause["func"], "AllReduce");
  EXPECT_EQ(cause["change"], "worse");
  EXPECT_LT(cause["high"], 1);
  EXPECT_NEAR(cause["since"]["step"].get<double>(), 60, 2);
  EXPECT_GT(cause["since"]["at_ns"], 0);
  for (const auto& row : comparison["rows"]) {
    EXPECT_EQ(row["a_ns"].is_null() || row["a_ns"].is_number_integer(), true) << row;
    if (row["ratio"].is_null()) continue;
    EXPECT_LE(row["low"], row["ratio"]) << row;
    EXPECT_GE(row["high"], row["ratio"]) << row;
  }
}

TEST_F(Compare, TheSameTwiceIsTheSameText) {
  EXPECT_EQ(compare({"a", "slow", "--all"}).out, compare({"a", "slow", "--all"}).out);
  EXPECT_EQ(do_here(lockstep({"merge", "-o", "a.db", "a"})).code, 0);
  const auto rows = [](const Finished& of) { return of.out.substr(of.out.find("\nChanged")); };
  EXPECT_EQ(rows(compare({"a.db", "slow", "--all"})), rows(compare({"a", "slow", "--all"})))
      << "a trace.db holds the same run";
}

TEST_F(Compare, WhatWasLostIsSaidFirst) {
  std::string victim;
  for (const auto& entry : std::filesystem::directory_iterator(path("same"))) {
    if (entry.path().extension() == ".lks") victim = entry.path();
  }
  std::filesystem::resize_file(victim, std::filesystem::file_size(victim) / 2);
  const Finished finished = compare({"a", "same"});
  EXPECT_EQ(finished.out.rfind("B lost: ", 0), 0U) << finished;
  EXPECT_TRUE(has(finished.out, "The figures lack what was lost")) << finished;
}

}  // namespace
}  // namespace lockstep::test
