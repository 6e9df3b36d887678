// SPDX-License-Identifier: Apache-2.0
// Decides when the absence of a call must not be taken for guilt. A host runs ahead of its GPU, so without
// GPU times a rank that calls nothing more may be stuck behind an operation that all have called. One such
// rank is believed only if it explains why everybody else waits. A rank that has died, or left the
// communicator as the wait began, explains more than ranks that fell silent after it, and those followers are
// dropped.
#include <algorithm>
#include <set>

#include "analysis/hang/calls/behind.h"
#include "analysis/hang/finding_builder.h"
#include "analysis/hang/verdicts.h"
#include "base/text/wording.h"

namespace lockstep::analysis::hang {
namespace {

constexpr size_t kMostShown = 3;  // operations behind which the ranks may stand

// One of them stands in it, for all that is known.
bool are_all_behind(const JobState& job_state, const std::vector<uint32_t>& actors, const Block& block) {
  if (std::none_of(actors.begin(), actors.end(), [&](uint32_t actor) {
        return std::binary_search(block.waiting.begin(), block.waiting.end(), actor);
      }))
    return false;
  const std::vector<bool> behind = may_stand_behind(job_state, block);
  return std::all_of(actors.begin(), actors.end(), [&](uint32_t actor) { return behind[actor]; });
}

// Ranks that stand still and did not end.
size_t standing(const JobState& job_state, const Patience& patience) {
  return static_cast<size_t>(
      std::count_if(job_state.actors().begin(), job_state.actors().end(), [&](const Actor& actor) {
        return actor.fate == Fate::kPresent && actor.quiet_ns > patience.certain_ns();
      }));
}

// Nothing shows which of its operations have ended.
bool no_gpu_times(const JobState& job_state, uint32_t actor) {
  const model::JobOps& ops = job_state.job().processes[job_state.actor(actor).process].ops;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (ops.gpu_end_ns[i] != 0 && ops.is_start_reported(i)) return false;
  }
  return true;
}

// When the rank left the communicator, or closed its files in order.
std::optional<int64_t> left_ns(const JobState& job_state, uint32_t actor, const Block& block) {
  const Actor& of = job_state.actor(actor);
  std::optional<int64_t> left;
  if (of.fate == Fate::kClosed) left = of.end_ns;
  for (uint32_t row : job_state.job().processes[of.process].members) {
    const model::Member& member = job_state.job().members[row];
    if (member.comm == block.comm && member.end_ns != 0) left = member.end_ns;
  }
  return left;
}

// When the rank was no longer there: it was gone, or left.
std::optional<int64_t> end_of(const JobState& job_state, uint32_t actor, const Root& root,
                              const Block& block) {
  if (root.kind == Root::Kind::kGone) return job_state.actor(actor).end_ns;
  if (root.kind != Root::Kind::kNotHere || !has_left(job_state, actor, block)) return std::nullopt;
  return left_ns(job_state, actor, block);
}

bool calls_nothing_more(const std::vector<Block>& blocks, const Root& root) {
  return root.kind == Root::Kind::kNotHere && blocks[root.block].kind != Block::Kind::kInit;
}

// Who fell silent after somebody was no longer there.
void drop_those_after(const JobState& job_state, const std::vector<Block>& blocks, Culprits& culprits) {
  std::vector<std::pair<uint32_t, int64_t>> ends;  // processes that are no longer there, since when
  for (const Root& root : culprits.roots) {
    for (uint32_t actor : root.actors) {
      if (const auto end = end_of(job_state, actor, root, blocks[root.block]))
        ends.emplace_back(job_state.actor(actor).process, *end);
    }
  }
  if (ends.empty()) return;
  for (Root& root : culprits.roots) {
    const Block& block = blocks[root.block];
    if (!calls_nothing_more(blocks, root)) continue;
    const bool is_after = std::any_of(ends.begin(), ends.end(), [&](const auto& end) {
      const auto later = job_state.between(block.process, block.since_ns, end.first, end.second);
      return later && *later <= block.patience.suspicious_ns();
    });
    std::erase_if(root.actors, [&](uint32_t actor) {
      return is_after && no_gpu_times(job_state, actor) && !end_of(job_state, actor, root, block);
    });
  }
}

// How many ranks these are with all that wait for one of them, also through others.
size_t held_by(const JobState& job_state, const std::vector<Block>& blocks,
               const std::vector<uint32_t>& actors) {
  std::vector<bool> held(job_state.actors().size());
  for (uint32_t actor : actors) held[actor] = true;
  std::vector<bool> seen(blocks.size());
  for (bool more = true; more;) {
    more = false;
    for (size_t i = 0; i < blocks.size(); ++i) {
      const std::vector<uint32_t>& missing = blocks[i].missing;
      if (seen[i] || std::none_of(missing.begin(), missing.end(), [&](uint32_t a) { return held[a]; }))
        continue;
      seen[i] = more = true;
      for (uint32_t actor : blocks[i].waiting) held[actor] = true;
    }
  }
  return static_cast<size_t>(std::count(held.begin(), held.end(), true));
}

// Operations that differ are a fault for certain, so who may stand behind them need not be one, too.
void drop_those_behind_differences(const JobState& job_state, const std::vector<Block>& blocks,
                                   Culprits& culprits) {
  std::vector<bool> behind(job_state.actors().size());
  for (const Root& root : culprits.roots) {
    if (root.kind != Root::Kind::kDifferent) continue;
    const std::vector<bool> of = may_stand_behind(job_state, blocks[root.block]);
    for (size_t actor = 0; actor < of.size(); ++actor) behind[actor] = behind[actor] || of[actor];
  }
  for (Root& root : culprits.roots) {
    if (!calls_nothing_more(blocks, root)) continue;
    std::erase_if(root.actors, [&](uint32_t actor) {
      return behind[actor] && no_gpu_times(job_state, actor) &&
             !has_left(job_state, actor, blocks[root.block]);
    });
  }
}

// Who may stand behind what another one has not called, where that one does not stand behind it in turn.
void drop_those_behind(const JobState& job_state, const std::vector<Block>& blocks, Culprits& culprits) {
  std::vector<Root*> silent;
  std::vector<std::vector<bool>> behind;  // by root of `silent`
  for (Root& root : culprits.roots) {
    if (!calls_nothing_more(blocks, root)) continue;
    silent.push_back(&root);
    behind.push_back(may_stand_behind(job_state, blocks[root.block]));
  }
  // Who follows a root, by the root that it follows.
  std::vector<std::vector<uint32_t>> followers(silent.size());
  for (size_t i = 0; i < silent.size(); ++i) {
    for (uint32_t actor : silent[i]->actors) {
      if (!no_gpu_times(job_state, actor) || has_left(job_state, actor, blocks[silent[i]->block])) continue;
      for (size_t other = 0; other < silent.size(); ++other) {
        const std::vector<uint32_t>& held_by = silent[other]->actors;
        if (other == i || !behind[other][actor] ||
            std::any_of(held_by.begin(), held_by.end(), [&](uint32_t of) { return behind[i][of]; }))
          continue;
        followers[other].push_back(actor);
        break;
      }
    }
  }
  std::set<uint32_t> dropped;
  for (const auto& of : followers) dropped.insert(of.begin(), of.end());
  const bool any_left = std::any_of(silent.begin(), silent.end(), [&](const Root* root) {
    return std::any_of(root->actors.begin(), root->actors.end(),
                       [&](uint32_t actor) { return !dropped.contains(actor); });
  });
  if (!any_left) return;
  for (size_t i = 0; i < silent.size(); ++i) {
    Root& root = *silent[i];
    std::erase_if(root.actors, [&](uint32_t actor) { return dropped.contains(actor); });
    if (followers[i].empty() || root.actors.empty()) continue;
    root.followers = std::move(followers[i]);
    std::vector<uint32_t> holding = root.actors;
    holding.insert(holding.end(), root.followers.begin(), root.followers.end());
    root.waiting = held_by(job_state, blocks, holding) - root.actors.size();
  }
}

}  // namespace

