// SPDX-License-Identifier: Apache-2.0
// Perfetto's own trace format, as its UI and trace_processor read it: the tracks and slices of the JSON
// timeline.
//
// Clock: a run's times are ns since the Unix epoch on each host, so the trace's clock is REALTIME; the first
// packet says so. A track counts on a clock of its own, in ns since the packet before, which a snapshot ties
// to REALTIME: the importer turns one into the other, and a packet needs three bytes for its time instead of
// nine. Order: tracks follow one another; within one, time does not go back. The importer sorts packets by
// time and keeps the order of the file for equal ones, as nesting needs. Size: packets are packed by the
// format's own means, 256 KiB of them at a time; in a file named .gz they are plain, and the file is packed.
// Memory: one process of the run, and its words.
#include <algorithm>

#include "base/utf8.h"
#include "exporters/common/buffered_output.h"
#include "exporters/common/output_file.h"
#include "exporters/common/process_counters.h"
#include "exporters/common/process_slices.h"
#include "exporters/common/process_walk.h"
#include "exporters/common/slice_describer.h"
#include "exporters/exporter.h"
#include "exporters/perfetto/arguments_proto.h"
#include "exporters/perfetto/event_writer.h"
#include "exporters/perfetto/fields.h"
#include "exporters/perfetto/host_counters.h"
#include "exporters/perfetto/packet_bundles.h"
#include "exporters/perfetto/proto_bytes.h"
#include "model/load_ahead.h"

namespace lockstep::exporters::perfetto {
namespace {

using common::Slice;

// Rows of `slices` by track, in their order within one.
std::vector<uint32_t> by_track(const std::vector<Slice>& slices, size_t tracks) {
  std::vector<uint32_t> first(tracks + 1, 0), order(slices.size());
  // Slices that moved to further lanes still lie among those of their first track. A counting sort parts them
  // in linear time.
  for (const Slice& slice : slices) ++first[slice.track + 1];
  for (size_t i = 1; i < first.size(); ++i) first[i] += first[i - 1];
  for (uint32_t i = 0; i < slices.size(); ++i) order[first[slices[i].track]++] = i;
  return order;
}

class PerfettoExport {
 public:
  PerfettoExport(model::TraceSource& source, common::OutputFile& file)
      : source_(source), out_(file), file_(file) {}

  Result<uint64_t> run(const Progress& progress) {
    write_head();
    LOCKSTEP_TRY(model::walk_processes(source_, "export", progress, run_, [&](const model::Trace& trace) {
      add(trace);
      return !file_.failed();
    }));
    HostCounters counters(out_, numbers_, viewer_numbers_);
    LOCKSTEP_TRY(
        source_.host_counters([&](const model::HostCounter& counter) { events_ += counters.add(counter); }));
    for (size_t i = 0; i < run_.losses.size(); ++i) lost_.push_back(loss(run_, i, -1));
    write_losses();
    out_.flush();
    return events_;
  }

 private:
  struct Lost {
    int32_t rank;
    std::string stage, kind, detail;
    uint64_t count;
  };

  void write_head() {
    ProtoBytes packet, part, inner;
    inner.number(field::clock::kId, kRealtimeClock).number(field::clock::kTimestamp, 1);
    part.bytes(field::clock_snapshot::kClock, inner.view());
    part.number(field::clock_snapshot::kPrimaryClock, kRealtimeClock);
    write_packet(out_, packet.bytes(field::packet::kClockSnapshot, part.view()).view());
    packet.clear();
    part.clear();
    part.bytes(field::extension_descriptor::kSet, arguments_descriptor_set());
    write_packet(out_, packet.bytes(field::packet::kExtensionDescriptor, part.view()).view());
    packet.clear();
    part.clear();
    // The root of all tracks asks viewers to keep the order that the ranks of the others give.
    part.number(field::track::kUuid, 0).number(field::track::kProcessOrdering, kExplicitOrdering);
    part.number(field::track::kThreadOrdering, kExplicitOrdering);
    write_packet(out_, packet.bytes(field::packet::kTrackDescriptor, part.view()).view());
  }

