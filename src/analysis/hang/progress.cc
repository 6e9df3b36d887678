// SPDX-License-Identifier: Apache-2.0
// Reads from GPU times how far a rank has come in a sequence of operations. GPUs run the operations of a
// communicator in the order of their calls, so the newest one that has ended settles all before it. So does
// one that has ended on another member, where none can leave before all have entered: a rank's own stamps may
// be lost. The scan stops there, or after 4,096 operations: more are never in flight. Without GPU times the
// state stays unknown, because a call returns long before the GPU begins.
#include "analysis/hang/progress.h"

#include <algorithm>

namespace lockstep::analysis::hang {
using model::kNoRow;

Progress progress(const model::JobOps& ops, uint32_t first, uint32_t count, uint32_t begun) {
  Progress of;
  of.op = kNoRow;
  uint32_t oldest_unknown = kNoRow;
  bool ended = false;
  for (uint32_t back = 0; back < std::min(count, kDeepestQueue) && !ended; ++back) {
    uint32_t i = first + count - 1 - back;
    const bool started = ops.gpu_start_ns[i] != 0;
    // One that all have begun is over if another one was called behind it and begun, too; the newest may run.
    const bool is_over = ops.index[i] + 1 < begun || (ops.index[i] + 1 == begun && !started);
    if (ops.gpu_end_ns[i] != 0 || is_over) {
      ended = true;
    } else if (started) {
      of = {Progress::State::kRunning, i};
    } else {
      oldest_unknown = i;
    }
  }
  // The loop went backwards, so this is the oldest that runs: those behind it in the stream wait for it.
  if (of.state == Progress::State::kRunning) return of;
  if (oldest_unknown == kNoRow) return ended ? Progress{Progress::State::kDone, kNoRow} : of;
  // An operation before it ended and its own begin would have been reported: it is in the stream and has not
  // begun.
  const bool is_queued = ended && ops.is_start_reported(oldest_unknown);
  return {is_queued ? Progress::State::kQueued : Progress::State::kUnknown, oldest_unknown};
}

Progress progress(const JobState& job_state, const model::Member& member) {
  return progress(job_state.job().ops(member), member.first, member.ops, job_state.begun(member));
}

bool queued(const model::JobOps& ops, uint32_t first, uint32_t op, uint32_t begun) {
  if (ops.gpu_start_ns[op] != 0 || !ops.is_start_reported(op) || ops.index[op] < begun) return false;
  // A begin in front of it proves that this stream's begins are recorded at all.
  uint32_t look = std::min(op - first, kDeepestQueue);
  for (uint32_t back = 1; back <= look; ++back) {
    if (ops.gpu_start_ns[op - back] != 0) return true;
  }
  return false;
}

bool is_oldest_unfinished(const JobState& job_state, uint32_t actor, uint32_t op) {
  const model::JobProcess& process = job_state.job().processes[job_state.actor(actor).process];
  const int64_t entered = process.ops.entered_ns(op);
  auto is_before = [&](const Progress& of) {
    return of.op != kNoRow && of.op != op && of.state != Progress::State::kUnknown &&
           process.ops.entered_ns(of.op) < entered;
  };
  for (uint32_t row : process.members) {
    if (job_state.actor_of(row) != actor) continue;
    const model::Member& member = job_state.job().members[row];
    if (is_before(progress(job_state, member))) return false;
    for (const model::Lane& lane : member.lanes) {
      if (is_before(progress(process.ops, lane.first, lane.ops))) return false;
    }
  }
  return true;
}

}  // namespace lockstep::analysis::hang