bool has_left(const JobState& job_state, uint32_t actor, const Block& block) {
  const std::optional<int64_t> left = left_ns(job_state, actor, block);
  if (!left) return false;
  const auto after = job_state.between(block.process, block.since_ns, job_state.actor(actor).process, *left);
  return !after || *after <= block.patience.suspicious_ns();
}

void drop_followers(const JobState& job_state, const std::vector<Block>& blocks, Culprits& culprits) {
  drop_those_after(job_state, blocks, culprits);
  drop_those_behind_differences(job_state, blocks, culprits);
  drop_those_behind(job_state, blocks, culprits);
  std::erase_if(culprits.roots,
                [](const Root& root) { return root.kind == Root::Kind::kNotHere && root.actors.empty(); });
}

std::optional<Root> doubtful(const JobState& job_state, const std::vector<Block>& blocks,
                             const Culprits& culprits) {
  if (culprits.roots.empty() || !culprits.cycles.empty()) return std::nullopt;
  Root joined;
  std::set<uint32_t> actors;
  for (const Root& root : culprits.roots) {
    const Block& block = blocks[root.block];
    const auto left = [&](uint32_t actor) { return has_left(job_state, actor, block); };
    if (root.kind != Root::Kind::kNotHere || block.kind == Block::Kind::kInit ||
        std::any_of(root.actors.begin(), root.actors.end(), left))
      return std::nullopt;
    if (root.waiting > joined.waiting) {
      joined.block = root.block;
      joined.waiting = root.waiting;
    }
    actors.insert(root.actors.begin(), root.actors.end());
    joined.followers.insert(joined.followers.end(), root.followers.begin(), root.followers.end());
  }
  joined.actors.assign(actors.begin(), actors.end());
  if (!std::all_of(actors.begin(), actors.end(),
                   [&](uint32_t actor) { return no_gpu_times(job_state, actor); }))
    return std::nullopt;
  bool unexplained = joined.waiting + actors.size() < standing(job_state, blocks[joined.block].patience);
  bool together = actors.size() > 1 && std::any_of(blocks.begin(), blocks.end(), [&](const Block& b) {
                    return b.kind == Block::Kind::kSilent && are_all_behind(job_state, joined.actors, b);
                  });
  if (!unexplained && !together) return std::nullopt;
  return joined;
}

