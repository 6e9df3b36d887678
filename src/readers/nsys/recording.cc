// SPDX-License-Identifier: Apache-2.0
// Reads an export by the names of its tables and columns, since their order and number change with each
// release. What it needs to know of an operation is in the payload of NCCL's NVTX ranges, whose layout the
// export describes itself; the layout is read, not assumed, and a range whose payload is not described is
// counted. An export without the tables that are needed is refused with the schema that it names.
#include "readers/nsys/recording.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <unordered_set>

#include "base/utf8.h"
#include "model/limits.h"
#include "model/names/kernel_name.h"

namespace lockstep::readers::nsys {
namespace {

// Of one export, so that a forged one cannot take all memory: what is beyond is counted. A GpuWork is 64
// bytes.
constexpr size_t kMostWork = size_t{1} << 26, kMostRanges = size_t{1} << 25, kMostTexts = size_t{1} << 22;
constexpr size_t kMostProcesses = 1 << 12, kMostSchemas = 1 << 12;
constexpr int64_t kPushPop = 59, kStartEnd = 60;  // ENUM_NSYS_EVENT_TYPE
constexpr size_t kBlobHead = 32;
// Types of payload entries, as NVTX numbers them.
constexpr int64_t kTypeInt = 5, kTypeUint = 6, kTypeInt32 = 15, kTypeUint32 = 16, kTypeInt64 = 17,
                  kTypeUint64 = 18, kTypeSize = 22;

// Nsight Systems puts a process and a thread into one number.
// 24 bits each. A kernel has a globalPid, which is the same number with a thread of 0.
int64_t pid_of(int64_t global) { return (global >> 24) & 0xffffff; }
uint32_t tid_of(int64_t global) { return static_cast<uint32_t>(global & 0xffffff); }

enum class Meaning : uint8_t { kNone, kComm, kBytes, kRoot, kPeer, kRank, kRanks, kDevice };

// The names that NCCL gives the fields of its payloads (its NVTX schemas). Fields of other names are passed
// over.
Meaning meaning_of(std::string_view name) {
  constexpr std::pair<std::string_view, Meaning> kNames[] = {{"NCCL communicator ID", Meaning::kComm},
                                                             {"Message size [bytes]", Meaning::kBytes},
                                                             {"Root", Meaning::kRoot},
                                                             {"Peer rank", Meaning::kPeer},
                                                             {"Rank", Meaning::kRank},
                                                             {"No. of ranks", Meaning::kRanks},
                                                             {"CUDA device", Meaning::kDevice}};
  for (const auto& [known, meaning] : kNames) {
    if (name == known) return meaning;
  }
  return Meaning::kNone;
}

// Where one value lies behind the head of a payload.
struct PayloadEntry {
  Meaning meaning = Meaning::kNone;
  size_t offset = 0, bytes = 0;
};

class ExportReader {
 public:
  ExportReader(Tables& tables, Export& out) : tables_(tables), out_(out) {}

  // In this order, as kernels say which texts are wanted, texts which kernels communicate, and those which
  // launches.
  Result<void> read() {
    LOCKSTEP_TRY(check());
    read_session();
    read_kernels();
    read_copies();
    read_texts();
    read_schemas();
    read_ranges();
    read_launches();
    read_gpus();
    for (auto& [pid, process] : out_.processes) {
      const auto by_time = [](const auto& a, const auto& b) { return a.start_ns < b.start_ns; };
      std::stable_sort(process.ranges.begin(), process.ranges.end(), by_time);
      std::stable_sort(process.work.begin(), process.work.end(), by_time);
    }
    return {};
  }

 private:
  // Refuses an export that lacks what everything rests on, rather than read it as one in which nothing
  // happened.
  Result<void> check() {
    rows("META_DATA_EXPORT", {"name", "value"}, [&](std::span<const Cell> row) {
      if (row[0].bytes == "EXPORT_SCHEMA_VERSION") out_.schema = valid_utf8(std::string(row[1].bytes));
    });
    const std::string version = out_.schema.empty() ? std::string() : " (its schema is " + out_.schema + ")";
    struct Needed {
      std::string_view table;
      std::initializer_list<std::string_view> columns;
    };
    const Needed needed[] = {
        {"NVTX_EVENTS", {"start", "end", "eventType", "globalTid"}},
        {"CUPTI_ACTIVITY_KIND_KERNEL", {"start", "end", "deviceId", "globalPid", "correlationId"}}};
    bool is_any = false;
    for (const Needed& table : needed) {
      if (!tables_.has(table.table, {})) continue;
      is_any = true;
      if (!tables_.has(table.table, table.columns))
        return Error{ErrorCode::kUnsupported,
                     "its table " + std::string(table.table) + " has other columns than this reader knows" +
                         version + ": the export is newer than the reader, or damaged",
                     tables_.path()};
    }
    if (is_any) return {};
    return Error{ErrorCode::kInvalidInput,
                 "is an export of Nsight Systems without NVTX ranges or kernels; record with `nsys profile "
                 "-t cuda,nvtx`",
                 tables_.path()};
  }

