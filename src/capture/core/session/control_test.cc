// SPDX-License-Identifier: Apache-2.0
#include "capture/core/session/control.h"

#include <gtest/gtest.h>

#include <cstring>

namespace lockstep::capture {
namespace {

using format::ControlRequest;
using format::Mode;

class ControlTest : public ::testing::Test {
 protected:
  ControlTest() {
    config_.mode = Mode::kDefault;
    control_.start(config_, &header_);
  }
  static ControlRequest mode(Mode mode, int64_t until_ns = 0) {
    ControlRequest request{};
    request.what = format::kControlSetMode;
    request.mode = static_cast<uint32_t>(mode);
    request.until_monotonic_ns = until_ns;
    return request;
  }
  void ask(ControlRequest request) {
    const uint32_t number = header_.control + 1;
    request.check = control_check(request, number);
    header_.request = request;
    header_.control = number;
  }
  Control::Seen look(int64_t now_ns = 1000) {
    const Control::Seen seen = control_.look(&header_, now_ns);
    control_.answer(&header_);
    return seen;
  }
  // The library may look a few times before it takes garbage for what it is.
  bool refused() {
    bool refused = false;
    for (int i = 0; i < 5; ++i) {
      Control::Seen seen = look();
      EXPECT_FALSE(seen.changed || seen.mark);
      EXPECT_FALSE(refused && seen.refused) << "counted twice";
      refused |= seen.refused;
    }
    return refused;
  }

