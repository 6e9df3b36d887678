// SPDX-License-Identifier: Apache-2.0
#include "exporters/prometheus/label_slots.h"

#include <gtest/gtest.h>

namespace lockstep::exporters::metrics {
namespace {

TEST(LabelText, IsShortValidAndOfOneLine) {
  EXPECT_EQ(label_text("world"), "world");
  EXPECT_EQ(label_text("a\nb\"c\\d\x01"), "a?b\"c\\d?");
  EXPECT_EQ(label_text("bad \xff utf"), "bad ? utf");
  EXPECT_EQ(label_text(std::string(64, 'x')), std::string(64, 'x'));
  EXPECT_EQ(label_text(std::string(1 << 20, 'x')), std::string(61, 'x') + "...");
  // Not inside a character: 60 bytes and one of three.
  EXPECT_EQ(label_text(std::string(60, 'x') + "\u20ac" + std::string(10, 'y')), std::string(60, 'x') + "...");
}

TEST(LabelSlots, HeaviestFirstAndKept) {
  LabelSlots slots(2);
  slots.begin();
  slots.want("small", 1, true);
  slots.want("large", 9, true);
  slots.want("medium", 5, true);
  EXPECT_TRUE(slots.finish().empty());
  EXPECT_EQ(slots.text(slots.slot("large")), "large");
  EXPECT_EQ(slots.text(slots.slot("medium")), "medium");
  EXPECT_EQ(slots.text(slots.slot("small")), "other");
  EXPECT_EQ(slots.folded(), 1u);
  // A name that grows later stays where it is: what was counted under "other" cannot move.
  const uint16_t large = slots.slot("large");
  slots.begin();
  slots.want("small", 1000, true);
  slots.want("large", 9, true);
  slots.want("medium", 5, true);
  EXPECT_TRUE(slots.finish().empty());
  EXPECT_EQ(slots.slot("large"), large);
  EXPECT_EQ(slots.slot("small"), slots.other());
}

TEST(LabelSlots, ANameThatIsCalledOtherIsCountedWithTheOthers) {
  LabelSlots slots(2);
  slots.begin();
  slots.want("other", 100, true);
  slots.want("dp", 2, true);
  slots.want("tp", 1, true);
  slots.finish();
  EXPECT_EQ(slots.slot("other"), slots.other());
  EXPECT_EQ(slots.text(slots.slot("dp")), "dp");
  EXPECT_EQ(slots.text(slots.slot("tp")), "tp");
}

TEST(LabelSlots, WhatIsGoneGivesWayToWhatLives) {
  LabelSlots slots(2);
  auto look = [&](std::initializer_list<std::pair<const char*, bool>> names) {
    slots.begin();
    for (auto [name, alive] : names) slots.want(name, 1, alive);
    return slots.finish();
  };
  look({{"a", true}, {"b", true}});
  look({{"a", true}, {"b", false}});
  const uint16_t b = slots.slot("b");
  EXPECT_EQ(look({{"a", true}, {"b", false}, {"c", true}}), std::vector<uint16_t>{b});
  EXPECT_EQ(slots.text(b), "c");
  EXPECT_EQ(slots.slot("b"), slots.other());
  // What is gone itself takes nobody's place.
  look({{"a", false}, {"c", true}});
  EXPECT_TRUE(look({{"a", false}, {"b", false}, {"c", true}}).empty());
  EXPECT_EQ(slots.folded(), 1u);
}

}  // namespace
}  // namespace lockstep::exporters::metrics
