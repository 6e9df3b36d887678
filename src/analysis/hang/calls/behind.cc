// SPDX-License-Identifier: Apache-2.0
// A GPU works off what its host has called in that order, as far as a trace of calls alone can tell, so
// everything that a rank calls after an operation that does not go on stands behind it. An operation that
// stands so on one rank holds the other ranks that have called it, and what those called later stands behind
// it there. The walk lowers, by rank, the time of the call from which on it stands; every operation is looked
// at once.
#include "analysis/hang/calls/behind.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "job/match/match.h"

namespace lockstep::analysis::hang {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

class Walk {
 public:
  explicit Walk(const JobState& job_state)
      : job_state_(job_state), job_(job_state.job()), since_(job_state.actors().size(), kNever) {
    rows_.resize(since_.size());
    for (uint32_t row = 0; row < job_.members.size(); ++row) rows_[job_state.actor_of(row)].push_back(row);
  }

  std::vector<bool> from(const Block& block) {
    for (size_t i = 0; i < block.waiting.size(); ++i) {
      if (block.waiting_ns[i] != 0) stand(block.waiting[i], block.waiting_ns[i]);
    }
    while (!queue_.empty()) {
      const uint32_t actor = queue_.back();
      queue_.pop_back();
      for (uint32_t row : rows_[actor]) follow(row, since_[actor]);
    }
    std::vector<bool> out;
    for (int64_t since : since_) out.push_back(since != kNever);
    return out;
  }

 private:
  // What the actor calls after that time, on its own clock, stands.
  void stand(uint32_t actor, int64_t since_ns) {
    if (since_ns >= since_[actor]) return;
    since_[actor] = since_ns;
    queue_.push_back(actor);
  }

  // The first of a run of operations, in the order of their calls, that was called after that time.
  static uint32_t first_after(const model::JobOps& ops, uint32_t first, uint32_t count, int64_t since_ns) {
    uint32_t low = first, high = first + count;
    while (low < high) {
      const uint32_t middle = low + (high - low) / 2;
      if (ops.entered_ns(middle) > since_ns)
        high = middle;
      else
        low = middle + 1;
    }
    return low;
  }

  void follow(uint32_t row, int64_t since_ns) {
    const model::Member& member = job_.members[row];
    const model::JobOps& ops = job_.ops(member);
    const uint32_t op = first_after(ops, member.first, member.ops, since_ns);
    if (op < member.first + member.ops && member.alignment != model::Member::Alignment::kNone)
      stand_collective(member.comm, ops.index[op]);
    for (const model::Lane& lane : member.lanes) {
      const model::Member* other = nullptr;
      const model::Lane* there = job::match::counterpart(job_, member, lane, &other);
      const uint32_t at = first_after(ops, lane.first, lane.ops, since_ns) - lane.first;
      if (there == nullptr || at >= lane.ops || at >= there->ops ||
          !job::match::pairs_comparable(job_, member, *other))
        continue;
      stand(job_state_.actor_of(static_cast<uint32_t>(other - job_.members.data())),
            job_.ops(*other).entered_ns(there->first + at));
    }
  }

  // Later ones of the communicator were called later by whoever called this one.
  void stand_collective(uint32_t comm, uint32_t index) {
    const auto [at, added] = collectives_.try_emplace(comm, index);
    if (!added && at->second <= index) return;
    at->second = index;
    for (uint32_t row : job_.comms[comm].members) {
      if (row == model::kNoRow) continue;
      const model::Member& member = job_.members[row];
      if (member.alignment == model::Member::Alignment::kNone) continue;
      if (const auto op = job_.op_at(member, index))
        stand(job_state_.actor_of(row), job_.ops(member).entered_ns(*op));
    }
  }

  const JobState& job_state_;
  const model::Job& job_;
  std::vector<int64_t> since_;                // by actor
  std::vector<std::vector<uint32_t>> rows_;   // by actor: of Job::members
  std::map<uint32_t, uint32_t> collectives_;  // the oldest index that stands, by communicator
  std::vector<uint32_t> queue_;
};

}  // namespace

std::vector<bool> may_stand_behind(const JobState& job_state, const Block& block) {
  return Walk(job_state).from(block);
}

}  // namespace lockstep::analysis::hang
