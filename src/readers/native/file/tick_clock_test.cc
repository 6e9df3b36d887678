// SPDX-License-Identifier: Apache-2.0
#include "readers/native/file/tick_clock.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lockstep::readers::native {
namespace {

using format::ClockAnchor;
using format::FileHeader;
using format::HostClock;

constexpr int64_t kEpoch = 1'700'000'000'000'000'000;
constexpr uint64_t kHz = 3'000'000'000;

FileHeader tsc_header(uint64_t hz) {
  FileHeader header{};
  header.host_clock = HostClock::kTsc;
  header.tick_hz = hz;
  header.first_anchor = {30'000, 10'000, 10'000, kEpoch, 100, 0};
  return header;
}
// An anchor `seconds` after the first one, on a counter that is `ppm` faster than kHz.
ClockAnchor anchor(double seconds, double ppm = 0) {
  auto ns = std::llround(seconds * 1e9);
  auto ticks = static_cast<uint64_t>(std::llround(static_cast<double>(ns) * 3 * (1 + ppm * 1e-6)));
  return {30'000 + ticks, 10'000 + ns, 10'000 + ns, kEpoch + ns, 100, 0};
}

struct Made {
  TickClock clock;
  ReadLosses losses;
};
Made make(const FileHeader& header, std::vector<ClockAnchor> anchors) {
  const FileHeader* headers[] = {&header};
  ReadLosses losses;
  TickClock clock = TickClock::make(header, anchors, make_boot_clock(headers), "file", losses);
  return {std::move(clock), std::move(losses)};
}

TEST(TickClock, MonotonicTicksAreNs) {
  FileHeader header{};
  header.host_clock = HostClock::kMonotonic;
  header.first_anchor = {500, 500, 500, kEpoch + 500, 1, 0};
  Made made = make(header, {header.first_anchor});
  EXPECT_EQ(made.clock.to_ns(0), kEpoch);
  EXPECT_EQ(made.clock.to_ns(123'456'789'012), kEpoch + 123'456'789'012);
  EXPECT_TRUE(made.losses.rows().empty());
}

TEST(TickClock, OneAnchorAndARate) {
  Made made = make(tsc_header(kHz), {anchor(0)});
  EXPECT_EQ(made.clock.to_ns(30'000), kEpoch);
  EXPECT_NEAR(static_cast<double>(made.clock.to_ns(30'000 + kHz * 3600) - kEpoch), 3600e9, 10);
  EXPECT_EQ(made.clock.to_ns(0), kEpoch - 10'000);
}

TEST(TickClock, AnchorsCorrectTheNominalRate) {
  // The counter runs 80 ppm fast for 100 s, then 20 ppm slow.
  ClockAnchor bend = anchor(100, 80), last = bend;
  last.ticks += static_cast<uint64_t>(3e11 * (1 - 20e-6));
  last.monotonic_ns += 100'000'000'000;
  Made made = make(tsc_header(kHz), {anchor(0), bend, last});
  EXPECT_NEAR(static_cast<double>(made.clock.to_ns(bend.ticks) - kEpoch), 100e9, 2);
  EXPECT_NEAR(static_cast<double>(made.clock.to_ns(30'000 + (bend.ticks - 30'000) / 2) - kEpoch), 50e9, 2);
  EXPECT_NEAR(static_cast<double>(made.clock.to_ns(last.ticks) - kEpoch), 200e9, 2);
  EXPECT_NEAR(static_cast<double>(made.clock.to_ns(last.ticks + (last.ticks - bend.ticks)) - kEpoch), 300e9,
              5);  // extended
  EXPECT_NEAR(static_cast<double>(made.clock.to_ns(30'000) - kEpoch), 0,
              2);  // back again, with a remembered piece
  EXPECT_TRUE(made.losses.rows().empty());
}

TEST(TickClock, WallClockStepsDoNotMatter) {
  ClockAnchor stepped = anchor(10);
  stepped.realtime_ns += 3600'000'000'000;
  Made made = make(tsc_header(kHz), {anchor(0), stepped});
  EXPECT_NEAR(static_cast<double>(made.clock.to_ns(stepped.ticks) - kEpoch), 10e9, 2);
}

TEST(TickClock, ContradictingAnchorsAreLeftOutAndCounted) {
  ClockAnchor back = anchor(5), jump = anchor(6), zero{};
  back.monotonic_ns = 20;
  jump.monotonic_ns += 40'000'000'000;
  Made made = make(tsc_header(kHz), {anchor(0), back, jump, zero, anchor(10)});
  EXPECT_EQ(made.losses.count("bad_anchor"), 3u);
  EXPECT_NEAR(static_cast<double>(made.clock.to_ns(anchor(10).ticks) - kEpoch), 10e9, 2);
}

TEST(TickClock, CloseAnchorsDoNotSpoilTheRate) {
  ClockAnchor close = anchor(0.001);
  close.monotonic_ns += 500;  // 500 ppm, if it were believed
  Made made = make(tsc_header(kHz), {anchor(0), close});
  EXPECT_NEAR(static_cast<double>(made.clock.to_ns(30'000 + kHz * 100) - kEpoch), 100e9, 10);
}

TEST(TickClock, AnchorsTellTheRateFrom50MsOn) {
  auto off_after_100_s = [](double apart) {
    ClockAnchor next = anchor(apart);
    next.monotonic_ns += 500;
    Made made = make(tsc_header(kHz), {anchor(0), next});
    return static_cast<double>(made.clock.to_ns(30'000 + kHz * 100) - kEpoch) - 100e9;
  };
  EXPECT_NEAR(off_after_100_s(0.049), 0, 10);
  EXPECT_NEAR(off_after_100_s(0.051), 500 * 100 / 0.051, 1000);
}

TEST(TickClock, AnotherProcessOfTheBootTellsTheRate) {
  FileHeader first = tsc_header(0), second = tsc_header(0);
  second.first_anchor = anchor(20);
  const FileHeader* headers[] = {&second, &first};
  BootClock boot = make_boot_clock(headers);
  EXPECT_NEAR(boot.tick_hz, kHz, 10);
  EXPECT_EQ(boot.realtime_offset_ns, kEpoch - 10'000);
  ReadLosses losses;
  TickClock clock = TickClock::make(second, std::vector{second.first_anchor}, boot, "file", losses);
  EXPECT_NEAR(static_cast<double>(clock.to_ns(anchor(30).ticks) - kEpoch), 30e9, 10);
  EXPECT_TRUE(losses.rows().empty());
}

TEST(TickClock, UnknownRatesAreTold) {
  Made made = make(tsc_header(0), {anchor(0)});
  EXPECT_EQ(made.losses.count("clock_rate_unknown"), 1u);
  EXPECT_LT(made.clock.to_ns(40'000), made.clock.to_ns(50'000));  // at least the order is right
  EXPECT_EQ(make(tsc_header(kHz), {ClockAnchor{}}).losses.count("no_anchor"), 1u);
}

TEST(TickClock, HostileNumbersStayInRange) {
  FileHeader header = tsc_header(UINT64_MAX);
  header.first_anchor = {UINT64_MAX, INT64_MAX, 0, INT64_MIN, 0, 0};
  ClockAnchor odd{1, 1, 1, 1, UINT32_MAX, 0};
  Made made = make(header, {header.first_anchor, odd, anchor(1)});
  for (uint64_t ticks : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 63, UINT64_MAX})
    EXPECT_GE(made.clock.to_ns(ticks), 1);
  Made slow = make(tsc_header(1), {anchor(0)});
  for (uint64_t ticks : {uint64_t{0}, UINT64_MAX}) EXPECT_GE(slow.clock.to_ns(ticks), 1);
}

}  // namespace
}  // namespace lockstep::readers::native
