// SPDX-License-Identifier: Apache-2.0
// Asks four questions in turn: does a rank stand out, were there a few long delays, does a rank or a host
// work longer than all others, do ranks take turns. The first that is answered ends the search, since a rank
// that stands out explains the rest. Where some ranks of a host stand out, all of it may be slow: they are
// late together, and each hides the others. While the job runs, nobody is named before the steps have gone on
// for three seconds: the beginning of a job is uneven.
#include <algorithm>
#include <optional>

#include "analysis/analysis.h"
#include "analysis/straggler/cost/culprits.h"
#include "analysis/straggler/cost/delay_cost.h"
#include "analysis/straggler/cost/longest_own.h"
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

bool are_of_one_host(const model::Job& job, const DelayCost& costs, const std::vector<Culprit>& named) {
  const auto host_of = [&](const Culprit& of) { return job.processes[costs.ranks[of.row].process].host; };
  return std::all_of(named.begin(), named.end(),
                     [&](const Culprit& of) { return host_of(of) == host_of(named.front()); });
}

bool has_all(const LongestOwn& host, const DelayCost& costs, const std::vector<Culprit>& named) {
  return host.processes.size() > named.size() &&
         std::all_of(named.begin(), named.end(), [&](const Culprit& of) {
           return std::find(host.processes.begin(), host.processes.end(), costs.ranks[of.row].process) !=
                  host.processes.end();
         });
}

void run(const model::Job& job, std::vector<Finding>& findings) {
  std::vector<ExclusiveTimes> times;
  const Lateness lateness = measure(job, {}, &times);
  const std::optional<DelayCost> costs = sum_delay_cost(job, lateness);
  if (!costs || costs->span_ns <= 0 || costs->steps.size() == 0 || is_too_early(job, *costs)) return;
  Reporter reporter(job, lateness, *costs, findings);
  const std::vector<Culprit> named = culprits(*costs);
  const auto longest = [&](Among among) { return longest_own(job, *costs, times, among); };
  if (!named.empty() && reporter.is_any_proven(named)) {
    if (named.size() > 1 && are_of_one_host(job, *costs, named)) {
      for (const LongestOwn& host : longest(Among::kHosts).longest) {
        if (has_all(host, *costs, named)) return reporter.report(host);
      }
    }
    return reporter.report(named);
  }
  if (named.empty()) {
    if (const auto few = few_delays(*costs)) return reporter.report(*few);
  }
  std::optional<Turns> seldom;
  for (const Among among : {Among::kRanks, Among::kHosts}) {
    const OwnLeads found = longest(among);
    for (const LongestOwn& of : found.longest) reporter.report(of);
    if (!found.longest.empty()) return;
    if (found.seldom) seldom = found.seldom;
  }
  if (named.empty()) {
    if (const auto lost = turns(*costs)) return reporter.report(*lost);
    if (seldom) return reporter.report(*seldom);
  }
  reporter.report(named);
}

}  // namespace

extern const Analysis kAnalysis = {
    .name = "straggler", .question = "Which rank is late, and since when?", .run = run};

}  // namespace lockstep::analysis::straggler
