// SPDX-License-Identifier: Apache-2.0
#include "model/recording_modes.h"

#include <gtest/gtest.h>

namespace lockstep::model {
namespace {

TEST(RecordingModes, TellsWhetherAndToTheEnd) {
  struct Case {
    const char* modes;
    bool was_off, is_off;
  };
  for (const Case& one :
       {Case{"", false, false}, Case{"default 100", false, false}, Case{"off 100", true, true},
        Case{"off 100, default 200", true, false}, Case{"default 100, off 200", true, true},
        Case{"default 100, off 200, deep 300", true, false},
        Case{"default 100, sample=1/200 200", false, false}}) {
    EXPECT_EQ(was_off(one.modes), one.was_off) << one.modes;
    EXPECT_EQ(is_off(one.modes), one.is_off) << one.modes;
  }
}

}  // namespace
}  // namespace lockstep::model
