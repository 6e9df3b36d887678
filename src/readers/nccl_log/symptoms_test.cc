// SPDX-License-Identifier: Apache-2.0
#include "readers/nccl_log/symptoms.h"

#include <gtest/gtest.h>

#include "readers/nccl_log/testing/parse.h"

namespace lockstep::readers::nccl_log {
namespace {

TEST(Symptoms, ASentenceSaysOfWhat) {
  struct Row {
    const char* text;
    Symptom symptom;
  };
  for (const Row& row : {Row{"After an hour the second node hangs in a barrier.", Symptom::kHang},
                         Row{"The trainer gets stuck, with all GPUs at 100 %", Symptom::kHang},
                         Row{"it ended with a [bus error] on both nodes", Symptom::kCrash},
                         Row{"We see a timeout/hang at step 7", Symptom::kTimeout},
                         Row{"Reductions of two hosts give wrong results.", Symptom::kWrongResults},
                         Row{"A seg fault ends each of our tests", Symptom::kCrash},
                         Row{"It failed with a timeout after 30 minutes", Symptom::kTimeout},
                         Row{"Two nodes are slower than one", Symptom::kSlow}}) {
    EXPECT_EQ(symptom_of(row.text, false), row.symptom) << row.text;
    EXPECT_EQ(symptom_of(row.text, true), row.symptom) << row.text;
  }
  EXPECT_EQ(symptom_of("# The second node cannot start", true), Symptom::kFailure);
}

TEST(Symptoms, WhatIsNoSentenceOrNoTroubleIsNot) {
  for (const char* text : {"The job does not hang any more.",
                           "It ran without crash for a week",
                           "It is no longer slow on H100",
                           "if timeout is None: timeout = self.timeout",
                           "dist.init_process_group(timeout=timedelta(hours=1))",
                           "12:34:56 the queue is stuck behind a job",
                           "[rank3]: a collective is stuck",
                           "train.py:9: it hangs here",
                           "python train.py --timeout 600 --slow start",
                           "export TIMEOUT and hang on",
                           "hang",
                           "never hangs",
                           "this can cause the process to hang",
                           "it failed to crash when it should",
                           "The vision tower is frozen.",
                           "Using a slow image processor as use_fast is unset",
                           "Process group timeout set to 1800 seconds",
                           "to prevent hangs of the store",
                           "it returns instead of hanging there",
                           "the timeout of the group counts in seconds",
                           "Raise the timeout to an hour",
                           "the change of the hangar door",
                           "UserWarning: this may be slow to run",
                           "The second node cannot start",
                           "frame #3: it is stuck here"})
    EXPECT_EQ(symptom_of(text, false), std::nullopt) << text;
  EXPECT_EQ(symptom_of("# How to set the interface", true), std::nullopt);
  EXPECT_EQ(symptom_of("It hangs " + std::string(700, 'x'), true), std::nullopt);
}

// What names the trouble, and not the first word of a failure.
TEST(Symptoms, TheFirstThatSaysWhichCounts) {
  const LogModel model = nccl_log::parse(
      "# An error of our trainer\n"
      "It hangs after a while.\n"
      "Then it crashes at the end.\n");
  ASSERT_EQ(model.states.size(), 1u);
  EXPECT_EQ(model.states[0].symptom, Symptom::kHang);
  EXPECT_EQ(model.states[0].symptom_at.line, 2u);
  EXPECT_TRUE(model.is_silent());
}

TEST(Symptoms, FarBelowABeginningItIsAProgramsText) {
  std::string text;
  for (int line = 0; line < 300; ++line) text += "sample of a text\n";
  EXPECT_EQ(nccl_log::parse(text + "the car is stuck in the mud\n").states[0].symptom, std::nullopt);
}

}  // namespace
}  // namespace lockstep::readers::nccl_log
