// SPDX-License-Identifier: Apache-2.0
#include "analysis/stack_rules/stack_rules.h"

#include <gtest/gtest.h>

#include "readers/stacks/read_stacks.h"
#include "tests/support/places.h"

namespace lockstep::analysis::stack_rules {
namespace {

using readers::stacks::Stack;
using readers::stacks::StacksModel;

Stack stack(int32_t rank, const std::string& place, const std::string& called) {
  return {.file = "s.txt",
          .line = 1,
          .rank = rank,
          .host = "h",
          .pid = 100 + rank,
          .place = place,
          .called = called};
}
// Ranks before `few` wait in an all-reduce; the others are at `place`.
StacksModel job(int32_t ranks, int32_t few, const std::string& called = "all_reduce",
                const std::string& there = "") {
  StacksModel model;
  for (int32_t rank = 0; rank < ranks; ++rank)
    model.stacks.push_back(rank < ranks - few ? stack(rank, "train.py:95 (step)", called)
                                              : stack(rank, "data.py:41 (load)", there));
  return model;
}
Finding only(const StacksModel& model) {
  const auto findings = judge(model);
  EXPECT_EQ(findings.size(), 1u);
  return findings.empty() ? Finding(FindingId{}) : findings.front();
}

TEST(StackRules, WhoIsElsewhereThanThoseWhoWaitStandsOut) {
  const Finding finding = only(job(8, 1));
  EXPECT_EQ(id_text(finding.id), "never-joined.stacks");
  EXPECT_EQ(finding.severity, Severity::kWarning) << "one moment";
  EXPECT_EQ(finding.ranks, std::vector<int32_t>{7});
  EXPECT_EQ(finding.statement,
            "rank 7 is at data.py:41 (load), where 7 other ranks wait at train.py:95 (step), in all_reduce");
  EXPECT_EQ(finding.evidence[0], "ranks 0-6 are at train.py:95 (step), in all_reduce (s.txt:1)");
}

TEST(StackRules, NobodyIsBlamedWhereNoneStandsOut) {
  for (const StacksModel& model :
       {job(2, 1), job(8, 3), job(8, 0), job(8, 1, "load"), job(8, 1, "all_reduce", "barrier"),
        job(8, 1, "all_reduce", "recv"), job(8, 1, "all_reduce", "send_object_list"),
        job(8, 1, "all_reduce", "wait_tensor"), job(8, 1, "recv"), job(1, 0)}) {
    const Finding finding = only(model);
    EXPECT_EQ(id_text(finding.id), "evidence-missing.stacks");
    EXPECT_TRUE(finding.ranks.empty());
  }
  StacksModel three = job(8, 1);
  three.stacks[0].place = "other.py:1 (f)";
  EXPECT_EQ(id_text(only(three).id), "evidence-missing.stacks");
  EXPECT_TRUE(judge({}).empty());
}

TEST(StackRules, InACallOfNcclNativeCodeWaits) {
  StacksModel model = job(8, 1);
  for (Stack& of : model.stacks) {
    of.place = of.rank == 7 ? "poll" : "ncclCommAbort";
    of.called = of.rank == 7 ? "" : "commReclaim";
  }
  EXPECT_EQ(only(model).statement,
            "rank 7 is at poll, where 7 other ranks wait at ncclCommAbort, in commReclaim");
  model.stacks.resize(1);
  EXPECT_EQ(only(model).statement,
            "the only stack given is at ncclCommAbort, in commReclaim, which does not say whom it waits for");
}

TEST(StackRules, AProcessThatStartedTheRanksIsNotBlamed) {
  const auto process = [](int pid, const std::string& frames) {
    return "Process " + std::to_string(pid) + ": python\nThread " + std::to_string(pid) +
           " (idle): \"MainThread\"\n" + frames;
  };
  const std::string agent = process(
      9, "    _invoke_run (torch/distributed/elastic/agent/server/api.py:869)\n    <module> (torchrun:8)\n");
  std::string text = agent;
  for (const int pid : {1, 2, 3})
    text +=
        process(pid, "    all_reduce (torch/distributed/distributed_c10d.py:2219)\n    step (train.py:95)\n");
  StacksModel model, alone;
  readers::stacks::parse_stacks(text, "s.txt", model);
  ASSERT_EQ(model.stacks.size(), 4u);
  EXPECT_EQ(only(model).statement,
            "the stacks of all 3 ranks given are at the same place: train.py:95 (step), in all_reduce");
  readers::stacks::parse_stacks(agent, "s.txt", alone);
  EXPECT_EQ(id_text(only(alone).id), "evidence-missing.stacks");
}

TEST(StackRules, OfARankTheLastStackCounts) {
  StacksModel model = job(8, 1);
  model.stacks.push_back(stack(7, "train.py:95 (step)", "all_reduce"));
  EXPECT_EQ(id_text(only(model).id), "evidence-missing.stacks");
}

TEST(StackRules, ProcessesWithoutARankAreNamedByTheirNumber) {
  StacksModel model = job(8, 1);
  for (Stack& of : model.stacks) of.rank = -1;
  const Finding finding = only(model);
  EXPECT_EQ(id_text(finding.id), "never-joined.stacks");
  EXPECT_TRUE(finding.statement.starts_with("process 107 is at data.py:41 (load)")) << finding.statement;
  EXPECT_TRUE(finding.ranks.empty());
}

TEST(StackRules, FilesOfBothWritersNameTheRank) {
  for (const auto& [name, who] : {std::pair("pyspy_dump.txt", "process 105"), {"stacks.txt", "rank 2"}}) {
    const auto model =
        readers::stacks::read_stacks({LOCKSTEP_SOURCE_DIR "/tests/data/stacks/" + std::string(name)});
    ASSERT_TRUE(model);
    EXPECT_TRUE(only(*model).statement.starts_with(std::string(who) + " is at data.py:41 (load)")) << name;
  }
}

}  // namespace
}  // namespace lockstep::analysis::stack_rules
