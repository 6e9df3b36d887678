// SPDX-License-Identifier: Apache-2.0
#include "live/lateness.h"

#include <gtest/gtest.h>

namespace lockstep::live {
namespace {

constexpr int64_t kMs = 1'000'000;

class LatenessTest : public ::testing::Test {
 protected:
  bool begin(int32_t member, uint64_t number, int64_t at_ns, const std::string& comm = "c") {
    return lateness.add(comm, "AllReduce", number, {member, static_cast<uint16_t>(member), at_ns},
                        [&](uint16_t label, double late_s, double wait_s) {
                          late[label] += late_s;
                          wait[label] += wait_s;
                        });
  }
  void members(int32_t count, const std::string& comm = "c") {
    for (int32_t i = 0; i < count; ++i) lateness.add_member(comm, count, "boot");
  }
  Lateness lateness;
  std::map<uint16_t, double> late, wait;
};

TEST_F(LatenessTest, ComparesOnceAllHaveBegun) {
  members(4);
  EXPECT_FALSE(begin(0, 7, 100 * kMs));
  EXPECT_FALSE(begin(1, 7, 101 * kMs));
  EXPECT_FALSE(begin(1, 7, 101 * kMs)) << "the same one twice";
  EXPECT_FALSE(begin(3, 7, 150 * kMs));
  EXPECT_TRUE(late.empty());
  EXPECT_TRUE(begin(2, 7, 102 * kMs));
  EXPECT_DOUBLE_EQ(late[3], 0.049) << "behind the median, which is rank 1's";
  EXPECT_DOUBLE_EQ(late[0], 0);
  EXPECT_DOUBLE_EQ(wait[0], 0.050);
  EXPECT_DOUBLE_EQ(wait[3], 0);
}

TEST_F(LatenessTest, WhatHasBegunMayChangeItsLabel) {
  members(2);
  begin(0, 0, 10 * kMs);
  lateness.relabel(0, 64);
  EXPECT_TRUE(begin(1, 0, 20 * kMs));
  EXPECT_DOUBLE_EQ(wait[64], 0.010);
  EXPECT_FALSE(wait.contains(0)) << "the label is another rank's by now";
}

TEST_F(LatenessTest, CountsNoOperationTwice) {
  members(2);
  begin(0, 0, 10 * kMs);
  EXPECT_TRUE(begin(1, 0, 20 * kMs));
  begin(0, 0, 10 * kMs);
  EXPECT_FALSE(begin(1, 0, 20 * kMs)) << "the file was read again";
  EXPECT_DOUBLE_EQ(late[1], 0.010);
}

TEST_F(LatenessTest, AJobThatBeginsAgainNumbersAnew) {
  members(2);
  for (uint64_t i = 0; i < 5; ++i) {
    begin(0, i, static_cast<int64_t>(i + 1) * 10 * kMs);
    EXPECT_TRUE(begin(1, i, static_cast<int64_t>(i + 1) * 10 * kMs));
  }
  begin(0, 0, 900 * kMs);
  EXPECT_TRUE(begin(1, 0, 901 * kMs));
}

TEST_F(LatenessTest, HostsAreComparedByWhatTheirClocksProve) {
  // The clock of `b` is 5 s ahead, within 2 ms; nothing is known of `c` yet.
  const auto clocks = [](bool all) {
    Clocks known;
    known["a"] = model::HostClock::same();
    known["b"] = model::HostClock({{5'000 * kMs, 4'998 * kMs, 5'002 * kMs, true}});
    if (all) known["c"] = model::HostClock({{0, -1 * kMs, 1 * kMs, true}});
    return known;
  };
  lateness.set_clocks(clocks(false));
  const char* boots[] = {"a", "a", "b", "b", "c"};
  uint32_t numbers[5];
  for (int i = 0; i < 5; ++i) numbers[i] = lateness.add_member("c", 5, boots[i]);
  const auto all_begin = [&](uint64_t number) {
    bool whole = false;
    const int64_t at_ms[] = {100, 101, 5100, 5150, 100};
    for (int32_t i = 0; i < 5; ++i) {
      whole = lateness.add(
          "c", "AllReduce", number,
          {i, static_cast<uint16_t>(i), at_ms[i] * kMs + static_cast<int64_t>(number), numbers[i]},
          [&](uint16_t label, double late_s, double wait_s) {
            late[label] = late_s;
            wait[label] = wait_s;
          });
    }
    return whole;
  };
  EXPECT_FALSE(all_begin(0));
  EXPECT_EQ(lateness.unaligned_comms(), 1u);
  lateness.set_clocks(clocks(true));
  EXPECT_EQ(lateness.unaligned_comms(), 0u);
  EXPECT_TRUE(all_begin(1));
  // Rank 3 began between 148 and 152 ms and half a microsecond for each ms since its clock was proven; the
  // median of the latest that the others may have begun at is rank 1's or rank 4's.
  EXPECT_NEAR(late[3], 0.047, 0.0003);
  EXPECT_DOUBLE_EQ(late[2], 0) << "within what the clocks leave open";
  EXPECT_NEAR(wait[0], 0.048, 0.0003);
  EXPECT_NEAR(wait[2], 0.046, 0.0003);
  lateness.set_clocks({});
  EXPECT_FALSE(all_begin(2));
}

TEST_F(LatenessTest, HostsWithClocksOfTheirOwnAreNotCompared) {
  lateness.add_member("c", 2, "boot");
  lateness.add_member("c", 2, "another boot");
  EXPECT_FALSE(begin(0, 0, 10 * kMs));
  EXPECT_FALSE(begin(1, 0, 10 * kMs));
  EXPECT_EQ(lateness.unaligned_comms(), 1u);
  EXPECT_FALSE(begin(0, 0, 10 * kMs, "a communicator that nobody has"));
}

TEST_F(LatenessTest, ForgetsWhatNeverBecomesWhole) {
  members(2);
  for (uint64_t i = 0; i < Lateness::kWindow + 100; ++i) begin(0, i, static_cast<int64_t>(i));
  EXPECT_FALSE(begin(1, 50, 50)) << "out of the window";
  EXPECT_TRUE(begin(1, Lateness::kWindow + 50, static_cast<int64_t>(Lateness::kWindow) + 50));
}

// Names sort as they are numbered.
std::string numbered(size_t number) { return std::to_string(100'000 + number); }

TEST_F(LatenessTest, WhatMembersStillHaveStaysAtEachLook) {
  uint64_t number = 1;
  for (int look = 0; look < 4; ++look) {
    lateness.begin_look();
    for (size_t i = 0; i < Lateness::kMostComms + 10; ++i) members(2, numbered(i));
    // The begin of an operation in one look, its end in the next: that of a communicator that went is lost.
    const auto of = numbered(0);
    EXPECT_EQ(begin(1, number - 1, 10 * kMs, of), look > 0);
    EXPECT_FALSE(begin(0, number++, 10 * kMs, of));
    begin(0, number, 10 * kMs, numbered(Lateness::kMostComms));
    EXPECT_FALSE(begin(1, number, 10 * kMs, numbered(Lateness::kMostComms))) << "there is no room for it";
  }
}

TEST_F(LatenessTest, WhatNobodyHasMakesRoom) {
  const std::string last = numbered(Lateness::kMostComms - 1), more = numbered(Lateness::kMostComms);
  const auto look = [&](size_t first) {
    lateness.begin_look();
    for (size_t i = first; i <= Lateness::kMostComms; ++i) members(2, numbered(i));
  };
  look(0);
  begin(0, 7, 10 * kMs, last);
  look(1);
  begin(0, 7, 10 * kMs, more);
  EXPECT_FALSE(begin(1, 7, 10 * kMs, more)) << "a member may be there again at the next look";
  look(1);
  begin(0, 8, 10 * kMs, more);
  EXPECT_TRUE(begin(1, 8, 10 * kMs, more));
  EXPECT_TRUE(begin(1, 7, 10 * kMs, last)) << "it stayed";
}

TEST_F(LatenessTest, OnesThatEndedMakeRoomForOthers) {
  for (int look = 0; look < 3; ++look) {
    lateness.begin_look();
    for (size_t i = 0; i < Lateness::kMostComms; ++i) lateness.add_member(numbered(i), 2, "boot", true);
  }
  members(2, "new");
  begin(0, 7, 10 * kMs, "new");
  EXPECT_TRUE(begin(1, 7, 10 * kMs, "new"));
}

}  // namespace
}  // namespace lockstep::live
