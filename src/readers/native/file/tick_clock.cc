// SPDX-License-Identifier: Apache-2.0
// Turns ticks into ns piece by piece between anchors, as the counter's rate is only known to some ppm and may
// be adjusted over hours. Anchors are not all believed: one that goes back, or whose rate is off by more than
// a hundredth, is damage and is counted. Two anchors close in time give no rate of their own, since the
// reading time of each would spoil it; then the rate that the header names is better. All processes of a boot
// share one offset to real time, so that a step of NTP between their starts does not move them against each
// other.
#include "readers/native/file/tick_clock.h"

#include <algorithm>
#include <cmath>

namespace lockstep::readers::native {
namespace {

using format::ClockAnchor;
using format::FileHeader;
using format::HostClock;

// Below this distance the reading time of two anchors (some 100 ns) spoils the rate between them.
constexpr int64_t kMinPieceNs = 50'000'000;

bool usable(const ClockAnchor& anchor) { return anchor.ticks > 0 && anchor.monotonic_ns > 0; }

double rate(const ClockAnchor& a, const ClockAnchor& b) {  // ns per tick
  return static_cast<double>(b.monotonic_ns - a.monotonic_ns) / static_cast<double>(b.ticks - a.ticks);
}

// From 100 kHz to 1 THz: outside, the fixed point of TickClock would overflow or lose its digits.
bool plausible(double ns_per_tick) { return ns_per_tick > 1e-3 && ns_per_tick < 1e4; }

// Anchors in time order without those that contradict the ones before; `known` is the expected ns per tick or
// 0.
std::vector<ClockAnchor> consistent(std::span<const ClockAnchor> anchors, double known, uint64_t* bad) {
  std::vector<ClockAnchor> kept;
  for (const ClockAnchor& anchor : anchors) {
    if (!usable(anchor)) {
      ++*bad;
    } else if (kept.empty()) {
      kept.push_back(anchor);
    } else if (anchor.ticks <= kept.back().ticks || anchor.monotonic_ns <= kept.back().monotonic_ns) {
      *bad += anchor.ticks != kept.back().ticks;  // the header's own anchor may be repeated
      // Too close to give a rate, and no damage.
    } else if (known > 0 && anchor.monotonic_ns - kept.back().monotonic_ns < kMinPieceNs) {
      continue;
    } else if (double found = rate(kept.back(), anchor);
               !plausible(found) || (known > 0 && std::abs(found / known - 1) > 0.01)) {
      ++*bad;
    } else {
      kept.push_back(anchor);
    }
  }
  return kept;
}

}  // namespace

BootClock make_boot_clock(std::span<const FileHeader* const> headers) {
  BootClock boot;
  const ClockAnchor* earliest = nullptr;
  const ClockAnchor* first_tsc = nullptr;
  const ClockAnchor* last_tsc = nullptr;
  for (const FileHeader* header : headers) {
    const ClockAnchor& anchor = header->first_anchor;
    if (!usable(anchor)) continue;
    if (earliest == nullptr || anchor.monotonic_ns < earliest->monotonic_ns) earliest = &anchor;
    // CLOCK_MONOTONIC's ticks are ns by definition and say nothing about a counter.
    if (header->host_clock == HostClock::kMonotonic) continue;
    if (boot.tick_hz <= 0 && header->tick_hz != 0) boot.tick_hz = static_cast<double>(header->tick_hz);
    if (first_tsc == nullptr || anchor.ticks < first_tsc->ticks) first_tsc = &anchor;
    if (last_tsc == nullptr || anchor.ticks > last_tsc->ticks) last_tsc = &anchor;
  }
  if (earliest != nullptr) {
    // The earliest process of the boot sets it for all; words of a damaged header may be any, hence 128 bits.
    __int128 offset = static_cast<__int128>(earliest->realtime_ns) - earliest->monotonic_ns;
    boot.realtime_offset_ns =
        static_cast<int64_t>(std::clamp<__int128>(offset, INT64_MIN / 2, INT64_MAX / 2));
  }
  // The cycle counter is one for all processes of a host, so two processes are as good as two anchors.
  if (boot.tick_hz <= 0 && first_tsc != last_tsc && last_tsc->monotonic_ns > first_tsc->monotonic_ns &&
      last_tsc->monotonic_ns - first_tsc->monotonic_ns >= kMinPieceNs) {
    if (double found = rate(*first_tsc, *last_tsc); plausible(found)) boot.tick_hz = 1e9 / found;
  }
  return boot;
}

TickClock TickClock::make(const FileHeader& header, std::span<const ClockAnchor> anchors,
                          const BootClock& boot, const std::string& path, ReadLosses& losses) {
  bool monotonic = header.host_clock == HostClock::kMonotonic;
  // In the order of trust: exact by definition, as the kernel names it, as two processes of the boot show it.
  double known = monotonic             ? 1
                 : header.tick_hz != 0 ? 1e9 / static_cast<double>(header.tick_hz)
                 : boot.tick_hz > 0    ? 1e9 / boot.tick_hz
                                       : 0;
  if (!plausible(known)) known = 0;
  uint64_t bad = 0;
  std::vector<ClockAnchor> kept;
  if (!monotonic) kept = consistent(anchors, known, &bad);
  losses.add("bad_anchor", bad,
             [&] { return "clock anchors that contradict the others were left out: " + path; });
  if (kept.empty()) kept.push_back({});  // ticks are ns already, or nothing places them
  if (known == 0 && kept.size() < 2) {
    known = 1;
    losses.add("clock_rate_unknown", 1, [&] {
      return "a single clock anchor and no rate: times are ticks read as ns, so only their order is certain: " +
             path;
    });
  } else if (!monotonic && kept.front().ticks == 0) {
    losses.add("no_anchor", 1,
               [&] { return "no usable clock anchor: times count from the boot's clock 0: " + path; });
  }

  TickClock clock;
  clock.realtime_offset_ns_ = boot.realtime_offset_ns;
  // One anchor makes one piece by the known rate; n make n - 1, and the outer ones reach to the ends of time.
  size_t pieces = std::max<size_t>(kept.size(), 2) - 1;
  for (size_t i = 0; i < pieces; ++i) {
    double ns_per_tick = i + 1 < kept.size() ? rate(kept[i], kept[i + 1]) : known;
    __int128 base = static_cast<__int128>(kept[i].monotonic_ns) + boot.realtime_offset_ns;
    clock.pieces_.push_back(
        {.from = i == 0 ? 0 : kept[i].ticks,
         .until = i + 1 < pieces ? kept[i + 1].ticks : UINT64_MAX,
         .base_ticks = kept[i].ticks,
         .base_ns = static_cast<int64_t>(std::clamp<__int128>(base, INT64_MIN, INT64_MAX)),
         .ns_per_tick = std::llround(std::ldexp(ns_per_tick, kShift))});
  }
  return clock;
}

const TickClock::Piece* TickClock::find(uint64_t ticks) {
  auto after = std::upper_bound(pieces_.begin(), pieces_.end(), ticks,
                                [](uint64_t wanted, const Piece& piece) { return wanted < piece.from; });
  last_ = static_cast<size_t>(after - pieces_.begin()) - 1;  // the first piece begins at 0
  return &pieces_[last_];
}

}  // namespace lockstep::readers::native
