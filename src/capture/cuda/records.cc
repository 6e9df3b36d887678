// SPDX-License-Identifier: Apache-2.0
// CUPTI's records grow at their end from release to release, so fields are read at fixed places, after the
// record's size has been checked to reach them. What has no times, or times of no clock that was in use, is
// counted and left out.
#include "capture/cuda/records.h"

#include <initializer_list>

#include "capture/core/log/thread_log.h"
#include "format/records.h"

namespace lockstep::capture::cuda {
namespace {

using format::Kind;

// When it ran, in host ticks. False, counted: it has no times, or they are of no clock that was in use.
bool times_of(uint64_t start_ns, uint64_t end_ns, CuptiClock& clock, ThreadLog* log, uint64_t* start,
              uint64_t* end) {
  *start = start_ns != 0 ? clock.ticks(start_ns) : 0;
  *end = end_ns != 0 ? clock.ticks(end_ns) : 0;
  if (*start != 0 && *end != 0) return true;
  log->lose(kLoss_gpu_unknown);
  return false;
}

// Publishes a record of something that is over.
template <class Record>
void publish(ThreadLog* log, Record* record, Kind kind, uint8_t flags, uint64_t start, uint64_t end) {
  record->head.start = start;
  const uint32_t after = ticks_after(start, end);
  const uint64_t handle = log->publish(record, kind, flags | format::kFlagStopped, 0, after);
  if (__builtin_expect(after == format::kSaturated, 0))
    log->append_state(handle, format::kStateStop, end, 0, 0);
}

// Grids have up to 2^63 blocks; a count beyond 32 bits stays at the largest.
uint32_t blocks_of(const cupti::Record& record) {
  using Field = cupti::Kernel;
  uint64_t blocks = 1;
  for (const size_t at : {Field::kGridX, Field::kGridY, Field::kGridZ}) {
    blocks *= record.get<uint32_t>(at);
    if (blocks > 0xffffffff) return 0xffffffff;
  }
  return static_cast<uint32_t>(blocks);
}

void write_kernel(const cupti::Record& from, CuptiClock& clock, ThreadLog* log) {
  using Field = cupti::Kernel;
  uint64_t start, end;
  if (from.bytes() < Field::kLeast) return log->lose(kLoss_gpu_unknown);
  if (!times_of(from.get<uint64_t>(Field::kStart), from.get<uint64_t>(Field::kEnd), clock, log, &start, &end))
    return;
  // The text is CUPTI's: it becomes a number while the buffer is here.
  const uint32_t name = log->kernel_name(from.get<const char*>(Field::kName));
  auto* record = log->reserve<format::KernelRecord>();
  if (record == nullptr) return;
  record->name = name;
  record->correlation = from.get<uint32_t>(Field::kCorrelation);
  record->stream = from.get<uint32_t>(Field::kStream);
  record->device = static_cast<uint16_t>(from.get<uint32_t>(Field::kDevice));
  record->context = static_cast<uint16_t>(from.get<uint32_t>(Field::kContext));
  record->graph_node = from.get<uint64_t>(Field::kGraphNode);
  record->graph = from.get<uint32_t>(Field::kGraph);
  record->blocks = blocks_of(from);
  publish(log, record, Kind::kKernel, 0, start, end);
}

void write_copy(const cupti::Record& from, CuptiClock& clock, ThreadLog* log) {
  using Field = cupti::Copy;
  const bool is_peer = from.kind() == cupti::kPeerCopy, is_set = from.kind() == cupti::kSet;
  uint64_t start, end;
  if (from.bytes() < (is_peer ? cupti::PeerCopy::kLeast : Field::kLeast)) return log->lose(kLoss_gpu_unknown);
  if (!times_of(from.get<uint64_t>(Field::kStart), from.get<uint64_t>(Field::kEnd), clock, log, &start, &end))
    return;
  auto* record = log->reserve<format::CopyRecord>();
  if (record == nullptr) return;
  record->bytes = from.get<uint64_t>(Field::kBytes);
  record->correlation = from.get<uint32_t>(is_peer ? cupti::PeerCopy::kCorrelation : Field::kCorrelation);
  record->stream = from.get<uint32_t>(Field::kStream);
  record->device = static_cast<uint16_t>(from.get<uint32_t>(Field::kDevice));
  record->context = static_cast<uint16_t>(from.get<uint32_t>(Field::kContext));
  record->copy = is_set    ? format::CopyKind::kSet
                 : is_peer ? format::CopyKind::kPeerCopy
                           : format::CopyKind::kCopy;
  record->from = is_set ? 0 : from.get<uint8_t>(Field::kFrom);
  record->to =
      is_set ? static_cast<uint8_t>(from.get<uint16_t>(cupti::Set::kMemory)) : from.get<uint8_t>(Field::kTo);
  record->graph_node = from.get<uint64_t>(is_peer ? cupti::PeerCopy::kGraphNode : Field::kGraphNode);
  publish(log, record, Kind::kCopy, 0, start, end);
}

// A call of the driver, or of the runtime: where a profiler records those, the call of the driver within is
// left out.
void write_launch(const cupti::Record& from, CuptiClock& clock, ThreadLog* log, WhatToWrite what) {
  using Field = cupti::ApiCall;
  const auto call = from.get<uint32_t>(Field::kCall);
  const bool is_runtime = from.kind() == cupti::kRuntime;
  const bool is_graph = is_runtime
                            ? call == cupti::kRuntimeGraphLaunch || call == cupti::kRuntimeGraphLaunchPtsz
                            : call == cupti::kGraphLaunch || call == cupti::kGraphLaunchPtsz;
  if (is_runtime ? !is_graph : !is_launch_call(call, what.calls)) return;  // a profiler's
  uint64_t start, end;
  if (from.bytes() < Field::kLeast) return log->lose(kLoss_gpu_unknown);
  if (!times_of(from.get<uint64_t>(Field::kStart), from.get<uint64_t>(Field::kEnd), clock, log, &start, &end))
    return;
  auto* record = log->reserve<format::LaunchCallRecord>();
  if (record == nullptr) return;
  record->correlation = from.get<uint32_t>(Field::kCorrelation);
  record->thread = from.get<uint32_t>(Field::kThread);
  record->call = is_graph ? format::LaunchCall::kGraph : format::LaunchCall::kKernel;
  record->reserved0 = 0;
  record->reserved1 = 0;
  publish(log, record, Kind::kLaunchCall, what.system_thread_ids ? format::kFlagSystemThread : 0, start, end);
}

}  // namespace

bool is_launch_call(uint32_t call, uint32_t calls) {
  for (uint32_t i = 0; i < calls; ++i) {
    if (kLaunchCalls[i] == call) return true;
  }
  return false;
}

void write_record(const cupti::Record& record, CuptiClock& clock, WhatToWrite what) {
  ThreadLog* log = ThreadLog::get();
  if (log == nullptr) return;
  switch (record.kind()) {
    case cupti::kSerialKernel:
    case cupti::kConcurrentKernel:
      return write_kernel(record, clock, log);
    case cupti::kCopy:
    case cupti::kPeerCopy:
    case cupti::kSet:
      if (what.copies) write_copy(record, clock, log);
      return;
    case cupti::kDriver:
    case cupti::kRuntime:
      return write_launch(record, clock, log, what);
    default:
      return;
  }
}

}  // namespace lockstep::capture::cuda