  // What stands in the code lives as long as is needed.
  static std::span<const std::string_view> columns(std::initializer_list<std::string_view> names) {
    return {names.begin(), names.size()};
  }

  // What was read before damage stays; the first damage is reported.
  template <class Take>
  void rows(std::string_view table, std::initializer_list<std::string_view> names, const Take& take) {
    const Result<void> read = tables_.read(table, columns(names), take);
    if (!read && out_.damage.empty()) out_.damage = read.error().message();
  }

  void read_session() {
    rows("TARGET_INFO_SESSION_START_TIME", {"utcEpochNs"}, [&](std::span<const Cell> row) {
      const int64_t epoch = row[0].or_zero();
      // Times are at most INT64_MAX / 2 as well, so that their sum fits.
      if (epoch <= 0 || epoch > INT64_MAX / 2 || out_.has_epoch) return;
      epoch_ = epoch;
      out_.has_epoch = true;
    });
    rows("TARGET_INFO_SYSTEM_ENV", {"name", "value"}, [&](std::span<const Cell> row) {
      if (row[0].bytes == "Hostname") out_.host = valid_utf8(std::string(row[1].bytes));
    });
  }

  // nullptr: the export names more processes than are kept.
  ExportedProcess* process_of(int64_t pid) {
    const auto at = out_.processes.find(pid);
    if (at != out_.processes.end()) return &at->second;
    if (out_.processes.size() == kMostProcesses) return nullptr;
    ExportedProcess& process = out_.processes[pid];
    process.pid = pid;
    return &process;
  }

  // Times that are not there, or cannot be, are no row.
  bool place(const Cell& start, const Cell& end, int64_t& start_ns, int64_t& end_ns) {
    const bool are_there = start.kind == Cell::Kind::kInteger && end.kind == Cell::Kind::kInteger;
    if (!are_there || start.integer < 0 || end.integer < start.integer || end.integer > INT64_MAX / 2)
      return ++out_.bad_rows, false;
    start_ns = epoch_ + start.integer;
    end_ns = epoch_ + end.integer;
    return true;
  }

  void read_kernels() {
    // The demangled name is the whole one; the short one lacks the arguments of templates.
    const std::string_view name =
        tables_.has("CUPTI_ACTIVITY_KIND_KERNEL", {"demangledName"}) ? "demangledName" : "shortName";
    rows("CUPTI_ACTIVITY_KIND_KERNEL",
         {"start", "end", "deviceId", "globalPid", "correlationId", "streamId", "gridX", "gridY", "gridZ",
          "graphId", name},
         [&](std::span<const Cell> row) {
           GpuWork work;
           if (!place(row[0], row[1], work.start_ns, work.end_ns)) return;
           work.device = static_cast<uint32_t>(row[2].or_zero());
           work.correlation = static_cast<uint32_t>(row[4].or_zero());
           work.stream = static_cast<uint64_t>(row[5].or_zero());
           work.blocks = static_cast<uint32_t>(row[6].or_zero()) * static_cast<uint32_t>(row[7].or_zero()) *
                         static_cast<uint32_t>(row[8].or_zero());
           work.graph = static_cast<uint64_t>(row[9].or_zero());
           work.name = static_cast<uint64_t>(row[10].or_zero());
           wanted_.insert(work.name);
           keep(pid_of(row[3].or_zero()), work);
         });
  }

  void read_copies() {
    rows("CUPTI_ACTIVITY_KIND_MEMCPY",
         {"start", "end", "deviceId", "globalPid", "correlationId", "streamId", "bytes"},
         [&](std::span<const Cell> row) {
           GpuWork work;
           if (!place(row[0], row[1], work.start_ns, work.end_ns)) return;
           work.device = static_cast<uint32_t>(row[2].or_zero());
           work.correlation = static_cast<uint32_t>(row[4].or_zero());
           work.stream = static_cast<uint64_t>(row[5].or_zero());
           work.bytes = static_cast<uint64_t>(row[6].or_zero());
           work.is_copy = true;
           keep(pid_of(row[3].or_zero()), work);
         });
  }

