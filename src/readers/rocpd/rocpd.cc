// SPDX-License-Identifier: Apache-2.0
#include "readers/rocpd/rocpd.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include "base/parallel.h"
#include "readers/rocpd/database.h"
#include "readers/rocpd/schema.h"
#include "readers/rocpd/trace_maker.h"

namespace lockstep::readers::rocpd {
namespace {

using model::kNoRow;
using model::Trace;

constexpr std::string_view kMagic("SQLite format 3\0", 16);
constexpr size_t kApplicationId = 68;        // where a file says whose it is
constexpr std::string_view kOwnId = "LKST";  // a trace.db has rocpd's names, too
constexpr size_t kSchemaPage = 100;          // the kind of page that lists the tables
constexpr char kInteriorPage = 5;            // they are listed further behind

bool sniff(std::span<const std::byte> first_bytes) {
  const std::string_view text(reinterpret_cast<const char*>(first_bytes.data()), first_bytes.size());
  if (!text.starts_with(kMagic) || text.size() <= kSchemaPage) return false;
  const std::string_view id = text.substr(kApplicationId, kOwnId.size());
  if (id == kOwnId) return false;
  if (text[kSchemaPage] == kInteriorPage) return id == std::string_view("\0\0\0\0", 4);
  return text.find("rocpd_op") != std::string_view::npos ||
         text.find("rocpd_kernel_dispatch") != std::string_view::npos;
}

struct Opened {
  std::unique_ptr<Database> database;
  std::unique_ptr<Schema> schema;
};

Result<Opened> open_schema(const std::string& path) {
  Opened opened;
  LOCKSTEP_ASSIGN(opened.database, Database::open(path));
  opened.schema = classic_schema(*opened.database);
  if (!opened.schema) opened.schema = sdk_schema(*opened.database);
  if (!opened.schema) {
    return Error{ErrorCode::kUnsupported,
                 "has no table of GPU work that is known (rocpd_op, or rocpd_kernel_dispatch of schema 3); "
                 "views are not read",
                 path};
  }
  return opened;
}

struct File {
  std::string path;
  std::vector<Process> processes;
  std::vector<Schema::Loss> losses;
  std::string error;  // empty: it was read
};

File look_at(const std::string& path) {
  File file;
  file.path = path;
  auto opened = open_schema(path);
  if (!opened) {
    file.error = opened.error().message();
    return file;
  }
  auto processes = opened->schema->processes(file.losses);
  if (!processes) {
    file.error = processes.error().message();
  } else if (processes->empty()) {
    file.error = Error{ErrorCode::kInvalidInput, "holds no GPU work", path}.message();
  } else {
    file.processes = std::move(*processes);
  }
  if (opened->database->is_cut())
    file.losses.push_back({"cut_file", 1, "the file is shorter than it says, and read as far as it goes"});
  std::error_code ignored;
  if (const auto bytes = std::filesystem::file_size(path + "-wal", ignored);
      !ignored && bytes > 0 && bytes != UINTMAX_MAX)
    file.losses.push_back(
        {"unread_journal", 1,
         "what its writer had not moved out of the journal is not read; `sqlite3 FILE 'PRAGMA "
         "wal_checkpoint(TRUNCATE)'` moves it, on a copy of both files"});
  return file;
}

class Source : public model::TraceSource {
 public:
  static Result<std::unique_ptr<model::TraceSource>> open(std::vector<std::string> paths) {
    std::vector<File> files(paths.size());
    for_each_parallel(paths.size(), parallel_threads(), [&](size_t i) { files[i] = look_at(paths[i]); });
    auto source = std::make_unique<Source>();
    source->files_ = std::move(files);
    source->number();
    if (source->placed_.empty()) {
      const auto bad = std::find_if(source->files_.begin(), source->files_.end(),
                                    [](const File& file) { return !file.error.empty(); });
      return Error{ErrorCode::kInvalidInput, bad == source->files_.end() ? "no rocpd files" : bad->error, {}};
    }
    source->name_ = paths.size() == 1 ? paths.front() : std::to_string(paths.size()) + " rocpd files";
    return std::unique_ptr<model::TraceSource>(std::move(source));
  }

