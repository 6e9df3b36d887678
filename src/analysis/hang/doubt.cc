// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "analysis/hang/draft.h"
#include "analysis/hang/verdicts.h"
#include "analysis/wording/wording.h"

namespace lockstep::analysis::hang {
namespace {

bool all_in(const std::vector<uint32_t>& actors, const Block& block) {
  return std::includes(block.waiting.begin(), block.waiting.end(), actors.begin(), actors.end());
}

// Ranks that stand still and did not end.
size_t standing(const Scene& scene, const Patience& patience) {
  return static_cast<size_t>(
      std::count_if(scene.actors().begin(), scene.actors().end(), [&](const Actor& actor) {
        return actor.fate == Fate::kPresent && actor.quiet_ns > patience.certain_ns();
      }));
}

// Nothing tells which of its operations have ended.
bool no_gpu_times(const Scene& scene, uint32_t actor) {
  const model::JobOps& ops = scene.job().processes[scene.actor(actor).process].ops;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (ops.gpu_end_ns[i] != 0 && ops.is_start_told(i)) return false;
  }
  return true;
}

}  // namespace

std::optional<Root> doubtful(const Scene& scene, const std::vector<Block>& blocks, const Culprits& culprits) {
  if (culprits.roots.empty() || !culprits.cycles.empty()) return std::nullopt;
  Root joined;
  std::set<uint32_t> actors;
  for (const Root& root : culprits.roots) {
    if (root.kind != Root::Kind::kNotHere || blocks[root.block].kind == Block::Kind::kInit)
      return std::nullopt;
    if (root.waiting > joined.waiting) {
      joined.block = root.block;
      joined.waiting = root.waiting;
    }
    actors.insert(root.actors.begin(), root.actors.end());
  }
  joined.actors.assign(actors.begin(), actors.end());
  if (!std::all_of(actors.begin(), actors.end(), [&](uint32_t actor) { return no_gpu_times(scene, actor); }))
    return std::nullopt;
  bool unexplained = joined.waiting + actors.size() < standing(scene, blocks[joined.block].patience);
  bool together = actors.size() > 1 && std::any_of(blocks.begin(), blocks.end(), [&](const Block& b) {
                    return b.kind == Block::Kind::kSilent && all_in(joined.actors, b);
                  });
  if (!unexplained && !together) return std::nullopt;
  return joined;
}

Finding doubt_verdict(const Scene& scene, const std::vector<Block>& blocks, const Root& root) {
  Draft draft(scene);
  const Block& block = blocks[root.block];
  Finding finding = draft.make(FindingClass::kEvidenceMissing, "evidence-missing.gpu-times", block,
                               root.actors, root.waiting);
  finding.severity = Severity::kWarning;
  finding.statement =
      draft.list(root.actors) + (root.actors.size() == 1 ? " is" : " are") +
      " the first to call nothing more; whether outside NCCL, or since the GPUs do not finish "
      "what all have called, cannot be told without GPU times";
  finding.evidence.push_back(draft.list(root.actors) + " did not call " + draft.operation(block) + "; " +
                             draft.wait(block, root.waiting, root.actors.size() > 1));
  for (const Block& other : blocks) {
    if (other.kind != Block::Kind::kSilent || !all_in(root.actors, other)) continue;
    finding.evidence.push_back("nothing tells whether " + draft.operation(other) +
                               ", which all have joined, has ended");
  }
  if (!scene.absent().empty())
    finding.evidence.push_back(wording::ranks(scene.absent()) + " of " + std::to_string(scene.ranks()) +
                               " left no file");
  finding.advice =
      "find out where the host code of " + draft.list(root.actors) + " is: while it hangs, their stacks tell";
  finding.settle = "GPU times: " + std::string(wording::kGpuTimesSetting);
  return finding;
}

}  // namespace lockstep::analysis::hang
