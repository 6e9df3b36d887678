// SPDX-License-Identifier: Apache-2.0
#include "format/control_words.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

namespace lockstep::format {
namespace {

// A request that is half written has the old value in one of its words.
TEST(ControlWords, EveryWordOfARequestChangesTheCheck) {
  constexpr size_t kWords = offsetof(ControlRequest, check) / sizeof(uint32_t);
  ControlRequest request{};
  request.what = kControlSetMode;
  std::set<uint64_t> checks{control_check(request, 7)};
  for (size_t word = 0; word < kWords; ++word) {
    for (const uint32_t flipped : {1u, 0x8000'0000u}) {
      ControlRequest changed = request;
      uint32_t value;
      auto* at = reinterpret_cast<char*>(&changed) + word * sizeof value;
      std::memcpy(&value, at, sizeof value);
      value ^= flipped;
      std::memcpy(at, &value, sizeof value);
      EXPECT_TRUE(checks.insert(control_check(changed, 7)).second) << "word " << word;
    }
  }
  EXPECT_TRUE(checks.insert(control_check(request, 8)).second) << "the number of the request";
  request.check = 1;
  EXPECT_EQ(control_check(request, 7), *checks.find(control_check(request, 7))) << "not of itself";
}

TEST(ControlWords, TheOrderOfWordsCounts) {
  ControlRequest one{}, other{};
  one.comm_ids[0] = 1;
  other.comm_ids[1] = 1;
  EXPECT_NE(control_check(one, 1), control_check(other, 1));
}

}  // namespace
}  // namespace lockstep::format
