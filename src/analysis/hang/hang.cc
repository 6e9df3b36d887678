// SPDX-License-Identifier: Apache-2.0
// Follows who waits for whom: job_state (who is there), blocks (what does not go on), wait_graph (where it
// ends), verdicts.
#include <algorithm>
#include <iterator>

#include "analysis/analysis.h"
#include "analysis/hang/verdicts.h"
#include "job/match/match.h"

namespace lockstep::analysis::hang {
namespace {

// Who waits in anything that does not go on, as ranks. That all have called a silent operation holds nobody.
std::vector<int32_t> waiting_ranks(const JobState& job_state, const std::vector<Block>& blocks) {
  std::vector<int32_t> ranks;
  for (const Block& block : blocks) {
    if (block.kind == Block::Kind::kSilent && block.missing.empty() && block.absent.empty()) continue;
    for (const uint32_t actor : block.waiting) {
      if (job_state.actor(actor).rank >= 0) ranks.push_back(job_state.actor(actor).rank);
    }
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

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
  for (size_t i = before; i < findings.size(); ++i) findings[i].waiting = waiting_ranks(job_state, blocks);
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
