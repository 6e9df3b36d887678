// SPDX-License-Identifier: Apache-2.0
#include "cli/kit/nearest.h"

#include <gtest/gtest.h>

namespace lockstep::cli {
namespace {

constexpr std::string_view kCommands[] = {"trace", "merge", "diagnose", "top", "info", "report"};

TEST(Nearest, KnowsSlips) {
  EXPECT_EQ(nearest("diagnos", kCommands), "diagnose");
  EXPECT_EQ(nearest("daignose", kCommands), "diagnose");
  EXPECT_EQ(nearest("mreg", kCommands), "") << "two slips in four letters";
  EXPECT_EQ(nearest("raport", kCommands), "report");
  EXPECT_EQ(nearest("to", kCommands), "") << "a third of two letters is none";
}

TEST(Nearest, GuessesNotAmongSeveralNorFromAfar) {
  constexpr std::string_view kAlike[] = {"show", "slow"};
  EXPECT_EQ(nearest("snow", kAlike), "");
  EXPECT_EQ(nearest("shew", kAlike), "show");
  EXPECT_EQ(nearest("explode", kCommands), "");
  EXPECT_EQ(nearest("", kCommands), "");
  EXPECT_EQ(nearest(std::string(100'000, 'x'), kCommands), "");
}

TEST(Nearest, IsAQuestion) {
  EXPECT_EQ(did_you_mean("diagnos", kCommands), "; did you mean diagnose?");
  EXPECT_EQ(did_you_mean("explode", kCommands), "");
}

}  // namespace
}  // namespace lockstep::cli
