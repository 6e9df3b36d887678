// SPDX-License-Identifier: Apache-2.0
#include "run/mode_text.h"

#include <gtest/gtest.h>

namespace lockstep::run {
namespace {

TEST(ModeText, ReadsWhatItWrites) {
  for (const char* text : {"off", "lite", "default", "deep", "sample=1/100", "sample=3/3"}) {
    auto mode = parse_mode(text);
    ASSERT_TRUE(mode) << text;
    EXPECT_EQ(mode_text(*mode), text);
  }
}

TEST(ModeText, KnowsTheNamesOfRocmTraceLite) {
  ASSERT_TRUE(parse_mode("standard"));
  EXPECT_EQ(mode_text(*parse_mode("standard")), "default");
  ASSERT_TRUE(parse_mode("full"));
  EXPECT_EQ(mode_text(*parse_mode("full")), "deep");
}

TEST(ModeText, RefusesTheRest) {
  for (const char* text :
       {"", "Deep", "sample", "sample=", "sample=1", "sample=1/", "sample=/2", "sample=0/4", "sample=5/4",
        "sample=1/0", "sample=1/2x", "sample=1/2/3", "sample=-1/2", "sample=1/9999999", "1/100"})
    EXPECT_FALSE(parse_mode(text)) << text;
}

}  // namespace
}  // namespace lockstep::run
