// SPDX-License-Identifier: Apache-2.0
// What each rank lost the others, step by step: the lateness that it is to blame for (lateness.h), added up.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/straggler/lateness/lateness.h"
#include "analysis/straggler/lateness/steps.h"

namespace lockstep::analysis::straggler {

inline constexpr double kShare = 0.01;  // of the run: what a user would care about
// By arrivals on the host alone: a host runs ahead of its GPU, so that some of its lateness costs nobody
// anything.
inline constexpr double kHostShare = 0.03;
// Times that the cost of a rank that is named exceeds that of any rank that is not.
inline constexpr double kStandOut = 2;
inline constexpr size_t kLeastSteps = 4;  // late ones, of a habit
// A host's scheduler works in ticks of 1 to 4 ms.
inline constexpr double kTickNs = 1e6;

// Less than a scheduler's tick, by times of hosts alone, does not differ from a host that runs ahead of its
// GPU a little less than the others: it cost somebody something only where all had waited for each other just
// before.
inline bool costs_others(const LateOp& late) {
  return late.timed || late.fresh || static_cast<double>(late.blame_ns) >= kTickNs;
}

// A process' own steps, and what makes another's positions of theirs; no steps: by time. By time alone, ranks
// that are late together would be late in two steps: before and after the begin of the latest one's.
struct CountedSteps {
  Steps steps;
  int64_t shift = 0;
};
// By the `usual` ones of its clock.
CountedSteps count_steps(const model::Job& job, uint32_t process, const Steps& usual);

struct RankCost {
  uint32_t process = 0;
  size_t clock = 0;  // of DelayCost::steps_by_clock
  CountedSteps own;
  std::vector<float> by_step;  // ns
  std::vector<float> peaks;    // of them, single delays of at least DelayCost::least_scattered_ns()
  // By step, when the first delay was over that made a good part of the step's loss, on its clock; 0: none.
  std::vector<int64_t> late_ns;
  std::vector<uint32_t> partners;  // processes that it sends to or receives from
  double sure_share = 1;           // of all of it, what the clocks leave no doubt of
};

// Nobody looks for less, however short the run: where somebody stands out, and where nobody does.
inline constexpr double kLeastNamedNs = 1e6;
inline constexpr double kLeastTotalNs = 5e6;

struct DelayCost {
  Steps steps;  // of the rank with the most blame, else of the first
  // The same for clocks that do not compare with that rank's, each by its rank with the most blame; the first
  // is `steps`.
  std::vector<Steps> steps_by_clock;
  std::vector<uint32_t> domains;  // of those clocks: ExclusiveTimes::domain, each once
  std::vector<RankCost> ranks;    // the most blame first; no more than kMostRanks
  std::vector<float> others;      // by step: the most that any other rank lost
  // By step: half of a pause that all ranks make there, as for an evaluation, a checkpoint or a
  // recompilation. What they differ by in it is nobody's habit until it is proven to be.
  std::vector<float> uneven_ns;
  size_t first = 0;           // the first step that counts: those before it warm up
  size_t compared_ranks = 0;  // in the run
  double span_ns = 0;         // of the run
  double usual_step_ns = 0;   // median length of a step
  bool timed = false;         // most arrivals are the GPUs'

  // The least single delay that counts as one: where steps are short, what hosts differ by from call to call
  // adds up to a share of the run. By times of hosts alone, what the schedulers of hundreds of healthy hosts
  // cost together is up to two ticks a step.
  double least_scattered_ns() const { return timed ? kTickNs : 2 * kTickNs; }

  // The step in which a rank launched something, of `steps`.
  size_t step_at(const RankCost& rank, int64_t ns) const {
    const bool by_count = rank.own.steps.size() != 0;
    const Steps& its = by_count ? rank.own.steps : steps_by_clock[rank.clock];
    const auto step = static_cast<int64_t>(its.at(ns + kClockSlackNs)) + rank.own.shift;
    return static_cast<size_t>(std::clamp<int64_t>(step, 0, static_cast<int64_t>(steps.size()) - 1));
  }

  // A launch that begins a step may seem to lie so much before it: exclusive_times.h looks clocks' offsets up
  // once a millisecond.
  static constexpr int64_t kClockSlackNs = 2'000;
  static constexpr size_t kMostRanks = 64;
};

// Nothing if nobody has called anything.
std::optional<DelayCost> sum_delay_cost(const model::Job& job, const Lateness& lateness);

}  // namespace lockstep::analysis::straggler
