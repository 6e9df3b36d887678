// SPDX-License-Identifier: Apache-2.0
// Places the processes of all exports in one run: hosts by name, sessions without a date each on a clock of
// their own, so that nothing compares times that nothing ties together.
#include "readers/nsys/nsys.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/input_file.h"
#include "readers/common/device_plan.h"
#include "readers/common/identities.h"
#include "readers/common/read_all.h"
#include "readers/common/sqlite_file.h"
#include "readers/nsys/trace_maker.h"

namespace lockstep::readers::nsys {
namespace {

using model::kNoRow;
using model::Trace;

constexpr std::string_view kSqliteMagic("SQLite format 3\0", 16);
// An export has one of these; rocpd's files and a trace.db have none.
constexpr std::string_view kTables[] = {"NVTX_EVENTS", "CUPTI_ACTIVITY_KIND_"};

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Any Parquet file, as its names stand at its end: whether it is of an export shows when it is opened.
bool sniff(std::span<const std::byte> first_bytes) { return ParquetFile::is_parquet(first_bytes); }
bool may_be(std::span<const std::byte> first_bytes) { return text_of(first_bytes).starts_with(kSqliteMagic); }
bool sniff_file(const std::string& path) { return common::SqliteFile::has_table_like(path, kTables); }

bool is_parquet(const std::string& path) {
  std::byte first[4] = {};
  const auto file = InputFile::open(path);
  return file && file->read_at(0, first) == sizeof(first) && ParquetFile::is_parquet(first);
}

// A SQLite file is an export; so are all Parquet files of one directory.
using Paths = std::vector<std::string>;

Result<Export> read_paths(const Paths& paths) {
  if (is_parquet(paths.front())) {
    const auto tables = open_parquet(paths);
    return read_export(*tables);
  }
  LOCKSTEP_ASSIGN(const auto tables, open_sqlite(paths.front()));
  return read_export(*tables);
}

// Opening reads the exports whole, as a process's rows lie scattered over an export's tables; loading only
// makes rows of what is in memory.
class Source : public model::TraceSource {
 public:
  static Result<std::unique_ptr<model::TraceSource>> open(std::vector<std::string> paths) {
    // Files of one directory are one export, whatever the order in which they were named.
    std::vector<std::string> names;
    std::map<std::string, Paths> exports;  // by what users call them
    for (std::string& path : paths) {
      const std::string name =
          is_parquet(path) ? std::filesystem::path(path).parent_path().string() + "/" : path;
      if (exports[name].empty()) names.push_back(name);
      exports[name].push_back(std::move(path));
    }
    LOCKSTEP_ASSIGN(auto read,
                    common::read_all(std::move(names), "exports of Nsight Systems",
                                     [&](const std::string& name) { return read_paths(exports.at(name)); }));
    auto source = std::make_unique<Source>();
    source->exports_ = std::move(read.files);
    source->bad_files_ = std::move(read.bad_files);
    source->name_ = std::move(read.name);
    source->place();
    if (source->placed_.empty())
      return Error{ErrorCode::kInvalidInput,
                   "holds neither NCCL ranges nor kernels; record with `nsys profile -t cuda,nvtx`",
                   source->name_};
    return std::unique_ptr<model::TraceSource>(std::move(source));
  }

  size_t processes() const override { return placed_.size(); }
  Result<void> load(size_t i, Trace& trace) override {
    LOCKSTEP_CHECK(i < placed_.size());
    make_trace(placed_[i], world_, trace);
    return {};
  }
  void run_losses(Trace& trace) override {
    const auto lose = [&](std::string_view kind, uint64_t count, const std::string& text) {
      trace.lose(kNoRow, "read", kind, count, text);
    };
    for (const std::string& file : bad_files_) lose("unreadable_file", 1, file);
    for (const Export& of : exports_) {
      lose("bad_record", of.bad_rows, "rows with impossible times: " + of.path);
      lose("missing_record", of.left_out, "rows beyond the limit for one export: " + of.path);
      lose("unknown_payload", of.unknown_payloads,
           "NCCL ranges whose payload the export does not describe: " + of.path);
      if (!of.damage.empty()) lose("cut_file", 1, of.damage);
      if (!of.has_epoch)
        lose("no_date", 1,
             "the export does not say when its session began, so times start in 1970: " + of.path);
    }
    // Every export is a window of its job, so this is said of each run.
    lose(
        "recorded_part", 1,
        "Nsight Systems records a window: what was called before and after is unknown, and nobody is blamed for not calling");
    if (world_.comm != 0)
      lose("guessed_rank", 1,
           "NCCL's ranges do not give the job's ranks: those of the largest communicator are used");
  }
  std::string name() const override { return name_; }

 private:
  void place() {
    common::DevicePlan plan;
    for (const Export& of : exports_) {
      for (const auto& [pid, process] : of.processes) {
        if (process.ranges.empty() && process.work.empty()) continue;
        Placed placed;
        placed.of = &of;
        placed.process = &process;
        // With a date, sessions of one host have the host's clock. A session without one counts from its own
        // begin, and its times compare with no other's.
        placed.clock = of.has_epoch && !of.host.empty() ? "clock of " + of.host : "session of " + of.path;
        placed_.push_back(std::move(placed));
      }
    }
    // All devices are planned before one is numbered, so that numbers do not depend on which file came first.
    for (const Placed& placed : placed_) {
      for (const uint32_t device : devices_of(*placed.process)) plan.add(planned(placed, device));
    }
    plan.finish();
    std::vector<std::vector<common::Membership>> members;
    for (Placed& placed : placed_) {
      for (const uint32_t device : devices_of(*placed.process))
        placed.gpus[device] = plan.number(planned(placed, device).key);
      members.push_back(memberships(*placed.process));
    }
    world_ = common::find_world(members);
  }

  // A search of a short list, as a process works on a few devices; the bound is against forged numbers.
  static std::vector<uint32_t> devices_of(const ExportedProcess& process) {
    std::vector<uint32_t> devices;
    for (const GpuWork& work : process.work) {
      if (std::find(devices.begin(), devices.end(), work.device) == devices.end() && devices.size() < 1024)
        devices.push_back(work.device);
    }
    return devices;
  }

  // Without UUID and PCI address a device is the process's own: every rank may call its GPU "device 0".
  static common::PlannedDevice planned(const Placed& placed, uint32_t device) {
    const auto gpu = placed.of->gpus.find({placed.process->pid, device});
    const ExportedGpu known = gpu == placed.of->gpus.end() ? ExportedGpu{} : gpu->second;
    const std::string host = placed.of->host.empty() ? placed.of->path : placed.of->host;
    const std::string what = !known.uuid.empty() ? "uuid " + known.uuid
                             : !known.pci.empty()
                                 ? "pci " + known.pci
                                 : std::to_string(placed.process->pid) + " device " + std::to_string(device);
    return {
        .key = host + ' ' + what, .host = host, .ordinal = static_cast<int32_t>(device), .pci = known.pci};
  }

  std::vector<Export> exports_;  // not changed once `placed_` points into it
  std::vector<Placed> placed_;   // the processes of the run
  std::vector<std::string> bad_files_;
  common::World world_;
  std::string name_;
};

}  // namespace

const Format kFormat = {.name = "nsys",
                        .summary = "exports of Nsight Systems",
                        .sniff = sniff,
                        .open = Source::open,
                        .setting = "nsys profile -t cuda,nvtx -o /shared/job/rank_%q{RANK} COMMAND",
                        .may_be = may_be,
                        .sniff_file = sniff_file};

}  // namespace lockstep::readers::nsys
