// SPDX-License-Identifier: Apache-2.0
// Fits the offset of a clock piece by piece. Bounds are kept per bucket of time, the tightest of each side,
// so that memory is bounded however long the run is. A piece grows as long as some line satisfies all its
// bounds. Where none does, the clock has moved or a bound is wrong: the span between the two pieces then
// allows everything that was ever proven about it, because nothing shows which of them is right.
#include "job/clock/offset_fit.h"

#include <algorithm>
#include <cmath>

#include "job/clock/line_set.h"

namespace lockstep::job::clock {
namespace {

constexpr int64_t kBucketNs = 20'000'000;
constexpr int64_t kMinWindowBuckets = 16;
constexpr int kKnots = 8;  // spans between the knots of a piece
constexpr int kMaxBreaks = 64;
constexpr double kRoundingNs = 1;

// A run of bounds that some line satisfies.
struct Piece {
  size_t first, last;  // of the bounds, `last` behind it
  bool breaks;         // no line satisfies it and the next bound too
};

struct Range {
  double low = INFINITY, high = -INFINITY;
  void cover(const Range& other) {
    low = std::min(low, other.low);
    high = std::max(high, other.high);
  }
  double middle() const { return (low + high) / 2; }
  double width() const { return high - low; }
};

class Fitter {
 public:
  Fitter(std::vector<Bound> bounds, double window, int64_t base_ns, int64_t base_offset)
      : bounds_(std::move(bounds)), window_(window), base_ns_(base_ns), base_offset_(base_offset) {}

  OffsetFit::Proven run() {
    cut();
    size_t after_last = 0;  // bounds that are accounted for
    bool broken = false;
    const Piece* before = nullptr;
    for (const Piece& piece : pieces_) {
      if (set(piece).two_sided()) {
        if (broken) add_murky(before, &piece, after_last);
        add_knots(piece);
        before = &piece;
        after_last = piece.last;
        broken = false;
      }
      broken = broken || piece.breaks;
    }
    if (broken) add_murky(before, nullptr, after_last);
    return std::move(proven_);
  }

 private:
  LineSet set(size_t first, size_t last) const {
    // A real clock is no line: over the length of a piece its rate may wander by kWander, and that much all
    // bounds are loosened.
    double length = bounds_[last - 1].t - bounds_[first].t;
    return {std::span(bounds_).subspan(first, last - first), slack(length)};
  }
  LineSet set(const Piece& piece) const { return set(piece.first, piece.last); }
  static double slack(double length) { return OffsetFit::kWander * length / 2 + kRoundingNs; }
  bool satisfiable(size_t first, size_t last) const { return !set(first, last).empty(); }

  // As long runs as windows and contradictions allow, from the front.
  void cut() {
    for (size_t first = 0; first < bounds_.size();) {
      size_t last = window_end(first);
      bool breaks = !satisfiable(first, last);
      if (breaks) {
        // By bisection, which needs that more bounds never make a set satisfiable again.
        size_t good = first + 1, bad = last;  // one bound alone is satisfiable
        while (bad - good > 1) {
          size_t middle = good + (bad - good) / 2;
          (satisfiable(first, middle) ? good : bad) = middle;
        }
        last = good;
      }
      pieces_.push_back({first, last, breaks});
      if (breaks) trim(pieces_.back());
      if (breaks && ++breaks_ == kMaxBreaks) break;  // not a clock: the rest stays murky
      first = last;
    }
  }

  // A window's bounds, and more until both sides are there.
  size_t window_end(size_t first) const {
    bool lower = false, upper = false;
    size_t i = first;
    for (; i < bounds_.size(); ++i) {
      if (bounds_[i].t - bounds_[first].t > window_ && lower && upper) break;
      (bounds_[i].is_lower ? lower : upper) = true;
    }
    return i;
  }

  // The clock may have moved any time since the newest bound that the breaking one contradicts.
  void trim(Piece& piece) const {
    size_t bad = piece.first, good = piece.last;  // [bad, last + 1) is not satisfiable, [good, last + 1) is
    while (good - bad > 1) {
      size_t middle = bad + (good - bad) / 2;
      (satisfiable(middle, piece.last + 1) ? good : bad) = middle;
    }
    piece.last = good;
  }

  void add_knots(const Piece& piece) {
    LineSet lines = set(piece);
    double from = bounds_[piece.first].t, until = bounds_[piece.last - 1].t, more = slack(until - from);
    int spans = until > from ? kKnots : 0;
    for (int i = 0; i <= spans; ++i) {
      // Between two knots straight lines are wide enough: the highest of many lines is convex in time, the
      // lowest concave.
      double t = spans == 0 ? from : from + (until - from) * i / spans;
      add_knot(t, lines.low(t) - more, lines.high(t) + more, i == 0);
    }
  }

