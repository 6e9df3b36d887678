// SPDX-License-Identifier: Apache-2.0
// Turns what users name into sources, without knowing any other tool's format. Process files and the trace.db
// that was made of them are one run and are not counted twice: in a directory that holds process files its
// databases are left out.
#include "input/input.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "input/joined_source.h"
#include "job/assemble/assembled_source.h"
#include "readers/link_samples/link_samples.h"
#include "readers/native/native.h"
#include "readers/reader.h"
#include "run/adopt_run.h"
#include "run/missing_processes.h"
#include "store/fleet_now.h"
#include "store/store.h"

namespace lockstep::input {
namespace {

namespace fs = std::filesystem;

void add_sizes(const std::string& path, Input& input) {
  std::error_code error;
  if (fs::is_directory(path, error)) {
    const uint64_t before = input.files;
    for (const run::ProcessFile& file : run::process_files_at(path)) {
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
Input make_input(std::unique_ptr<model::TraceSource> source, const std::vector<std::string>& paths,
                 std::vector<LossLine> more_losses = {}) {
  Input input;
  input.kind = paths.size() == 1 && is_directory(paths[0]) ? "run directory" : "files";
  for (const std::string& path : paths) {
    add_sizes(path, input);
    // Only a run directory tells who should have left a file. Files alone say nothing of others.
    if (!is_directory(path)) continue;
    for (const run::RunLoss& loss : run::missing_processes(path)) {
      more_losses.push_back({-1, "capture", loss.kind, loss.detail, loss.count});
    }
  }
  input.source = std::make_unique<ObservedSource>(std::move(source), std::move(more_losses));
  return input;
}

bool holds_process_files(const std::string& directory) {
  const std::vector<run::ProcessFile> files = run::process_files_at(directory);
  // One with a torn header does not count: it would hide a whole database beside it.
  return std::any_of(files.begin(), files.end(), [](const auto& file) { return file.valid; });
}

// Those of a directory, by name. Beside the process files that they were made of they add nothing.
std::vector<std::string> trace_dbs_in(const std::string& directory) {
  std::vector<std::string> found;
  if (!is_directory(directory) || holds_process_files(directory)) return found;
  std::error_code error;
  for (fs::directory_iterator at(directory, fs::directory_options::skip_permission_denied, error), end;
       !error && at != end; at.increment(error)) {
    if (at->is_regular_file(error) && store::is_trace_db(at->path())) found.push_back(at->path());
  }
  // Directories list in any order, and a message names the first.
  std::sort(found.begin(), found.end());
  return found;
}

Result<Input> open_trace_db(const std::string& path) {
  LOCKSTEP_ASSIGN(auto source, store::open_trace_db(path));
  Input input = make_input(std::move(source), {path});
  input.kind = input.evidence = "trace.db";
  input.paths = input.databases = {path};
  return input;
}

}  // namespace

namespace {

// Named ones, and the one of a directory that holds no process files. The other paths go into `others`.
Result<std::vector<std::string>> named_databases(const std::vector<std::string>& paths,
                                                 std::vector<std::string>& others) {
  std::vector<std::string> databases;
  for (const std::string& path : paths) {
    if (store::is_trace_db(path)) {
      databases.push_back(path);
      continue;
    }
    const std::vector<std::string> inside = trace_dbs_in(path);
    if (inside.size() > 1) {
      return usage_error(
          "the directory holds " + std::to_string(inside.size()) + " databases: name one, as " + inside[0],
          path);
    }
    (inside.empty() ? others : databases).push_back(inside.empty() ? path : inside[0]);
  }
  return databases;
}

// Process files are what databases are made of: the two make one run.
Result<std::unique_ptr<model::TraceSource>> open_beside(const std::string& database,
                                                        const std::vector<std::string>& others) {
  LOCKSTEP_ASSIGN(const readers::Inputs inputs, readers::sort(others));
  LOCKSTEP_ASSIGN(const readers::FormatFiles* files, readers::one_format(inputs));
  if (files->format == &readers::native::kFormat) {
    LOCKSTEP_ASSIGN(auto raw, readers::open(inputs, *files));
    return job::assemble::assembled(std::move(raw));
  }
  return Error{ErrorCode::kUnsupported,
               "has another format (" + std::string(files->format->name) + ") than " + database +
                   " (trace.db), and cannot be read together with it; `lockstep diagnose` takes any mix",
               inputs.unpacker->shown(files->files.front())};
}

}  // namespace

namespace {

void set_link_logs(const readers::Inputs& inputs, Input& input) {
  for (const readers::FormatFiles& files : inputs.formats)
    if (files.format == &readers::link_samples::kFormat)
      input.source->set_link_logs(files.files, inputs.unpacker);
}

}  // namespace

Result<Input> open_input(const std::vector<std::string>& paths) {
  // First of all: what dead processes left in memory belongs to their files, whose headers and sizes are read
  // next.
  for (const std::string& path : paths) run::adopt_run(path);
  std::vector<std::string> others;
  LOCKSTEP_ASSIGN(const std::vector<std::string> databases, named_databases(paths, others));
  if (databases.size() == 1 && others.empty()) return open_trace_db(databases[0]);
  if (databases.empty()) {
    LOCKSTEP_ASSIGN(const readers::Inputs inputs, readers::sort(paths));
    LOCKSTEP_ASSIGN(const readers::FormatFiles* files, readers::one_format(inputs));
    LOCKSTEP_ASSIGN(auto raw, readers::open(inputs, *files));
    Input input = make_input(job::assemble::assembled(std::move(raw)), paths);
    set_link_logs(inputs, input);
    return input;
  }
  std::vector<std::unique_ptr<model::TraceSource>> sources;
  for (const std::string& path : databases) {
    LOCKSTEP_ASSIGN(auto source, store::open_trace_db(path));
    sources.push_back(std::move(source));
  }
  std::vector<LossLine> troubles;
  std::erase_if(others, [&](const std::string& path) {
    // A path that cannot be read is a loss here, and no error: the databases can be read.
    const auto known = readers::sort({path});
    if (!known) troubles.push_back({-1, "read", "unreadable_file", known.error().message(), 1});
    return !known;
  });
  if (!others.empty()) {
    LOCKSTEP_ASSIGN(auto source, open_beside(databases[0], others));
    sources.push_back(std::move(source));
  }
  Input input = make_input(std::make_unique<JoinedSource>(std::move(sources)), paths, std::move(troubles));
  input.databases = databases;
  return input;
}

namespace {

class Mixer {
 public:
  void add(const std::vector<std::string>& paths) {
    std::vector<std::string> databases, others;
    for (const std::string& path : paths) {
      if (store::is_followed_run(path)) {
        add_followed(path);
        continue;
      }
      if (store::is_trace_db(path)) {
        databases.push_back(path);
        continue;
      }
      others.push_back(path);
      // A directory with a database is looked through for logs and dumps as well.
      const std::vector<std::string> inside = trace_dbs_in(path);
      if (!inside.empty()) with_database_.push_back(path);
      databases.insert(databases.end(), inside.begin(), inside.end());
    }
    for (const std::string& path : databases) add_trace_db(path, databases.size() > 1, others);
    if (!others.empty()) add_others(others);
  }
  Result<MixedInput> take() {
    const auto& formats = mixed_.files.formats;
    const bool statements =
        std::any_of(formats.begin(), formats.end(),
                    [](const readers::FormatFiles& files) { return files.format->open == nullptr; });
    if (mixed_.runs.empty() && !statements) return first_error_.value_or(usage_error("no input is named"));
    return std::move(mixed_);
  }

 private:
  void add_followed(const std::string& url) {
    auto source = store::open_followed_run(
        {.url = url, .key = store::key_of_environment(), .patience = std::chrono::seconds(10)});
    if (!source) return lose(source.error());
    Input input;
    input.source = std::make_unique<ObservedSource>(*std::move(source), std::vector<LossLine>());
    input.kind = input.evidence = "store";
    // A store keeps the newest operations of a run that it follows, and no more.
    input.is_of_now = true;
    mixed_.runs.push_back(std::move(input));
  }

  void add_trace_db(const std::string& path, bool one_of_several, std::vector<std::string>& others) {
    auto input = open_trace_db(path);
    if (!input) return lose(input.error());
    // Reports name evidence by its kind. Two databases need their paths to be told apart.
    if (one_of_several) input->evidence = path;
    mixed_.runs.push_back(*std::move(input));
    // Logs and dumps that a database carries are read as if they had been named.
    auto attached = store::extract_attachments(path, [&] { return unpacker_->make_folder(path); });
    if (!attached) return lose(attached.error());
    others.insert(others.end(), attached->begin(), attached->end());
  }

  void add_others(const std::vector<std::string>& others) {
    auto sorted = readers::sort(others, unpacker_);
    if (!sorted) return lose(sorted.error());
    mixed_.files = *std::move(sorted);
    leave_troubles_to_a_run();
    for (const readers::FormatFiles& files : mixed_.files.formats) {
      if (files.format->open == nullptr) continue;
      auto raw = readers::open(mixed_.files, files);
      // The first source that opens has taken the troubles: they are reported once.
      if (raw) mixed_.files.troubles.clear();
      if (!raw) {
        lose(raw.error());
        continue;
      }
      // Who left no process file is only known of the directories that hold some.
      const bool first = files.format == mixed_.files.formats.front().format;
      mixed_.runs.push_back(
          make_input(job::assemble::assembled(*std::move(raw)), first ? others : files.files));
      mixed_.runs.back().evidence = files.format->summary;
      mixed_.runs.back().format = files.format;
      mixed_.runs.back().paths = named_alone(files, others);
    }
    for (const Error& error : std::exchange(mixed_.files.troubles, {})) lose(error);
  }

  // What cannot be read may be the file of a rank that seems to have left none: the analyses of the first run
  // are told.
  void leave_troubles_to_a_run() {
    std::erase_if(mixed_.files.troubles,
                  [this](const Error& error) { return is_covered_by_database(error); });
    for (Error& error : mixed_.files.troubles) {
      error.where = unpacker_->shown(std::move(error.where));
      if (!first_error_) first_error_ = error;
    }
  }

  // A directory may hold a database and nothing else.
  bool is_covered_by_database(const Error& error) const {
    return error.code == ErrorCode::kNotFound &&
           std::find(with_database_.begin(), with_database_.end(), error.where) != with_database_.end();
  }

  // The files that an archive held are gone with this program.
  std::vector<std::string> named_alone(const readers::FormatFiles& files,
                                       const std::vector<std::string>& others) const {
    if (mixed_.files.formats.size() == 1) return others;
    const auto is_unpacked = [this](const std::string& file) { return unpacker_->shown(file) != file; };
    return std::any_of(files.files.begin(), files.files.end(), is_unpacked) ? std::vector<std::string>()
                                                                            : files.files;
  }

  void lose(Error error) {
    if (is_covered_by_database(error)) return;
    error.where = unpacker_->shown(std::move(error.where));
    mixed_.troubles.push_back({-1, "read", "unreadable_file", error.message(), 1});
    if (!first_error_) first_error_ = std::move(error);
  }

  MixedInput mixed_;
  std::shared_ptr<readers::Unpacker> unpacker_ = std::make_shared<readers::Unpacker>();
  std::optional<Error> first_error_;
  std::vector<std::string> with_database_;  // directories
};

}  // namespace

Result<MixedInput> open_mixed_input(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) run::adopt_run(path);
  Mixer mixer;
  mixer.add(paths);
  return mixer.take();
}

}  // namespace lockstep::input
