// SPDX-License-Identifier: Apache-2.0
// Predicts what a rank would have called next. It looks for the latest earlier place after which the same
// calls came, and takes the place with the longest run of equal calls before it. Programs with branches
// repeat at several distances, so a fixed period would not find it. The search is bounded to the newest
// 65,536 calls and to 512 equal ones, because each place costs a comparison.
#include "analysis/hang/calls/call_order.h"

#include <algorithm>

namespace lockstep::analysis::hang {
namespace {

constexpr size_t kNewest = 65'536;  // calls that are looked at
constexpr size_t kLeastAlike = 8;   // calls in a row that make a repetition
constexpr size_t kMostAlike = 512;

}  // namespace

CallOrder::CallOrder(const JobState& job_state, uint32_t actor) {
  const model::JobProcess& process = job_state.job().processes[job_state.actor(actor).process];
  auto add = [&](const model::Member& member, uint32_t first, uint32_t count, bool pair) {
    for (uint32_t i = first; i < first + count; ++i) {
      if (process.ops.entered_ns(i) != 0)
        calls_.push_back({process.ops.entered_ns(i), member.comm, process.ops.signature[i], pair});
    }
  };
  for (uint32_t row : process.members) {
    if (job_state.actor_of(row) != actor) continue;
    const model::Member& member = job_state.job().members[row];
    add(member, member.first, member.ops, false);
    for (const model::Lane& lane : member.lanes) add(member, lane.first, lane.ops, true);
  }
  // Stable: calls of one instant keep the order in which they are stored, so that equal inputs give equal
  // answers.
  std::stable_sort(calls_.begin(), calls_.end(),
                   [](const Call& a, const Call& b) { return a.entered_ns < b.entered_ns; });
  if (calls_.size() > kNewest) calls_.erase(calls_.begin(), calls_.end() - kNewest);
  repeat_ = calls_.size();
  size_t longest = 0;
  for (const Likeness& of : likenesses(calls_.size())) {
    // Places come newest first, so of equally long runs the latest wins: the job may have changed since.
    if (of.alike <= longest) continue;
    longest = of.alike;
    repeat_ = of.place;
  }
}

std::vector<CallOrder::Likeness> CallOrder::likenesses(size_t at) const {
  std::vector<Likeness> out;
  size_t longest = 0;
  for (size_t end = at; end-- > kLeastAlike && longest < kMostAlike;) {
    size_t alike = 0;
    while (alike < std::min(end, kMostAlike) && calls_[end - 1 - alike].same(calls_[at - 1 - alike])) ++alike;
    if (alike >= kLeastAlike) out.push_back({end, alike});
    longest = std::max(longest, alike);
  }
  return out;
}

std::optional<uint32_t> CallOrder::until(uint32_t comm, bool pair) const {
  for (size_t i = repeat_; i < calls_.size(); ++i) {
    if (calls_[i].comm == comm && calls_[i].pair == pair) return static_cast<uint32_t>(i - repeat_);
  }
  return std::nullopt;
}

const CallOrder::Call* CallOrder::find(const Operation& operation) const {
  auto at = std::lower_bound(calls_.begin(), calls_.end(), operation.entered_ns,
                             [](const Call& call, int64_t ns) { return call.entered_ns < ns; });
  while (at != calls_.end() && at->entered_ns == operation.entered_ns && at->comm != operation.comm) ++at;
  return at != calls_.end() && at->entered_ns == operation.entered_ns ? &*at : nullptr;
}

CallOrder::Habit CallOrder::order_at(size_t place, const Call& first, const Call* second,
                                     const Operation& wanted) const {
  for (size_t i = place; &calls_[i] != &first; ++i) {
    const Call& call = calls_[i];
    if (call.same(first)) return Habit::kKept;
    if (second != nullptr ? call.same(*second) : call.comm == wanted.comm && call.pair == wanted.pair)
      return Habit::kBroken;
  }
  return Habit::kUnknown;
}

CallOrder::Habit CallOrder::habit(const Operation& first, const Operation& second) const {
  const Call* const called = find(first);
  const Call* const then = second.entered_ns == 0 ? nullptr : find(second);
  if (called == nullptr || (second.entered_ns != 0 && then == nullptr)) return Habit::kUnknown;
  const auto at = static_cast<size_t>(called - calls_.data());
  // Within many calls of one kind, any place is like any other.
  size_t run = 0;
  while (run < at && calls_[at - 1 - run].same(calls_[at - 1])) ++run;
  // Every place that looks alike has its say, and one that disagrees makes the answer unknown: blame needs a
  // habit without exceptions.
  std::optional<Habit> habit;
  for (const Likeness& of : likenesses(at)) {
    if (of.alike <= run) continue;
    const Habit order = order_at(of.place, *called, then, second);
    if (habit && order != *habit) return Habit::kUnknown;
    habit = order;
  }
  return habit.value_or(Habit::kUnknown);
}

}  // namespace lockstep::analysis::hang
