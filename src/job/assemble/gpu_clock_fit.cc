// SPDX-License-Identifier: Apache-2.0
// Maps a GPU's clock to host time by bounds: a kernel cannot begin before its launch nor end after its end
// was seen. The widest margin inside all bounds is searched over the drift, where it is a concave function,
// so a ternary search finds it. Spans whose bounds contradict each other are halved until they fit, since the
// clock may have been set meanwhile.
#include "job/assemble/gpu_clock_fit.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lockstep::job::assemble {
namespace {

constexpr int kSteps = 48;  // of a ternary search or bisection over the drift
constexpr double kRoundingNs = 1;

// The x in [low, high] at which a concave function is largest.
template <class Function>
double maximize(double low, double high, Function&& function) {
  for (int i = 0; i < kSteps; ++i) {
    const double a = low + (high - low) / 3, b = high - (high - low) / 3;
    if (function(a) < function(b))
      low = a;
    else
      high = b;
  }
  return (low + high) / 2;
}

double signed_difference(uint64_t a, uint64_t b) { return static_cast<double>(static_cast<int64_t>(a - b)); }

}  // namespace

GpuClockFit::Bound GpuClockFit::relative(uint64_t gpu, int64_t host_ns) {
  // Unsigned, since GPU clocks may begin anywhere; differences to the first one are small and signed.
  uint64_t offset = gpu - static_cast<uint64_t>(host_ns);
  if (!has_base_) {
    has_base_ = true;
    base_gpu_ = gpu;
    base_offset_ = offset;
  }
  return {signed_difference(gpu, base_gpu_), signed_difference(offset, base_offset_)};
}

size_t GpuClockFit::observe(const Observation& o) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Interval interval{.low = -kInfinity, .high = kInfinity, .observation = o};
  if (o.launched_host_ns > 0) interval.high = relative(o.gpu_start, o.launched_host_ns).offset;
  if (o.gpu_stop != 0 && o.stop_seen_host_ns > 0)
    interval.low = relative(o.gpu_stop, o.stop_seen_host_ns).offset;
  intervals_.push_back(interval);
  return intervals_.size() - 1;
}

void GpuClockFit::set_stale_aside() {
  // `floor`: the highest offset that the lower bounds so far prove, less what the clock may have drifted
  // since.
  struct Event {
    int64_t host_ns;
    Interval* interval;
    bool is_lower;
  };
  std::vector<Event> events;
  for (Interval& i : intervals_) {
    if (!std::isinf(i.low)) events.push_back({i.observation.stop_seen_host_ns, &i, true});
    if (!std::isinf(i.high)) events.push_back({i.observation.launched_host_ns, &i, false});
  }
  std::sort(events.begin(), events.end(),
            [](const Event& a, const Event& b) { return a.host_ns < b.host_ns; });
  // Forwards and backwards: a stale stamp contradicts what was proven before it or what is proven after.
  auto sweep = [](auto begin, auto end) {
    double floor = -std::numeric_limits<double>::infinity();
    int64_t at = begin == end ? 0 : begin->host_ns;
    for (auto event = begin; event != end; ++event) {
      floor -= kMaxDrift * static_cast<double>(std::abs(event->host_ns - at));
      at = event->host_ns;
      if (event->is_lower) {
        floor = std::max(floor, event->interval->low);
      } else if (event->interval->high < floor - kRoundingNs) {
        event->interval->plausible = false;
      }
    }
  };
  sweep(events.begin(), events.end());
  sweep(events.rbegin(), events.rend());
}

bool GpuClockFit::fit() {
  set_stale_aside();
  for (const Interval& i : intervals_) {
    if (!std::isinf(i.low)) lower_.push_back({signed_difference(i.observation.gpu_stop, base_gpu_), i.low});
    if (i.plausible && !std::isinf(i.high))
      upper_.push_back({signed_difference(i.observation.gpu_start, base_gpu_), i.high});
  }
  if (lower_.empty() || upper_.empty()) return false;
  auto by_time = [](const Bound& a, const Bound& b) { return a.t < b.t; };
  std::sort(lower_.begin(), lower_.end(), by_time);
  std::sort(upper_.begin(), upper_.end(), by_time);
  fit_span(lower_, upper_, std::min(lower_.front().t, upper_.front().t),
           std::max(lower_.back().t, upper_.back().t));
  return true;
}

void GpuClockFit::fit_span(std::span<const Bound> lower, std::span<const Bound> upper, double from,
                           double until) {
  const Bounds low = tightest(lower, from, until, true), high = tightest(upper, from, until, false);
  const Line line = best_line(hull(low, true), hull(high, false));
  // Halving ends where the bounds fit, or where a piece would be too short to say anything, or too many are
  // made of a damaged file.
  if (line.margin >= -kRoundingNs || until - from < kMinSpanNs || pieces_.size() >= kMaxPieces) {
    return add_piece(low, high, line, from, until);
  }
  double middle = from + (until - from) / 2;
  auto split = [&](std::span<const Bound> bounds) {
    auto at = std::lower_bound(bounds.begin(), bounds.end(), middle,
                               [](const Bound& b, double t) { return b.t < t; });
    return static_cast<size_t>(at - bounds.begin());
  };
  size_t low_split = split(lower), high_split = split(upper);
  if (low_split == 0 || high_split == 0 || low_split == lower.size() || high_split == upper.size()) {
    return add_piece(low, high, line, from, until);  // one half would be one-sided
  }
  fit_span(lower.first(low_split), upper.first(high_split), from, middle);
  fit_span(lower.subspan(low_split), upper.subspan(high_split), middle, until);
}

