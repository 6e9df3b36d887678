// SPDX-License-Identifier: Apache-2.0
// Which rows can be whose parents, and where a row keeps its parent. Inline: it runs for every record of a
// run.
#pragma once
#include <cstdint>

#include "format/records.h"
#include "model/trace.h"
#include "readers/native/row_index.h"

namespace lockstep::readers::native {

// Of a task: the kernel plan that NCCL put it into, or the call that asked for it. Plugin interfaces before
// v5 name the plan alone. All of these return false, and change nothing, if the kinds do not fit: records
// name parents by position, which damage can turn into anything.
inline bool attach_task(model::Trace& trace, uint32_t task, RowRef parent) {
  if (parent.table != Target::kCall) return false;
  switch (static_cast<format::Kind>(trace.calls.kind[parent.row])) {
    case format::Kind::kGroup:
      trace.tasks.plan[task] = parent.row;
      return true;
    case format::Kind::kCollApi:
    case format::Kind::kP2pApi:
      trace.tasks.call[task] = parent.row;
      return true;
    default:
      return false;
  }
}

// Of a call: a group, or for the parts of a copy engine's collective its task.
inline bool attach_call(model::Trace& trace, uint32_t call, RowRef parent) {
  auto kind = static_cast<format::Kind>(trace.calls.kind[call]);
  bool below_task = kind == format::Kind::kCeSync || kind == format::Kind::kCeBatch;
  bool fits = below_task ? parent.table == Target::kTask
                         : parent.table == Target::kCall &&
                               trace.calls.kind[parent.row] == static_cast<uint8_t>(format::Kind::kGroupApi);
  if (fits) trace.calls.parent[call] = parent.row;
  return fits;
}

// Makes `parent` the parent of `child`; false if their kinds do not fit.
inline bool attach(model::Trace& trace, RowRef child, RowRef parent) {
  switch (child.table) {
    case Target::kCall:
      return attach_call(trace, child.row, parent);
    case Target::kTask:
      return attach_task(trace, child.row, parent);
    case Target::kChannel:
      if (parent.table != Target::kTask) return false;
      trace.channels.task[child.row] = parent.row;
      return true;
    case Target::kProxyOp:
      if (parent.table != Target::kTask) return false;
      trace.proxy_ops.task[child.row] = parent.row;
      // A context that names no communicator here leaves the column empty; the task knows it.
      if (trace.proxy_ops.comm[child.row] == model::kNoRow)
        trace.proxy_ops.comm[child.row] = trace.tasks.comm[parent.row];
      return true;
    case Target::kProxyStep:
      if (parent.table != Target::kProxyOp) return false;
      trace.proxy_steps.proxy_op[child.row] = parent.row;
      // A step learns its direction from its first state of a send, which an open step may lack.
      trace.proxy_steps.is_send[child.row] |= trace.proxy_ops.is_send[parent.row];
      return true;
    case Target::kNetEvent:
      if (parent.table != Target::kProxyStep) return false;
      trace.net_events.proxy_step[child.row] = parent.row;
      return true;
    case Target::kProxyCtrl:
    case Target::kKernel:
    case Target::kLaunch:
    case Target::kRange:
    case Target::kGpuWork:
    case Target::kNone:
      return false;
  }
  return false;
}

}  // namespace lockstep::readers::native
