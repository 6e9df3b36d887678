// SPDX-License-Identifier: Apache-2.0
#include "readers/native/live_tally.h"

#include "format/definitions.h"
#include "model/operation_size.h"

namespace lockstep::readers::native {
namespace {

double size_of(const LiveTally::Operation& op) {
  // A size that no counter of bytes holds is damage.
  constexpr double kMost = 1e18;
  auto bytes = static_cast<uint64_t>(std::clamp(op.bytes, 0.0, kMost));
  return static_cast<double>(model::operation_size(op.func, bytes, op.ranks, op.declared));
}

}  // namespace

std::map<LiveTally::Key, LiveCounts>::iterator LiveTally::at(uint32_t comm, std::string_view func) {
  Key key(comm, func);
  auto known = counts_.find(key);
  if (known != counts_.end()) return known;
  if (counts_.size() >= kMostFunctions) {
    ++overflows_;
    key = {format::kNoComm, "other"};
  }
  return counts_.try_emplace(std::move(key)).first;
}

void LiveTally::call(const Operation& op) {
  LiveCounts& counts = at(op.comm, op.func)->second;
  last_ = {&counts, false, size_of(op)};
  ++counts.calls;
  counts.call_bytes += last_.bytes;
}

void LiveTally::call_ended(uint32_t comm, std::string_view func, int64_t ns) {
  if (ns >= 0) at(comm, func)->second.call_seconds.add(static_cast<double>(ns) * 1e-9);
}

void LiveTally::task(const Operation& op, uint64_t handle, uint32_t channels) {
  auto entry = at(op.comm, op.func);
  last_ = {&entry->second, true, size_of(op)};
  ++entry->second.tasks;
  entry->second.task_bytes += last_.bytes;
  if (channels == 0) return;
  Pending pending{op, channels, UINT64_MAX, 0};
  pending.op.func = entry->first.second;
  if (pending_.insert_or_assign(handle, pending).second) pending_order_.push_back(handle);
  if (pending_order_.size() > kMostPending) {
    pending_.erase(pending_order_.front());
    pending_order_.pop_front();
  }
}

void LiveTally::uncount_last() {
  if (last_.counts == nullptr) return;
  --(last_.is_task ? last_.counts->tasks : last_.counts->calls);
  (last_.is_task ? last_.counts->task_bytes : last_.counts->call_bytes) -= last_.bytes;
  last_ = {};
}

void LiveTally::channel(uint64_t task, uint64_t gpu_start, uint64_t gpu_stop) {
  auto known = pending_.find(task);
  if (known == pending_.end() || gpu_stop < gpu_start || gpu_start == 0) return;
  Pending& pending = known->second;
  pending.gpu_start = std::min(pending.gpu_start, gpu_start);
  pending.gpu_stop = std::max(pending.gpu_stop, gpu_stop);
  if (--pending.channels_left > 0) return;
  gpu_time(pending.op, static_cast<int64_t>(pending.gpu_stop - pending.gpu_start), LiveSource::kChannels);
  pending_.erase(known);  // its place in the order goes when its turn comes
}

void LiveTally::gpu_time(const Operation& op, int64_t ns, LiveSource source) {
  if (ns <= 0) return;
  LiveCounts& counts = at(op.comm, op.func)->second;
  const double seconds = static_cast<double>(ns) * 1e-9, size = size_of(op);
  counts.gpu_seconds[static_cast<size_t>(source)].add(seconds);
  if (size > 0)
    counts.bandwidth[static_cast<size_t>(source)][live_size(size)].add(size / seconds *
                                                                       model::bus_factor(op.func, op.ranks));
}

void LiveTally::kernel(std::string_view func, int64_t ns) {
  if (ns > 0)
    at(format::kNoComm, func)
        ->second.gpu_seconds[static_cast<size_t>(LiveSource::kKernel)]
        .add(static_cast<double>(ns) * 1e-9);
}

}  // namespace lockstep::readers::native
