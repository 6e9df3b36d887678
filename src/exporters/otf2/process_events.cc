// SPDX-License-Identifier: Apache-2.0
// Writes the tracks and slices of the other timelines as OTF2's regions, so that all formats show the same;
// what ranks do together is in communication.cc.
#include "exporters/otf2/process_events.h"

#include <memory>

#include "model/event_kind.h"
#include "model/names/op_names.h"
#include "model/names/who.h"

namespace lockstep::exporters::otf2 {
namespace {

using common::SliceKind;

OTF2_TimeStamp stamp(int64_t time_ns) { return static_cast<OTF2_TimeStamp>(time_ns); }

}  // namespace

ProcessEvents::ProcessEvents(const model::Trace& trace, int64_t number, Archive& archive,
                             Definitions& definitions)
    : trace_(trace),
      number_(number),
      archive_(archive),
      definitions_(definitions),
      slices_(trace, number, common::Detail::kCallsAndKernels),
      gpu_paradigm_(trace.processes.gpu_clock[0] == static_cast<uint8_t>(model::GpuClock::kAmdTicks)
                        ? OTF2_PARADIGM_HIP
                        : OTF2_PARADIGM_CUDA) {
  // Tables by text and shape: a look-up for each of millions of slices, without making or hashing a name.
  kernel_regions_.assign(trace.strings.size(), OTF2_UNDEFINED_REGION);
  range_regions_ = kernel_regions_;
  api_regions_.assign(trace.shapes.size(), OTF2_UNDEFINED_REGION);
  operation_regions_.assign(trace.shapes.size() * 4, OTF2_UNDEFINED_REGION);
  define_process();
}

void ProcessEvents::define_process() {
  const model::Process process = trace_.processes.row(0);
  auto text = [&](model::StringId id) { return trace_.strings[id]; };
  who_ = model::who(process, trace_.strings).label();
  process_ = definitions_.process(who_, definitions_.host(text(process.host), text(process.boot_id)));
  definitions_.property(process_, "pid", std::to_string(process.pid));
  definitions_.property(process_, "command line", text(process.argv));
  definitions_.property(process_, "job", text(process.job));
  definitions_.property(process_, "GPU", text(process.gpu_model));
  definitions_.property(process_, "GPU UUID", text(process.uuid));
  if (process.nccl_version > 0)
    definitions_.property(process_, "NCCL version", std::to_string(process.nccl_version));
}

OTF2_LocationGroupRef ProcessEvents::device_group(int64_t pid) {
  for (const auto& [known, group] : devices_) {
    if (known == pid) return group;
  }
  std::string name = "GPU of " + who_;
  for (const common::ViewerProcess& viewer : slices_.viewer_processes()) {
    if (viewer.pid == pid) name = viewer.label + " of " + who_;
  }
  devices_.emplace_back(pid, definitions_.device(name, process_));
  return devices_.back().second;
}

OTF2_LocationRef ProcessEvents::define_location(const common::Track& track) {
  // The pid within a process says what the track is; process_slices.h has the numbers.
  const bool is_host = track.pid % common::kPidStride < common::kGpuPid;
  return definitions_.location(
      track.name, is_host ? OTF2_LOCATION_TYPE_CPU_THREAD : OTF2_LOCATION_TYPE_ACCELERATOR_STREAM,
      is_host ? process_ : device_group(track.pid));
}

OTF2_RegionRef ProcessEvents::call_region(uint32_t call) {
  const uint32_t shape = trace_.calls.shape[call];
  const uint8_t kind = trace_.calls.kind[call];
  const bool is_amd = gpu_paradigm_ == OTF2_PARADIGM_HIP;
  if (kind == model::number(model::EventKind::kKernelLaunch))
    return named(is_amd ? "hipExtLaunchKernel" : "cudaLaunchKernelExC", OTF2_REGION_ROLE_WRAPPER,
                 gpu_paradigm_);
  if (shape >= api_regions_.size())
    return named(model::event_name(kind), OTF2_REGION_ROLE_WRAPPER, gpu_paradigm_);
  OTF2_RegionRef& known = api_regions_[shape];
  if (known == OTF2_UNDEFINED_REGION)
    known = named(model::api_name(trace_, shape, false), OTF2_REGION_ROLE_WRAPPER, gpu_paradigm_);
  return known;
}

// A shape has four regions, as a declared operation has another name than NCCL's, and the host's call another
// role than the work on the GPU.
OTF2_RegionRef ProcessEvents::operation_region(uint32_t op, bool on_gpu) {
  const uint32_t shape = trace_.ops.shape[op];
  const bool custom = trace_.ops.kind[op] == model::number(model::EventKind::kApiOp);
  const OTF2_RegionRole role = on_gpu ? OTF2_REGION_ROLE_FUNCTION : OTF2_REGION_ROLE_WRAPPER;
  if (shape >= trace_.shapes.size()) return named("unknown", role, gpu_paradigm_);
  OTF2_RegionRef& known = operation_regions_[shape * 4 + custom * 2 + on_gpu];
  if (known == OTF2_UNDEFINED_REGION)
    known = named(on_gpu ? model::kernel_name(trace_, shape, custom) : model::api_name(trace_, shape, custom),
                  role, gpu_paradigm_);
  return known;
}

OTF2_RegionRef ProcessEvents::region(const common::Slice& slice) {
  switch (slice.kind) {
    case SliceKind::kStep:
      return named("step", OTF2_REGION_ROLE_CODE, OTF2_PARADIGM_USER);
    case SliceKind::kRecordParamComms:
      return operation_region(slice.row, false);
    case SliceKind::kKernel:
      return operation_region(slice.row, true);
    case SliceKind::kLaunch: {
      const bool is_graph =
          trace_.launches.kind[slice.row] == static_cast<uint8_t>(model::LaunchKind::kGraph);
      return named(is_graph ? "cuGraphLaunch" : "cuLaunchKernel", OTF2_REGION_ROLE_WRAPPER, gpu_paradigm_);
    }
    case SliceKind::kOtherKernel: {
      OTF2_RegionRef& known = kernel_regions_[trace_.kernels.name[slice.row]];
      const bool is_copy = trace_.kernels.kind[slice.row] == static_cast<uint8_t>(model::KernelKind::kCopy);
      if (known == OTF2_UNDEFINED_REGION)
        known = named(trace_.strings[trace_.kernels.name[slice.row]],
                      is_copy ? OTF2_REGION_ROLE_DATA_TRANSFER : OTF2_REGION_ROLE_FUNCTION, gpu_paradigm_);
      return known;
    }
    case SliceKind::kRange: {
      OTF2_RegionRef& known = range_regions_[trace_.ranges.name[slice.row]];
      if (known == OTF2_UNDEFINED_REGION) {
        const std::string_view name = trace_.strings[trace_.ranges.name[slice.row]];
        known = named(name.empty() ? "range" : name, OTF2_REGION_ROLE_CODE, OTF2_PARADIGM_USER);
      }
      return known;
    }
    default:
      return call_region(slice.row);
  }
}

// OTF2 wants events of a location in the order of time. Slices of a track nest and come by their begin,
// enclosing ones first (see assign_lanes), so a stack of those that are open says what ends before the next
// begins.
uint64_t ProcessEvents::write_track(OTF2_LocationRef location,
                                    const std::vector<const common::Slice*>& slices) {
  OTF2_EvtWriter* const writer = archive_.begin_location(location);
  if (writer == nullptr) return 0;
  const std::unique_ptr<OTF2_AttributeList, OTF2_ErrorCode (*)(OTF2_AttributeList*)> attributes(
      OTF2_AttributeList_New(), OTF2_AttributeList_Delete);
  std::vector<Open> open;
  auto leave_until = [&](int64_t time) {
    while (!open.empty() && open.back().end <= time) {
      OTF2_EvtWriter_Leave(writer, nullptr, stamp(open.back().end), open.back().region);
      open.pop_back();
    }
  };
  for (const common::Slice* slice : slices) {
    // Ends come first at equal times: a region that begins where another ends is not inside it.
    leave_until(slice->start);
    const OTF2_RegionRef entered = region(*slice);
    if (slice->kind == SliceKind::kStep)
      OTF2_AttributeList_AddInt64(attributes.get(), static_cast<OTF2_AttributeRef>(Attribute::kStep),
                                  trace_.marks.value[slice->row]);
    OTF2_EvtWriter_Enter(writer, attributes.get(), stamp(slice->start), entered);
    open.push_back({slice->end, entered});
    definitions_.seen(slice->start);
    definitions_.seen(slice->end);
  }
  leave_until(INT64_MAX);
  const uint64_t events = archive_.end_location();
  definitions_.set_events(location, events);
  return events;
}

void ProcessEvents::write_marks(const std::vector<OTF2_LocationRef>& locations) {
  for (uint32_t row = 0; row < trace_.marks.size(); ++row) {
    const int64_t time = trace_.marks.time_ns[row];
    if (trace_.marks.is_step[row] || time <= 0) continue;
    OTF2_MarkerWriter* const markers = archive_.markers();
    if (markers == nullptr) return;
    const std::string text = fit_text(trace_.strings[trace_.marks.name[row]]);
    OTF2_MarkerWriter_WriteMarker(markers, stamp(time), 0, Archive::kMark, OTF2_MARKER_SCOPE_LOCATION,
                                  // The constructor of the slices has made the tracks of all marks, so this
                                  // adds none.
                                  locations[slices_.thread_track(trace_.marks.thread[row])], text.c_str());
    definitions_.seen(time);
  }
}

uint64_t ProcessEvents::write(Omitted& omitted, model::Trace& run) {
  // Slices that moved to further lanes lie among those of their first track, and a location is written in one
  // go.
  std::vector<std::vector<const common::Slice*>> by_track(slices_.tracks().size());
  for (const common::Slice& slice : slices_.slices()) by_track[slice.track].push_back(&slice);
  std::vector<OTF2_LocationRef> locations;
  uint64_t events = 0;
  for (uint32_t track = 0; track < by_track.size(); ++track) {
    locations.push_back(define_location(slices_.tracks()[track]));
    events += write_track(locations.back(), by_track[track]);
  }
  slices_.report_losses(run);
  write_marks(locations);
  return events + Communication(trace_, number_, who_, process_, definitions_).write(archive_, omitted);
}

}  // namespace lockstep::exporters::otf2
