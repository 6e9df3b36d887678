// SPDX-License-Identifier: Apache-2.0
// Follows who waits for whom: scene (who is there), blocks (what does not go on), wait_graph (where it ends), verdicts.
#include "analysis/analysis.h"
#include "analysis/hang/verdicts.h"
#include "job/match/match.h"

namespace lockstep::analysis::hang {
namespace {

void run(const model::Job& job, std::vector<Finding>& findings) {
  Rhythm rhythm(job);
  Scene scene(job, rhythm);
  std::vector<job::match::Difference> differences = job::match::differences(job);
  std::vector<Block> blocks = find_blocks(scene, rhythm, differences);
  Culprits culprits = find_culprits(scene, blocks);
  size_t before = findings.size();
  add_verdicts(scene, blocks, culprits, findings);
  if (findings.size() == before) add_missing_evidence(scene, blocks, findings);
  if (findings.size() == before) {
    if (!scene.has_gaps()) add_broken_off(scene, differences, findings);
    add_contradictions(scene, differences, findings);  // however the run ended
  }
  if (findings.size() == before) add_unreceived(scene, findings);
}

}  // namespace

extern const Analysis kAnalysis = {
    .name = "hang", .question = "Who keeps the job from going on?", .run = run};

}  // namespace lockstep::analysis::hang
