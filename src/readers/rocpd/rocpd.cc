// SPDX-License-Identifier: Apache-2.0
// Reads databases of rocm-trace-lite, RPD and rocprofiler. They hold GPU work by process, and nothing of what
// RCCL was asked for. A trace.db has rocpd's names, too, as views: the application id in its header tells it
// apart before SQLite looks at it.
#include "readers/rocpd/rocpd.h"

#include <algorithm>
#include <array>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>

#include "base/parallel.h"
#include "readers/common/device_plan.h"
#include "readers/common/identities.h"
#include "readers/common/sqlite_file.h"
#include "readers/rocpd/schema.h"
#include "readers/rocpd/trace_maker.h"

namespace lockstep::readers::rocpd {
namespace {

using model::kNoRow;
using model::Trace;

constexpr std::string_view kMagic("SQLite format 3\0", 16);
constexpr size_t kApplicationId = 68;        // where a file says whose it is
constexpr std::string_view kOwnId = "LKST";  // a trace.db has rocpd's names, too
constexpr size_t kHeaderBytes = 100;
constexpr std::string_view kWorkTables[] = {"rocpd_op", "rocpd_kernel_dispatch"};

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool may_be(std::span<const std::byte> first_bytes) {
  const std::string_view text = text_of(first_bytes);
  return text.starts_with(kMagic) && text.size() > kHeaderBytes &&
         text.substr(kApplicationId, kOwnId.size()) != kOwnId;
}

bool is_json(std::string_view text) {
  const size_t at = text.find_first_not_of(" \t\r\n");
  return at != std::string_view::npos && text[at] == '{';
}

bool sniff(std::span<const std::byte> first_bytes) {
  if (is_json(text_of(first_bytes)))
    return text_of(first_bytes).find("\"rocprofiler-sdk-tool\"") != std::string_view::npos;
  const auto is_there = [&](std::string_view table) {
    return text_of(first_bytes).find(table) != std::string_view::npos;
  };
  return may_be(first_bytes) && std::any_of(std::begin(kWorkTables), std::end(kWorkTables), is_there);
}

// Large pages, and long lists of tables, have the names behind the first bytes.
bool sniff_file(const std::string& path) { return common::SqliteFile::has_table_like(path, kWorkTables); }

// A connection and the schema that reads through it. The schema refers to the database, which therefore lives
// on the heap. There is none of JSON.
struct Opened {
  std::unique_ptr<common::SqliteFile> database;
  std::unique_ptr<Schema> schema;
};

Result<Opened> open_schema(const std::string& path) {
  Opened opened;
  std::array<char, 64> head{};
  std::ifstream(path, std::ios::binary).read(head.data(), head.size());
  if (is_json({head.data(), head.size()})) {
    LOCKSTEP_ASSIGN(opened.schema, json_schema(path));
    return opened;
  }
  LOCKSTEP_ASSIGN(opened.database, common::SqliteFile::open(path, "rocpd_"));
  opened.schema = classic_schema(*opened.database);
  if (!opened.schema) opened.schema = sdk_schema(*opened.database);
  if (!opened.schema) {
    return Error{
        ErrorCode::kUnsupported,
        "has no known table of GPU work (rocpd_op, or rocpd_kernel_dispatch of schema 3); views are not read",
        path};
  }
  return opened;
}

struct File {
  std::string path;
  std::vector<Process> processes;
  std::vector<Schema::Loss> losses;
  std::string error;                   // empty: it was read
  std::unique_ptr<SharedTexts> texts;  // of all its processes
};

// Connections that wait for the next process of their file: opening one reads its list of tables anew. A few
// of the newest.
class Connections {
 public:
  Result<Opened> take(const std::string& path) {
    {
      const std::lock_guard guard(lock_);
      const auto at =
          std::find_if(idle_.rbegin(), idle_.rend(), [&](const auto& idle) { return idle.first == path; });
      if (at != idle_.rend()) {
        Opened opened = std::move(at->second);
        idle_.erase(std::next(at).base());
        return opened;
      }
    }
    return open_schema(path);
  }
  void give_back(const std::string& path, Opened opened) {
    const std::lock_guard guard(lock_);
    idle_.emplace_back(path, std::move(opened));
    // As many as can be in use at once: each holds a descriptor and SQLite's cache.
    if (idle_.size() > parallel_threads()) idle_.pop_front();
  }

 private:
  std::mutex lock_;
  std::deque<std::pair<std::string, Opened>> idle_;
};

// Each process its rows' part of the work that the file may take, and all alike as much again: for tables of
// which a process has to read more than its rows.
void share_work(std::vector<Process>& processes) {
  double rows = 0;
  for (const Process& process : processes) rows += static_cast<double>(process.rows);
  for (Process& process : processes)
    process.share =
        static_cast<double>(process.rows) / std::max(rows, 1.0) + 1.0 / static_cast<double>(processes.size());
}

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
    share_work(file.processes);
    file.texts = std::make_unique<SharedTexts>();
  }
  // SQLite's header says how many pages the file has.
  if (opened->database != nullptr && opened->database->is_cut())
    file.losses.push_back({"cut_file", 1, "the file is shorter than it says; read as far as it goes"});
  // A writer that was killed leaves its last rows in the journal. The file is opened as immutable, so SQLite
  // does not replay it.
  std::error_code ignored;
  if (const auto bytes = std::filesystem::file_size(path + "-wal", ignored);
      !ignored && bytes > 0 && bytes != UINTMAX_MAX)
    file.losses.push_back(
        {"unread_journal", 1,
         "what its writer had not moved out of the journal was not read; run `sqlite3 FILE 'PRAGMA wal_checkpoint(TRUNCATE)'` on a copy of both files to move it"});
  return file;
}