// The tightest bound of each bin: enough for a line, and bounded work however many operations there are.
GpuClockFit::Bounds GpuClockFit::tightest(std::span<const Bound> bounds, double from, double until,
                                          bool lower) {
  double width = std::max((until - from) / kBins, 1.0);
  Bounds kept;
  double bin_end = -std::numeric_limits<double>::infinity();
  for (const Bound& bound : bounds) {
    if (bound.t >= bin_end) {
      kept.push_back(bound);
      bin_end = from + (std::floor((bound.t - from) / width) + 1) * width;
    } else if (lower ? bound.offset > kept.back().offset : bound.offset < kept.back().offset) {
      kept.back() = bound;
    }
  }
  return kept;
}

// Andrew's monotone chain. Whatever the drift, the tightest bound is a corner of the hull, and of 64 bounds a
// few are.
GpuClockFit::Bounds GpuClockFit::hull(const Bounds& bounds, bool lower) {
  Bounds corners;
  for (const Bound& bound : bounds) {
    const auto is_inside = [&] {
      const Bound &a = corners.end()[-2], &b = corners.back();
      const double turn = (b.t - a.t) * (bound.offset - a.offset) - (b.offset - a.offset) * (bound.t - a.t);
      return lower ? turn >= 0 : turn <= 0;
    };
    while (corners.size() >= 2 && is_inside()) corners.pop_back();
    corners.push_back(bound);
  }
  return corners;
}

GpuClockFit::Line GpuClockFit::at_drift(const Bounds& lower, const Bounds& upper, double drift) {
  double low = -std::numeric_limits<double>::infinity(), high = -low;
  for (const Bound& bound : lower) low = std::max(low, bound.offset - drift * bound.t);
  for (const Bound& bound : upper) high = std::min(high, bound.offset - drift * bound.t);
  return {drift, (low + high) / 2, (high - low) / 2};
}

GpuClockFit::Line GpuClockFit::best_line(const Bounds& lower, const Bounds& upper) {
  double drift = maximize(-kMaxDrift, kMaxDrift, [&](double d) { return at_drift(lower, upper, d).margin; });
  return at_drift(lower, upper, drift);
}

void GpuClockFit::add_piece(const Bounds& lower, const Bounds& upper, const Line& line, double from,
                            double until) {
  Piece piece{from, until, line.offset, line.drift, {}};
  if (line.margin < -kRoundingNs) {
    for (const Bound& b : lower) contradictions_ += b.offset > line.offset + line.drift * b.t + kRoundingNs;
    for (const Bound& b : upper) contradictions_ += b.offset < line.offset + line.drift * b.t - kRoundingNs;
    // No line fits: the error is what the best one misses by, and the bounds that it breaks are counted.
    piece.error_ns.assign(2, static_cast<float>(-line.margin));
    pieces_.push_back(std::move(piece));
    return;
  }
  const Bounds low = hull(lower, true), high = hull(upper, false);
  // Drifts that some line within the bounds can have: an interval around the best one, as the margin is
  // concave.
  auto feasible_edge = [&](double limit) {
    double inside = line.drift, outside = limit;
    for (int i = 0; i < kSteps; ++i) {
      double middle = (inside + outside) / 2;
      (at_drift(low, high, middle).margin >= 0 ? inside : outside) = middle;
    }
    return inside;
  };
  double least = feasible_edge(-kMaxDrift), most = feasible_edge(kMaxDrift);
  int bins = until - from < kBins ? 1 : kBins;
  for (int i = 0; i <= bins; ++i) {
    double t = from + (until - from) * i / bins;
    auto highest = [&](double d) {
      Line l = at_drift(low, high, d);
      return l.offset + l.margin + d * t;
    };
    auto lowest = [&](double d) {
      Line l = at_drift(low, high, d);
      return -(l.offset - l.margin + d * t);
    };
    double here = line.offset + line.drift * t;
    double above = highest(maximize(least, most, highest)) - here;
    double below = lowest(maximize(least, most, lowest)) + here;
    piece.error_ns.push_back(static_cast<float>(std::max({above, below, line.margin})));
  }
  pieces_.push_back(std::move(piece));
}

std::optional<GpuClockFit::HostTime> GpuClockFit::to_host(uint64_t gpu) const {
  if (pieces_.empty()) return std::nullopt;
  double t = signed_difference(gpu, base_gpu_);
  auto after = std::upper_bound(pieces_.begin(), pieces_.end(), t,
                                [](double wanted, const Piece& p) { return wanted < p.from; });
  const Piece& piece = after == pieces_.begin() ? pieces_.front() : after[-1];

  double offset = piece.offset + piece.drift * t;
  if (!(std::abs(offset) < 9e18)) return std::nullopt;
  auto host = static_cast<int64_t>(gpu - base_offset_ - static_cast<uint64_t>(std::llround(offset)));
  if (host <= 0) return std::nullopt;

  // Beyond the bounds the clock may drift at the worst rate.
  double outside = std::max({piece.from - t, t - piece.until, 0.0});
  size_t bins = piece.error_ns.size() - 1;
  double at =
      piece.until > piece.from ? std::clamp((t - piece.from) / (piece.until - piece.from), 0.0, 1.0) : 0.0;
  size_t bin = std::min(static_cast<size_t>(at * static_cast<double>(bins)), bins - 1);
  // Between two edges the width is at most the larger one: the upper bound is convex in time, the lower one
  // concave.
  double error = std::max(piece.error_ns[bin], piece.error_ns[bin + 1]) + outside * kMaxDrift;
  return HostTime{host, static_cast<int32_t>(std::min(std::ceil(error), 2147483647.0))};
}

}  // namespace lockstep::job::assemble
