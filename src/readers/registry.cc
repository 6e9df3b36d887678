// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <filesystem>
#include <map>

#include "base/input_file.h"
#include "readers/reader.h"

namespace lockstep::readers {

#define READER(name)           \
  namespace name {             \
  extern const Format kFormat; \
  }
#include "readers/readers.def"
#undef READER

namespace {

namespace fs = std::filesystem;

constexpr const Format* kFormats[] = {
#define READER(name) &name::kFormat,
#include "readers/readers.def"
#undef READER
};

constexpr std::string_view kHint = "capture one with: lockstep trace -o trace.db COMMAND";

// Files that no format takes, on top of what the source itself has lost.
class WithUnknownFiles : public model::TraceSource {
 public:
  WithUnknownFiles(std::unique_ptr<model::TraceSource> source, std::vector<Error> unknown)
      : source_(std::move(source)), unknown_(std::move(unknown)) {}
  size_t processes() const override { return source_->processes(); }
  Result<void> load(size_t i, model::Trace& trace) override { return source_->load(i, trace); }
  void run_losses(model::Trace& trace) override {
    source_->run_losses(trace);
    for (const Error& error : unknown_)
      trace.lose(model::kNoRow, "read", "unreadable_file", 1, error.message());
  }
  std::string name() const override { return source_->name(); }

 private:
  std::unique_ptr<model::TraceSource> source_;
  std::vector<Error> unknown_;
};

void add_process_files(const fs::path& directory, int levels, std::vector<std::string>& files) {
  std::error_code ignored;
  std::vector<fs::path> entries;
  for (fs::directory_iterator at(directory, fs::directory_options::skip_permission_denied, ignored), end;
       !ignored && at != end; at.increment(ignored)) {
    entries.push_back(at->path());
  }
  std::sort(entries.begin(), entries.end());
  for (const fs::path& entry : entries) {
    if (fs::is_directory(entry, ignored)) {
      if (levels > 0) add_process_files(entry, levels - 1, files);
    } else if (entry.extension() == ".lks") {
      files.push_back(entry);
    }
  }
}

// Other tools' files have no name in common, and lie among logs and checkpoints: those that a format knows.
void add_known_files(const fs::path& directory, std::vector<std::string>& files) {
  std::error_code ignored;
  std::vector<std::string> found;
  for (fs::directory_iterator at(directory, fs::directory_options::skip_permission_denied, ignored), end;
       !ignored && at != end; at.increment(ignored)) {
    if (!at->is_regular_file(ignored)) continue;
    auto format = detect(at->path());
    if (format && *format != nullptr) found.push_back(at->path());
  }
  std::sort(found.begin(), found.end());
  files.insert(files.end(), found.begin(), found.end());
}

Result<void> add_files(const std::string& path, std::vector<std::string>& files) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    files.push_back(path);
    return {};
  }
  size_t before = files.size();
  add_process_files(path, 1, files);
  if (files.size() == before) add_known_files(path, files);
  if (files.size() > before) return {};
  return Error{ErrorCode::kNotFound,
               "the directory holds no process files (*.lks), and no other file that can be read; " +
                   std::string(kHint),
               path};
}

}  // namespace

std::span<const Format* const> all() { return kFormats; }

Result<const Format*> detect(const std::string& path) {
  LOCKSTEP_ASSIGN(InputFile file, InputFile::open(path));
  std::array<std::byte, kSniffBytes> buffer;
  std::span<const std::byte> first(buffer.data(), file.read_at(0, buffer));
  for (const Format* format : all()) {
    if (format->sniff(first)) return format;
  }
  return static_cast<const Format*>(nullptr);
}

Result<std::unique_ptr<model::TraceSource>> open(const std::vector<std::string>& paths) {
  if (paths.empty()) return Error{ErrorCode::kUsage, "no input files; " + std::string(kHint), {}};
  std::vector<std::string> files;
  for (const std::string& path : paths) LOCKSTEP_TRY(add_files(path, files));

  const Format* format = nullptr;
  std::vector<std::string> readable;
  std::vector<Error> unknown;
  for (const std::string& file : files) {
    auto found = detect(file);
    // A torn process file may lack even its first bytes: the native reader says what is wrong with it.
    if (found && *found == nullptr && fs::path(file).extension() == ".lks") found = &native::kFormat;
    if (!found) {
      unknown.push_back(found.error());
    } else if (*found == nullptr) {
      unknown.push_back(
          {ErrorCode::kInvalidInput, "not a file of a known format; " + std::string(kHint), file});
    } else if (format != nullptr && *found != format) {
      return Error{ErrorCode::kUnsupported, "files of different formats cannot be read as one run", file};
    } else {
      format = *found;
      readable.push_back(file);
    }
  }
  if (format == nullptr) return unknown.front();
  LOCKSTEP_ASSIGN(auto source, format->open(std::move(readable)));
  if (unknown.empty()) return source;
  return std::unique_ptr<model::TraceSource>(
      std::make_unique<WithUnknownFiles>(std::move(source), std::move(unknown)));
}

}  // namespace lockstep::readers
