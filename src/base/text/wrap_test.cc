// SPDX-License-Identifier: Apache-2.0
#include "base/text/wrap.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(Wrap, KeepsToTheWidth) {
  EXPECT_EQ(wrap("one two three", 0, 8), "one two\nthree");
  EXPECT_EQ(wrap("one two three", 2, 8), "one\n  two\n  three");
  EXPECT_EQ(wrap("", 2, 8), "");
}

TEST(Wrap, ALongWordStandsAlone) { EXPECT_EQ(wrap("a /very/long/path b", 0, 6), "a\n/very/long/path\nb"); }

TEST(Wrap, CountsColumnsNotBytes) {
  EXPECT_EQ(wrap("\u00fc\u00fc\u00fc \u00fc\u00fc\u00fc x", 0, 7),
            "\u00fc\u00fc\u00fc \u00fc\u00fc\u00fc\nx");
}

TEST(Within, WrapsWideLinesBehindTheirIndent) {
  EXPECT_EQ(within("one\n\n  two three\n", 20), "one\n\n  two three\n");
  EXPECT_EQ(within("one\n\n  two three\n", 8), "one\n\n  two\n  three\n");
}

TEST(Lines, AreWithoutNewlines) {
  using Lines = std::vector<std::string_view>;
  EXPECT_EQ(lines(""), Lines{});
  EXPECT_EQ(lines("a"), Lines{"a"});
  EXPECT_EQ(lines("a\n\nb\n"), (Lines{"a", "", "b"}));
}

}  // namespace
}  // namespace lockstep
