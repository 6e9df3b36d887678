// SPDX-License-Identifier: Apache-2.0
#include "cli/input.h"

#include <filesystem>

#include "analysis/assemble/assembled_source.h"
#include "cli/launch/missing_processes.h"
#include "cli/progress.h"
#include "readers/reader.h"
#include "store/store.h"

namespace lockstep::cli {
namespace {

namespace fs = std::filesystem;

void add_sizes(const std::string& path, Input& input) {
  std::error_code error;
  if (fs::is_directory(path, error)) {
    const uint64_t before = input.files;
    for (const launch::ProcessFile& file : launch::process_files(path)) {
      ++input.files;
      input.bytes += file.bytes;
    }
    if (input.files > before) return;
    // Another tool's files.
    for (fs::directory_iterator at(path, fs::directory_options::skip_permission_denied, error), end;
         !error && at != end; at.increment(error)) {
      if (!at->is_regular_file(error)) continue;
      const auto format = readers::detect(at->path());
      if (!format || *format == nullptr) continue;
      ++input.files;
      input.bytes += at->file_size(error);
    }
    return;
  }
  ++input.files;
  if (auto size = fs::file_size(path, error); !error) input.bytes += size;
}

}  // namespace

Result<Input> open_input(const std::vector<std::string>& paths) {
  Input input;
  std::unique_ptr<model::TraceSource> source;
  std::vector<LossLine> more_losses;
  std::error_code error;
  if (paths.size() == 1 && store::is_trace_db(paths[0])) {
    input.kind = "trace.db";
    LOCKSTEP_ASSIGN(source, store::open_trace_db(paths[0]));
  } else {
    LOCKSTEP_ASSIGN(auto raw, readers::open(paths));
    source = analysis::assemble::assembled(std::move(raw));
    input.kind = paths.size() == 1 && fs::is_directory(paths[0], error) ? "run directory" : "files";
  }
  for (const std::string& path : paths) {
    add_sizes(path, input);
    if (!fs::is_directory(path, error)) continue;
    for (const launch::RunLoss& loss : launch::missing_processes(path)) {
      more_losses.push_back({-1, "capture", loss.kind, loss.detail, loss.count});
    }
  }
  input.source = std::make_unique<ObservedSource>(std::move(source), std::move(more_losses));
  return input;
}

void read_all(ObservedSource& source) {
  Progress progress("reading");
  for (size_t i = 0; i < source.processes(); ++i) {
    model::Trace trace;
    (void)source.load(i, trace);  // a failure is a loss of the overview
    progress.update(static_cast<double>(i + 1) / static_cast<double>(source.processes()));
  }
}

}  // namespace lockstep::cli