  size_t processes() const override { return placed_.size(); }
  Result<void> load(size_t i, Trace& trace) override {
    LOCKSTEP_CHECK(i < placed_.size());
    LOCKSTEP_ASSIGN(Opened opened, open_schema(placed_[i].file));
    make_trace(placed_[i], opened.schema->read(*placed_[i].process, trace.strings), trace);
    return {};
  }
  void run_losses(Trace& trace) override {
    for (const File& file : files_) {
      if (!file.error.empty()) trace.lose(kNoRow, "read", "unreadable_file", 1, file.error);
      for (const Schema::Loss& loss : file.losses)
        trace.lose(kNoRow, "read", loss.kind, loss.count, loss.text + ": " + file.path);
    }
    trace.lose(kNoRow, "read", "kernels_alone", 1,
               "the files tell of GPU work alone: which communicator, size and peers a kernel of RCCL's had "
               "is not known");
    if (shared_clocks_ > 0)
      trace.lose(kNoRow, "read", "guessed_clock", shared_clocks_,
                 "files that name no host were taken for one host's where their times overlap");
  }
  std::string name() const override { return name_; }

 private:
  // Devices of the run, and whose clock each process has.
  void number() {
    for (const File& file : files_) {
      for (const Process& process : file.processes) placed_.push_back({&process, file.path, {}, {}});
    }
    std::map<std::pair<std::string, std::string>, int32_t> physical;
    int32_t next = 0;
    for (Placed& placed : placed_) {
      for (const Process::Gpu& gpu : placed.process->gpus) {
        // A number that means something in its process alone is a device of its own: all ranks may call theirs 0.
        const bool is_known = !placed.process->host.empty() && !gpu.physical.empty();
        const auto known = is_known ? physical.find({placed.process->host, gpu.physical}) : physical.end();
        placed.gpus.push_back(known != physical.end() ? known->second : next++);
        if (is_known) physical.try_emplace({placed.process->host, gpu.physical}, placed.gpus.back());
      }
    }
    name_clocks();
  }

  // Clocks count since boot: two hosts' hardly ever overlap. Nodes of one file are hosts of their own.
  void name_clocks() {
    std::vector<Placed*> unnamed;
    for (Placed& placed : placed_) {
      if (placed.process->host.empty()) {
        unnamed.push_back(&placed);
      } else {
        placed.clock = "boot clock of " + placed.process->host;
      }
    }
    std::sort(unnamed.begin(), unnamed.end(), [](const Placed* a, const Placed* b) {
      return std::pair(a->process->node, a->process->first_ns) <
             std::pair(b->process->node, b->process->first_ns);
    });
    size_t clock = 0;
    int64_t until = 0;
    for (size_t i = 0; i < unnamed.size(); ++i) {
      const Process& process = *unnamed[i]->process;
      const bool continues =
          i > 0 && process.node == unnamed[i - 1]->process->node && process.first_ns < until;
      if (!continues) {
        ++clock;
        until = 0;
      } else if (unnamed[i]->file != unnamed[i - 1]->file) {
        ++shared_clocks_;
      }
      until = std::max(until, process.last_ns);
      unnamed[i]->clock = "boot clock " + std::to_string(clock);
    }
  }

  std::vector<File> files_;     // not changed once `placed_` points into it
  std::vector<Placed> placed_;  // the processes of the run
  size_t shared_clocks_ = 0;
  std::string name_;
};

}  // namespace

const Format kFormat = {
    .name = "rocpd",
    .summary = "rocpd files",
    .sniff = sniff,
    .open = Source::open,
    .setting = "HSA_TOOLS_LIB=/path/to/librtl.so RTL_MODE=default RTL_OUTPUT=/shared/job/trace_%p.db"};

}  // namespace lockstep::readers::rocpd
