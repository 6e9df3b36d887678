// SPDX-License-Identifier: Apache-2.0
// Finds what a rank's peers did at the same point. The peers are the members of the collective that the rank
// called, or left, just before the operation in question. The median of at most 64 of them is enough: more
// would not change it, and a group of thousands is asked about every suspicion.
#include "analysis/straggler/lateness/peer_comparison.h"

#include <algorithm>
#include <cstdlib>

#include "analysis/straggler/lateness/lateness.h"
#include "analysis/straggler/median.h"

namespace lockstep::analysis::straggler {
namespace {

using model::JobOps;
using model::Member;

constexpr uint32_t kCallsBack = 4;  // that the last collective with others lies back at most
constexpr uint32_t kLeftBack =
    128;  // the same of the operation that was left last: an exchange is many transfers
constexpr size_t kMostOthers = 64;
constexpr size_t kLeastReleased = 4;  // members of a collective that show whether all waited in it
constexpr float kAtOneTime = 0.25f;   // of how far they lay apart at the collective

// Calls that the operation lies back whose end is the latest before `op` arrived; 0: none.
uint32_t left_last(const JobOps& ops, const ExclusiveTimes& own, uint32_t op) {
  uint32_t best = 0;
  int64_t latest = 0;
  for (uint32_t back = 1; back <= std::min(kLeftBack, own.place[op]); ++back) {
    const int64_t end = end_of(ops, own, own.order[own.place[op] - back]);
    if (end <= latest || end > own.arrival[op]) continue;
    latest = end;
    best = back;
  }
  return best;
}

// From their median, the half that is nearest to it.
int64_t width_about(int64_t middle, std::span<int64_t> times) {
  for (int64_t& time : times) time = std::abs(time - middle);
  return upper_median(times);
}

uint32_t domain_of(const MemberTable::Row& row) { return row.times->domain; }

}  // namespace

MemberTable::MemberTable(const model::Job& job, const std::vector<ExclusiveTimes>& times) {
  for (const model::JobComm& comm : job.comms) {
    begin_.push_back(table_.size());
    for (uint32_t row : comm.members) {
      if (row == model::kNoRow) continue;
      const Member& member = job.members[row];
      if (is_matched(member) && times[member.process].comparable)
        table_.push_back({{job, member}, &times[member.process]});
    }
    std::stable_sort(table_.begin() + static_cast<ptrdiff_t>(begin_.back()), table_.end(),
                     [](const Row& a, const Row& b) { return domain_of(a) < domain_of(b); });
  }
  begin_.push_back(table_.size());
}

std::span<const MemberTable::Row> MemberTable::of(uint32_t comm, uint32_t domain) const {
  const Row *first = table_.data() + begin_[comm], *last = table_.data() + begin_[comm + 1];
  first = std::partition_point(first, last, [=](const Row& row) { return domain_of(row) < domain; });
  last = std::partition_point(first, last, [=](const Row& row) { return domain_of(row) == domain; });
  return {first, last};
}

float PeerComparison::later_than_others(const Member& member, uint32_t op) {
  const ExclusiveTimes& own = times_[member.process];
  for (uint32_t back = 1; back <= std::min(kCallsBack, own.place[op]); ++back) {
    const uint32_t before = own.order[own.place[op] - back];
    const Member* with = collective_of(member.process, before);
    if (with == nullptr || with->comm == member.comm) continue;
    const float later =
        against_others(*with, before, [&](const Member&, const ExclusiveTimes& its, uint32_t same) {
          const size_t next = size_t{its.place[same]} + back;
          return next < its.order.size() ? static_cast<float>(own.host[op] - its.host[its.order[next]])
                                         : kUnbounded;
        });
    if (later != kUnbounded) return later;
  }
  return kUnbounded;
}

float PeerComparison::late_before(const Member& member, uint32_t op) {
  const ExclusiveTimes& own = times_[member.process];
  for (uint32_t back = 1; back <= std::min(kCallsBack, own.place[op]); ++back) {
    const uint32_t before = own.order[own.place[op] - back];
    const Member* with = collective_of(member.process, before);
    if (with == nullptr) continue;
    const float late =
        against_others(*with, before, [&](const Member&, const ExclusiveTimes& its, uint32_t same) {
          return static_cast<float>(own.host[before] - its.host[same]);
        });
    if (late != kUnbounded) return late;
  }
  return kUnbounded;
}

std::optional<bool> PeerComparison::waited_before(const Member& member, uint32_t op) {
  const Before before = collective_before(member.process, op);
  if (before.with == nullptr || !is_matched(*before.with)) return std::nullopt;
  std::vector<int64_t> called, next;
  const uint32_t index = job_.ops(*before.with).index[before.op];
  for (const MemberTable::Row& row : table_.of(before.with->comm, times_[member.process].domain)) {
    const auto same = row.ops.at(index);
    const Column<uint32_t>& order = row.times->order;
    const size_t place = same ? size_t{row.times->place[*same]} + before.back : order.size();
    if (place >= order.size()) continue;
    called.push_back(row.times->host[*same]);
    next.push_back(row.times->host[order[place]]);
    if (called.size() == kMostOthers) break;
  }
  if (called.size() < kLeastReleased) return std::nullopt;
  const int64_t last = *std::max_element(called.begin(), called.end());
  const int64_t apart = width_about(lower_median(std::span(called)), called);
  const float at_one_time = kAtOneTime * static_cast<float>(apart);
  if (at_one_time <= kJitterNs) return std::nullopt;
  const int64_t then = lower_median(std::span(next));
  const int64_t together = width_about(then, next);
  return then - together >= last && static_cast<float>(together) <= at_one_time;
}

float PeerComparison::longer_than_others(const Member& member, uint32_t op) {
  const ExclusiveTimes& own = times_[member.process];
  const JobOps& ops = job_.ops(member);
  const uint32_t back = left_last(ops, own, op);
  if (back == 0) return kUnbounded;
  const uint32_t left = own.order[own.place[op] - back];
  const auto took = static_cast<float>(own.arrival[op] - end_of(ops, own, left));
  return against_others(member, op, [&](const Member& other, const ExclusiveTimes& its, uint32_t same) {
    if (its.place[same] < back) return kUnbounded;
    const uint32_t its_left = its.order[its.place[same] - back];
    const int64_t end = end_of(job_.ops(other), its, its_left);
    if (end == 0 || job_.ops(other).signature[its_left] != ops.signature[left]) return kUnbounded;
    return took - static_cast<float>(its.arrival[same] - end);
  });
}

// The median of what is known of the others at the same operation.
template <class OfOther>
float PeerComparison::against_others(const Member& with, uint32_t op, OfOther of_other) {
  if (!is_matched(with)) return kUnbounded;
  values_.clear();
  const uint32_t index = job_.ops(with).index[op];
  for (const MemberTable::Row& row : table_.of(with.comm, times_[with.process].domain)) {
    const Member& other = row.ops.member();
    if (other.process == with.process) continue;
    auto same = row.ops.at(index);
    if (!same) continue;
    const float value = of_other(other, *row.times, *same);
    if (value != kUnbounded) values_.push_back(value);
    if (values_.size() == kMostOthers) break;
  }
  return values_.empty() ? kUnbounded : lower_median(std::span(values_));
}

PeerComparison::Before PeerComparison::collective_before(uint32_t process, uint32_t op) const {
  const ExclusiveTimes& own = times_[process];
  for (uint32_t back = 1; back <= std::min(kCallsBack, own.place[op]); ++back) {
    const uint32_t before = own.order[own.place[op] - back];
    const Member* with = collective_of(process, before);
    if (with != nullptr) return {with, before, back};
  }
  return {};
}

// The member whose collective it is; nullptr: a send or receive.
const Member* PeerComparison::collective_of(uint32_t process, uint32_t op) const {
  for (uint32_t row : job_.processes[process].members) {
    const Member& member = job_.members[row];
    if (op >= member.first && op < member.first + member.ops) return &member;
  }
  return nullptr;
}

}  // namespace lockstep::analysis::straggler