  // One bound over all processes of the export, as memory is one.
  void keep(int64_t pid, const GpuWork& work) {
    ExportedProcess* const process = work_ == kMostWork ? nullptr : process_of(pid);
    if (process == nullptr) return (void)++out_.left_out;
    process->work.push_back(work);
    ++work_;
  }

  // Texts that nothing here names are passed over: other activities' are in the same table.
  void read_texts() {
    rows("StringIds", {"id", "value"}, [&](std::span<const Cell> row) {
      const auto id = static_cast<uint64_t>(row[0].or_zero());
      // NCCL registers the names of its ranges, so an event has a number in place of a text.
      if (row[1].bytes.starts_with("nccl") && functions_.size() < kMostTexts)
        functions_.emplace(id, valid_utf8(std::string(row[1].bytes)));
      if (wanted_.contains(id) && out_.texts.size() < kMostTexts)
        out_.texts[id] = valid_utf8(std::string(row[1].bytes));
    });
    for (const auto& [id, text] : out_.texts) {
      if (model::work_of_kernel(text) != model::KernelWork::kNone) communicating_.insert(id);
    }
  }

  // 0: another type than NCCL gives these fields, so the entry is left out.
  static size_t bytes_of(int64_t type) {
    switch (type) {
      case kTypeInt:
      case kTypeUint:
      case kTypeInt32:
      case kTypeUint32:
        return 4;
      case kTypeInt64:
      case kTypeUint64:
      case kTypeSize:
        return 8;
      default:
        return 0;
    }
  }

  void read_schemas() {
    rows("NVTX_PAYLOAD_SCHEMA_ENTRIES", {"domainId", "schemaId", "type", "name", "offset"},
         [&](std::span<const Cell> row) {
           const Meaning meaning = meaning_of(row[3].bytes);
           const size_t bytes = bytes_of(row[2].or_zero());
           const int64_t offset = row[4].or_zero();  // the first one's is empty
           if (meaning == Meaning::kNone || bytes == 0 || offset < 0 || offset > 4096 ||
               schemas_.size() >= kMostSchemas)
             return;
           // Numbers of schemas are unique within a domain alone.
           schemas_[{row[0].or_zero(), row[1].or_zero()}].push_back(
               {meaning, static_cast<size_t>(offset), bytes});
         });
  }

  void read_ranges() {
    rows("NVTX_EVENTS",
         {"start", "end", "eventType", "globalTid", "textId", "text", "domainId", "binaryData"},
         [&](std::span<const Cell> row) {
           const int64_t type = row[2].or_zero();
           if (type != kPushPop && type != kStartEnd) return;
           const std::string_view func = function_of(row);
           if (func.empty()) return;
           NcclRange range;
           // A range that the session's end cut has no end: the call was under way.
           const bool has_end = row[1].kind == Cell::Kind::kInteger;
           if (!place(row[0], row[has_end ? 1 : 0], range.start_ns, range.end_ns)) return;
           if (!has_end) range.end_ns = 0;
           range.tid = tid_of(row[3].or_zero());
           range.func = func;
           take_payload(row[7].bytes, range);
           ExportedProcess* const process =
               ranges_ == kMostRanges ? nullptr : process_of(pid_of(row[3].or_zero()));
           if (process == nullptr) return (void)++out_.left_out;
           process->ranges.push_back(range);
           ++ranges_;
         });
  }

  // Without "nccl"; empty: none of NCCL's.
  std::string_view function_of(std::span<const Cell> row) {
    std::string_view text = row[5].bytes;
    if (text.empty()) {
      const auto at = functions_.find(static_cast<uint64_t>(row[4].or_zero()));
      if (at == functions_.end()) return {};
      text = at->second;
    }
    // Not by the domain's name, which the export keeps elsewhere; longer texts are no function's.
    if (!text.starts_with("nccl") || text.size() > 64) return {};
    text.remove_prefix(4);
    const auto at = out_.names.find(text);
    if (at != out_.names.end()) return at->second;
    if (out_.names.size() == kMostSchemas) return {};
    return out_.names.emplace(text, valid_utf8(std::string(text))).first->second;
  }

