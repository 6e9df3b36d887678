// SPDX-License-Identifier: Apache-2.0
// Between two knots the bounds run straight, since both are proven there and a clock keeps its rate for that
// long (docs/architecture.md, Time). Beyond a piece nothing is proven, so the half-width grows by the largest
// rate that NTP allows: the interval stays true, and gets wide where a guess would have looked exact.
#include "model/host_clock.h"

#include <algorithm>
#include <cmath>

namespace lockstep::model {

HostClock HostClock::same() {
  HostClock clock;
  clock.same_ = true;
  return clock;
}

std::optional<HostClock::Offset> HostClock::offset(int64_t host_ns) const {
  if (same_) return Offset{0, 0};
  if (knots_.empty()) return std::nullopt;
  auto after = std::upper_bound(knots_.begin(), knots_.end(), host_ns,
                                [](int64_t ns, const Knot& knot) { return ns < knot.at_ns; });
  auto at_knot = [host_ns](const Knot& knot) {
    double away = std::abs(static_cast<double>(host_ns - knot.at_ns)) * kMaxDrift;
    return Offset{knot.low + (knot.high - knot.low) / 2,
                  (knot.high - knot.low + 1) / 2 + static_cast<int64_t>(std::ceil(away))};
  };
  if (after == knots_.begin()) return at_knot(*after);
  const Knot& before = *(after - 1);
  if (after == knots_.end()) return at_knot(before);
  if (after->begins_piece) return at_knot(host_ns - before.at_ns < after->at_ns - host_ns ? before : *after);
  double share =
      static_cast<double>(host_ns - before.at_ns) / static_cast<double>(after->at_ns - before.at_ns);
  auto between = [share](int64_t from,
                         int64_t to) {  // in differences: offsets may be too large for a double's digits
    return from + static_cast<int64_t>(std::llround(share * static_cast<double>(to - from)));
  };
  int64_t low = between(before.low, after->low), high = between(before.high, after->high);
  // One more: both ends were rounded.
  return Offset{low + (high - low) / 2, (high - low + 1) / 2 + 1};
}

}  // namespace lockstep::model
