// SPDX-License-Identifier: Apache-2.0
// What each rank cost the others, step by step, and who of them stands out.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/straggler/lateness.h"
#include "analysis/straggler/steps.h"

namespace lockstep::analysis::straggler {

inline constexpr double kShare = 0.01;  // of the run: what a user would care about
// By arrivals on the host alone: a host runs ahead of its GPU, so that some of its lateness costs nobody anything.
inline constexpr double kHostShare = 0.03;

struct RankLoss {
  uint32_t process = 0;
  size_t clock = 0;            // of Losses::steps_by_clock
  std::vector<float> by_step;  // ns
  std::vector<float> peaks;    // of them, single delays of at least Losses::least_scattered_ns()
};

// A rank that is late again and again: over steps [first, last].
struct Persistent {
  size_t loss = 0;  // position in Losses::ranks
  size_t first = 0, last = 0;
  double per_step_ns = 0;  // median
  double total_ns = 0;
  double share = 0;  // of the steps with at least half of per_step_ns
};

// A host's scheduler works in ticks of 1 to 4 ms.
inline constexpr double kTickNs = 1e6;
// Nobody looks for less, however short the run.
inline constexpr double kLeastTotalNs = 10e6;
// What costs less than a tick a step has to go on for so long: a job that begins is uneven for a while.
inline constexpr double kLeastTimeNs = 1e9;

struct Losses {
  Steps steps;  // of the rank with the most blame
  // The same for clocks that do not compare with that rank's, each by its rank with the most blame; the first is `steps`.
  std::vector<Steps> steps_by_clock;
  std::vector<RankLoss> ranks;  // the most blame first; no more than kMostRanks
  double span_ns = 0;           // of the run
  bool timed = false;           // most arrivals are the GPUs'

  // The least that a persistent loss must cost a step. Times of hosts alone do not tell less than a scheduler's tick
  // from a host that runs ahead of its GPU a little less than the others.
  double least_ns(double step_ns) const {
    return timed ? kShare * step_ns : std::max(kHostShare * step_ns, kTickNs);
  }

  // The least that a delay, and a step, must lose to count where nobody is late again and again: where steps are short,
  // what hosts differ by from call to call adds up to a share of the run, and is nobody's doing. By times of hosts alone, what the
  // schedulers of hundreds of healthy hosts cost together is up to two ticks a step.
  double least_scattered_ns() const { return timed ? kTickNs : 2 * kTickNs; }

  // The step in which something happened on a rank, of `steps`.
  size_t step_at(const RankLoss& rank, int64_t ns) const {
    return std::min(steps_by_clock[rank.clock].at(ns), steps.size() - 1);
  }

  static constexpr size_t kMostRanks = 64;
};

// Nothing if nobody is to blame for anything.
std::optional<Losses> sum_losses(const model::Job& job, const Lateness& lateness);

// Ranks that lose the others at least kShare of the run and kLeastTotalNs, in most steps at least least_ns(), and kStandOut
// times as much a step as any rank that is not named. Step 0 warms up.
inline constexpr double kStandOut = 3;
inline constexpr size_t kLeastSteps = 4;  // one rank of eight is the latest in four steps by chance: 1 in 500
std::vector<Persistent> persistent(const Losses& losses);

// The step in which most was lost, and by whom; what the worst rank of each step lost, summed where it is at least
// least_scattered_ns().
struct Scattered {
  size_t step = 0, loss = 0;
  double worst_ns = 0, total_ns = 0;
  size_t steps = 0;          // that are in the sum
  double peaks_ns = 0;       // what steps lost beyond the median step's loss
  double usual_loss_ns = 0;  // that median
  double usual_step_ns = 0;  // median length of a step
  size_t ranks = 0;          // that were the worst of a step
};
// Steps 0 and 1 warm up. Nothing with fewer than kLeastSteps.
std::optional<Scattered> scattered(const Losses& losses);

}  // namespace lockstep::analysis::straggler
