// SPDX-License-Identifier: Apache-2.0
#include "analysis/compare/comm_pairs.h"

#include <gtest/gtest.h>

namespace lockstep::analysis::compare {
namespace {

CommSamples comm(const std::string& name, const std::vector<int32_t>& members, int64_t first_ns = 0) {
  CommSamples of;
  of.name = name;
  of.label = name;
  of.members = members;
  of.ranks = static_cast<int32_t>(members.size());
  of.first_ns = first_ns;
  return of;
}
using Pairs = std::vector<std::pair<uint32_t, uint32_t>>;
Pairs pairs(const std::vector<CommSamples>& a, const std::vector<CommSamples>& b) {
  Pairs out;
  for (const CommPair& pair : pair_comms(a, b)) out.emplace_back(pair.a, pair.b);
  return out;
}

TEST(CommPairs, GoByNameWhateverTheirOrder) {
  EXPECT_EQ(pairs({comm("dp", {0, 1}), comm("tp", {0, 1})}, {comm("tp", {0, 1}), comm("dp", {0, 1})}),
            (Pairs{{0, 1}, {1, 0}}));
}

TEST(CommPairs, GoByRanksWhereNamesAreNewInEveryRun) {
  EXPECT_EQ(pairs({comm("", {0, 1}), comm("x1", {2, 3})}, {comm("x9", {2, 3}), comm("", {0, 1})}),
            (Pairs{{0, 1}, {1, 0}}));
}

TEST(CommPairs, OfThoseThatAreAlikeTheFirstIsTheFirst) {
  EXPECT_EQ(pairs({comm("", {0, 1}, 20), comm("", {0, 1}, 10)},
                  {comm("", {0, 1}, 5), comm("", {0, 1}, 7), comm("", {0, 1}, 9)}),
            (Pairs{{0, 1}, {1, 0}}));
}

TEST(CommPairs, OfAnotherSizeArePairedByNameAlone) {
  const auto found = pair_comms(std::vector{comm("dp", {0, 1})}, std::vector{comm("dp", {0, 1, 2, 3})});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_TRUE(found[0].resized);
  EXPECT_TRUE(pairs({comm("dp", {0, 1}), comm("dp", {2, 3})}, {comm("dp", {0, 1, 2, 3})}).empty())
      << "which of the two would it be?";
}

TEST(CommPairs, WithoutNameOrRanksAreNotGuessed) {
  CommSamples unknown = comm("", {});
  unknown.ranks = 8;
  EXPECT_TRUE(pairs({unknown}, {unknown}).empty());
  EXPECT_TRUE(pairs({}, {comm("dp", {0, 1})}).empty());
}

}  // namespace
}  // namespace lockstep::analysis::compare
