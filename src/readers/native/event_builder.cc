// SPDX-License-Identifier: Apache-2.0
// Records name their parents by position, and a parent in another log, or a state on another thread, may come
// before or behind. So each log is decoded once, in order, what it names is looked up at once, and what is
// not there yet waits until all logs are read. A parent that is not found then is a loss and leaves the event
// in place: the event itself was seen.
#include "readers/native/event_builder.h"

#include <algorithm>
#include <memory>

namespace lockstep::readers::native {

using format::Kind;

EventBuilder::EventBuilder(const FileView& view, TickClock& clock, const CommRows& comms,
                           const GpuAgents& agents, ThreadRows& threads, uint32_t process,
                           model::Trace& trace, ReadLosses& losses)
    : view_(view),
      clock_(clock),
      comms_(comms),
      threads_(threads),
      process_(process),
      trace_(trace),
      losses_(losses),
      // Handles are kept where deep events may name them from other processes (PXN); elsewhere they would be
      // eight bytes a task for nothing.
      keeps_handles_(format::mode_rank(static_cast<format::Mode>(trace.processes.mode[process])) >=
                     format::mode_rank(format::Mode::kSample)),
      gpu_work_(agents, threads, process, trace, losses, view.path()) {}

void EventBuilder::reserve(const RecordCensus& census) {
  auto sum = [&](std::initializer_list<Kind> kinds) {
    size_t records = 0;
    for (Kind kind : kinds) records += census.by_kind[static_cast<size_t>(kind)];
    return records;
  };
  auto more = [](auto& table, size_t rows) { table.reserve(table.size() + rows); };
  more(trace_.calls, sum({Kind::kGroupApi, Kind::kCollApi, Kind::kP2pApi, Kind::kKernelLaunch, Kind::kGroup,
                          Kind::kCeSync, Kind::kCeBatch}));
  more(trace_.tasks, sum({Kind::kColl, Kind::kShortColl, Kind::kP2p, Kind::kCeColl, Kind::kApiOp}));
  more(trace_.channels, sum({Kind::kKernelCh, Kind::kKernelPhase}));
  more(trace_.proxy_ops, sum({Kind::kProxyOp}));
  more(trace_.proxy_steps, sum({Kind::kProxyStep}));
  more(trace_.proxy_ctrls, sum({Kind::kProxyCtrl}));
  more(trace_.net_events, sum({Kind::kNetPlugin}));
  more(trace_.marks, sum({Kind::kMark}));
  more(trace_.kernels, sum({Kind::kKernel, Kind::kCopy, Kind::kDispatch, Kind::kQueuedCopy}));
  more(trace_.launches, sum({Kind::kLaunchCall}));
  more(trace_.ranges, sum({Kind::kRange}));
  gpu_work_.reserve(sum({Kind::kDispatch, Kind::kQueuedCopy}));
  for (const LogCensus& log : census.logs) index_.log(log.log).reserve(log.chunks.size());
}

void EventBuilder::add_log(const LogCensus& log, LogDefinitions& definitions) {
  definitions_ = &definitions;
  for (const LogDefinitions::Owner& owner : definitions.owners())
    // Entered even if the thread recorded nothing here: launches of other files may name it.
    threads_.own(owner.tid, owner.name, owner.pthread, clock_.to_ns(owner.since_ticks));
  log_ = log.log;
  log_index_ = &index_.log(log_);
  auto buffer = std::make_unique<ChunkBuffer>();
  for (const RecordChunk& chunk : log.chunks) {
    if (view_.read(chunk.chunk, *buffer)) {
      add_chunk(chunk, *buffer);
    } else {
      losses_.add("recycled_record", chunk.records, [&] {
        return "records that the process overwrote while its file was read: " + view_.path();
      });
    }
  }
}

void EventBuilder::lose_parent() {
  // In a ring the parent was overwritten, which is its purpose; elsewhere its absence is damage.
  bool ring = view_.header().retention == format::Retention::kRing;
  losses_.add(ring ? "overwritten_parent" : "unresolved_parent", 1, [&] {
    return (ring ? "events whose parent is no longer in the file: "
                 : "events whose parent is not in the file: ") +
           view_.path();
  });
}

void EventBuilder::link_handle(RowRef child, uint64_t parent) {
  if (format::handle_log(parent) == 0) return;  // none, or an event that capture declined
  if (RowRef found = index_.find(parent); found && attach(trace_, child, found)) return;
  pending_parents_.push_back({child, parent});
}

// CLOCK_REALTIME is taken as it is, though the wall clock may have been set since the boot's first anchor.
int64_t EventBuilder::gpu_ns(uint32_t clock, uint64_t value) {
  switch (static_cast<format::ApiClock>(clock)) {
    case format::ApiClock::kMonotonic:
      return clock_.from_monotonic(value);
    case format::ApiClock::kRealtime:
      return static_cast<int64_t>(std::clamp<uint64_t>(value, 1, INT64_MAX));
    default:
      losses_.add("gpu_clock", 1,
                  [&] { return "GPU times on a clock that nothing relates to the host's: " + view_.path(); });
      return 0;
  }
}

bool EventBuilder::apply(const format::StateRecord& record) {
  RowRef target = index_.find(record.target);
  if (!target) return false;
  const uint16_t number = record.head.link;
  // A GPU time's clock stands in the field that other states use for their second argument.
  uint64_t value = record.value;
  if (number == format::kStateGpuStart || number == format::kStateGpuEnd) {
    value = static_cast<uint64_t>(gpu_ns(record.head.stop_after, value));
  }
  int64_t when = clock_.to_ns(record.head.start);
  // A range's end says nothing of whether the process still communicates.
  if (target.table != Target::kRange) when = note(when);
  switch (apply_state(trace_, target, number, when, value)) {
    case StateResult::kStored:
      ++states_;
      break;
    // Not in `states_`, which finish() holds against the times that were saturated.
    case StateResult::kOnlyFirstKept:
      losses_.add("proxy_op_states", 1, [&] {
        return "per-step states that NCCL before 2.27 reports on the proxy operation; only the first "
               "progress is kept: " +
               view_.path();
      });
      break;
    case StateResult::kMismatch:
      losses_.add("state_mismatch", 1,
                  [&] { return "states that their event cannot have: " + view_.path(); });
      break;
  }
  return true;
}

bool EventBuilder::apply(const format::LinkRecord& record) {
  RowRef child = index_.find(record.child), parent = index_.find(record.parent);
  if (!child || !parent) return false;
  if (!attach(trace_, child, parent)) lose_parent();
  return true;
}

bool EventBuilder::apply(const format::UserTagRecord& record) {
  RowRef child = index_.find(record.child);
  if (!child) return false;
  if (!apply_user_tag(trace_, child, record.tag)) {
    losses_.add("bad_user_tag", 1, [&] { return "tags of events that have none: " + view_.path(); });
  }
  return true;
}

// These wait if they come before their event. A log is read whole before the next, so what another thread
// tells may come on either side.
void EventBuilder::add(const format::StateRecord& record) {
  if (!apply(record)) pending_states_.push_back(record);
}
void EventBuilder::add(const format::LinkRecord& record) {
  // The record was written again in a ring: from now on the old handle names the new place.
  if (record.head.flags & format::kFlagMoved) {
    index_.add_name(record.parent, record.child);
    return;
  }
  ++links_;
  if (!apply(record)) pending_links_.push_back(record);
}
void EventBuilder::add(const format::UserTagRecord& record) {
  if (!apply(record)) pending_tags_.push_back(record);
}

bool EventBuilder::apply(const format::GpuTimesRecord& record) {
  const RowRef target = index_.find(record.target);
  if (target.table != Target::kGpuWork) return false;
  gpu_work_.set_times(target.row, record);
  return true;
}

void EventBuilder::add(const format::GpuTimesRecord& record) {
  if (!apply(record)) pending_times_.push_back(record);
}

void EventBuilder::finish() {
  // Before gpu_work_.finish(), which makes the rows.
  for (const auto& record : pending_times_) {
    if (!apply(record)) {
      losses_.add("unresolved_times", 1,
                  [&] { return "GPU times of kernels that are not in the file: " + view_.path(); });
    }
  }
  const GpuWork::Span seen = gpu_work_.finish();
  if (seen.first_ns != 0) note(seen.first_ns), note(seen.last_ns);
  for (const PendingParent& pending : pending_parents_) {
    RowRef parent = index_.find(pending.parent);
    if (!parent || !attach(trace_, pending.child, parent)) lose_parent();
  }
  for (const auto& record : pending_links_) {
    if (!apply(record)) lose_parent();
  }
  for (const auto& record : pending_states_) {
    if (!apply(record)) {
      losses_.add("unresolved_state", 1,
                  [&] { return "stops and states of events that are not in the file: " + view_.path(); });
    }
  }
  for (const auto& record : pending_tags_) {
    if (!apply(record)) {
      losses_.add("unresolved_tag", 1,
                  [&] { return "tags of events that are not in the file: " + view_.path(); });
    }
  }
  splits_.move_into(trace_, process_, index_, losses_, view_.path());
  // Records announce these: a far link or a saturated time without its own record shows that one is missing,
  // though its event is there.
  losses_.add("missing_link", far_links_ > links_ ? far_links_ - links_ : 0, [&] {
    return "events whose parent was recorded apart, in a record that is missing: " + view_.path();
  });
  losses_.add("missing_time", saturated_ > states_ ? saturated_ - states_ : 0, [&] {
    return "times too long for their field whose own record is missing: a stop is then too early, a state "
           "absent: " +
           view_.path();
  });
}

void EventBuilder::lose_comm() {
  losses_.add("unknown_comm", 1,
              [&] { return "events of communicators that are not in the file: " + view_.path(); });
}

// Numbers beyond CUPTI's known kinds share the place of the unknown one, which bounds the table of names.
model::StringId EventBuilder::copy_name(const format::CopyRecord& record) {
  const auto kind = record.copy <= format::CopyKind::kSet ? record.copy : format::CopyKind::kNone;
  const uint8_t from = record.from < kMemoryKinds ? record.from : 0,
                to = record.to < kMemoryKinds ? record.to : 0;
  model::StringId& name = copy_names_[(static_cast<size_t>(kind) * kMemoryKinds + from) * kMemoryKinds + to];
  if (name == 0) name = trace_.strings.intern(native::copy_name(kind, from, to));
  return name;
}

void EventBuilder::lose_gpu_stop() {
  losses_.add("open_gpu_work", 1, [&] { return "kernels and copies without an end: " + view_.path(); });
}

void EventBuilder::lose_shape() {
  losses_.add("unknown_shape", 1,
              [&] { return "operations whose function and types are not in the file: " + view_.path(); });
}

void EventBuilder::lose_kernel_name() {
  losses_.add("unknown_kernel_name", 1, [&] {
    return "kernels whose name is not in the file, taken to be no communication: " + view_.path();
  });
}

void EventBuilder::lose_range_name() {
  losses_.add("unknown_range_name", 1,
              [&] { return "names of ranges and their domains that are not in the file: " + view_.path(); });
}

}  // namespace lockstep::readers::native
