// SPDX-License-Identifier: Apache-2.0
// Reads what torch.profiler writes. Each rank writes a file for each of its windows, and a folder may hold
// many: one window of all ranks is chosen, since operations of different windows do not belong together.
#include "readers/kineto/kineto.h"

#include <array>

#include "base/input_file.h"
#include "readers/common/read_all.h"
#include "readers/kineto/recording.h"
#include "readers/kineto/trace_maker.h"
#include "readers/kineto/windows.h"

namespace lockstep::readers::kineto {
namespace {

using model::Trace;

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// What `lockstep convert` writes begins so, and no profiler's trace does. Lying beside the run that it was
// made from it is no further evidence, so it is read only where somebody asks for it.
bool is_own_timeline(std::span<const std::byte> first_bytes) {
  return std::string_view(reinterpret_cast<const char*>(first_bytes.data()), first_bytes.size())
      .starts_with(R"({"schemaVersion":1,"displayTimeUnit":"ms","baseTimeNanoseconds":)");
}

// Which of these keys a file begins with differs by version.
bool sniff(std::span<const std::byte> first_bytes) {
  const std::string_view text(reinterpret_cast<const char*>(first_bytes.data()), first_bytes.size());
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos || text[begin] != '{') return false;
  if (is_own_timeline(first_bytes)) return false;
  for (const std::string_view key :
       {"\"traceEvents\"", "\"deviceProperties\"", "\"distributedInfo\"", "\"baseTimeNanoseconds\""}) {
    if (has(text, key)) return true;
  }
  return false;
}

class Source : public model::TraceSource {
 public:
  static Result<std::unique_ptr<model::TraceSource>> open(std::vector<std::string> paths) {
    const auto look_at = [](const std::string& path) -> Result<TraceFile> {
      LOCKSTEP_ASSIGN(Heading heading, read_heading(path));
      LOCKSTEP_ASSIGN(const InputFile file, InputFile::open(path));
      std::array<std::byte, 128> first;
      const size_t size = file.read_at(0, first);
      if (!heading.has_info && is_own_timeline(std::span(first).first(size))) {
        return Error{
            ErrorCode::kUnsupported,
            "is a timeline made by lockstep, of several ranks or of one without a number: it is for viewing only. Name the run that it was made from, or one timeline per rank",
            path};
      }
      return TraceFile{path, heading};
    };
    LOCKSTEP_ASSIGN(auto read, common::read_all(std::move(paths), "traces of PyTorch's profiler", look_at));
    auto source = std::make_unique<Source>();
    source->bad_files_ = std::move(read.bad_files);
    source->name_ = std::move(read.name);
    ChosenFiles chosen = choose_window(std::move(read.files));
    source->files_ = std::move(chosen.used);
    source->unused_ = std::move(chosen.unused);
    return std::unique_ptr<model::TraceSource>(std::move(source));
  }

  size_t processes() const override { return files_.size(); }
  Result<void> load(size_t i, Trace& trace) override {
    LOCKSTEP_CHECK(i < files_.size());
    LOCKSTEP_ASSIGN(Recording recording, read_recording(files_[i].path, trace));
    make_trace(std::move(recording), trace);
    return {};
  }
  void run_losses(Trace& trace) override {
    for (const std::string& file : bad_files_) trace.lose(model::kNoRow, "read", "unreadable_file", 1, file);
    for (const UnusedFile& file : unused_)
      trace.lose(model::kNoRow, "read", file.kind, 1,
                 "not used, as " + std::string(file.why) + ": " + file.path);
  }
  std::string name() const override { return name_; }

 private:
  std::vector<TraceFile> files_;  // by rank
  std::vector<UnusedFile> unused_;
  std::vector<std::string> bad_files_;
  std::string name_;
};

}  // namespace

// No setting has it written, and of a job that hangs none is.
const Format kFormat = {.name = "kineto",
                        .summary = "profiler traces",
                        .sniff = sniff,
                        .open = Source::open,
                        .sniff_deep = true,
                        .sniff_named = is_own_timeline};

}  // namespace lockstep::readers::kineto
