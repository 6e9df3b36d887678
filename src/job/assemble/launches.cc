// SPDX-License-Identifier: Apache-2.0
// Pairs each plan with its kernel launch on the same thread and communicator. API versions 1 to 4 report the
// plan after the launch, so the end of the plan before it is the earliest time at which the task can have
// been launched.
#include "job/assemble/launches.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "model/event_kind.h"

namespace lockstep::job::assemble {

using model::EventKind;
using model::kNoRow;

namespace {

// A map that remembers the entry of the last key: neighbouring rows mostly share it.
template <class Key, class Value>
class Recent {
 public:
  explicit Recent(Value unset) : unset_(unset) {}
  Value& operator[](Key key) {
    if (value_ == nullptr || key != key_) {
      key_ = key;
      value_ = &values_.try_emplace(key, unset_).first->second;
    }
    return *value_;
  }

 private:
  Value unset_;
  std::unordered_map<Key, Value> values_;
  Key key_{};
  Value* value_ = nullptr;
};

}  // namespace

Launches::Launches(const model::Trace& trace)
    : trace_(trace), launch_(trace.calls.size(), kNoRow), previous_end_(trace.calls.size(), 0) {
  const model::CallTable& calls = trace.calls;
  Recent<uint64_t, uint32_t> open(kNoRow);   // (thread, comm) -> launch without a plan yet
  Recent<uint32_t, int64_t> last_end_ns(0);  // by thread
  for (uint32_t row = 0; row < calls.size(); ++row) {
    uint64_t key = uint64_t{calls.thread[row]} << 32 | calls.comm[row];
    if (calls.kind[row] == number(EventKind::kKernelLaunch)) {
      open[key] = row;
    } else if (calls.kind[row] == number(EventKind::kGroup)) {
      // Each launch has one plan: a plan whose own launch was not recorded must not take an older one.
      launch_[row] = std::exchange(open[key], kNoRow);
      int64_t& last = last_end_ns[calls.thread[row]];
      previous_end_[row] = last;
      last = std::max({last, calls.start_ns[row], calls.end_ns[row]});
    }
  }
}

int64_t Launches::launched_ns(uint32_t task) const {
  uint32_t plan = trace_.tasks.plan[task];
  if (plan == kNoRow || launch_[plan] == kNoRow) return 0;
  return trace_.calls.start_ns[launch_[plan]];
}

int64_t Launches::not_before_ns(uint32_t task) const {
  if (int64_t launched = launched_ns(task); launched != 0) return launched;
  if (uint32_t call = trace_.tasks.call[task]; call != kNoRow) {
    // A replay's callback runs ahead of its kernel; its call was made when the graph was captured.
    bool replay = (trace_.calls.flags[call] & model::kFlagGraphCaptured) != 0;
    return replay ? trace_.tasks.start_ns[task] : trace_.calls.start_ns[call];
  }
  // API 1 to 4: the plan is reported after its launch, so its own start is too late; the plan before it is
  // not.
  uint32_t plan = trace_.tasks.plan[task];
  return plan == kNoRow ? 0 : previous_end_[plan];
}

}  // namespace lockstep::job::assemble
