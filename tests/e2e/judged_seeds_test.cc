// SPDX-License-Identifier: Apache-2.0
// Simulated jobs that were once judged wrong, each for a reason of its own.
#include <algorithm>

#include "tests/e2e/workplace.h"

namespace lockstep::test {
namespace {

using nlohmann::json;

class JudgedSeeds : public Workplace {
 protected:
  // Diagnoses a job of `options` and compares the verdict with the truth.
  void judge(const Argv& options, const std::string& id, const std::vector<int>& ranks) {
    Argv words = {LOCKSTEP_BIN_DIR "/lockstep-sim-job", "-o", "run"};
    words.insert(words.end(), options.begin(), options.end());
    const Finished made = do_here(words);
    ASSERT_EQ(made.code, 0) << made;
    const Finished finished = do_here(lockstep({"diagnose", "--json", "run"}));
    const json findings = json::parse(finished.out)["findings"];
    ASSERT_FALSE(findings.empty()) << finished;
    EXPECT_EQ(findings[0]["id"], id) << findings[0]["statement"];
    EXPECT_EQ(findings[0]["ranks"], json(ranks)) << findings[0]["statement"];
    blaming_ = static_cast<size_t>(std::count_if(findings.begin(), findings.end(), [](const json& of) {
      return of["severity"] != "note" && !of["ranks"].empty();
    }));
  }

  size_t blaming_ = 0;  // findings that name ranks, of the job judged last
};

std::vector<std::string> simulated(const std::string& seed, const std::string& ranks,
                                   const std::string& layout, const std::string& per_host,
                                   const std::string& steps, const std::string& ops, const std::string& fault,
                                   const std::string& mode = "deep") {
  return {"--seed",  seed,  "--ranks",        ranks, "--layout", layout, "--ranks-per-host", per_host,
          "--steps", steps, "--ops-per-step", ops,   "--mode",   mode,   "--fault",          fault};
}

// Most of what the other waits for is hidden in sends and receives.
TEST_F(JudgedSeeds, ASlowGpuAmongTwo) {
  judge(simulated("1795636771448", "2", "dp=2,tp=1,pp=1,ep=2", "2", "20", "80", "late:every:gpu"), "gpu-late",
        {1});
}

TEST_F(JudgedSeeds, AGpuThatWasSlowForAWhileInAPipeline) {
  judge(simulated("3991475800414", "16", "dp=8,tp=1,pp=2,ep=8", "8", "60", "120", "late:window:gpu"),
        "gpu-late.window", {5});
}

TEST_F(JudgedSeeds, AGpuThatStoodStillOnceInAPipeline) {
  judge(simulated("1936604480508", "8", "dp=2,tp=1,pp=4,ep=2", "8", "120", "80", "late:once:gpu"),
        "imbalance.once", {1});
}

// Its ranks hide each other, and its clock is known to milliseconds.
TEST_F(JudgedSeeds, AHostOfSlowGpusWhoseClockIsUncertain) {
  judge(simulated("486839590456", "16", "dp=4,tp=4,pp=1,ep=4", "4", "20", "120", "late:host:gpu"), "gpu-late",
        {0, 1, 2, 3});
}

// Rank 3 is its partner in the pipeline, and comes late to a row of reductions beside which others work.
TEST_F(JudgedSeeds, ThePartnerOfARankBehindASlowCard) {
  judge(simulated("7720", "12", "dp=6,tp=1,pp=2,ep=1", "2", "40", "20", "slow-nic"), "slow-nic", {9});
  EXPECT_EQ(blaming_, 1u);
}

// Seven of its ranks stand out.
TEST_F(JudgedSeeds, AHostOfSlowGpusIsNamedWhole) {
  judge(simulated("71120261127600", "32", "dp=8,tp=4,pp=1,ep=1", "8", "20", "40", "late:host:gpu"),
        "gpu-late", {24, 25, 26, 27, 28, 29, 30, 31});
}

// Rank 1 has received from a stage that waits for rank 49, and calls nothing more either.
TEST_F(JudgedSeeds, ARankThatAnotherOneOfItsPipelineStandsBehind) {
  judge(simulated("71120261127001", "64", "dp=16,tp=1,pp=4,ep=1", "8", "30", "80", "never-joined", "lite"),
        "never-joined", {49});
}

// A kernel of ranks 20 to 23 does not end; ranks 4 to 7 receive from them. Nobody shows it without GPU times.
TEST_F(JudgedSeeds, StagesThatStopTogetherWithoutGpuTimes) {
  judge(simulated("71120261127256", "32", "dp=4,tp=4,pp=2,ep=1", "8", "60", "120", "stuck-in-gpu", "lite"),
        "evidence-missing.gpu-times", {4, 5, 6, 7, 20, 21, 22, 23});
}

// Operation by operation the ranks seem to take turns: their own time shows who works longest.
TEST_F(JudgedSeeds, AHostOfSlowGpusAmongRanksThatTakeTurns) {
  judge(simulated("51920261127564", "32", "dp=16,tp=2,pp=1,ep=1", "8", "120", "40", "late:host:gpu"),
        "gpu-late", {0, 1, 2, 3, 4, 5, 6, 7});
}

TEST_F(JudgedSeeds, AGpuThatStoodStillOnceAmongRanksThatTakeTurns) {
  judge(simulated("51920261127454", "8", "dp=2,tp=4,pp=1,ep=2", "8", "20", "80", "late:once:gpu"),
        "imbalance.once", {7});
}

// Either of two would be late in all of five steps in 1 of 16 runs.
TEST_F(JudgedSeeds, ASlowGpuOfTwoThatIsLateTooSeldomToBeNamed) {
  judge(simulated("51920261127470", "2", "dp=2,tp=1,pp=1,ep=2", "2", "20", "120", "late:tail:gpu"),
        "imbalance.rotating", {});
}

}  // namespace
}  // namespace lockstep::test
