// SPDX-License-Identifier: Apache-2.0
#include "analysis/straggler/carry.h"

#include <algorithm>
#include <cmath>

#include "analysis/straggler/steps.h"

namespace lockstep::analysis::straggler {
namespace {

constexpr size_t kLeastSamples = 12;
constexpr float kWaitedNs = 20'000;  // longer than the arrivals of a healthy operation lie apart

float median(std::vector<float>& values) {
  auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

Carry::Carry(const model::Job& job, const std::vector<MemberPast>& past) {
  const model::Member& member = job.members[past[0].member];
  const model::JobOps& ops = job.ops(member);
  std::vector<uint32_t> sequence(ops.signature.begin() + member.first,
                                 ops.signature.begin() + member.first + member.ops);
  const Period period = find_period(sequence);
  if (period.length != 0) {
    first_ = job.oldest_index(member) + period.begin;
    period_ = period.length;
  }
  for (size_t place = 0; place < period_; ++place) {
    share_.push_back(share_at(place, job, past));
    interval_.push_back(interval_at(place, job, past));
  }
}

float Carry::share_at(size_t place, const model::Job& job, const std::vector<MemberPast>& past) const {
  std::vector<Change> changes;
  for (const MemberPast& of : past) {
    const model::Member& member = job.members[of.member];
    for (uint64_t index = first_ + place + period_; index < job.next_index(member); index += period_) {
      auto now = job.op_at(member, static_cast<uint32_t>(index));
      auto then = job.op_at(member, static_cast<uint32_t>(index - period_));
      if (!now || !then || *then == member.first) continue;
      const float* late_now = &of.lateness[*now - member.first];
      const float* late_then = &of.lateness[*then - member.first];
      Change change{late_now[-1] - late_then[-1], late_now[0] - late_then[0]};
      if (std::isfinite(change.before) && std::isfinite(change.here)) changes.push_back(change);
    }
  }
  const std::optional<float> share = carried_share(changes);
  if (!share) return 1;
  // With one operation a round, `before` is the change of the round before: a steady share s shows as (s - 1) / 2.
  return std::clamp(period_ == 1 ? 1 + 2 * *share : *share, 0.0f, 1.0f);
}

std::optional<float> carried_share(const std::vector<Change>& changes) {
  if (changes.size() < kLeastSamples) return std::nullopt;
  // Small changes are noise of the clock.
  std::vector<float> sizes;
  for (const Change& change : changes) sizes.push_back(std::abs(change.before));
  const float least = std::max(median(sizes), 1.0f);
  std::vector<float> shares;
  for (const Change& change : changes) {
    if (std::abs(change.before) >= least) shares.push_back(change.here / change.before);
  }
  if (shares.size() < kLeastSamples / 2) return std::nullopt;
  return median(shares);
}

float Carry::interval_at(size_t place, const model::Job& job, const std::vector<MemberPast>& past) const {
  std::vector<float> intervals;
  for (const MemberPast& of : past) {
    const model::Member& member = job.members[of.member];
    for (uint64_t index = first_ + place; index < job.next_index(member); index += period_) {
      auto op = job.op_at(member, static_cast<uint32_t>(index));
      if (!op || *op == member.first) continue;
      const size_t at = *op - member.first;
      if (of.waiting[at - 1] <= kWaitedNs && std::isfinite(of.interval[at]))
        intervals.push_back(of.interval[at]);
    }
  }
  return intervals.empty() ? 0 : median(intervals);
}

}  // namespace lockstep::analysis::straggler
