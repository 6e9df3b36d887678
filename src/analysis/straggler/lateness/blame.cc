// SPDX-License-Identifier: Apache-2.0
// Takes from a suspicion what the rank is not to blame for: the lateness that it carried over from the
// operation before, and what the peers that it was with just before came late by too. What remains must
// exceed the jitter of a launch.
//
// Host times need more care than GPU times, because a host that runs ahead of its GPU can be late without
// costing anybody anything. Its lateness counts if everybody had just waited for everybody, or if it is worse
// than it was.
#include "analysis/straggler/lateness/blame.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "analysis/straggler/lateness/together.h"

namespace lockstep::analysis::straggler {
namespace {

using model::Job;
using model::Member;

constexpr float kCaughtUp = 0.25f;
constexpr size_t kEnoughChanges = 512;
constexpr size_t kMostLooks = 4 * kEnoughChanges;  // at operations, to find them
constexpr size_t kLeastWaits = 12;                 // at one place, that tell whether hosts wait before it

class BlameAssigner {
 public:
  BlameAssigner(const Job& job, const std::vector<ExclusiveTimes>& times, const MemberTable& table,
                const std::vector<MemberPast>& past)
      : job_(job),
        times_(times),
        past_(past),
        peers_(job, times, table),
        carried_(job, times, past),
        brought_(past.size()) {}

  const CarriedLateness& carried() const { return carried_; }

  // What remains of blame_ns may be jitter.
  LateOp assess(const Suspicion& suspicion) {
    LateOp late = suspicion.late;
    const size_t m = suspicion.by;
    const Member& member = job_.members[late.member];
    const uint32_t at = late.op - member.first;
    const uint32_t index = job_.ops(member).index[late.op];
    if (!late.timed) {
      late.host_part_ns = host_part(late, m, at, index);
      late.blame_ns = late.host_part_ns;
    }
    const float segments = carried_.beside(index) == BesideChanges::Answer::kNo
                               ? suspicion.segments_ns
                               : suspicion.overlapping_segments_ns;
    const float on_gpu = std::min(late.blame_ns - late.host_part_ns, suspicion.gpu_ns + segments);
    float sure = on_gpu;
    if (late.behind && std::isfinite(past_[m].interval[at]))
      sure = std::min(sure, past_[m].interval[at] - carried_.interval(index));
    else if (at > 0 && !late.idle && past_[m].lateness[at - 1] > 0)
      sure = std::min(sure, past_[m].lateness[at] - past_[m].lateness[at - 1] * carried_.share(index));
    if (sure > kJitterNs) sure = std::min(sure, peers_.longer_than_others(member, late.op));
    // Segments are of this time alone, and were compared with other ranks.
    late.blame_ns = late.host_part_ns + std::min(on_gpu, std::max(sure, 0.0f) + segments);
    return late;
  }

 private:
  // Hosts that come to an operation as if all had waited for each other, with nothing since that may have
  // held one of them unseen, are late by their own doing. Else, where there are sends and receives, everybody
  // may have waited.
  float host_part(LateOp& late, size_t m, uint32_t at, uint32_t index) {
    const Member& member = job_.members[late.member];
    const ExclusiveTimes& own = times_[member.process];
    const bool seen = own.unseen.empty() || own.unseen[late.op] == 0;
    late.fresh = seen && (carried_.starts_over(index) || fresh_by_calls(index));
    if (own.peers_unseen && !late.fresh) return 0;
    const float lateness = past_[m].lateness[at];
    float part = late.host_part_ns;
    float brings = late.fresh ? 0 : brought(m, at);
    if (brings > 0 && lateness - brings < part) brings = std::min(brings, still_late(m, at, late.op));
    part = std::min(part, lateness - brings);
    if (part <= kJitterNs) return 0;
    return std::min(part, peers_.later_than_others(member, late.op));
  }

  // What of its greatest lateness so far a host still has when it comes to an operation: hosts that do not
  // wait for anybody drift apart and together again, which costs nobody anything.
  float brought(size_t m, uint32_t at) {
    const Member& member = job_.members[past_[m].member];
    const uint32_t* index = &job_.ops(member).index[member.first];
    Brought& so_far = brought_[m];
    for (; so_far.next < at; ++so_far.next) {
      const float late = past_[m].lateness[so_far.next];
      if (carried_.starts_over(index[so_far.next])) so_far.most = 0;
      if (late > so_far.most) so_far.most = late;
    }
    return carried_.starts_over(index[at]) ? 0 : so_far.most;
  }

