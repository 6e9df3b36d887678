// SPDX-License-Identifier: Apache-2.0
#include "analysis/straggler/carry.h"

#include <algorithm>
#include <cmath>

#include "analysis/straggler/steps.h"

namespace lockstep::analysis::straggler {
namespace {

constexpr size_t kLeastSamples = 12;

float median(std::vector<float>& values) {
  auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

Carry::Carry(const model::Job& job, const std::vector<uint32_t>& members,
             const std::vector<std::vector<float>>& lateness) {
  const model::Member& member = job.members[members[0]];
  const model::JobOps& ops = job.ops(member);
  std::vector<uint32_t> sequence(ops.signature.begin() + member.first,
                                 ops.signature.begin() + member.first + member.ops);
  const Period period = find_period(sequence);
  if (period.length != 0) {
    first_ = job.oldest_index(member) + period.begin;
    period_ = period.length;
  }
  for (size_t place = 0; place < period_; ++place) share_.push_back(shares_at(place, job, members, lateness));
}

float Carry::shares_at(size_t place, const model::Job& job, const std::vector<uint32_t>& members,
                       const std::vector<std::vector<float>>& lateness) const {
  struct Change {
    float before, here;
  };
  std::vector<Change> changes;
  for (uint32_t row : members) {
    const model::Member& member = job.members[row];
    const std::vector<float>& late = lateness[member.process];
    for (uint64_t index = first_ + place + period_ + 1; index < job.next_index(member); index += period_) {
      auto now = job.op_at(member, static_cast<uint32_t>(index));
      auto then = job.op_at(member, static_cast<uint32_t>(index - period_));
      if (!now || !then || *now == member.first || *then == member.first) continue;
      Change change{late[*now - 1] - late[*then - 1], late[*now] - late[*then]};
      if (std::isfinite(change.before) && std::isfinite(change.here)) changes.push_back(change);
    }
  }
  // Small changes are noise of the clock.
  std::vector<float> sizes;
  for (const Change& change : changes) sizes.push_back(std::abs(change.before));
  if (sizes.size() < kLeastSamples) return 1;
  const float least = std::max(median(sizes), 1.0f);
  std::vector<float> shares;
  for (const Change& change : changes) {
    if (std::abs(change.before) >= least) shares.push_back(change.here / change.before);
  }
  if (shares.size() < kLeastSamples / 2) return 1;
  const float share = median(shares);
  // With one operation a round, `before` is the change of the round before: a steady share s shows as (s - 1) / 2.
  return std::clamp(period_ == 1 ? 1 + 2 * share : share, 0.0f, 1.0f);
}

float Carry::at(uint32_t index) const {
  const size_t size = share_.size();
  const size_t shift = first_ % size;
  return share_[(index % size + size - shift) % size];
}

}  // namespace lockstep::analysis::straggler
