// SPDX-License-Identifier: Apache-2.0
#include "cli/input.h"

#include <filesystem>
#include <utility>

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

bool is_directory(const std::string& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

// `paths`: as named by the user.
Input make_input(std::unique_ptr<model::TraceSource> source, const std::vector<std::string>& paths) {
  Input input;
  input.kind = paths.size() == 1 && is_directory(paths[0]) ? "run directory" : "files";
  std::vector<LossLine> more_losses;
  for (const std::string& path : paths) {
    add_sizes(path, input);
    if (!is_directory(path)) continue;
    for (const launch::RunLoss& loss : launch::missing_processes(path)) {
      more_losses.push_back({-1, "capture", loss.kind, loss.detail, loss.count});
    }
  }
  input.source = std::make_unique<ObservedSource>(std::move(source), std::move(more_losses));
  return input;
}

Result<Input> open_trace_db(const std::string& path) {
  LOCKSTEP_ASSIGN(auto source, store::open_trace_db(path));
  Input input = make_input(std::move(source), {path});
  input.kind = input.evidence = "trace.db";
  return input;
}

}  // namespace

Result<Input> open_input(const std::vector<std::string>& paths) {
  if (paths.size() == 1 && store::is_trace_db(paths[0])) return open_trace_db(paths[0]);
  LOCKSTEP_ASSIGN(auto raw, readers::open(paths));
  return make_input(analysis::assemble::assembled(std::move(raw)), paths);
}

Result<MixedInput> open_mixed_input(const std::vector<std::string>& paths) {
  MixedInput mixed;
  std::vector<std::string> others;
  const auto unpacker = std::make_shared<readers::Unpacker>();
  for (const std::string& path : paths) {
    if (!store::is_trace_db(path)) {
      others.push_back(path);
      continue;
    }
    LOCKSTEP_ASSIGN(Input input, open_trace_db(path));
    mixed.runs.push_back(std::move(input));
    LOCKSTEP_ASSIGN(const std::string folder, unpacker->make_folder(path));
    LOCKSTEP_ASSIGN(const std::vector<std::string> attached, store::extract_attachments(path, folder));
    others.insert(others.end(), attached.begin(), attached.end());
  }
  if (others.empty() && !mixed.runs.empty()) return mixed;
  LOCKSTEP_ASSIGN(mixed.files, readers::sort(others, unpacker));
  for (const Error& error : std::exchange(mixed.files.troubles, {}))
    mixed.troubles.push_back({-1, "read", "unreadable_file", error.message(), 1});
  for (const readers::FormatFiles& files : mixed.files.formats) {
    if (files.format->open == nullptr) continue;
    LOCKSTEP_ASSIGN(auto raw, readers::open(mixed.files, files));
    // Who left no process file is only known of the directories that hold some.
    const bool first = files.format == mixed.files.formats.front().format;
    mixed.runs.push_back(
        make_input(analysis::assemble::assembled(std::move(raw)), first ? others : files.files));
    mixed.runs.back().evidence = files.format->summary;
  }
  return mixed;
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
