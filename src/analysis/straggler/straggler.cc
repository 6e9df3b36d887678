// SPDX-License-Identifier: Apache-2.0
// Asks three questions in turn: does a rank stand out, were there a few long delays, do ranks take turns. The
// first that is answered ends the search, since a rank that stands out explains the rest. While the job runs,
// nobody is named before the steps have gone on for three seconds: the beginning of a job is uneven.
#include <algorithm>

#include "analysis/analysis.h"
#include "analysis/straggler/cost/culprits.h"
#include "analysis/straggler/cost/delay_cost.h"
#include "analysis/straggler/cost/scattered.h"
#include "analysis/straggler/lateness/lateness.h"
#include "analysis/straggler/reporter.h"

namespace lockstep::analysis::straggler {
namespace {

// A job that begins is uneven: while it runs, nobody is named before its steps have gone on for so long.
constexpr double kPatienceNs = 3e9;

bool is_too_early(const model::Job& job, const DelayCost& costs) {
  const bool runs = std::any_of(job.processes.begin(), job.processes.end(), [](const auto& process) {
    return process.liveness == model::Liveness::kRunning;
  });
  const Steps& steps = costs.steps;
  if (!runs || costs.first >= steps.size()) return false;
  return static_cast<double>(steps.begin_ns.back() - steps.begin_ns[costs.first]) < kPatienceNs;
}

void run(const model::Job& job, std::vector<Finding>& findings) {
  const Lateness lateness = measure(job);
  const std::optional<DelayCost> costs = sum_delay_cost(job, lateness);
  if (!costs || costs->span_ns <= 0 || costs->steps.size() == 0 || is_too_early(job, *costs)) return;
  Reporter reporter(job, lateness, *costs, findings);
  const std::vector<Culprit> named = culprits(*costs);
  if (!named.empty()) return reporter.report(named);
  if (const auto few = few_delays(*costs)) return reporter.report(*few);
  if (const auto lost = turns(*costs)) reporter.report(*lost);
}

}  // namespace

extern const Analysis kAnalysis = {
    .name = "straggler", .question = "Which rank is late, and since when?", .run = run};

}  // namespace lockstep::analysis::straggler
