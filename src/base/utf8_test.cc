// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(ValidUtf8, KeepsWellFormedText) {
  for (std::string_view text : {"", "plain", "gr\xc3\xbc\xc3\x9f", "\xe2\x82\xac", "\xf0\x9f\x98\x80"}) {
    EXPECT_EQ(valid_utf8(text), text);
  }
}

TEST(ValidUtf8, ReplacesEachBadByte) {
  EXPECT_EQ(valid_utf8("a\xff"
                       "b"),
            "a?b");
  EXPECT_EQ(valid_utf8("cut\xe2\x82"), "cut??");      // a field cut inside a character
  EXPECT_EQ(valid_utf8("\xc0\xaf"), "??");            // overlong
  EXPECT_EQ(valid_utf8("\xed\xa0\x80"), "???");       // surrogate
  EXPECT_EQ(valid_utf8("\xf4\x90\x80\x80"), "????");  // beyond U+10FFFF
  EXPECT_EQ(valid_utf8("\x80x"), "?x");
}

TEST(CutUtf8, KeepsWholeCharacters) {
  EXPECT_EQ(cut_utf8("plain", 5), "plain");
  EXPECT_EQ(cut_utf8("plain", 4), "plai");
  constexpr std::string_view kText = "a\xe2\x82\xac\xc3\xbc";
  const size_t whole[] = {0, 1, 1, 1, 4, 4, 6};
  for (size_t most = 0; most <= kText.size(); ++most)
    EXPECT_EQ(cut_utf8(kText, most).size(), whole[most]) << most;
}

}  // namespace
}  // namespace lockstep
