// SPDX-License-Identifier: Apache-2.0
#include "readers/nccl_log/pattern.h"

#include <gtest/gtest.h>

#include "readers/nccl_log/catalogue.h"

namespace lockstep::readers::nccl_log {
namespace {

TEST(Pattern, HolesTakeWhatTheyName) {
  Captures captures;
  Pattern pattern("rank {int} at {hex} took {num} s on {word}: {rest}");
  ASSERT_TRUE(pattern.match("rank -3 at 0x1fB took 1.25 s on node-7: all of it", captures));
  ASSERT_EQ(captures.count, 5u);
  EXPECT_EQ(captures[0], "-3");
  EXPECT_EQ(to_hex(captures[1]), 0x1fbu);
  EXPECT_EQ(to_double(captures[2]), 1.25);
  EXPECT_EQ(captures[3], "node-7");
  EXPECT_EQ(captures[4], "all of it");
  EXPECT_EQ(captures[5], "");
  EXPECT_FALSE(pattern.match("rank x at 1 took 1 s on a: b", captures));
  EXPECT_FALSE(pattern.match("rank 1 at 1 took 1 s on a b: c", captures));  // a word has no blank
  EXPECT_FALSE(pattern.match("rank", captures));
}

TEST(Pattern, WhatIsSkippedIsNotKept) {
  Captures captures;
  ASSERT_TRUE(Pattern("{skip}: to {word} failed").match("aFunction: to n1<5> failed", captures));
  EXPECT_EQ(captures.count, 1u);
  EXPECT_EQ(captures[0], "n1<5>");
}

TEST(Pattern, DollarAsksForTheWhole) {
  Captures captures;
  EXPECT_TRUE(Pattern("found {int}").match("found 12 cards", captures));
  EXPECT_FALSE(Pattern("found {int}$").match("found 12 cards", captures));
  EXPECT_TRUE(Pattern("found {int}$").match("found 12", captures));
  EXPECT_FALSE(Pattern("found {word}").match("found ", captures));
}

TEST(Pattern, OtherBracesAreText) {
  Captures captures;
  ASSERT_TRUE(Pattern("channel{Lo..Hi}={{int}..{int}}").match("channel{Lo..Hi}={0..15}", captures));
  EXPECT_EQ(captures[1], "15");
}

TEST(Pattern, NumbersOutOfBoundsAreZero) {
  EXPECT_EQ(to_int("99999999999999999999"), 0);
  EXPECT_EQ(to_int(""), 0);
  EXPECT_EQ(to_hex("0x"), 0u);
}

TEST(Catalogue, FirstPatternThatFitsWins) {
  Captures captures;
  EXPECT_EQ(classify("NET/IB : No device found.", captures), LineKind::kIbAbsent);
  EXPECT_EQ(classify("RAS declaring peer host3<41777> as DEAD; hash 0x9", captures), LineKind::kPeerDead);
  EXPECT_EQ(classify("RAS thread started", captures), LineKind::kKnown);
  EXPECT_EQ(classify("6 coll channels, 6 collnet channels, 0 nvls channels", captures),
            LineKind::kChannelCount);
  EXPECT_EQ(classify("a sentence that no release prints", captures), LineKind::kUnknown);
  EXPECT_EQ(classify("", captures), LineKind::kUnknown);
}

}  // namespace
}  // namespace lockstep::readers::nccl_log
