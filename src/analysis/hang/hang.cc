// SPDX-License-Identifier: Apache-2.0
// Follows who waits for whom: job_state (who is there), blocks (what does not go on), wait_graph (where it
// ends), verdicts.
#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <span>

#include "analysis/analysis.h"
#include "analysis/hang/verdicts.h"
#include "job/match/match.h"

namespace lockstep::analysis::hang {
namespace {

// Who waits in anything that does not go on, as ranks: for the only finding all of them, for one of several
// those in its communicator. That all have called a silent operation holds nobody.
void set_waiting(const JobState& job_state, const std::vector<Block>& blocks, std::span<Finding> findings) {
  std::map<uint32_t, std::set<int32_t>> by_comm;  // of one finding all under 0
  for (const Block& block : blocks) {
    if (block.kind == Block::Kind::kSilent && block.missing.empty() && block.absent.empty()) continue;
    std::set<int32_t>& ranks = by_comm[findings.size() == 1 ? 0 : block.comm];
    for (const uint32_t actor : block.waiting) {
      if (job_state.actor(actor).rank >= 0) ranks.insert(job_state.actor(actor).rank);
    }
  }
  for (Finding& finding : findings) {
    const auto ranks = by_comm.find(findings.size() == 1 ? 0 : finding.comm_row.value_or(model::kNoRow));
    if (ranks != by_comm.end()) finding.waiting.assign(ranks->second.begin(), ranks->second.end());
  }
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
  set_waiting(job_state, blocks, std::span(findings).subspan(before));
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
