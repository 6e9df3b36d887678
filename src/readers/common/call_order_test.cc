// SPDX-License-Identifier: Apache-2.0
#include "readers/common/call_order.h"

#include <gtest/gtest.h>

namespace lockstep::readers::common {
namespace {

TEST(CallOrder, OfOneFunctionIsItsNumber) {
  CallOrder order;
  for (const uint32_t seq : {7u, 2u, 2u, 40u}) order.add("AllReduce", seq, 1'000 + seq);
  EXPECT_TRUE(order.finish());
  for (const uint32_t seq : {2u, 7u, 40u}) EXPECT_EQ(order.index("AllReduce", seq), seq);
}

TEST(CallOrder, MergesFunctionsByWhatEndedFirst) {
  CallOrder order;
  // AR0 AG0 AR1 AG1 AR2, of which AG1 is nowhere; members saw ends late.
  order.add("AllReduce", 0, 10);
  order.add("AllReduce", 1, 30);
  order.add("AllReduce", 1, 95);
  order.add("AllReduce", 2, 50);
  order.add("AllGather", 0, 99);
  order.add("AllGather", 0, 20);
  order.add("AllGather", 2, 60);
  EXPECT_TRUE(order.finish());
  EXPECT_EQ(order.index("AllReduce", 0), 0u);
  EXPECT_EQ(order.index("AllGather", 0), 1u);
  EXPECT_EQ(order.index("AllReduce", 1), 2u);
  EXPECT_EQ(order.index("AllReduce", 2), 3u);
  EXPECT_EQ(order.index("AllGather", 2), 5u) << "the place of the one that is missing stays free";
}

TEST(CallOrder, NumbersOutrankTimes) {
  CallOrder order;
  order.add("AllReduce", 0, 100);
  order.add("AllReduce", 1, 10);  // a clock that was set
  order.add("Broadcast", 0, 50);
  EXPECT_TRUE(order.finish());
  EXPECT_LT(order.index("AllReduce", 0), order.index("AllReduce", 1));
}

TEST(CallOrder, LeavesNoPlaceForWhatCannotBeMissing) {
  CallOrder order;
  order.add("AllReduce", 3, 10);
  order.add("AllReduce", 2'000'000'000, 20);
  EXPECT_FALSE(order.finish());
  EXPECT_EQ(order.index("AllReduce", 3), 0u);
  EXPECT_EQ(order.index("AllReduce", 2'000'000'000), 1u);
}

}  // namespace
}  // namespace lockstep::readers::common