Finding doubt_verdict(const JobState& job_state, const std::vector<Block>& blocks, const Root& root) {
  FindingBuilder builder(job_state);
  const Block& block = blocks[root.block];
  Finding finding = builder.make(FindingId::kEvidenceMissingGpuTimes, block, root.actors, root.waiting);
  finding.severity = Severity::kWarning;
  finding.statement =
      builder.list(root.actors) +
      " stopped calling operations first; without GPU times Lockstep cannot tell whether the host is stuck outside NCCL or a GPU cannot finish an earlier operation";
  finding.evidence.push_back(builder.list(root.actors) + " did not call " + builder.operation(block) + "; " +
                             builder.wait(block, root.waiting, root.actors.size() > 1));
  builder.add_followers(root.followers, finding.evidence);
  size_t shown = 0;
  for (const Block& other : blocks) {
    if (other.kind != Block::Kind::kSilent || !are_all_behind(job_state, root.actors, other)) continue;
    if (++shown > kMostShown) break;
    finding.evidence.push_back("no record shows whether " + builder.operation(other) +
                               ", which all ranks have joined, has ended");
  }
  if (!job_state.absent().empty())
    finding.evidence.push_back(wording::ranks(job_state.absent()) + " of " +
                               std::to_string(job_state.ranks()) + " left no file");
  finding.advice = "Find out what the host code of " + builder.list(root.actors) +
                   " is doing: take stacks while the job hangs.";
  finding.needed_evidence =
      "GPU times: " + std::string(wording::gpu_times_setting(job_state.job().has_amd_gpus()));
  return finding;
}

}  // namespace lockstep::analysis::hang