  // The blob begins with the numbers of domain and schema; the values that the schema describes lie behind
  // its head.
  void take_payload(std::string_view blob, NcclRange& range) {
    if (blob.empty()) return;
    uint32_t domain = 0, schema = 0;
    if (blob.size() >= kBlobHead) {
      std::memcpy(&domain, blob.data(), 4);
      std::memcpy(&schema, blob.data() + 8, 4);
    }
    const auto at = blob.size() < kBlobHead ? schemas_.end() : schemas_.find({domain, schema});
    if (at == schemas_.end()) return (void)++out_.unknown_payloads;
    for (const PayloadEntry& entry : at->second) {
      // A payload may be shorter than its schema says; what is there of it still counts.
      if (entry.offset + entry.bytes > blob.size() - kBlobHead) continue;
      uint64_t value = 0;
      // Little-endian, as the GPUs' hosts are; four bytes leave the upper half 0.
      std::memcpy(&value, blob.data() + kBlobHead + entry.offset, entry.bytes);
      take_value(entry.meaning, value, range);
    }
  }

  static void take_value(Meaning meaning, uint64_t value, NcclRange& range) {
    // A negative number of four bytes is a large one here, and therefore none.
    const auto rank = value < uint64_t{model::kMostRanks} ? static_cast<int32_t>(value) : -1;
    switch (meaning) {
      case Meaning::kComm:
        range.comm = value;
        return;
      case Meaning::kBytes:
        // Above any message: damage, which would spoil sums and rates.
        range.bytes = value < (uint64_t{1} << 56) ? value : 0;
        range.has_bytes = true;
        return;
      case Meaning::kRoot:
        range.root = rank;
        return;
      case Meaning::kPeer:
        range.peer = rank;
        return;
      case Meaning::kRank:
        range.rank = rank;
        return;
      case Meaning::kRanks:
        range.ranks = value <= uint64_t{model::kMostRanks} ? static_cast<int32_t>(value) : -1;
        return;
      case Meaning::kDevice:
        range.device = rank;
        return;
      case Meaning::kNone:
        return;
    }
  }

  // Those of communication kernels alone: others are far more.
  void read_launches() {
    // Correlations are unique within a process alone.
    std::map<int64_t, std::unordered_set<uint32_t>> wanted;
    for (const auto& [pid, process] : out_.processes) {
      for (const GpuWork& work : process.work) {
        if (communicating_.contains(work.name) && !work.is_copy) wanted[pid].insert(work.correlation);
      }
    }
    rows("CUPTI_ACTIVITY_KIND_RUNTIME", {"start", "end", "globalTid", "correlationId"},
         [&](std::span<const Cell> row) {
           const int64_t pid = pid_of(row[2].or_zero());
           const auto at = wanted.find(pid);
           LaunchCall call;
           call.correlation = static_cast<uint32_t>(row[3].or_zero());
           if (at == wanted.end() || !at->second.contains(call.correlation)) return;
           if (!place(row[0], row[1], call.start_ns, call.end_ns)) return;
           call.tid = tid_of(row[2].or_zero());
           out_.processes[pid].launches.push_back(call);
         });
  }

  void read_gpus() {
    // A process names a device by CUDA's ordinal, the table of GPUs by the system's: the second table ties
    // them.
    std::map<int64_t, ExportedGpu> gpus;
    rows("TARGET_INFO_GPU", {"id", "name", "busLocation", "uuid"}, [&](std::span<const Cell> row) {
      if (gpus.size() < kMostSchemas)
        gpus[row[0].or_zero()] = {valid_utf8(std::string(row[1].bytes)),
                                  valid_utf8(std::string(row[2].bytes)),
                                  valid_utf8(std::string(row[3].bytes))};
    });
    rows("TARGET_INFO_CUDA_DEVICE", {"gpuId", "cudaId", "pid", "uuid"}, [&](std::span<const Cell> row) {
      const auto at = gpus.find(row[0].or_zero());
      if (at == gpus.end() || out_.gpus.size() >= kMostWork) return;
      ExportedGpu& gpu = out_.gpus[{row[2].or_zero(), static_cast<uint32_t>(row[1].or_zero())}];
      gpu = at->second;
      if (gpu.uuid.empty()) gpu.uuid = valid_utf8(std::string(row[3].bytes));
    });
  }

  Tables& tables_;
  Export& out_;
  int64_t epoch_ = 0;
  size_t work_ = 0, ranges_ = 0;
  std::unordered_set<uint64_t> wanted_,
      communicating_;  // texts: names of kernels, and of those that communicate
  std::unordered_map<uint64_t, std::string> functions_;                       // texts that begin as NCCL's do
  std::map<std::pair<int64_t, int64_t>, std::vector<PayloadEntry>> schemas_;  // by domain and number
};

}  // namespace

Result<Export> read_export(Tables& tables) {
  Export out;
  out.path = tables.path();
  LOCKSTEP_TRY(ExportReader(tables, out).read());
  return out;
}

}  // namespace lockstep::readers::nsys
