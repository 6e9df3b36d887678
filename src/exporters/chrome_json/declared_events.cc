// SPDX-License-Identifier: Apache-2.0
// The trace is cut down to what was declared, and then drawn as any timeline is, so that both show one
// operation alike. Ids begin above the profiler's own, as viewers join events by them.
#include "exporters/chrome_json/declared_events.h"

#include <set>
#include <vector>

#include "exporters/chrome_json/event_writer.h"
#include "model/event_kind.h"

namespace lockstep::exporters::chrome_json {
namespace {

constexpr int64_t kFirstRow =
    2'000'000;  // behind streams, and the rows that the profiler has for waiting on them

// Leaves the declared operations of the window, and what they refer to.
uint64_t keep_declared(model::Trace& trace, const TraceFrame& frame) {
  model::OpTable ops;
  std::vector<uint32_t> moved(trace.ops.size(), model::kNoRow);
  uint64_t outside = 0;
  for (uint32_t i = 0; i < trace.ops.size(); ++i) {
    if (trace.ops.kind[i] != model::number(model::EventKind::kApiOp)) continue;
    const int64_t called = trace.ops.called_ns[i];
    if (called < frame.first_ns || called > frame.last_ns) {
      ++outside;
      continue;
    }
    moved[i] = ops.append(trace.ops.row(i));
  }
  model::SplitTable splits;
  // Splits name operations by row, and rows have moved.
  for (size_t i = 0; i < trace.splits.size(); ++i) {
    model::Split split = trace.splits.row(i);
    if (split.op >= moved.size() || moved[split.op] == model::kNoRow) continue;
    split.op = moved[split.op];
    splits.append(split);
  }
  trace.ops = std::move(ops);
  trace.splits = std::move(splits);
  trace.calls = {};
  trace.channels = {};
  trace.proxy_ops = {};
  trace.proxy_steps = {};
  trace.proxy_ctrls = {};
  trace.net_events = {};
  trace.marks = {};
  trace.launches = {};
  trace.kernels = {};
  trace.ranges = {};
  return outside;
}

}  // namespace

DeclaredEvents write_declared(model::Trace& trace, const TraceFrame& frame, JsonWriter& json) {
  DeclaredEvents written;
  written.outside = keep_declared(trace, frame);
  written.operations = trace.ops.size();
  // Number 0 makes the pid of a track the place within a process, which the loop below takes apart.
  common::ProcessSlices slices(trace, 0);
  std::vector<Place> places;
  for (uint32_t i = 0; i < slices.tracks().size(); ++i) {
    const common::Track& track = slices.tracks()[i];
    const int64_t within = track.pid % common::kPidStride;
    const bool is_host = within == common::kHostPid;
    places.push_back(is_host ? Place{frame.pid, track.tid}
                             : Place{within - common::kGpuPid, kFirstRow + track.tid});
    if (is_host) continue;
    json.event("{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":").signed_number(places.back().pid);
    json.raw(",\"tid\":").signed_number(places.back().tid).raw(",\"ts\":0.000,\"args\":{\"name\":");
    json.text("declared operations, " + track.name).raw("}}");
    ++written.events;
  }
  model::StringPool words;
  Flows flows;
  EventWriter writer(slices, words, frame.base_ns, json, flows, places);
  common::SliceDescriber describer(trace, slices, frame.largest_id + 1, words, writer);
  for (const Slice& slice : slices.slices()) {
    describer.describe(slice);
    written.kernels += slice.kind == common::SliceKind::kKernel;
  }
  written.events += writer.events();
  return written;
}

}  // namespace lockstep::exporters::chrome_json