  Config config_{};
  format::FileHeader header_{};
  Control control_;
};

TEST_F(ControlTest, SaysWhatIsInForceFromTheStart) {
  config_.mode = Mode::kSample;
  config_.sample_keep = 2;
  config_.sample_of = 50;
  control_.start(config_, &header_);
  EXPECT_EQ(header_.in_force.mode, static_cast<uint32_t>(Mode::kSample));
  EXPECT_EQ(header_.in_force.keep, 2u);
  EXPECT_EQ(header_.in_force.of, 50u);
  EXPECT_FALSE(look().changed);
}

TEST_F(ControlTest, TakesARequestOnce) {
  ask(mode(Mode::kDeep));
  EXPECT_TRUE(look().changed);
  EXPECT_EQ(control_.now().mode, Mode::kDeep);
  EXPECT_EQ(header_.in_force.taken, 1u);
  EXPECT_EQ(header_.in_force.mode, static_cast<uint32_t>(Mode::kDeep));
  EXPECT_FALSE(look().changed);
}

TEST_F(ControlTest, AWindowEndsByItself) {
  ask(mode(Mode::kLite));
  look();
  ask(mode(Mode::kDeep, 5000));
  EXPECT_TRUE(look(1000).changed);
  EXPECT_EQ(control_.now().mode, Mode::kDeep);
  EXPECT_EQ(header_.in_force.mode_after, static_cast<uint32_t>(Mode::kLite));
  EXPECT_FALSE(look(4999).changed);
  EXPECT_TRUE(look(5000).window_ended);
  EXPECT_EQ(control_.now().mode, Mode::kLite);
  EXPECT_EQ(header_.in_force.until_monotonic_ns, 0);
  EXPECT_FALSE(look(9000).changed);
}

TEST_F(ControlTest, ARequestThatEndsAWindowIsARequest) {
  ask(mode(Mode::kDeep, 5000));
  look(1000);
  ask(mode(Mode::kLite));
  const Control::Seen seen = look(2000);
  EXPECT_TRUE(seen.changed);
  EXPECT_FALSE(control_.in_window());
  EXPECT_FALSE(seen.window_ended);
}

TEST_F(ControlTest, ALaterWindowReplacesTheEarlierOne) {
  ask(mode(Mode::kDeep, 5000));
  look(1000);
  ask(mode(Mode::kOff, 9000));
  EXPECT_TRUE(look(2000).changed);
  EXPECT_FALSE(look(5000).changed);
  EXPECT_EQ(control_.now().mode, Mode::kOff);
  EXPECT_TRUE(look(9000).changed);
  EXPECT_EQ(control_.now().mode, Mode::kDefault) << "the mode before both";
}

TEST_F(ControlTest, AWindowThatIsOverIsTakenAndChangesNothing) {
  ask(mode(Mode::kDeep, 500));
  Control::Seen seen = look(1000);
  EXPECT_FALSE(seen.changed || seen.refused);
  EXPECT_EQ(header_.in_force.taken, 1u);
}

TEST_F(ControlTest, AMarkChangesNoMode) {
  ControlRequest request{};
  request.what = format::kControlMark;
  std::memcpy(request.text, "checkpoint", 11);
  ask(request);
  Control::Seen seen = look();
  EXPECT_TRUE(seen.mark);
  EXPECT_STREQ(seen.text, "checkpoint");
  EXPECT_FALSE(seen.changed);
  EXPECT_FALSE(look().mark);
}

TEST_F(ControlTest, SelectsCommunicatorsAndSizes) {
  ControlRequest request = mode(Mode::kDeep);
  request.comms = 2;
  request.comm_ids[0] = 7;
  request.comm_ids[1] = 9;
  request.min_bytes = 4096;
  ask(request);
  look();
  EXPECT_TRUE(control_.now().selects());
  EXPECT_TRUE(control_.now().selects_comm(9));
  EXPECT_FALSE(control_.now().selects_comm(8));
  EXPECT_EQ(control_.now().min_bytes, 4096u);
}

// Every word that a request can have wrong; none may change anything, and each is counted once.
TEST_F(ControlTest, RefusesGarbage) {
  auto with = [](auto change) {
    ControlRequest request = mode(Mode::kDeep);
    change(request);
    return request;
  };
  const ControlRequest bad[] = {
      with([](auto& r) { r.what = 0; }),
      with([](auto& r) { r.what = 8; }),
      with([](auto& r) { r.mode = 5; }),
      with([](auto& r) { r.mode = 0xffffffff; }),
      with([](auto& r) { r.until_monotonic_ns = -1; }),
      with([](auto& r) { r.keep = 1; }),
      with([](auto& r) { r.comms = format::kControlComms + 1; }),
      with([](auto& r) { r.mode = static_cast<uint32_t>(Mode::kSample); }),
      with([](auto& r) { r.mode = static_cast<uint32_t>(Mode::kSample), r.keep = 3, r.of = 2; }),
      with([](auto& r) { r.mode = static_cast<uint32_t>(Mode::kSample), r.keep = 1, r.of = 0xffffffff; }),
      with([](auto& r) { r.mode = static_cast<uint32_t>(Mode::kLite), r.min_bytes = 1; }),
      with([](auto& r) { r.mode = static_cast<uint32_t>(Mode::kLite), r.comms = 1; }),
      with([](auto& r) { r.what = format::kControlMark; }),
      with([](auto& r) { r.what = format::kControlMark, memset(r.text, 'x', sizeof r.text); }),
  };
  uint32_t refusals = 0;
  for (const ControlRequest& request : bad) {
    ask(request);
    EXPECT_TRUE(refused()) << refusals;
    EXPECT_EQ(header_.in_force.refused, ++refusals);
    EXPECT_EQ(header_.in_force.taken, header_.control);
  }
  EXPECT_EQ(control_.now().mode, Mode::kDefault);
  header_.control = 0xdeadbeef;  // a number without a request of its own
  EXPECT_TRUE(refused());
  std::memset(static_cast<void*>(&header_.request), 0xa5, sizeof header_.request);
  header_.control = 3;
  EXPECT_TRUE(refused());
  ask(mode(Mode::kDeep));
  EXPECT_TRUE(look().changed) << "a good one afterwards is taken";
}

// A tool that overwrites a request before it was looked at: the first is lost, and nothing is counted.
TEST_F(ControlTest, AHalfWrittenRequestIsNoGarbage) {
  ask(mode(Mode::kDeep));
  header_.request.mode = static_cast<uint32_t>(Mode::kOff);
  EXPECT_FALSE(look().refused);
  ask(mode(Mode::kOff));
  Control::Seen seen = look();
  EXPECT_TRUE(seen.changed);
  EXPECT_FALSE(seen.refused);
  EXPECT_EQ(control_.now().mode, Mode::kOff);
}

TEST(ParseSample, TakesTwoCounts) {
  uint32_t keep = 0, of = 0;
  EXPECT_TRUE(parse_sample("1/100", &keep, &of));
  EXPECT_EQ(keep, 1u);
  EXPECT_EQ(of, 100u);
  EXPECT_TRUE(parse_sample("3/3", &keep, &of));
  for (const char* text : {"", "1", "1/", "/2", "0/5", "2/1", "1/0", "-1/5", "1/2/3", "1/2x", " 1/2", "1 /2",
                           "1/9999999", "99999999999999999999/2"})
    EXPECT_FALSE(parse_sample(text, &keep, &of)) << text;
}

TEST(SelectsNumber, ChoosesTheLastOfEach) {
  std::string chosen;
  for (uint32_t n = 0; n < 10; ++n) chosen += selects_number(n, 2, 5) ? 'x' : '.';
  EXPECT_EQ(chosen, "...xx...xx");
}

}  // namespace
}  // namespace lockstep::capture
