// SPDX-License-Identifier: Apache-2.0
#include "base/lines/line_splitter.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lockstep {
namespace {

std::vector<std::string> lines_of(LineSplitter& splitter, const std::vector<std::string>& pieces) {
  std::vector<std::string> lines;
  const auto visit = [&](std::string_view line) { lines.emplace_back(line); };
  for (const std::string& piece : pieces) splitter.feed(piece, visit);
  splitter.finish(visit);
  return lines;
}

TEST(LineSplitter, PiecesMayEndAnywhere) {
  LineSplitter splitter;
  EXPECT_EQ(lines_of(splitter, {"on", "e\ntwo\n\nfo", "ur\r\n", "last"}),
            (std::vector<std::string>{"one", "two", "", "four", "last"}));
}

TEST(LineSplitter, TakesAwayWhatIsNoText) {
  LineSplitter splitter;
  EXPECT_EQ(lines_of(splitter, {"\033[1;31mred\033[0m\n", std::string("\0\0ze\0ro\n", 8), "> quoted\n",
                                "a\xE2\x80\x8B"
                                "b\n",
                                "end \033[", "\n"}),
            (std::vector<std::string>{"red", "zero", "quoted", "ab", "end "}));
}

TEST(LineSplitter, LongLinesAreCutAndCounted) {
  LineSplitter splitter;
  std::vector<std::string> pieces(40, std::string(10000, 'x'));
  pieces.push_back("\nshort\n");
  const auto lines = lines_of(splitter, pieces);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].size(), LineSplitter::kLineMost);
  EXPECT_EQ(lines[1], "short");
  EXPECT_EQ(splitter.cut_lines(), 1u);
  EXPECT_EQ(splitter.cut_bytes(), 400000 - LineSplitter::kLineMost);
}

TEST(LineSplitter, ACutInsideACharacterIsNoDamage) {
  for (const std::string character : {"\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80"}) {
    for (size_t before = 0; before <= character.size(); ++before) {
      LineSplitter splitter;
      std::string line = "NCCL" + std::string(LineSplitter::kLineMost - 4 - before, 'x') + character + "yyyy";
      size_t size = 0;
      splitter.feed(line + '\n', [&](std::string_view text) { size = text.size(); });
      EXPECT_FALSE(splitter.is_damaged()) << before;
      EXPECT_EQ(size, LineSplitter::kLineMost - (before < character.size() ? before : 0));
      EXPECT_EQ(splitter.cut_bytes(), line.size() - size);
    }
  }
}

TEST(LineSplitter, ALineOfTenGigabytesIsCutLikeAnyOther) {
  LineSplitter splitter;
  size_t lines = 0, longest = 0;
  const auto visit = [&](std::string_view line) {
    ++lines;
    longest = std::max(longest, line.size());
  };
  const std::string piece(32 << 20, 'x');
  constexpr uint64_t kPieces = 320;
  for (uint64_t i = 0; i < kPieces; ++i) splitter.feed(piece, visit);
  splitter.feed("\nshort\n", visit);
  EXPECT_EQ(lines, 2u);
  EXPECT_EQ(longest, LineSplitter::kLineMost);
  EXPECT_EQ(splitter.cut_bytes(), kPieces * piece.size() - LineSplitter::kLineMost);
}

}  // namespace
}  // namespace lockstep
