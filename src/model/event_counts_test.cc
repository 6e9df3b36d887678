// SPDX-License-Identifier: Apache-2.0
#include "model/event_counts.h"

#include <gtest/gtest.h>

namespace lockstep::model {
namespace {

TEST(EventCounts, CountsEachTable) {
  Trace trace;
  for (EventKind kind : {EventKind::kGroupApi, EventKind::kGroup, EventKind::kGroup}) {
    Call call{};
    call.kind = number(kind);
    trace.calls.append(call);
  }
  Task task{};
  task.kind = number(EventKind::kColl);
  trace.tasks.append(task);
  task.kind = 200;  // of a damaged or newer trace
  trace.tasks.append(task);
  trace.proxy_steps.append({});
  trace.marks.append({});
  EventCounts counts = count_events(trace);
  EXPECT_EQ(counts[number(EventKind::kGroup)], 2u);
  EXPECT_EQ(counts[number(EventKind::kGroupApi)], 1u);
  EXPECT_EQ(counts[number(EventKind::kColl)], 1u);
  EXPECT_EQ(counts[number(EventKind::kProxyStep)], 1u);
  EXPECT_EQ(counts[number(EventKind::kMark)], 1u);
  EXPECT_EQ(counts[number(EventKind::kKernelCh)], 0u);
}

TEST(EventCounts, PlacesBelowHalfOfTheFullestAreUneven) {
  EXPECT_EQ(uneven_places(std::vector<uint64_t>{364, 182, 181, 0}), (std::vector<size_t>{2, 3}));
  EXPECT_TRUE(uneven_places(std::vector<uint64_t>{0, 0}).empty());
  EXPECT_TRUE(uneven_places(std::vector<uint64_t>{7}).empty());
  EXPECT_TRUE(uneven_places({}).empty());
}

TEST(EventCounts, EveryKindHasAName) {
  for (uint8_t kind = 1; kind < kEventKinds; ++kind) EXPECT_FALSE(event_name(kind).empty()) << int{kind};
  EXPECT_EQ(event_name(number(EventKind::kCeSync)), "CeSync");
  EXPECT_EQ(event_name(0), "");
  EXPECT_EQ(event_name(kEventKinds), "");
}

}  // namespace
}  // namespace lockstep::model