class Source : public model::TraceSource {
 public:
  // A first pass over all files: devices and clocks need every process of the run. Rows of work are read at
  // load.
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
    const Placed& placed = placed_[i];
    LOCKSTEP_ASSIGN(Opened opened, connections_.take(placed.file));
    // A forged file may ask for far more work than its size suggests, and that for each process. A share for
    // each bounds the sum.
    if (opened.database != nullptr) opened.database->allow(placed.process->share);
    make_trace(placed, opened.schema->read(*placed.process, *placed.texts, trace.strings), trace);
    if (placed.shares_file) connections_.give_back(placed.file, std::move(opened));
    return {};
  }
  void run_losses(Trace& trace) override {
    for (const File& file : files_) {
      if (!file.error.empty()) trace.lose(kNoRow, "read", "unreadable_file", 1, file.error);
      for (const Schema::Loss& loss : file.losses)
        trace.lose(kNoRow, "read", loss.kind, loss.count, loss.text + ": " + file.path);
    }
    trace.lose(
        kNoRow, "read", "kernels_alone", 1,
        "the files hold GPU work only: the communicator, size and peers of RCCL's kernels are unknown");
    trace.lose(kNoRow, "read", "equal_names", hosts_.kept_apart(),
               "hosts with the same name but different machine ids: kept apart");
    if (shared_clocks_ > 0)
      trace.lose(kNoRow, "read", "guessed_clock", shared_clocks_,
                 "files that name no host were taken to be from one host if their times overlap");
  }
  std::string name() const override { return name_; }

 private:
  // Devices of the run, and whose clock each process has.
  void number() {
    for (const File& file : files_) {
      for (const Process& process : file.processes) {
        Placed placed;
        placed.process = &process;
        placed.file = file.path;
        placed.texts = file.texts.get();
        placed.shares_file = file.processes.size() > 1;
        placed_.push_back(std::move(placed));
      }
    }
    for (Placed& placed : placed_) {
      common::Facts facts;
      if (!placed.process->machine.empty()) facts["machine"] = {placed.process->machine};
      // Two machines may bear one name, as containers do: machine ids tell them apart.
      if (!placed.process->host.empty()) placed.host = hosts_.place(placed.process->host, facts).number;
    }
    number_devices();
    name_clocks();
  }

  // A number that means something in its process alone is a device of its own: all ranks may call theirs 0.
  void number_devices() {
    common::DevicePlan plan;
    const auto key = [this](size_t i, size_t gpu) {
      const Placed& placed = placed_[i];
      const Process::Gpu& of = placed.process->gpus[gpu];
      const bool is_named = !placed.process->host.empty() && (!of.physical.empty() || !of.uuid.empty());
      if (!is_named) return "process " + std::to_string(i) + " device " + std::to_string(gpu);
      return "host " + std::to_string(placed.host) +
             (of.uuid.empty() ? " gpu " + of.physical : " uuid " + of.uuid);
    };
    for (size_t i = 0; i < placed_.size(); ++i) {
      const Process& process = *placed_[i].process;
      const std::string host =
          process.host.empty() ? std::string() : process.host + ' ' + std::to_string(placed_[i].host);
      for (size_t gpu = 0; gpu < process.gpus.size(); ++gpu) {
        const std::string& physical = process.gpus[gpu].physical;
        // As text: numbers of one width sort as numbers do.
        const std::string at = std::string(physical.size() < 20 ? 20 - physical.size() : 0, '0') + physical;
        plan.add({.key = key(i, gpu),
                  .host = host,
                  .ordinal = process.gpus[gpu].device,
                  .pci = physical.empty() ? physical : at});
      }
    }
    plan.finish();
    for (size_t i = 0; i < placed_.size(); ++i) {
      for (size_t gpu = 0; gpu < placed_[i].process->gpus.size(); ++gpu)
        placed_[i].gpus.push_back(plan.number(key(i, gpu)));
    }
  }

  // Clocks count since boot: two hosts' hardly ever overlap. Nodes of one file are hosts of their own.
  void name_clocks() {
    std::vector<Placed*> unnamed;
    for (Placed& placed : placed_) {
      if (placed.process->host.empty()) {
        unnamed.push_back(&placed);
      } else {
        // Times count from the boot of the host, and there is no wall clock in the file to tie hosts by.
        placed.clock = "boot clock of " + placed.process->host;
        if (hosts_.kept_apart() > 0) placed.clock += ", host " + std::to_string(placed.host + 1);
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
      // Processes of one host mostly overlap in time; those of another host would have to have booted by
      // chance at such a time.
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
  Connections connections_;
  common::Identities hosts_;
  size_t shared_clocks_ = 0;
  std::string name_;
};

}  // namespace

const Format kFormat = {
    .name = "rocpd",
    .summary = "rocpd files",
    .sniff = sniff,
    .open = Source::open,
    .setting = "HSA_TOOLS_LIB=/path/to/librtl.so RTL_MODE=default RTL_OUTPUT=/shared/job/trace_%p.db",
    .may_be = may_be,
    .sniff_file = sniff_file};

}  // namespace lockstep::readers::rocpd
