// SPDX-License-Identifier: Apache-2.0
// The Chrome trace format as Perfetto's UI, chrome://tracing, HTA and PyTorch's tools read it: one JSON
// object, times in microseconds with three decimals after `baseTimeNanoseconds`, which is a multiple of three
// months as Kineto writes it.
#include <map>
#include <string>

#include "exporters/chrome_json/event_writer.h"
#include "exporters/chrome_json/flows.h"
#include "exporters/chrome_json/json_writer.h"
#include "exporters/common/host_tracks.h"
#include "exporters/common/output_file.h"
#include "exporters/common/process_counters.h"
#include "exporters/common/process_slices.h"
#include "exporters/common/process_walk.h"
#include "exporters/common/slice_describer.h"
#include "exporters/exporter.h"
#include "model/load_ahead.h"

namespace lockstep::exporters::chrome_json {
namespace {

constexpr int64_t kWindowNs = 7'889'238'000'000'000;  // Kineto's: all ranks of a job share the base
constexpr int64_t kDayNs = 86'400'000'000'000;

// A day's margin, so that no event of the run lies before the base.
int64_t base_time(const model::Trace& trace) {
  int64_t first = trace.processes.first_ns[0];
  const auto take = [&first](int64_t time) {
    if (time > 0 && (first <= 0 || time < first)) first = time;
  };
  for (int64_t time : trace.ops.all(&model::OpTable::enqueued_ns)) take(time);
  for (int64_t time : trace.ranges.all(&model::RangeTable::start_ns)) take(time);
  return first > kDayNs ? (first - kDayNs) / kWindowNs * kWindowNs : 0;
}

class ChromeExport {
 public:
  ChromeExport(model::TraceSource& source, common::OutputFile& file)
      : source_(source), json_(file), file_(file) {}

  Result<uint64_t> run(const Progress& progress) {
    LOCKSTEP_TRY(model::walk_processes(source_, "export", progress, run_, [&](const model::Trace& trace) {
      add(trace);
      return !file_.failed();
    }));
    LOCKSTEP_TRY(source_.host_counters([&](const model::HostCounter& counter) { add(counter); }));
    finish();
    return events_;
  }

 private:
  void open(const model::Trace* trace) {
    opened_ = true;
    if (trace) base_ns_ = base_time(*trace);
    json_.raw("{\"schemaVersion\":1,\"displayTimeUnit\":\"ms\",\"baseTimeNanoseconds\":")
        .signed_number(base_ns_);
    // As Kineto writes it, blanks included. HTA takes the rank of a file from here and wants one rank in a
    // file.
    if (trace && source_.processes() == 1 && trace->processes.rank[0] >= 0) {
      json_.raw(",\"distributedInfo\":{\"backend\": \"nccl\", \"rank\": ")
          .signed_number(trace->processes.rank[0]);
      json_.raw(", \"world_size\": ").signed_number(trace->processes.world[0]).raw("}");
    }
    json_.raw(",\"traceEvents\":[");
  }

  void add(const model::Trace& trace) {
    if (!opened_) open(&trace);
    common::ProcessSlices slices(trace, numbers_.of(trace));
    model::StringPool words;
    EventWriter writer(slices, words, base_ns_, json_, flows_);
    common::SliceDescriber describer(trace, slices, next_correlation_, words, writer);
    writer.write_metadata();
    for (const Slice& slice : slices.slices()) describer.describe(slice);
    describer.describe_instants();
    const common::ProcessCounters counters(trace);
    writer.write_counters(counters);
    events_ += writer.events();
    next_correlation_ += trace.ops.size() + trace.launches.size();
    slices.report_losses(run_);
    counters.report_losses(run_);
    for (size_t i = 0; i < trace.losses.size(); ++i) {
      lost_.push_back(loss_text(trace, i, trace.processes.rank[0]));
    }
  }

  void add(const model::HostCounter& counter) {
    const common::HostTrack track(counter);
    if (track.counter.values.empty()) return;
    if (!opened_) open(nullptr);
    const auto [at, is_new] = host_pids_.try_emplace(track.host, 0);
    if (is_new) {
      const common::ViewerProcess process = numbers_.of_host(track.host);
      at->second = process.pid;
      events_ += write_process(process, json_);
    }
    events_ += write_counter(track.counter, at->second, base_ns_, json_);
  }

  static std::string loss_text(const model::Trace& trace, size_t i, int32_t rank) {
    return "{\"rank\":" + std::to_string(rank) +
           ",\"stage\":" + json_string(trace.strings[trace.losses.stage[i]]) +
           ",\"kind\":" + json_string(trace.strings[trace.losses.kind[i]]) +
           ",\"count\":" + std::to_string(trace.losses.count[i]) +
           ",\"detail\":" + json_string(trace.strings[trace.losses.detail[i]]) + "}";
  }

  void finish() {
    if (!opened_) open(nullptr);
    events_ += flows_.write(json_, base_ns_);
    // Losses stand at the end, as those of the run are known only after its last process.
    for (size_t i = 0; i < run_.losses.size(); ++i) lost_.push_back(loss_text(run_, i, -1));
    json_.raw("\n],\"lockstep\":{\"losses\":[");
    for (size_t i = 0; i < lost_.size(); ++i) json_.raw(i ? ",\n" : "\n").raw(lost_[i]);
    json_.raw("]},\"traceName\":").text(source_.name()).raw("}\n");
    json_.flush();
  }

  model::TraceSource& source_;
  JsonWriter json_;
  common::OutputFile& file_;
  Flows flows_;
  model::Trace run_;  // losses
  std::vector<std::string> lost_;
  common::ViewerNumbers numbers_;
  std::map<std::string, int64_t> host_pids_;
  int64_t base_ns_ = 0;
  uint64_t next_correlation_ = 1;
  uint64_t events_ = 0;
  bool opened_ = false;
};

Result<ExportResult> write(model::TraceSource& source, const std::string& path, const Progress& progress) {
  LOCKSTEP_TRY(common::check_not_input(source, path));
  LOCKSTEP_ASSIGN(auto file, common::OutputFile::create(path));
  LOCKSTEP_ASSIGN(uint64_t events, ChromeExport(source, *file).run(progress));
  LOCKSTEP_ASSIGN(uint64_t bytes, file->finish());
  return ExportResult{events, bytes};
}

}  // namespace

extern const Exporter kExporter;
const Exporter kExporter{
    .name = "chrome",
    .summary = "Chrome trace JSON for Perfetto's UI, chrome://tracing, HTA and PyTorch's tools",
    .extension = ".json.gz",
    .write = write};

}  // namespace lockstep::exporters::chrome_json
