// SPDX-License-Identifier: Apache-2.0
#include "job/clocks.h"

#include <cstring>

namespace lockstep::sim::job {
namespace {

constexpr double kMostOffsetNs = 3e9, kMostDriftPpb = 50'000;
constexpr double kMostGpuOffsetNs = 2e6, kMostGpuDriftPpb = 15'000;
constexpr int64_t kDayNs = 86'400'000'000'000;

int64_t draw(double most, const Random& random, uint64_t what, int number) {
  return static_cast<int64_t>(random.between(-most, most, Draw::kClock, what, static_cast<uint64_t>(number)));
}

}  // namespace

HostClock::HostClock(int host, const Random& random, int64_t begins_ns) {
  const auto h = static_cast<uint64_t>(host);
  if (host != 0) wall_ = {draw(kMostOffsetNs, random, 1, host), draw(kMostDriftPpb, random, 2, host)};
  wall_.offset_ns = wall_.at(begins_ns);
  uptime_ns_ = kDayNs + static_cast<int64_t>(random.below(90, Draw::kClock, 3, h)) * kDayNs +
               static_cast<int64_t>(random.below(kDayNs, Draw::kClock, 4, h));
  tick_base_ = random.below(1'000'000'000, Draw::kClock, 5, h);
  tick_khz_ = 2'000'000 + random.below(1'500'000, Draw::kClock, 6, h);
  for (uint64_t half = 0; half < 2; ++half) {
    const uint64_t bits = random.bits(Draw::kIdentity, 2, h, half);
    std::memcpy(boot_id_.data() + half * sizeof bits, &bits, sizeof bits);
  }
}

format::ClockAnchor HostClock::anchor(int64_t true_ns, uint64_t process, uint64_t n,
                                      const Random& random) const {
  const double width = random.between(45, 120, Draw::kAnchor, process, n, 1);
  const double error = random.between(-width / 2, width / 2, Draw::kAnchor, process, n, 2);
  const int64_t now = monotonic(true_ns);
  return {.ticks = ticks_at(now + static_cast<int64_t>(error)),
          .monotonic_ns = now,
          .boottime_ns = now + 17,
          .realtime_ns = kEpochNs + wall_.at(true_ns),
          .width_ns = static_cast<uint32_t>(width),
          .reserved = 0};
}

GpuClock::GpuClock(int rank, const HostClock& host, const Random& random)
    : clock_{host.wall().offset_ns + draw(kMostGpuOffsetNs, random, 7, rank),
             host.wall().drift_ppb + draw(kMostGpuDriftPpb, random, 8, rank)} {}

}  // namespace lockstep::sim::job
