// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "analysis/hang/draft.h"
#include "analysis/hang/verdicts.h"
#include "base/text/wording.h"

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

// When the rank left the communicator, or closed its files in order.
std::optional<int64_t> left_ns(const Scene& scene, uint32_t actor, const Block& block) {
  const Actor& of = scene.actor(actor);
  std::optional<int64_t> left;
  if (of.fate == Fate::kClosed) left = of.end_ns;
  for (uint32_t row : scene.job().processes[of.process].members) {
    const model::Member& member = scene.job().members[row];
    if (member.comm == block.comm && member.end_ns != 0) left = member.end_ns;
  }
  return left;
}

// When the rank was no longer there: it was gone, or left.
std::optional<int64_t> end_of(const Scene& scene, uint32_t actor, const Root& root, const Block& block) {
  if (root.kind == Root::Kind::kGone) return scene.actor(actor).end_ns;
  if (root.kind != Root::Kind::kNotHere || !has_left(scene, actor, block)) return std::nullopt;
  return left_ns(scene, actor, block);
}

}  // namespace

bool has_left(const Scene& scene, uint32_t actor, const Block& block) {
  const std::optional<int64_t> left = left_ns(scene, actor, block);
  if (!left) return false;
  const auto after = scene.between(block.process, block.since_ns, scene.actor(actor).process, *left);
  return !after || *after <= block.patience.suspicious_ns();
}

void drop_followers(const Scene& scene, const std::vector<Block>& blocks, Culprits& culprits) {
  std::vector<std::pair<uint32_t, int64_t>> ends;  // processes that are no longer there, since when
  for (const Root& root : culprits.roots) {
    for (uint32_t actor : root.actors) {
      if (const auto end = end_of(scene, actor, root, blocks[root.block]))
        ends.emplace_back(scene.actor(actor).process, *end);
    }
  }
  if (ends.empty()) return;
  for (Root& root : culprits.roots) {
    const Block& block = blocks[root.block];
    if (root.kind != Root::Kind::kNotHere || block.kind == Block::Kind::kInit) continue;
    const bool is_after = std::any_of(ends.begin(), ends.end(), [&](const auto& end) {
      const auto later = scene.between(block.process, block.since_ns, end.first, end.second);
      return later && *later <= block.patience.suspicious_ns();
    });
    std::erase_if(root.actors, [&](uint32_t actor) {
      return is_after && no_gpu_times(scene, actor) && !end_of(scene, actor, root, block);
    });
  }
  std::erase_if(culprits.roots,
                [](const Root& root) { return root.kind == Root::Kind::kNotHere && root.actors.empty(); });
}

std::optional<Root> doubtful(const Scene& scene, const std::vector<Block>& blocks, const Culprits& culprits) {
  if (culprits.roots.empty() || !culprits.cycles.empty()) return std::nullopt;
  Root joined;
  std::set<uint32_t> actors;
  for (const Root& root : culprits.roots) {
    const Block& block = blocks[root.block];
    const auto left = [&](uint32_t actor) { return has_left(scene, actor, block); };
    if (root.kind != Root::Kind::kNotHere || block.kind == Block::Kind::kInit ||
        std::any_of(root.actors.begin(), root.actors.end(), left))
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
  finding.advice = "find out where the host code of " + draft.list(root.actors) +
                   " is: look at their stacks while it hangs";
  finding.settle = "GPU times: " + std::string(wording::kGpuTimesSetting);
  return finding;
}

}  // namespace lockstep::analysis::hang
