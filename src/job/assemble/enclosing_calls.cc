// SPDX-License-Identifier: Apache-2.0
// Finds the call during which a kernel was launched, by thread and time. Calls of one thread cannot overlap;
// where records say that they do, one of them is wrong, and neither is used.
#include "job/assemble/enclosing_calls.h"

#include <algorithm>
#include <tuple>

namespace lockstep::job::assemble {

using model::kNoRow;

EnclosingCalls::EnclosingCalls(const model::Trace& trace, model::EventKind kind) : launches_(trace.launches) {
  const model::CallTable& calls = trace.calls;
  if (launches_.size() == 0) return;
  for (uint32_t row = 0; row < calls.size(); ++row) {
    const uint32_t thread = calls.thread[row];
    if (calls.kind[row] != number(kind) || thread >= trace.threads.size()) continue;
    const uint64_t pthread = trace.threads.pthread[thread];
    // Only by the thread's own number are CUPTI's launches and NCCL's calls of one thread known to be so.
    if (pthread == 0) continue;
    // The lower half: a record of a launch has no room for more.
    calls_.push_back({static_cast<uint32_t>(pthread), row, calls.start_ns[row], calls.end_ns[row]});
  }
  const auto earlier = [](const Call& a, const Call& b) {
    return std::tie(a.caller, a.start_ns, a.row) < std::tie(b.caller, b.start_ns, b.row);
  };
  if (!std::is_sorted(calls_.begin(), calls_.end(), earlier))
    std::sort(calls_.begin(), calls_.end(), earlier);
  void_overlaps();
}

void EnclosingCalls::void_overlaps() {
  std::vector<bool> overlaps(calls_.size());
  for (size_t i = 1, last = 0; i < calls_.size(); ++i) {  // last: of those before, the one that ends last
    if (calls_[i].caller == calls_[last].caller && calls_[i].start_ns < calls_[last].end_ns)
      overlaps[i] = overlaps[last] = true;
    if (calls_[i].caller != calls_[last].caller || calls_[i].end_ns >= calls_[last].end_ns) last = i;
  }
  for (size_t i = 0; i < calls_.size(); ++i) {
    if (overlaps[i]) calls_[i].end_ns = 0;
  }
}

bool EnclosingCalls::is_place(size_t at, uint32_t caller, int64_t ns) const {
  if (at >= calls_.size() || calls_[at].caller != caller || calls_[at].start_ns > ns) return false;
  return at + 1 == calls_.size() || calls_[at + 1].caller != caller || calls_[at + 1].start_ns > ns;
}

uint32_t EnclosingCalls::of_launch(uint32_t launch) {
  const uint32_t caller = launches_.caller[launch];
  const int64_t start = launches_.start_ns[launch], end = launches_.end_ns[launch];
  // Launches come nearly in order, so the last place or the one behind it is tried before a search.
  if (!is_place(at_, caller, start)) {
    if (is_place(at_ + 1, caller, start)) {
      ++at_;
    } else {
      const auto behind = std::upper_bound(calls_.begin(), calls_.end(), std::pair(caller, start),
                                           [](const std::pair<uint32_t, int64_t>& wanted, const Call& call) {
                                             return wanted < std::pair(call.caller, call.start_ns);
                                           });
      if (behind == calls_.begin()) return kNoRow;
      at_ = static_cast<size_t>(behind - calls_.begin()) - 1;
    }
  }
  const Call& call = calls_[at_];
  const bool is_inside =
      call.caller == caller && start >= call.start_ns && end >= start && end <= call.end_ns;
  return is_inside ? call.row : kNoRow;
}

}  // namespace lockstep::job::assemble
