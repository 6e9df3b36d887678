// SPDX-License-Identifier: Apache-2.0
#include "analysis/hang/call_order.h"

#include <algorithm>

namespace lockstep::analysis::hang {
namespace {

constexpr size_t kNewest = 65'536;  // calls that are looked at
constexpr size_t kLeastAlike = 8;   // calls in a row that make a repetition
constexpr size_t kMostAlike = 512;

}  // namespace

CallOrder::CallOrder(const Scene& scene, uint32_t actor) {
  const model::JobProcess& process = scene.job().processes[scene.actor(actor).process];
  auto add = [&](const model::Member& member, uint32_t first, uint32_t count, bool pair) {
    for (uint32_t i = first; i < first + count; ++i) {
      if (process.ops.entered_ns(i) != 0)
        calls_.push_back({process.ops.entered_ns(i), member.comm, process.ops.signature[i], pair});
    }
  };
  for (uint32_t row : process.members) {
    if (scene.actor_of(row) != actor) continue;
    const model::Member& member = scene.job().members[row];
    add(member, member.first, member.ops, false);
    for (const model::Lane& lane : member.lanes) add(member, lane.first, lane.ops, true);
  }
  std::stable_sort(calls_.begin(), calls_.end(),
                   [](const Call& a, const Call& b) { return a.entered_ns < b.entered_ns; });
  if (calls_.size() > kNewest) calls_.erase(calls_.begin(), calls_.end() - kNewest);
  repeat_ = calls_.size();
  size_t longest = kLeastAlike - 1;
  for (size_t end = calls_.size(); end-- > kLeastAlike;) {
    size_t alike = 0;
    while (alike < std::min(end, kMostAlike) &&
           calls_[end - 1 - alike].same(calls_[calls_.size() - 1 - alike]))
      ++alike;
    if (alike <= longest) continue;
    longest = alike;
    repeat_ = end;
    if (longest == kMostAlike) break;
  }
}

std::optional<uint32_t> CallOrder::until(uint32_t comm, bool pair) const {
  for (size_t i = repeat_; i < calls_.size(); ++i) {
    if (calls_[i].comm == comm && calls_[i].pair == pair) return static_cast<uint32_t>(i - repeat_);
  }
  return std::nullopt;
}

}  // namespace lockstep::analysis::hang
