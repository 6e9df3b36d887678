// SPDX-License-Identifier: Apache-2.0
// Follows who waits for whom: job_state (who is there), blocks (what does not go on), wait_graph (where it
// ends), verdicts.
#include <iterator>

#include "analysis/analysis.h"
#include "analysis/hang/verdicts.h"
#include "job/match/match.h"

namespace lockstep::analysis::hang {
namespace {

void run(const model::Job& job, std::vector<Finding>& findings) {
  Cadence cadence(job);
  JobState job_state(job, cadence);
  std::vector<job::match::Difference> differences = job::match::differences(job);
  std::vector<Block> blocks = find_blocks(job_state, cadence, differences);
  Culprits culprits = find_culprits(job_state, blocks);
  size_t before = findings.size();
  // Each further question is asked only where the one before found nothing, so a weaker statement never
  // stands beside a stronger one.
  add_verdicts(job_state, blocks, culprits, findings);
  if (findings.size() == before) add_missing_evidence(job_state, blocks, findings);
  if (findings.size() == before) {
    std::vector<Finding> ends;
    if (!job_state.has_gaps()) add_broken_off(job_state, differences, ends);
    // However the run ended, and before that: calls that differ may be why.
    add_contradictions(job_state, differences, ends.empty() ? 0 : ends.front().weight, findings);
    std::move(ends.begin(), ends.end(), std::back_inserter(findings));
  }
  if (findings.size() == before) add_unreceived(job_state, findings);
}

}  // namespace

extern const Analysis kAnalysis = {
    .name = "hang", .question = "Who keeps the job from going on?", .run = run, .is_of_now = true};

}  // namespace lockstep::analysis::hang
