// SPDX-License-Identifier: Apache-2.0
// Where one host's clock stands against the clock of the run's reference host: an interval that the
// operations prove, as a function of time. offset = host's clock - reference clock, in ns, so reference time
// = host time - offset.
//
// The interval is kept at knots; between two knots of one piece both ends run straight. Pieces follow each
// other in time and need not meet: a stepped clock is two pieces. Outside the pieces the nearest one is
// continued, and its half-width grows with kMaxDrift.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

namespace lockstep::model {

class HostClock {
 public:
  // The rate by which two hosts' clocks can move against each other where nothing is proven (NTP slews by 500
  // ppm).
  static constexpr double kMaxDrift = 500e-6;
  struct Knot {
    int64_t at_ns;      // host's clock
    int64_t low, high;  // proven bounds of the offset, low <= high
    bool begins_piece;  // not joined to the knot before
  };
  struct Offset {
    int64_t ns;             // middle of the interval
    int64_t half_width_ns;  // >= 0
  };

  // The same clock as the reference: offset 0, width 0.
  static HostClock same();
  // Nothing is known.
  HostClock() = default;
  // Knots in order of time; at least one.
  explicit HostClock(std::vector<Knot> knots) : knots_(std::move(knots)) {}

  bool known() const { return same_ || !knots_.empty(); }
  bool is_same() const { return same_; }
  // Nothing if unknown.
  std::optional<Offset> offset(int64_t host_ns) const;
  const std::vector<Knot>& knots() const { return knots_; }

 private:
  bool same_ = false;
  std::vector<Knot> knots_;
};

}  // namespace lockstep::model
