// SPDX-License-Identifier: Apache-2.0
// A rank that has called several operations stands in the oldest that does not end. GPU times tell which that
// is, as far as they are there: where stamps were lost, an operation that is long over looks as if it held up
// the next one. So what a rank is said to stand behind counts only if it is found to hold somebody up.
#include "analysis/hang/block_waits.h"

#include <algorithm>
#include <optional>

namespace lockstep::analysis::hang {
namespace {

using model::kNoRow;

// Each once; of one that is there in several ways, the oldest.
void sort_by_actor(std::vector<uint32_t>& actors, std::vector<int64_t>& times) {
  std::vector<std::pair<uint32_t, int64_t>> all;
  for (size_t i = 0; i < actors.size(); ++i) all.emplace_back(actors[i], times[i]);
  std::sort(all.begin(), all.end());
  actors.clear();
  times.clear();
  for (const auto& [actor, time] : all) {
    if (!actors.empty() && actors.back() == actor) continue;
    actors.push_back(actor);
    times.push_back(time);
  }
}

// By actor: it waits in something, or is what an operation that all have called waits for.
std::vector<bool> have_places(const JobState& job_state, const std::vector<Block>& blocks) {
  std::vector<bool> has_place(job_state.actors().size());
  for (const Block& block : blocks) {
    if (block.kind == Block::Kind::kSilent || !lasts(block)) continue;
    for (uint32_t actor : block.waiting) has_place[actor] = true;
    // Where some have not called the operation, they are missing from it and may stand anywhere else.
    if (!block.all_called()) continue;
    for (uint32_t actor : block.missing) has_place[actor] = true;
  }
  return has_place;
}

}  // namespace

int64_t waits_since(const JobState& job_state, uint32_t member, uint32_t op) {
  const model::JobOps& ops = job_state.job().ops(job_state.job().members[member]);
  const int64_t entered = ops.entered_ns(op), begun = ops.gpu_start_ns[op];
  const bool is_later =
      entered != 0 && ops.is_placed(op) && begun > entered && begun <= job_state.actor_at(member).end_ns;
  return is_later ? begun : entered;
}

void add_waiting(const JobState& job_state, uint32_t member, uint32_t op, Block& block) {
  const Actor& actor = job_state.actor_at(member);
  // What became of it since its recording was switched off is not known.
  if (block.kind != Block::Kind::kMismatch && job_state.is_off(actor.process)) return;
  const int64_t entered = job_state.job().ops(job_state.job().members[member]).entered_ns(op);
  block.waiting.push_back(job_state.actor_of(member));
  block.waiting_ns.push_back(entered);
  // It waits, but nobody knows since when: it counts as waiting and says nothing of how long.
  if (entered == 0) return;
  const int64_t since = waits_since(job_state, member, op), waited = actor.end_ns - since;
  if (block.process != kNoRow && waited <= block.waited_ns) return;
  block.process = actor.process;
  block.op = op;
  block.since_ns = since;
  block.waited_ns = waited;
}

void finish(const JobState& job_state, Block& block) {
  if (block.process != kNoRow) {
    // One that was still watched after those who wait had ended lets them wait until then.
    for (uint32_t actor : block.missing) {
      const auto later = job_state.between(block.process, block.since_ns, job_state.actor(actor).process,
                                           job_state.actor(actor).end_ns);
      if (later) block.waited_ns = std::max(block.waited_ns, *later);
    }
  }
  sort_by_actor(block.waiting, block.waiting_ns);
  sort_by_actor(block.missing, block.missing_ns);
}

bool lasts(const Block& block) { return block.is_fact || block.waited_ns > block.patience.suspicious_ns(); }

void join_those_behind(const JobState& job_state, std::vector<Block>& blocks) {
  struct Place {
    Block* block;
    Block::Behind behind;
    int64_t entered_ns;
  };
  const std::vector<bool> has_place = have_places(job_state, blocks);
  std::vector<std::optional<Place>> oldest(has_place.size());  // by actor
  for (Block& block : blocks) {
    for (const Block::Behind& behind : block.behind) {
      const uint32_t actor = job_state.actor_of(behind.member);
      const int64_t entered =
          job_state.job().ops(job_state.job().members[behind.member]).entered_ns(behind.op);
      // Nobody is known to hold this rank up elsewhere, so it stands in the oldest of what it seemed to stand
      // behind.
      std::optional<Place>& place = oldest[actor];
      if (!has_place[actor] && (!place || entered < place->entered_ns))
        place = Place{&block, behind, entered};
    }
  }
  for (const std::optional<Place>& place : oldest) {
    if (!place) continue;
    add_waiting(job_state, place->behind.member, place->behind.op, *place->block);
    finish(job_state, *place->block);
  }
  std::erase_if(blocks, [](const Block& block) { return !lasts(block); });
}

}  // namespace lockstep::analysis::hang
