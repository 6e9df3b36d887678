// SPDX-License-Identifier: Apache-2.0
#include "readers/common/world.h"

#include <gtest/gtest.h>

namespace lockstep::readers::common {
namespace {

TEST(FindWorld, IsTheLargestThatAllShare) {
  // Of eight ranks, two left files; they share a pair, too.
  const World world = find_world({{{1, 0, 2}, {2, 3, 8}}, {{2, 5, 8}, {1, 1, 2}}});
  EXPECT_EQ(world.comm, 2u);
  EXPECT_EQ(world.ranks, 8);
}

TEST(FindWorld, IsNoneWhereAProcessIsMissing) {
  EXPECT_EQ(find_world({{{1, 0, 8}}, {{2, 1, 8}}}).comm, 0u);
  EXPECT_EQ(find_world({}).comm, 0u);
}

TEST(FindWorld, IsNoneWhereAProcessIsTwoRanksOrARankIsTwice) {
  EXPECT_EQ(find_world({{{1, 0, 4}, {1, 1, 4}}, {{1, 2, 4}}}).comm, 0u);
  EXPECT_EQ(find_world({{{1, 0, 4}}, {{1, 0, 4}}}).comm, 0u);
}

}  // namespace
}  // namespace lockstep::readers::common
