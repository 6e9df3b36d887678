// SPDX-License-Identifier: Apache-2.0
// The Chrome trace format as Perfetto's UI, chrome://tracing, HTA and PyTorch's tools read it: one JSON object, times in
// microseconds with three decimals after `baseTimeNanoseconds`, which is a multiple of three months as Kineto writes it.
#include <filesystem>
#include <set>

#include "exporters/chrome_json/flows.h"
#include "exporters/chrome_json/json_writer.h"
#include "exporters/chrome_json/output_file.h"
#include "exporters/chrome_json/process_slices.h"
#include "exporters/chrome_json/slice_writer.h"
#include "exporters/exporter.h"
#include "model/load_ahead.h"

namespace lockstep::exporters::chrome_json {
namespace {

constexpr int64_t kWindowNs = 7'889'238'000'000'000;  // Kineto's: all ranks of a job share the base
constexpr int64_t kDayNs = 86'400'000'000'000;

// A day's margin, so that no event of the run lies before the base.
int64_t base_time(const model::Trace& trace) {
  int64_t first = trace.processes.first_ns[0];
  for (int64_t time : trace.ops.all(&model::OpTable::enqueued_ns)) {
    if (time > 0 && (first <= 0 || time < first)) first = time;
  }
  return first > kDayNs ? (first - kDayNs) / kWindowNs * kWindowNs : 0;
}

class ChromeExport {
 public:
  ChromeExport(model::TraceSource& source, OutputFile& file) : source_(source), json_(file), file_(file) {}

  Result<uint64_t> run(const Progress& progress) {
    const size_t count = source_.processes();
    if (count == 0) return Error{ErrorCode::kNotFound, "holds no process to export", source_.name()};
    size_t seen = 0;
    Result<void> first_failure;
    model::LoadAhead processes(source_);
    while (auto current = processes.next()) {
      if (current->result && current->trace->processes.size() > 0) {
        add(*current->trace);
      } else {
        if (first_failure && !current->result) first_failure = current->result;
        run_.lose(model::kNoRow, "export", "unreadable_process", 1,
                  current->result ? "empty" : current->result.error().message());
      }
      if (file_.failed()) break;
      if (progress) progress(static_cast<double>(++seen) / static_cast<double>(count));
    }
    if (!opened_ && !first_failure) return first_failure.error();
    finish();
    return events_;
  }

 private:
  // The rank where it is known and new, else a number that no rank has.
  int64_t viewer_number(const model::Trace& trace) {
    int32_t rank = trace.processes.rank[0];
    if (rank >= 0 && numbers_.insert(rank).second) return rank;
    while (!numbers_.insert(next_number_).second) ++next_number_;
    return next_number_;
  }

  void open(const model::Trace* trace) {
    opened_ = true;
    if (trace) base_ns_ = base_time(*trace);
    json_.raw("{\"schemaVersion\":1,\"displayTimeUnit\":\"ms\",\"baseTimeNanoseconds\":")
        .signed_number(base_ns_);
    if (trace && source_.processes() == 1 && trace->processes.rank[0] >= 0) {
      json_.raw(",\"distributedInfo\":{\"backend\": \"nccl\", \"rank\": ")
          .signed_number(trace->processes.rank[0]);
      json_.raw(", \"world_size\": ").signed_number(trace->processes.world[0]).raw("}");
    }
    json_.raw(",\"traceEvents\":[");
  }

  void add(const model::Trace& trace) {
    if (!opened_) open(&trace);
    ProcessSlices slices(trace, viewer_number(trace));
    SliceWriter writer(trace, slices, base_ns_, next_correlation_, json_, flows_);
    events_ += writer.write();
    next_correlation_ += trace.ops.size() + trace.launches.size();
    run_.lose(model::kNoRow, "export", "without_time", slices.without_time(),
              "events left out, because their begin is unknown");
    run_.lose(model::kNoRow, "export", "cut_short", slices.cut_short(),
              "events drawn shorter, because too many overlapped");
    for (size_t i = 0; i < trace.losses.size(); ++i) {
      lost_.push_back(loss_text(trace, i, trace.processes.rank[0]));
    }
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
    source_.run_losses(run_);
    for (size_t i = 0; i < run_.losses.size(); ++i) lost_.push_back(loss_text(run_, i, -1));
    json_.raw("\n],\"lockstep\":{\"losses\":[");
    for (size_t i = 0; i < lost_.size(); ++i) json_.raw(i ? ",\n" : "\n").raw(lost_[i]);
    json_.raw("]},\"traceName\":").text(source_.name()).raw("}\n");
    json_.flush();
  }

  model::TraceSource& source_;
  JsonWriter json_;
  OutputFile& file_;
  Flows flows_;
  model::Trace run_;  // losses
  std::vector<std::string> lost_;
  std::set<int64_t> numbers_;
  int64_t next_number_ = 20000;  // times kPidStride it stays below 2^31
  int64_t base_ns_ = 0;
  uint64_t next_correlation_ = 1;
  uint64_t events_ = 0;
  bool opened_ = false;
};

Result<ExportResult> write(model::TraceSource& source, const std::string& path, const Progress& progress) {
  std::error_code unknown;
  if (std::filesystem::equivalent(path, source.name(), unknown)) {
    return Error{ErrorCode::kUsage, "is the input; name another output", path};
  }
  LOCKSTEP_ASSIGN(auto file, OutputFile::create(path));
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
