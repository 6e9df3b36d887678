// SPDX-License-Identifier: Apache-2.0
// Searched from the newest reading back, as most records are of the last second. The readings are bounded,
// and so is what a look-up costs; a time before all of them lies on the oldest line. Of two readings a line
// is made, whatever the unit of the clock: a profiler's need not count in ns. Only a clock with a single
// reading is taken for one that does.
#include "capture/cuda/cupti_clock.h"

#include <cmath>

#include "capture/core/clock.h"
#include "capture/core/locked.h"

namespace lockstep::capture::cuda {
namespace {

// A reading is good to some 20 ns; the nearer two of them are, the more that bends the line through them.
constexpr uint64_t kApartNs = 20000000;
// A kernel may have run for long before its record is complete; times are read when records arrive.
constexpr double kOldestNs = 3600e9, kNewestNs = 1e9;
// A clock that counts slowly has many ticks a count; more than this fit no 64 bits.
constexpr double kMostTicks = 9e18;

// Differences only become doubles: a time since 1970 in ns would be rounded to 256 ns.
double difference(uint64_t a, uint64_t b) { return static_cast<double>(static_cast<int64_t>(a - b)); }

}  // namespace

uint64_t CuptiClock::now() {
  cupti::Timestamp timestamp;
  {
    Locked locked(&lock_);
    timestamp = timestamp_;
  }
  return timestamp();
}

void CuptiClock::read() {
  cupti::Timestamp timestamp;
  Reading best{};
  {
    Locked locked(&lock_);
    timestamp = timestamp_;
    best.clock = clock_;
  }
  uint64_t width = ~uint64_t{0};
  // The tightest of a few: one that was interrupted would bend the line.
  for (int i = 0; i < 3; ++i) {
    const uint64_t before = read_ticks(), ns = timestamp(), after = read_ticks();
    if (after - before < width) {
      width = after - before;
      best.ns = ns;
      best.ticks = before + (after - before) / 2;
    }
  }
  Locked locked(&lock_);
  // The clock is read without the lock, as it is a profiler's function.
  if (best.clock != clock_) return;  // changed meanwhile
  const bool first = count_ == 0 || reading(0).clock != clock_;
  const bool second = !first && best.ns != reading(0).ns && (count_ == 1 || reading(1).clock != clock_);
  // The second one of a clock may be near: any line is better than none, but a point is no line.
  if (first || second || difference(best.ns, reading(0).ns) >= static_cast<double>(kApartNs) ||
      best.ns < reading(0).ns)
    readings_[count_++ % kReadings] = best;
}

void CuptiClock::change(cupti::Timestamp timestamp) {
  Locked locked(&lock_);
  timestamp_ = timestamp;
  ++clock_;
}

uint64_t CuptiClock::on_line(const Reading& from, const Reading* other, uint64_t ns) const {
  double rate =
      other == nullptr ? rate_ : difference(from.ticks, other->ticks) / difference(from.ns, other->ns);
  if (rate <= 0) rate = rate_;  // set back in between
  const double ticks = difference(ns, from.ns) * rate;
  return std::abs(ticks) < kMostTicks ? from.ticks + static_cast<uint64_t>(static_cast<int64_t>(ticks)) : 0;
}

uint64_t CuptiClock::ticks(uint64_t ns) {
  Locked locked(&lock_);
  const uint32_t kept = count_ < kReadings ? count_ : kReadings;
  bool possible = false;
  for (uint32_t back = 0; back < kept; ++back) {
    const Reading& late = reading(back);
    if (back == 0 || reading(back - 1).clock != late.clock) {
      // By the newest reading of each clock: a time of another clock is mostly far from it.
      const double ahead = difference(ns, late.ns);
      possible = ahead <= kNewestNs && -ahead <= kOldestNs;
    }
    if (!possible) continue;
    const bool oldest = back + 1 >= kept || reading(back + 1).clock != late.clock;
    if (oldest) {
      const bool alone = back == 0 || reading(back - 1).clock != late.clock;
      return on_line(late, alone ? nullptr : &reading(back - 1), ns);
    }
    const Reading& early = reading(back + 1);
    // A clock that was set back in between makes a pair that no line joins.
    if (ns >= early.ns && late.ns > early.ns) return on_line(late, &early, ns);
  }
  return 0;
}

}  // namespace lockstep::capture::cuda
