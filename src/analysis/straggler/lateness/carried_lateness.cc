// SPDX-License-Identifier: Apache-2.0
// Estimates, for each place of the repeating program, which share of a member's lateness is still there one
// operation later. It compares changes from one round to the next, not the lateness itself: a rank that is
// always late would otherwise look as if it carried everything. The median of the larger changes is used,
// since small ones are noise of the clocks.
#include "analysis/straggler/lateness/carried_lateness.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "analysis/straggler/lateness/exclusive_times.h"
#include "analysis/straggler/lateness/lateness.h"
#include "analysis/straggler/median.h"

namespace lockstep::analysis::straggler {
namespace {

constexpr size_t kLeastSamples = 12;
constexpr size_t kPlaces = 16;       // that are looked at together: a cache line of every column
constexpr double kBetween = 0.5;     // the slopes of 0 and 1
constexpr double kErrors = 2;        // standard errors that tell a slope from that between
constexpr float kWaitedNs = 20'000;  // longer than the arrivals of a healthy operation lie apart

}  // namespace

CarriedLateness::CarriedLateness(const model::Job& job, const std::vector<ExclusiveTimes>& times,
                                 const std::vector<MemberPast>& past) {
  const model::Member& member = job.members[past[0].member];
  const model::JobOps& ops = job.ops(member);
  std::vector<uint32_t> sequence(ops.signature.begin() + member.first,
                                 ops.signature.begin() + member.first + member.ops);
  rounds_ = Rounds(sequence, job.oldest_index(member));
  const size_t length = rounds_.length();
  std::vector<OpFinder> finders;
  for (const MemberPast& of : past) finders.emplace_back(job, job.members[of.member]);
  beside_.resize(length);
  for (const OpFinder& finder : finders)
    look_beside(finder, times[finder.member().process], job.ops(finder.member()));
  share_.reserve(length);
  interval_.reserve(length);
  for (size_t place = 0; place < length; place += kPlaces) {
    const size_t count = std::min(kPlaces, length - place);
    Samples samples(count);
    for (size_t m = 0; m < past.size(); ++m) collect(place, finders[m], job, past[m], samples);
    for (size_t i = 0; i < count; ++i) {
      share_.push_back(share_of(samples[i]));
      interval_.push_back(samples[i].intervals.empty() ? std::numeric_limits<float>::infinity()
                                                       : upper_median(std::span(samples[i].intervals)));
    }
  }
}

void BesideChanges::add(double longer, double sooner) {
  if (std::abs(longer) <= static_cast<double>(kJitterNs)) return;
  ++count_;
  longer_squares_ += longer * longer;
  products_ += longer * sooner;
  sooner_squares_ += sooner * sooner;
}

BesideChanges::Answer BesideChanges::answer() const {
  if (count_ == 0) return Answer::kUnknown;
  const double slope = products_ / longer_squares_;
  const double rest = std::max(sooner_squares_ - slope * products_, 0.0) / static_cast<double>(count_);
  const double error = std::sqrt(rest / longer_squares_);
  if (std::abs(slope - kBetween) < kErrors * error) return Answer::kUnknown;
  return slope < kBetween ? Answer::kNo : Answer::kYes;
}

void CarriedLateness::look_beside(const OpFinder& finder, const ExclusiveTimes& own,
                                  const model::JobOps& ops) {
  struct Round {
    int64_t lasted = 0, until_next = 0;
  };
  std::vector<std::optional<Round>> rounds(rounds_.length());
  const model::Member& member = finder.member();
  for (uint32_t op = member.first; op + 1 < member.first + member.ops; ++op) {
    // Its own next operation waits for it in any case.
    const uint32_t at = own.place[op] + 1;
    if (at >= own.order.size() ||
        (own.order[at] >= member.first && own.order[at] < member.first + member.ops))
      continue;
    const int64_t end = end_of(ops, own, op);
    if (end == 0 || !ops.is_placed(own.order[at])) continue;
    const Round now{end - own.arrival[op], own.arrival[own.order[at]] - end};
    const std::optional<size_t> place = rounds_.place(ops.index[op + 1]);
    if (!place) continue;
    std::optional<Round>& then = rounds[*place];
    if (now.until_next < 0) {
      then.reset();
      continue;
    }
    if (then)
      beside_[*place].add(static_cast<double>(now.lasted - then->lasted),
                          static_cast<double>(then->until_next - now.until_next));
    then = now;
  }
}

void CarriedLateness::collect(size_t place, const OpFinder& finder, const model::Job& job,
                              const MemberPast& past, Samples& samples) const {
  const model::Member& member = finder.member();
  const uint64_t oldest = job.oldest_index(member), next = job.next_index(member);
  if (next - oldest > most_indexes(member.ops)) return;
  const model::JobOps& ops = job.ops(member);
  std::vector<std::vector<float>> intervals(samples.size());
  const std::vector<uint64_t>& begins = rounds_.begins();
  for (size_t round = 0; round < begins.size(); ++round) {
    for (size_t i = 0; i < samples.size(); ++i) {
      const uint64_t index = begins[round] + place + i;
      if (index < oldest || index >= next) continue;
      const auto now = finder.at(static_cast<uint32_t>(index));
      if (!now || *now == member.first) continue;
      const size_t at = *now - member.first;
      const bool timed = ops.is_placed(*now);
      if (timed && past.waiting[at - 1] <= kWaitedNs && std::isfinite(past.interval[at]))
        intervals[i].push_back(past.interval[at]);
      if (round == 0 || begins[round - 1] + place + i < oldest) continue;
      const auto then = finder.at(static_cast<uint32_t>(begins[round - 1] + place + i));
      if (!then || *then == member.first || ops.is_placed(*then) != timed) continue;
      add_changes(past, at, *then - member.first, samples[i]);
    }
  }
  // Who is late never has to wait: one vote a member, or it would say itself what is usual.
  for (size_t i = 0; i < samples.size(); ++i) {
    if (!intervals[i].empty()) samples[i].intervals.push_back(upper_median(std::span(intervals[i])));
  }
}

void CarriedLateness::add_changes(const MemberPast& past, size_t now, size_t then, Sample& sample) {
  const auto add = [](const Change& change, std::vector<Change>& changes) {
    if (std::isfinite(change.before) && std::isfinite(change.here)) changes.push_back(change);
  };
  add({past.lateness[now - 1] - past.lateness[then - 1], past.lateness[now] - past.lateness[then]},
      sample.lateness);
  // Who came as soon as the operation before was through does not show how long it worked.
  if (past.since[now] > kJitterNs && past.since[then] > kJitterNs)
    add({past.waiting[now - 1] - past.waiting[then - 1], past.since[then] - past.since[now]}, sample.waits);
}

float CarriedLateness::share_of(const Sample& sample) const {
  // With one operation a round, `before` is the change of the round before: a steady share s shows as (s - 1)
  // / 2.
  if (rounds_.length() == 1)
    return std::clamp(1 + 2 * carried_share(sample.lateness).value_or(0), 0.0f, 1.0f);
  std::optional<float> share = carried_share(sample.waits);
  if (!share) share = carried_share(sample.lateness);
  return std::clamp(share.value_or(1), 0.0f, 1.0f);
}

std::optional<float> carried_share(const std::vector<Change>& changes) {
  if (changes.size() < kLeastSamples) return std::nullopt;
  // Small changes are noise of the clock.
  std::vector<float> sizes;
  for (const Change& change : changes) sizes.push_back(std::abs(change.before));
  const float least = std::max(upper_median(std::span(sizes)), 1.0f);
  std::vector<float> shares;
  for (const Change& change : changes) {
    if (std::abs(change.before) >= least) shares.push_back(change.here / change.before);
  }
  if (shares.size() < kLeastSamples / 2) return std::nullopt;
  return upper_median(std::span(shares));
}

}  // namespace lockstep::analysis::straggler
