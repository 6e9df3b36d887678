// SPDX-License-Identifier: Apache-2.0
#include "cli/top/controls.h"

#include <gtest/gtest.h>

namespace lockstep::cli::top {
namespace {

constexpr size_t kPage = 10;

TEST(Controls, QuitsOnQAlone) {
  Controls controls;
  for (int key :
       std::initializer_list<int>{'r', 'l', 'b', 'o', 'i', 'd', 'f', 'p', ' ', '?', 'x', 27, 0x12345})
    EXPECT_TRUE(controls.press(key, kPage)) << key;
  EXPECT_FALSE(controls.press('q', kPage));
}

TEST(Controls, TheSameSortKeyAgainReverses) {
  Controls controls;
  EXPECT_EQ(controls.sort_name(), "rank");
  controls.press('l', kPage);
  EXPECT_EQ(controls.options().sort, SortKey::kLateness);
  EXPECT_FALSE(controls.options().reverse);
  controls.press('l', kPage);
  EXPECT_TRUE(controls.options().reverse);
  controls.press('b', kPage);
  EXPECT_EQ(controls.sort_name(), "bandwidth");
  EXPECT_FALSE(controls.options().reverse);
}

TEST(Controls, ScrollsWithinTheTop) {
  Controls controls;
  controls.press(kKeyUp, kPage);
  EXPECT_EQ(controls.options().first, 0u);
  controls.press(kKeyPageDown, kPage);
  controls.press(kKeyDown, kPage);
  EXPECT_EQ(controls.options().first, kPage + 1);
  controls.press(kKeyPageUp, 100);
  EXPECT_EQ(controls.options().first, 0u);
  controls.press(kKeyEnd, kPage);
  controls.press(kKeyHome, kPage);
  EXPECT_EQ(controls.options().first, 0u);
}

TEST(Controls, HelpClosesOnAnyKeyButQuitsOnQ) {
  Controls controls;
  controls.press('?', kPage);
  EXPECT_TRUE(controls.help());
  controls.press('f', kPage);
  EXPECT_FALSE(controls.help());
  EXPECT_TRUE(controls.options().fold) << "the key only closed the help";
  controls.press('h', kPage);
  EXPECT_FALSE(controls.press('q', kPage));
}

TEST(Controls, HelpFitsTheSmallestTerminal) {
  for (std::string_view line : help_lines()) EXPECT_LE(line.size(), 80u) << line;
  EXPECT_LE(help_lines().size(), 21u) << "24 lines, of which the title and the keys take three";
}

}  // namespace
}  // namespace lockstep::cli::top
