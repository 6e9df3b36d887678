// SPDX-License-Identifier: Apache-2.0
// When a rank is late: how what it costs lies over the steps of a run.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lockstep::analysis::straggler {

struct Pattern {
  enum class Kind : uint8_t {
    kNone,      // never
    kSince,     // every step from one on, to the end
    kWindow,    // every step from one to another
    kGrowing,   // later and later, to the end
    kPeriodic,  // one step in `period`
    kTail,      // now and then
  } kind = Kind::kNone;
  size_t first = 0, last = 0;  // the steps in which nearly all of the cost lies
  size_t period = 0;           // kPeriodic
  std::vector<size_t> late;    // steps with at least a quarter of what a late step usually costs, ascending
  size_t events = 0;           // every late step where nearly all are late, else runs of neighboring ones
  double least_ns = 0;         // what a late step costs at least
};

// `cost`: by step, ns; those before `from` do not count.
Pattern find_pattern(std::span<const float> cost, size_t from);

// Runs of neighboring steps that cost at least `least_ns`, from `from` on.
size_t count_events(std::span<const float> cost, size_t from, double least_ns);

}  // namespace lockstep::analysis::straggler
