// SPDX-License-Identifier: Apache-2.0
// States that were too late, too large or on the wrong thread for their record are applied by the rules that
// capture itself follows (src/capture/nccl/events.cc): the first report of a state counts, whoever stored it.
// So a trace does not show on which of the two ways a time came.
#include "readers/native/late_records.h"

#include <algorithm>

#include "model/event_kind.h"

namespace lockstep::readers::native {
namespace {

using format::Kind;
using model::Trace;

// Event states, as numbered by NCCL's profiler API.
enum State : uint16_t {
  kSendGpuWait = 8,
  kSendWait = 9,
  kRecvWait = 10,
  kRecvFlushWait = 11,
  kRecvGpuWait = 12,
  kCtrlFirst = 13,
  kCtrlWakeup = 16,
  kCtrlAppendEnd = 18,
  kOpInProgress = 19,
  kSendPeerWait = 20,
  kNetUpdate = 21,
  kKernelStop = 22,
  kGroupStartStop = 23,
  kGroupEndStart = 24,
  kPhaseStop = 31,
};

// The first report of a state counts; a record that could not hold a time left its column at 0.
void keep_first(int64_t& column, int64_t when) {
  if (column == 0) column = when;
}

uint32_t clamp32(uint64_t value) { return static_cast<uint32_t>(std::min<uint64_t>(value, UINT32_MAX)); }

// Only a group has states: when its outermost begin ended, and when its outermost end began.
StateResult call_state(Trace& trace, uint32_t row, uint16_t state, int64_t when) {
  auto& calls = trace.calls;
  if (calls.kind[row] != static_cast<uint8_t>(Kind::kGroupApi)) return StateResult::kMismatch;
  if (state == kGroupStartStop) {
    keep_first(calls.group_start_ns[row], when);
  } else if (state == kGroupEndStart) {
    keep_first(calls.group_end_ns[row], when);
  } else {
    return StateResult::kMismatch;
  }
  return StateResult::kStored;
}

StateResult channel_state(Trace& trace, uint32_t row, uint16_t state, int64_t when, uint64_t value) {
  bool phase = trace.channels.kind[row] == static_cast<uint8_t>(Kind::kKernelPhase);
  if (state != (phase ? kPhaseStop : kKernelStop)) return StateResult::kMismatch;
  if (value != 0) trace.channels.gpu_stop[row] = value;  // 0: only the time did not fit into the record
  trace.channels.stop_seen_ns[row] = when;
  return StateResult::kStored;
}

StateResult op_state(Trace& trace, uint32_t row, uint16_t state, int64_t when) {
  int64_t& progress = trace.proxy_ops.progress_ns[row];
  if (state == kOpInProgress) {
    keep_first(progress, when);
    return StateResult::kStored;
  }
  if (state >= kSendGpuWait) return StateResult::kMismatch;
  // NCCL before 2.27 reports progress on the operation and many times: the first of any thread is what the
  // column means.
  if (progress == 0 || when < progress) progress = when;
  return StateResult::kOnlyFirstKept;
}

StateResult step_state(Trace& trace, uint32_t row, uint16_t state, int64_t when, uint64_t value) {
  auto& steps = trace.proxy_steps;
  switch (state) {
    // The three waits of a step have other states for a send than for a receive (format/records.h). A state
    // of a send also gives the direction.
    case kSendGpuWait:
      steps.is_send[row] = 1;
      [[fallthrough]];
    case kRecvWait:
      keep_first(steps.wait1_ns[row], when);
      return StateResult::kStored;
    case kSendPeerWait:
      if (steps.peer_waits[row] != UINT16_MAX) ++steps.peer_waits[row];
      keep_first(steps.wait2_ns[row], when);
      return StateResult::kStored;
    case kRecvFlushWait:
      keep_first(steps.wait2_ns[row], when);
      if (value != 0) steps.bytes[row] = clamp32(value);
      return StateResult::kStored;
    // Of all states only 9 and 11 carry the size of the transfer.
    case kSendWait:
      if (value != 0) steps.bytes[row] = clamp32(value);
      [[fallthrough]];
    case kRecvGpuWait:
      keep_first(steps.wait3_ns[row], when);
      return StateResult::kStored;
    default:
      return StateResult::kMismatch;
  }
}

StateResult ctrl_state(Trace& trace, uint32_t row, uint16_t state, int64_t when, uint64_t value) {
  auto& ctrls = trace.proxy_ctrls;
  if (state < kCtrlFirst || state > kCtrlAppendEnd) return StateResult::kMismatch;
  // States of a proxy thread come in pairs: sleep and wakeup, append and append end. Idle and active stand
  // alone.
  if (state == kCtrlWakeup || state == kCtrlAppendEnd) {
    ctrls.second_state[row] = static_cast<uint8_t>(state);
    keep_first(ctrls.second_ns[row], when);
    if (state == kCtrlAppendEnd && value != 0) ctrls.appended[row] = clamp32(value);
  } else {
    ctrls.first_state[row] = static_cast<uint8_t>(state);
    keep_first(ctrls.first_ns[row], when);
  }
  return StateResult::kStored;
}

StateResult task_state(Trace& trace, uint32_t row, uint16_t state, uint64_t value) {
  auto& tasks = trace.tasks;
  if (tasks.kind[row] != static_cast<uint8_t>(Kind::kApiOp)) return StateResult::kMismatch;
  if (state == format::kStateGpuStart) {
    keep_first(tasks.gpu_start_ns[row], static_cast<int64_t>(value));
  } else if (state == format::kStateGpuEnd) {
    keep_first(tasks.gpu_end_ns[row], static_cast<int64_t>(value));
  } else {
    return StateResult::kMismatch;
  }
  // One without the other is no interval.
  if (tasks.gpu_start_ns[row] != 0 && tasks.gpu_end_ns[row] != 0) tasks.flags[row] |= format::kFlagGpuTimes;
  return StateResult::kStored;
}

StateResult stop(Trace& trace, RowRef target, int64_t when) {
  switch (target.table) {
    case Target::kCall:
      trace.calls.end_ns[target.row] = when;
      break;
    case Target::kTask:
      trace.tasks.end_ns[target.row] = when;
      break;
    case Target::kChannel:  // the host sees the GPU's stop in a state; the stop alone is what v3 has
      if (trace.channels.stop_seen_ns[target.row] == 0) trace.channels.stop_seen_ns[target.row] = when;
      break;
    case Target::kProxyOp:
      trace.proxy_ops.end_ns[target.row] = when;
      break;
    case Target::kProxyStep:
      trace.proxy_steps.end_ns[target.row] = when;
      break;
    case Target::kProxyCtrl:
      trace.proxy_ctrls.end_ns[target.row] = when;
      break;
    case Target::kNetEvent:
      trace.net_events.end_ns[target.row] = when;
      break;
    case Target::kKernel:
      trace.kernels.end_ns[target.row] = when;
      break;
    case Target::kLaunch:
      trace.launches.end_ns[target.row] = when;
      break;
    case Target::kRange:
      trace.ranges.end_ns[target.row] = when;
      break;
    case Target::kGpuWork:
    case Target::kNone:
      return StateResult::kMismatch;
  }
  return StateResult::kStored;
}

}  // namespace

StateResult apply_state(Trace& trace, RowRef target, uint16_t number, int64_t when_ns, uint64_t value) {
  if (number == format::kStateStop) return stop(trace, target, when_ns);
  switch (target.table) {
    case Target::kCall:
      return call_state(trace, target.row, number, when_ns);
    case Target::kChannel:
      return channel_state(trace, target.row, number, when_ns, value);
    case Target::kProxyOp:
      return op_state(trace, target.row, number, when_ns);
    case Target::kProxyStep:
      return step_state(trace, target.row, number, when_ns, value);
    case Target::kProxyCtrl:
      return ctrl_state(trace, target.row, number, when_ns, value);
    case Target::kNetEvent:
      if (number != kNetUpdate) return StateResult::kMismatch;
      ++trace.net_events.updates[target.row];
      return StateResult::kStored;
    case Target::kTask:
      return task_state(trace, target.row, number, value);
    case Target::kKernel:
    case Target::kLaunch:
    case Target::kRange:
    case Target::kGpuWork:
    case Target::kNone:
      return StateResult::kMismatch;
  }
  return StateResult::kMismatch;
}

bool apply_user_tag(Trace& trace, RowRef target, uint64_t tag) {
  if (target.table == Target::kCall) {
    trace.calls.user_tag[target.row] = tag;
  } else if (target.table == Target::kTask) {
    trace.tasks.user_tag[target.row] = tag;
  } else {
    return false;
  }
  return true;
}

}  // namespace lockstep::readers::native