  // The same as CarriedLateness::starts_over, by the collective that each member called before, on whichever
  // communicator.
  bool fresh_by_calls(uint32_t index) {
    const std::optional<size_t> place = carried_.rounds().place(index);
    if (!place) return false;
    const auto [at, added] = fresh_.try_emplace(*place, false);
    if (added) at->second = learn_fresh(*place);
    return at->second;
  }

  // Who is later by the same from round to round seems to bring that along, where nobody else differs: that
  // all hosts are let go at once shows in any round.
  bool learn_fresh(size_t place) {
    std::vector<Change> changes;
    size_t looks = 0, waited = 0, answers = 0;
    for (const MemberPast& past : past_) {
      const Member& member = job_.members[past.member];
      const OpFinder finder(job_, member);
      float before = PeerComparison::kUnbounded, then = 0;
      const uint64_t oldest = job_.oldest_index(member), next = job_.next_index(member);
      for (uint64_t begin : carried_.rounds().begins()) {
        const uint64_t index = begin + place;
        if (index < oldest) continue;
        if (index >= next || changes.size() >= kEnoughChanges || looks >= kMostLooks) break;
        const auto op = finder.at(static_cast<uint32_t>(index));
        if (!op) continue;
        const uint32_t at = *op - member.first;
        float now = PeerComparison::kUnbounded;
        if (std::isfinite(past.lateness[at])) {
          now = peers_.late_before(member, *op);
          const std::optional<bool> waits = peers_.waited_before(member, *op);
          answers += waits.has_value();
          waited += waits.value_or(false);
          ++looks;
        }
        if (before != PeerComparison::kUnbounded && now != PeerComparison::kUnbounded)
          changes.push_back({now - before, past.lateness[at] - then});
        before = now;
        then = past.lateness[at];
      }
    }
    return carried_share(changes).value_or(1) < CarriedLateness::kLeastShare ||
           (answers >= kLeastWaits && waited * 2 > answers);
  }

  // A host that had caught up with the others at its last collective, whichever that was, brings nothing from
  // before.
  float still_late(size_t m, uint32_t at, uint32_t op) {
    const float before = peers_.late_before(job_.members[past_[m].member], op);
    return before < past_[m].lateness[at] * kCaughtUp ? std::max(before, 0.0f) : PeerComparison::kUnbounded;
  }

  // Operations that were looked at, and the most of their lateness that is still there.
  struct Brought {
    uint32_t next = 0;
    float most = 0;
  };

  const Job& job_;
  const std::vector<ExclusiveTimes>& times_;
  const std::vector<MemberPast>& past_;
  PeerComparison peers_;
  const CarriedLateness carried_;
  std::vector<Brought> brought_;  // by member
  std::map<size_t, bool> fresh_;  // by place, see fresh_by_calls
};

bool exchanges(const ExclusiveTimes& times) { return !times.exchanged.empty(); }

// At some operation.
bool is_far_behind(const MemberPast& past) {
  return std::any_of(past.lateness.begin(), past.lateness.end(),
                     [](float late) { return late > kTogetherNs; });
}

}  // namespace

std::vector<LateOp> assign_blame(const Job& job, const std::vector<ExclusiveTimes>& times,
                                 const MemberTable& table, const std::vector<MemberPast>& past,
                                 const std::vector<Suspicion>& suspicions) {
  std::vector<LateOp> remaining;
  const bool together = std::any_of(past.begin(), past.end(), is_far_behind) ||
                        std::any_of(past.begin(), past.end(), [&](const MemberPast& of) {
                          return exchanges(times[job.members[of.member].process]);
                        });
  if (suspicions.empty() && !together) return remaining;
  BlameAssigner assigner(job, times, table, past);
  for (const Suspicion& suspicion : suspicions) {
    const LateOp late = assigner.assess(suspicion);
    if (late.blame_ns > kJitterNs) remaining.push_back(late);
  }
  if (!together) return remaining;
  for (const LateOp& late : late_together(job, times, past, assigner.carried())) remaining.push_back(late);
  return remaining;
}

}  // namespace lockstep::analysis::straggler
