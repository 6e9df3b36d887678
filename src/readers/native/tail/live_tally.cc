// SPDX-License-Identifier: Apache-2.0
// An operation is done on the GPU when as many of its channels have ended as it has. Channels may be read
// before the operation that they are of, so both wait under its handle. What waits is bounded, oldest first:
// an operation whose channels were lost never becomes whole.
#include "readers/native/tail/live_tally.h"

#include "format/definitions.h"
#include "model/names/operation_size.h"

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
  // Names come from the program: a monitor must not grow with them.
  if (counts_.size() >= kMostFunctions) {
    ++overflows_;
    key = {format::kNoComm, "other"};
  }
  return counts_.try_emplace(std::move(key)).first;
}

void LiveTally::call(const Operation& op) {
  LiveCounts& counts = at(op.comm, op.func)->second;
  last_ = {&counts, false, size_of(op)};
  counts.counted.add_call(last_.bytes);
}

void LiveTally::call_ended(uint32_t comm, std::string_view func, int64_t ns) {
  if (ns >= 0) at(comm, func)->second.call_seconds.add(static_cast<double>(ns) * 1e-9);
}

void LiveTally::task(const Operation& op, uint64_t handle, uint32_t channels) {
  auto entry = at(op.comm, op.func);
  last_ = {&entry->second, true, size_of(op)};
  entry->second.counted.add_task(last_.bytes);
  if (channels == 0) return;
  Pending& task = pending(handle);
  task.op = op;
  // The caller's text is gone by the time the channels end; the key stays.
  task.op.func = entry->first.second;
  task.channels = channels;
  finish_if_whole(handle);
}

LiveTally::Pending& LiveTally::pending(uint64_t handle) {
  if (auto known = pending_.find(handle); known != pending_.end()) return known->second;
  // Before the new one is there: its number may be the oldest's, which has ended and keeps its turn.
  if (pending_order_.size() == kMostPending) {
    pending_.erase(pending_order_.front());
    pending_order_.pop_front();
  }
  pending_order_.push_back(handle);
  return pending_[handle];
}

void LiveTally::finish_if_whole(uint64_t handle) {
  auto known = pending_.find(handle);
  const Pending& task = known->second;
  if (task.channels == 0 || task.ended < task.channels) return;
  // From the first channel's begin to the last one's end: channels of one operation run side by side.
  gpu_time(task.op, static_cast<int64_t>(task.gpu_stop - task.gpu_start), LiveSource::kChannels);
  pending_.erase(known);  // its place in the order goes when its turn comes
}

void LiveTally::uncount_last() {
  if (last_.counts == nullptr) return;
  auto& counted = last_.counts->counted;
  --(last_.is_task ? counted.tasks : counted.calls);
  (last_.is_task ? counted.task_bytes : counted.call_bytes) -= last_.bytes;
  last_ = {};
}

void LiveTally::moved(uint64_t handle, uint64_t issued, bool is_last) {
  if (is_last) uncount_last();
  const auto known = pending_.find(handle);
  if (known == pending_.end() || handle == issued) return;
  const Pending task = known->second;
  pending_.erase(known);  // its place in the order goes when its turn comes
  Pending& of = pending(issued);
  of.op = task.op;
  of.channels = task.channels;
  finish_if_whole(issued);
}

void LiveTally::channel(uint64_t task, uint64_t gpu_start, uint64_t gpu_stop) {
  if (gpu_stop < gpu_start || gpu_start == 0) return;
  Pending& work = pending(task);
  work.gpu_start = std::min(work.gpu_start, gpu_start);
  work.gpu_stop = std::max(work.gpu_stop, gpu_stop);
  ++work.ended;
  finish_if_whole(task);
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
