// SPDX-License-Identifier: Apache-2.0
// A GPU works off what its host has called in that order, as far as a trace of calls alone can tell, so
// everything that a rank calls after an operation that does not go on stands behind it. An operation that
// stands so on one rank holds the other ranks that have called it, and what those called later stands behind
// it there. The walk lowers, by rank, the time of the call from which on it stands; every operation is looked
// at once.
//
// Sends and receives pair by their count from the first on. Where ring retention has recycled that, they are
// counted from a collective that both ends have called: a program pairs them between two of these, or posts
// one early, which moves the count by that one. That is enough to say that a rank may stand, and too little
// to say that it does.
#include "analysis/hang/calls/behind.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
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
    stand_all(block.waiting, block.waiting_ns);
    // Where operations differ, both sides stand in theirs.
    if (block.kind == Block::Kind::kMismatch) stand_all(block.missing, block.missing_ns);
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
  void stand_all(const std::vector<uint32_t>& actors, const std::vector<int64_t>& called_ns) {
    for (size_t i = 0; i < actors.size(); ++i) {
      if (called_ns[i] != 0) stand(actors[i], called_ns[i]);
    }
  }
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
      const uint32_t at = first_after(ops, lane.first, lane.ops, since_ns);
      if (there == nullptr || at >= lane.first + lane.ops) continue;
      std::optional<uint32_t> end;
      if (job::match::pairs_comparable(job_, member, *other)) {
        end = job_.op_at(*other, *there, ops.index[at]);
      } else if (const uint32_t nth = counted_anew({member, lane}, at - lane.first, {*other, *there});
                 nth < there->ops) {
        end = there->first + nth;
      }
      if (end)
        stand(job_state_.actor_of(static_cast<uint32_t>(other - job_.members.data())),
              job_.ops(*other).entered_ns(*end));
    }
  }

  struct End {
    const model::Member& member;
    const model::Lane& lane;
  };
  // Which operation of the other end is the `at`-th of this one, by the newest collective before it that both
  // have called and from which on both have all of the lane; kNoRow unknown.
  uint32_t counted_anew(const End& here, uint32_t at, const End& there) const {
    if (job_state_.gap(here.member.process).any() || job_state_.gap(there.member.process).any())
      return model::kNoRow;
    const model::JobOps &ops = job_.ops(here.member), &others = job_.ops(there.member);
    const int64_t called_ns = ops.entered_ns(here.lane.first + at);
    int64_t newest_ns = 0;
    uint32_t found = model::kNoRow;
    for (uint32_t row : job_.processes[here.member.process].members) {
      for (uint32_t other_row : job_.processes[there.member.process].members) {
        const model::Member &member = job_.members[row], &other = job_.members[other_row];
        const auto shared = newest_shared(member, other, called_ns);
        if (!shared || shared->first <= newest_ns) continue;
        const auto [here_ns, there_ns] = *shared;
        const uint32_t before = first_after(ops, here.lane.first, here.lane.ops, here_ns) - here.lane.first;
        const uint32_t start =
            first_after(others, there.lane.first, there.lane.ops, there_ns) - there.lane.first;
        if (before == 0 || start == 0) continue;  // what came between is not all there
        newest_ns = here_ns;
        found = start + at - before;
      }
    }
    return found;
  }

  // When two processes called the newest collective of a communicator that both have and the first had called
  // before that time.
  std::optional<std::pair<int64_t, int64_t>> newest_shared(const model::Member& here,
                                                           const model::Member& there,
                                                           int64_t before_ns) const {
    constexpr auto kNone = model::Member::Alignment::kNone;
    if (here.comm != there.comm || here.ops == 0 || there.ops == 0 || here.alignment == kNone ||
        there.alignment == kNone)
      return std::nullopt;
    const model::JobOps &ops = job_.ops(here), &others = job_.ops(there);
    const uint32_t end = first_after(ops, here.first, here.ops, before_ns);
    if (end == here.first) return std::nullopt;
    const uint32_t index = std::min(ops.index[end - 1], others.index[there.first + there.ops - 1]);
    const auto op = job_.op_at(here, index), other = job_.op_at(there, index);
    if (!op || !other) return std::nullopt;
    return std::pair(ops.entered_ns(*op), others.entered_ns(*other));
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
