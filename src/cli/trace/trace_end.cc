// SPDX-License-Identifier: Apache-2.0
// What happens once the command has ended: another launcher merges, nothing was captured, or this one merges
// and decides about the raw files. They are removed only if every one was read whole, is in the verified
// trace.db, and no process may still write to it. Each doubt keeps them, as they are the only copy. Sentences
// and JSON go to stderr, because stdout is the command's.
#include "cli/trace/trace_end.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "base/partial_path.h"
#include "base/text/units.h"
#include "cli/kit/console.h"
#include "cli/kit/progress.h"
#include "cli/merge/merge_report.h"
#include "cli/trace/capture_environment.h"
#include "exporters/exporter.h"
#include "input/input.h"
#include "run/missing_processes.h"
#include "run/process_files.h"

namespace lockstep::cli {
namespace {

std::string merge_hint(const TraceRequest& request, const run::RunDirectory& run) {
  return "lockstep merge -o " + request.output_shown + " " + run.path();
}

void print_status(const TraceRequest& request, const std::string& sentence) {
  // With --json the report is one line; errors still come as sentences.
  if (!request.json) warn(sentence);
}

void print_json(const Json& report) {
  Json document = {{"schema", ""}};
  document.update(report);
  document["schema"] = "lockstep.trace.v1";  // what merge says, and what became of the run
  const std::string line = json_line(document);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

void report_json(const TraceRequest& request, const run::RunDirectory& run, int code, Json document) {
  if (!request.json) return;
  document["run"] = run.path();
  document["run_kept"] = std::filesystem::exists(run.path());
  document["exit_code"] = code;
  print_json(document);
}

void explain_no_files(const TraceRequest& request, run::RunDirectory& run, int code) {
  // The census may know that ranks ran without capture, which says more than the likely causes.
  std::vector<run::RunLoss> missing = run::missing_processes(run.path());
  for (const run::RunLoss& loss : missing) print_status(request, "lost: " + loss.detail);
  print_status(
      request,
      "nothing was captured: no process loaded the capture library. Likely causes: the processes do not inherit NCCL_PROFILER_PLUGIN and, for AMD's GPUs, HSA_TOOLS_LIB (ssh, sudo, containers), or set them themselves; NCCL is older than 2.23, or not used; the command ended before it created its first communicator");
  // Else the user takes the older trace for this run's.
  if (access(request.output.c_str(), F_OK) == 0)
    print_status(request, request.output_shown + " is from an earlier run and unchanged");
  Json document = {{"output", nullptr}, {"files", 0}, {"losses", Json::array()}};
  for (const run::RunLoss& loss : missing) {
    document["losses"].push_back({{"stage", "capture"},
                                  {"kind", loss.kind},
                                  {"count", loss.count},
                                  {"process", nullptr},
                                  {"detail", loss.detail}});
  }
  // Logs alone still answer questions, so they are not removed with the directory.
  const bool others = !trace::other_tools_files(run.path()).empty();
  if (others)
    print_status(request,
                 "NCCL's and PyTorch's own files are in " + run.path() + ": `lockstep diagnose` reads them");
  if (request.run_is_named || request.keep || others) {
    (void)run.mark_complete();
  } else {
    run.remove(run::link_logs(run.path()));
  }
  report_json(request, run, code, std::move(document));
}

Result<void> write_timeline(const TraceRequest& request) {
  const exporters::Exporter* exporter = exporters::find("chrome");
  if (exporter == nullptr)
    return Error{ErrorCode::kUnsupported, "this build has no timeline exporter", request.timeline};
  // From the database and not from the raw files: it shows what the trace.db holds.
  LOCKSTEP_ASSIGN(input::Input input, input::open_input({request.output}));
  Progress progress("timeline");
  LOCKSTEP_ASSIGN(auto written, exporter->write(*input.source, request.timeline, progress.callback()));
  print_status(request, "wrote " + request.timeline + " (" + plural(written.events, "event") + ")");
  return {};
}

struct Merged {
  store::MergeResult result;
  input::RunOverview overview;
};

Result<Merged> merge_run(const TraceRequest& request, const run::RunDirectory& run) {
  LOCKSTEP_ASSIGN(input::Input input, input::open_input({run.path()}));
  Progress progress("merging");
  LOCKSTEP_ASSIGN(auto result,
                  store::write_trace_db(*input.source, request.output, trace::files_to_attach(run.path()),
                                        progress.callback()));
  return Merged{result, input.source->overview()};
}

// Why the raw files stay; empty: they may go.
std::string reason_to_keep(const TraceRequest& request, const input::RunOverview& overview,
                           const std::vector<run::ProcessFile>& files) {
  if (overview.salvaged()) return "not all of them could be read completely";
  if (std::any_of(files.begin(), files.end(), [](const auto& file) { return !file.valid; }))
    return "some are damaged";
  // Of another host or container it cannot be seen from here.
  if (std::any_of(files.begin(), files.end(),
                  [](const auto& file) { return file.open && run::is_alive(file.process).value_or(true); })) {
    return "processes may still write to them; merge again when they have ended";
  }
  if (request.keep || request.run_is_named) return "as asked";
  return {};
}

void merge_and_report(const TraceRequest& request, run::RunDirectory& run, int code) {
  // Listed before the merge: a file that appears later may not be in it, and stays.
  std::vector<run::ProcessFile> files = run::process_files(run.path());
  auto merged = merge_run(request, run);
  if (!merged) {
    // A launcher of the same start that comes late can then merge.
    run.unlock();
    warn("not merged: " + merged.error().message() +
         "; the raw files are kept, try: " + merge_hint(request, run));
    report_json(request, run, code,
                {{"output", nullptr}, {"files", files.size()}, {"error", merged.error().message()}});
    return;
  }
  for (const std::string& line :
       merge_sentences(merged->overview, merged->result, request.output_shown, files.size())) {
    print_status(request, line);
  }
  Result<void> timeline;
  if (!request.timeline.empty()) timeline = write_timeline(request);
  if (!timeline) warn("no timeline: " + timeline.error().message());
  std::string reason = reason_to_keep(request, merged->overview, files);
  if (reason.empty()) {
    std::vector<std::string> paths;
    for (const run::ProcessFile& file : files) paths.push_back(file.path);
    // Only what is in the database to its last byte; others stay.
    for (const std::string& file : merged->result.attached) paths.push_back(file);
    run.remove(paths);
  } else {
    if (auto marked = run.mark_complete(); !marked) warn(marked.error().message());
    print_status(request, "raw files kept in " + run.path() + " (" + reason + ")");
  }
  Json document = merge_json(merged->overview, merged->result, request.output, files.size());
  document["timeline"] = request.timeline.empty() || !timeline ? Json(nullptr) : Json(request.timeline);
  report_json(request, run, code, std::move(document));
}

}  // namespace

void end_trace(const TraceRequest& request, run::RunDirectory& run, int code, bool has_started) {
  // The last launcher of the job merges, so that one trace.db has all nodes.
  if (run.leave() == run::RunDirectory::Leaving::kOthersRunning) {
    print_status(request, request.merge ? "other launchers of this job still run; the last one writes " +
                                              request.output_shown
                                        : "the files are in " + run.path());
    report_json(request, run, code, {{"output", nullptr}, {"merged_by", "the last launcher of the job"}});
    return;
  }
  size_t files = run::process_files(run.path()).size();
  if (files == 0 && !has_started) return run.remove({});
  if (files == 0) return explain_no_files(request, run, code);
  if (request.merge) return merge_and_report(request, run, code);
  if (auto marked = run.mark_complete(); !marked) warn(marked.error().message());
  print_status(request, plural(files, "file") + " in " + run.path() + "; next: " + merge_hint(request, run));
  report_json(request, run, code, {{"output", nullptr}, {"files", files}});
}

void report_untraced(const Error& why, int code) {
  print_json({{"output", nullptr}, {"error", why.message()}, {"exit_code", code}});
}

void report_stopped(const TraceRequest& request, const run::RunDirectory& run) {
  // What a stopped store or exporter has left is of no use.
  auto remove_partials = [&] {
    remove_own_partials(request.output);
    if (!request.timeline.empty()) remove_own_partials(request.timeline);
  };
  remove_partials();
  run.unlock();
  warn("stopped before the merge was done; the raw files are kept, merge them with: " +
       merge_hint(request, run));
  // The merge goes on until the process ends, and may have begun a file since.
  remove_partials();
}

}  // namespace lockstep::cli
