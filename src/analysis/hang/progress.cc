// SPDX-License-Identifier: Apache-2.0
#include "analysis/hang/progress.h"

#include <algorithm>

namespace lockstep::analysis::hang {
namespace {

using model::kNoRow;

constexpr uint32_t kDeepestQueue = 4096;  // operations in flight of one member

}  // namespace

Progress progress(const model::JobOps& ops, uint32_t first, uint32_t count) {
  Progress of;
  of.op = kNoRow;
  uint32_t oldest_unknown = kNoRow;
  bool ended = false;
  for (uint32_t back = 0; back < std::min(count, kDeepestQueue) && !ended; ++back) {
    uint32_t i = first + count - 1 - back;
    if (ops.gpu_end_ns[i] != 0) {
      ended = true;
    } else if (ops.gpu_start_ns[i] != 0) {
      of = {Progress::State::kRunning, i};
    } else {
      oldest_unknown = i;
    }
  }
  if (of.state == Progress::State::kRunning) return of;
  if (oldest_unknown == kNoRow) return ended ? Progress{Progress::State::kDone, kNoRow} : of;
  const bool is_queued = ended && ops.is_start_told(oldest_unknown);
  return {is_queued ? Progress::State::kQueued : Progress::State::kUnknown, oldest_unknown};
}

bool queued(const model::JobOps& ops, uint32_t first, uint32_t op) {
  if (ops.gpu_start_ns[op] != 0 || !ops.is_start_told(op)) return false;
  uint32_t look = std::min(op - first, kDeepestQueue);
  for (uint32_t back = 1; back <= look; ++back) {
    if (ops.gpu_start_ns[op - back] != 0) return true;
  }
  return false;
}

bool is_oldest_unfinished(const Scene& scene, uint32_t actor, uint32_t op) {
  const model::JobProcess& process = scene.job().processes[scene.actor(actor).process];
  const int64_t entered = process.ops.entered_ns(op);
  auto is_before = [&](uint32_t first, uint32_t count) {
    const Progress of = progress(process.ops, first, count);
    return of.op != kNoRow && of.op != op && of.state != Progress::State::kUnknown &&
           process.ops.entered_ns(of.op) < entered;
  };
  for (uint32_t row : process.members) {
    if (scene.actor_of(row) != actor) continue;
    const model::Member& member = scene.job().members[row];
    if (is_before(member.first, member.ops)) return false;
    for (const model::Lane& lane : member.lanes) {
      if (is_before(lane.first, lane.ops)) return false;
    }
  }
  return true;
}

}  // namespace lockstep::analysis::hang