  void add(const model::Trace& trace) {
    common::ProcessSlices slices(trace, viewer_numbers_.of(trace));
    model::StringPool words;
    EventWriter writer(slices, words, out_, numbers_);
    common::SliceDescriber describer(trace, slices, next_correlation_, words, writer);
    writer.write_descriptors();
    uint32_t track = model::kNoRow;
    for (uint32_t row : by_track(slices.slices(), slices.tracks().size())) {
      const Slice& slice = slices.slices()[row];
      if (slice.track != track) {
        writer.end_track();
        writer.begin_track(slice.track, slice.start);
        first_ns_ = first_ns_ == 0 ? slice.start : std::min(first_ns_, slice.start);
      }
      track = slice.track;
      describer.describe(slice);
    }
    writer.end_track();
    const common::ProcessCounters counters(trace);
    writer.write_counters(counters);
    describer.describe_instants();
    events_ += writer.events();
    next_correlation_ += trace.ops.size() + trace.launches.size();
    slices.report_losses(run_);
    counters.report_losses(run_);
    for (size_t i = 0; i < trace.losses.size(); ++i) lost_.push_back(loss(trace, i, trace.processes.rank[0]));
  }

  static Lost loss(const model::Trace& trace, size_t i, int32_t rank) {
    const auto text = [&](model::StringId id) { return valid_utf8(trace.strings[id]); };
    return {rank, text(trace.losses.stage[i]), text(trace.losses.kind[i]), text(trace.losses.detail[i]),
            trace.losses.count[i]};
  }

  // A track of its own, first of all: what is missing, an instant each at the begin of the run.
  void write_losses() {
    if (lost_.empty()) return;
    ProtoBytes packet, event, part;
    part.number(field::track::kUuid, ++numbers_.track)
        .bytes(field::track::kName, "lockstep: what is missing");
    write_packet(out_, packet.bytes(field::packet::kTrackDescriptor, part.view()).view());
    // A sequence of its own: these packets name everything in full and need no state.
    const uint32_t sequence = ++numbers_.sequence;
    for (const Lost& lost : lost_) {
      const auto annotation = [&](std::string_view name, auto add_value) {
        part.clear();
        part.bytes(field::annotation::kName, name);
        add_value();
        event.bytes(field::event::kAnnotation, part.view());
      };
      event.clear();
      event.number(field::event::kType, kInstant).number(field::event::kTrack, numbers_.track);
      event.bytes(field::event::kCategory, "loss").bytes(field::event::kName, lost.kind);
      annotation("rank", [&] { part.signed_number(field::annotation::kSigned, lost.rank); });
      annotation("stage", [&] { part.bytes(field::annotation::kText, lost.stage); });
      annotation("count", [&] { part.number(field::annotation::kUnsigned, lost.count); });
      annotation("detail", [&] { part.bytes(field::annotation::kText, lost.detail); });
      packet.clear();
      packet.signed_number(field::packet::kTimestamp, std::max<int64_t>(first_ns_, 1));
      packet.number(field::packet::kTimestampClock, kRealtimeClock);
      packet.number(field::packet::kSequence, sequence);
      write_packet(out_, packet.bytes(field::packet::kTrackEvent, event.view()).view());
    }
  }

  model::TraceSource& source_;
  common::BufferedOutput out_;
  common::OutputFile& file_;
  model::Trace run_;  // losses
  std::vector<Lost> lost_;
  common::ViewerNumbers viewer_numbers_;
  FileNumbers numbers_;
  int64_t first_ns_ = 0;  // 0 none yet
  uint64_t next_correlation_ = 1;
  uint64_t events_ = 0;
};

Result<ExportResult> write(model::TraceSource& source, const std::string& path, const Progress& progress) {
  LOCKSTEP_TRY(common::check_not_input(source, path));
  LOCKSTEP_ASSIGN(auto bundles, PacketBundles::create());
  common::OutputFile::Packing packing;
  // `bundles` is declared before the file, whose thread uses it until the file is gone.
  if (!path.ends_with(".gz")) packing = [&bundles](std::string_view bytes) { return bundles->pack(bytes); };
  LOCKSTEP_ASSIGN(auto file, common::OutputFile::create(path, std::move(packing)));
  LOCKSTEP_ASSIGN(uint64_t events, PerfettoExport(source, *file).run(progress));
  LOCKSTEP_ASSIGN(uint64_t bytes, file->finish());
  return ExportResult{events, bytes};
}

}  // namespace

extern const Exporter kExporter;
const Exporter kExporter{
    .name = "perfetto",
    .summary = "Perfetto's own format: the same timeline, small; for Perfetto's UI and trace_processor",
    .extension = ".pftrace",
    .write = write};

}  // namespace lockstep::exporters::perfetto
