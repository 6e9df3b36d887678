// SPDX-License-Identifier: Apache-2.0
#include "readers/kineto/kineto.h"

#include <algorithm>

#include "readers/common/read_all.h"
#include "readers/kineto/recording.h"
#include "readers/kineto/trace_maker.h"

namespace lockstep::readers::kineto {
namespace {

using model::Trace;

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

bool sniff(std::span<const std::byte> first_bytes) {
  const std::string_view text(reinterpret_cast<const char*>(first_bytes.data()), first_bytes.size());
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos || text[begin] != '{') return false;
  // A timeline of our own is one to look at, not to read.
  if (has(text, "\"lockstep")) return false;
  for (const std::string_view key :
       {"\"traceEvents\"", "\"deviceProperties\"", "\"distributedInfo\"", "\"baseTimeNanoseconds\""}) {
    if (has(text, key)) return true;
  }
  return false;
}

class Source : public model::TraceSource {
 public:
  static Result<std::unique_ptr<model::TraceSource>> open(std::vector<std::string> paths) {
    const auto look_at = [](const std::string& path) -> Result<File> {
      LOCKSTEP_ASSIGN(Heading heading, read_heading(path));
      return File{path, heading};
    };
    LOCKSTEP_ASSIGN(auto read, common::read_all(std::move(paths), "traces of PyTorch's profiler", look_at));
    auto source = std::make_unique<Source>();
    source->files_ = std::move(read.files);
    source->bad_files_ = std::move(read.bad_files);
    source->name_ = std::move(read.name);
    source->keep_newest();
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
    for (const std::string& file : older_)
      trace.lose(model::kNoRow, "read", "older_trace", 1, "a later trace of its rank is there: " + file);
  }
  std::string name() const override { return name_; }

 private:
  struct File {
    std::string path;
    Heading heading;
  };

  // A profiler that is on by turns leaves several files a rank, of the same steps on every rank.
  void keep_newest() {
    std::stable_sort(files_.begin(), files_.end(), [](const File& a, const File& b) {
      return std::pair(a.heading.rank, -a.heading.first_ns) < std::pair(b.heading.rank, -b.heading.first_ns);
    });
    std::vector<File> kept;
    for (File& file : files_) {
      if (!kept.empty() && file.heading.rank >= 0 && kept.back().heading.rank == file.heading.rank)
        older_.push_back(file.path);
      else
        kept.push_back(std::move(file));
    }
    files_ = std::move(kept);
  }

  std::vector<File> files_;  // by rank
  std::vector<std::string> bad_files_, older_;
  std::string name_;
};

}  // namespace

// No setting has it written, and of a job that hangs none is.
const Format kFormat = {
    .name = "kineto", .summary = "profiler traces", .sniff = sniff, .open = Source::open, .sniff_deep = true};

}  // namespace lockstep::readers::kineto
