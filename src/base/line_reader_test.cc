// SPDX-License-Identifier: Apache-2.0
#include "base/line_reader.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <vector>

namespace lockstep {
namespace {

class Lines : public ::testing::Test {
 protected:
  ~Lines() override { close(fd_); }
  LineReader reader(std::string_view text, size_t longest = 100) {
    EXPECT_EQ(write(fd_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    file_.emplace(InputFile::open("/proc/self/fd/" + std::to_string(fd_)).value());
    return LineReader(*file_, longest);
  }
  static std::vector<std::string> all(LineReader& reader) {
    std::vector<std::string> lines;
    while (auto line = reader.next()) lines.emplace_back(*line);
    return lines;
  }

  int fd_ = memfd_create("lines", 0);
  std::optional<InputFile> file_;
};

TEST_F(Lines, AreHandedOutWithoutTheirNewline) {
  LineReader lines = reader("one\n\nthree\n");
  EXPECT_EQ(all(lines), (std::vector<std::string>{"one", "", "three"}));
  EXPECT_FALSE(lines.is_open());
  EXPECT_EQ(lines.offset(), 5u);
}

TEST_F(Lines, TheLastMayBeOpen) {
  LineReader lines = reader("one\ntw");
  EXPECT_EQ(all(lines), (std::vector<std::string>{"one", "tw"}));
  EXPECT_TRUE(lines.is_open());
}

TEST_F(Lines, AnEmptyFileHasNone) {
  LineReader lines = reader("");
  EXPECT_TRUE(all(lines).empty());
}

TEST_F(Lines, ThatAreTooLongArePassedOver) {
  const std::string huge(3 << 20, 'x');
  LineReader lines =
      reader("a\n" + std::string(101, 'x') + "\n" + std::string(100, 'y') + "\n" + huge + "\nb\n" + huge);
  EXPECT_EQ(all(lines), (std::vector<std::string>{"a", std::string(100, 'y'), "b"}));
  EXPECT_EQ(lines.too_long(), 3u);
}

TEST_F(Lines, MayBeLongerThanAPiece) {
  const std::string first(700'000, 'a'), second(1'000'000, 'b');
  LineReader lines = reader(first + "\n" + second + "\nc\n", 1'000'000);
  EXPECT_EQ(all(lines), (std::vector<std::string>{first, second, "c"}));
  EXPECT_EQ(lines.too_long(), 0u);
}

TEST_F(Lines, OfAFileLargerThanTheBufferKeepTheirOffsets) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += "line " + std::to_string(i) + "\n";
  LineReader lines = reader(text);
  uint64_t at = 0, count = 0;
  while (auto line = lines.next()) {
    ASSERT_EQ(lines.offset(), at);
    ASSERT_EQ(*line, "line " + std::to_string(count));
    at += line->size() + 1;
    ++count;
  }
  EXPECT_EQ(count, 100'000u);
}

}  // namespace
}  // namespace lockstep