  // The span between two pieces that contradict each other, or beside one: whatever was proven about it may
  // be true.
  void add_murky(const Piece* before, const Piece* after, size_t first) {
    size_t last = after == nullptr ? bounds_.size() : after->first;
    double from = before == nullptr ? bounds_.front().t : bounds_[before->last - 1].t;
    double until = after == nullptr ? bounds_.back().t : bounds_[after->first].t;
    Range all, was, is;
    if (before != nullptr) was = range(*before, from), all.cover(was), all.cover(range(*before, until));
    if (after != nullptr) is = range(*after, until), all.cover(is), all.cover(range(*after, from));
    for (size_t i = first; i < last; ++i)
      (bounds_[i].is_lower ? all.high : all.low) =
          bounds_[i].is_lower ? std::max(all.high, bounds_[i].offset) : std::min(all.low, bounds_[i].offset);
    add_knot(from, all.low, all.high, true);
    if (until > from) add_knot(until, all.low, all.high, false);
    // How far the clock moved is known only with a proof on both sides of the break.
    bool both = before != nullptr && after != nullptr;
    proven_.contradictions.push_back({time(from), time(until),
                                      std::llround(both ? is.middle() - was.middle() : 0),
                                      std::llround(both ? (is.width() + was.width()) / 2 : all.width())});
  }

  Range range(const Piece& piece, double t) const {
    LineSet lines = set(piece);
    return {lines.low(t) - kRoundingNs, lines.high(t) + kRoundingNs};
  }

  void add_knot(double t, double low, double high, bool begins_piece) {
    auto bounded = [this](double offset) {
      constexpr double kMost = 1e18;
      return base_offset_ + static_cast<int64_t>(std::clamp(offset, -kMost, kMost));
    };
    proven_.knots.push_back({time(t), bounded(std::floor(low)), bounded(std::ceil(high)), begins_piece});
  }

  int64_t time(double t) const { return base_ns_ + std::llround(t); }

  std::vector<Bound> bounds_;  // by time
  double window_;
  int64_t base_ns_, base_offset_;
  std::vector<Piece> pieces_;
  int breaks_ = 0;
  OffsetFit::Proven proven_;
};

}  // namespace

OffsetFit::OffsetFit(int64_t from_ns, int64_t until_ns, size_t max_buckets)
    : from_ns_(from_ns),
      bucket_ns_(std::max(kBucketNs, (until_ns - from_ns) / static_cast<int64_t>(max_buckets) + 1)),
      window_ns_(std::max(kWindowNs, kMinWindowBuckets * bucket_ns_)),
      buckets_(static_cast<size_t>(std::max<int64_t>(until_ns - from_ns, 0) / bucket_ns_) + 1) {}

OffsetFit::Bucket& OffsetFit::bucket(int64_t at_ns) {
  if (kept_.empty()) kept_.resize(buckets_);
  int64_t number = at_ns < from_ns_ ? 0 : (at_ns - from_ns_) / bucket_ns_;
  return kept_[std::min(static_cast<size_t>(number), buckets_ - 1)];
}

void OffsetFit::at_least(int64_t at_ns, int64_t offset) {
  Bucket& b = bucket(at_ns);
  if (offset > b.low) b.low = offset, b.low_at = at_ns;
}

void OffsetFit::at_most(int64_t at_ns, int64_t offset) {
  Bucket& b = bucket(at_ns);
  if (offset < b.high) b.high = offset, b.high_at = at_ns;
}

OffsetFit::Proven OffsetFit::fit() const {
  int64_t base_offset = 0;
  std::vector<Bound> bounds;
  auto add = [&](int64_t at_ns, int64_t offset, bool is_lower) {
    // Offsets of two hosts may be decades; relative to the first one, a double keeps nanoseconds.
    if (bounds.empty()) base_offset = offset;
    bounds.push_back({static_cast<double>(at_ns - from_ns_),
                      static_cast<double>(static_cast<__int128>(offset) - base_offset), is_lower});
  };
  for (const Bucket& b : kept_) {
    if (b.low != INT64_MIN) add(b.low_at, b.low, true);
    if (b.high != INT64_MAX) add(b.high_at, b.high, false);
  }
  std::sort(bounds.begin(), bounds.end(), [](const Bound& a, const Bound& b) { return a.t < b.t; });
  return Fitter(std::move(bounds), static_cast<double>(window_ns_), from_ns_, base_offset).run();
}

}  // namespace lockstep::job::clock
