// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "analysis/analysis.h"
#include "analysis/straggler/cost/culprits.h"
#include "analysis/straggler/cost/losses.h"
#include "analysis/straggler/cost/scattered.h"
#include "analysis/straggler/lateness/lateness.h"
#include "analysis/straggler/reporter.h"

namespace lockstep::analysis::straggler {
namespace {

// A job that begins is uneven: while it runs, nobody is named before its steps have gone on for so long.
constexpr double kPatienceNs = 3e9;

bool is_too_early(const model::Job& job, const Losses& losses) {
  const bool runs = std::any_of(job.processes.begin(), job.processes.end(), [](const auto& process) {
    return process.liveness == model::Liveness::kRunning;
  });
  const Steps& steps = losses.steps;
  if (!runs || losses.first >= steps.size()) return false;
  return static_cast<double>(steps.begin_ns.back() - steps.begin_ns[losses.first]) < kPatienceNs;
}

void run(const model::Job& job, std::vector<Finding>& findings) {
  const Lateness lateness = measure(job);
  const std::optional<Losses> losses = sum_losses(job, lateness);
  if (!losses || losses->span_ns <= 0 || losses->steps.size() == 0 || is_too_early(job, *losses)) return;
  Reporter reporter(job, lateness, *losses, findings);
  const std::vector<Culprit> named = culprits(*losses);
  if (!named.empty()) return reporter.report(named);
  if (const auto few = few_delays(*losses)) return reporter.report(*few);
  if (const auto lost = turns(*losses)) reporter.report(*lost);
}

}  // namespace

extern const Analysis kAnalysis = {
    .name = "straggler", .question = "Which rank is late, and since when?", .run = run};

}  // namespace lockstep::analysis::straggler
