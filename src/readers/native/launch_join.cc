// SPDX-License-Identifier: Apache-2.0
// Joins launches, the driver's calls and kernels of a running process as they come, to time operations
// without reading a whole file. Three streams arrive in any order, so each waits a bounded while for the
// others; all tables have a bound, and the oldest goes first. What does not find its partner in time is
// handed on as not joined and never guessed.
#include "readers/native/launch_join.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace lockstep::readers::native {

void LaunchJoin::add_launch(const Thread& thread, uint64_t begin, uint64_t end, const Op& op) {
  // Every launch is entered twice, by both numbers of its thread, so this bounds half as many threads.
  if (launches_.size() >= kMostThreads && !launches_.contains(thread)) return;
  auto& launches = launches_[thread];
  launches.insert_or_assign(begin, Launch{end, op});
  if (launches.size() > kMostLaunches) launches.erase(launches.begin());
}

void LaunchJoin::add_call(const Thread& thread, uint64_t begin, uint32_t correlation) {
  auto known = launches_.find(thread);
  if (known == launches_.end()) return;
  // The last launch that began by then; the driver's call lies inside it or in none.
  auto after = known->second.upper_bound(begin);
  if (after == known->second.begin()) return;
  Launch& launch = std::prev(after)->second;
  if (begin > launch.end) return;
  if (!ops_.insert_or_assign(correlation, launch.op).second) return;
  ops_order_.push_back(correlation);
  if (ops_order_.size() > kMostCalls) {
    ops_.erase(ops_order_.front());
    ops_order_.pop_front();
  }
}

void LaunchJoin::add_kernel(uint32_t correlation, Kernel kernel) {
  // Beyond the bound a kernel has no time left: the next question hands it on if its call is not there yet.
  held_.push_back({correlation, std::move(kernel), held_.size() >= kMostKernels ? kPatience : 0});
}

std::vector<LaunchJoin::Timed> LaunchJoin::take_timed() { return std::exchange(timed_, {}); }

std::vector<LaunchJoin::Kernel> LaunchJoin::take_unjoined() {
  std::vector<Kernel> unjoined;
  std::vector<Held> kept;
  for (Held& held : held_) {
    auto op = ops_.find(held.correlation);
    if (op != ops_.end() && timed_.size() < kMostKernels) {
      timed_.push_back({op->second, held.kernel.ns});
      ops_.erase(op);  // a second kernel of the call is none of the operation's
    } else if (++held.asked > kPatience) {
      unjoined.push_back(std::move(held.kernel));
    } else {
      kept.push_back(std::move(held));
    }
  }
  held_ = std::move(kept);
  return unjoined;
}

}  // namespace lockstep::readers::native
