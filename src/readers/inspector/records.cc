// SPDX-License-Identifier: Apache-2.0
#include "readers/inspector/records.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/line_reader.h"
#include "model/limits.h"
#include "readers/common/json_fields.h"

namespace lockstep::readers::inspector {
namespace {

using common::ns_of_us;
using common::number_or;
using common::text_or_empty;
using simdjson::dom::element;

constexpr size_t kLongestLine = 256 << 10;  // a verbose record of 64 channels has some 20 KiB
constexpr size_t kMostRecords = size_t{1} << 26;
constexpr size_t kMostComms = 1 << 16, kMostFuncs = 256, kMostProcesses = 1 << 16;
constexpr uint64_t kMostSeq = uint64_t{1} << 31;
constexpr uint64_t kMostBytes = uint64_t{1} << 56;

class FileReader {
 public:
  explicit FileReader(FileRecords& out) : out_(out) {}

  // Whether the line is a record.
  bool add(std::string_view line) {
    element row, header, metadata, work;
    if (parser_.parse(line.data(), line.size(), false).get(row) != simdjson::SUCCESS) return false;
    if (row["header"].get(header) != simdjson::SUCCESS || row["metadata"].get(metadata) != simdjson::SUCCESS)
      return false;
    Record record;
    record.is_p2p = row["coll_perf"].get(work) != simdjson::SUCCESS;
    if (record.is_p2p && row["p2p_perf"].get(work) != simdjson::SUCCESS) return false;
    note_version(text_or_empty(metadata, "inspector_output_format_version"));
    if (!fill(work, record)) return false;
    record.ended_ns = ns_of_us(number_or<uint64_t>(metadata, "dump_timestamp_us", 0));
    if (record.ended_ns == 0) return false;
    take_trace(work, record);
    return place(header, metadata, work, record);
  }

 private:
  // Keys have the same names behind "coll" and "p2p".
  static std::string key(const Record& record, std::string_view rest) {
    return (record.is_p2p ? "p2p" : "coll") + std::string(rest);
  }

  void note_version(std::string_view version) {
    if (!version.starts_with("v4.") && version != "v4")
      out_.newer_version = version.empty() ? "none" : version;
  }

  bool fill(const element& work, Record& record) {
    const uint64_t seq = number_or(work, key(record, "_sn"), kMostSeq);
    if (seq >= kMostSeq) return false;
    record.seq = static_cast<uint32_t>(seq);
    if (record.is_p2p && (record.peer = number_or<int32_t>(work, "p2p_peer", -1)) < 0) return false;
    record.bytes = number_or<uint64_t>(work, key(record, "_msg_size_bytes"), 0);
    if (record.bytes >= kMostBytes) {
      record.bytes = 0;
      ++out_.without_size;
    }
    record.duration_ns = ns_of_us(number_or<uint64_t>(work, key(record, "_exec_time_us"), 0));
    record.gpu_timed = text_or_empty(work, key(record, "_timing_source")) == "kernel_gpu";
    return true;
  }

  // A verbose file says when the host enqueued the operation and saw its channels end.
  static void take_trace(const element& work, Record& record) {
    element trace;
    if (work["event_trace_ts"].get(trace) != simdjson::SUCCESS) return;
    record.enqueued_ns = ns_of_us(number_or<uint64_t>(trace, key(record, "_start_ts"), 0));
    simdjson::dom::array channels;
    if (trace["kernel_events"].get(channels) != simdjson::SUCCESS) return;
    int64_t seen_ns = 0;
    for (const element channel : channels)
      seen_ns = std::max(seen_ns, ns_of_us(number_or<uint64_t>(channel, "kernel_stop_ts", 0)));
    if (seen_ns != 0) record.ended_ns = std::min(record.ended_ns, seen_ns);
  }

  bool place(const element& header, const element& metadata, const element& work, Record& record) {
    if (kept_ == kMostRecords) return ++out_.left_out, true;
    ProcessRecords* const process = process_of(metadata);
    if (process == nullptr) return false;
    const auto comm = comm_of(header, *process);
    const auto func = func_of(text_or_empty(work, record.is_p2p ? "p2p" : "coll"), *process);
    if (comm < 0 || func < 0) return false;
    if (record.is_p2p && record.peer >= process->comms[static_cast<size_t>(comm)].ranks) return false;
    record.comm = static_cast<uint32_t>(comm);
    record.func = static_cast<uint16_t>(func);
    process->records.push_back(record);
    ++kept_;
    return true;
  }

  ProcessRecords* process_of(const element& metadata) {
    const std::string_view host = text_or_empty(metadata, "hostname");
    const auto pid = number_or<int64_t>(metadata, "pid", -1);
    if (last_ < out_.processes.size() && out_.processes[last_].pid == pid &&
        out_.processes[last_].host == host)
      return &out_.processes[last_];
    const auto [at, is_new] = known_.try_emplace({std::string(host), pid}, out_.processes.size());
    if (is_new) {
      if (out_.processes.size() == kMostProcesses) return known_.erase(at), nullptr;
      out_.processes.emplace_back();
      out_.processes.back().host = host;
      out_.processes.back().pid = pid;
    }
    return &out_.processes[last_ = at->second];
  }

  ptrdiff_t comm_of(const element& header, ProcessRecords& process) {
    const uint64_t id = common::number_of_hex(text_or_empty(header, "id"));
    const auto rank = number_or<int32_t>(header, "rank", -1),
               ranks = number_or<int32_t>(header, "n_ranks", -1);
    if (id == 0 || rank < 0 || rank >= ranks || ranks > model::kMostRanks) return -1;
    // A process that drives several GPUs is several members of one communicator.
    const auto known = comms_.find({last_, id, rank});
    if (known != comms_.end()) return known->second;
    if (process.comms.size() == kMostComms) return -1;
    CommHeader comm{.id = id,
                    .name = std::string(text_or_empty(header, "comm_name")),
                    .rank = rank,
                    .ranks = ranks,
                    .nodes = number_or<int32_t>(header, "nnodes", -1)};
    if (comm.name == "unknown") comm.name.clear();
    process.comms.push_back(std::move(comm));
    return comms_[{last_, id, rank}] = static_cast<ptrdiff_t>(process.comms.size() - 1);
  }

  static ptrdiff_t func_of(std::string_view name, ProcessRecords& process) {
    if (name.empty()) return -1;
    const auto at = std::find(process.funcs.begin(), process.funcs.end(), name);
    if (at == process.funcs.end() && process.funcs.size() == kMostFuncs) return -1;
    const auto func = at - process.funcs.begin();
    if (at == process.funcs.end()) process.funcs.emplace_back(name);
    return func;
  }

  FileRecords& out_;
  simdjson::dom::parser parser_{kLongestLine};
  std::map<std::pair<std::string, int64_t>, size_t> known_;
  std::map<std::tuple<size_t, uint64_t, int32_t>, ptrdiff_t> comms_;  // by process
  size_t last_ = 0, kept_ = 0;
};

}  // namespace

Result<FileRecords> read_file(const std::string& path) {
  LOCKSTEP_ASSIGN(const InputFile file, InputFile::open(path));
  FileRecords out;
  out.path = path;
  FileReader reader(out);
  LineReader lines(file, kLongestLine);
  while (const auto line = lines.next()) {
    if (line->empty() || reader.add(*line)) continue;
    if (lines.is_open()) {
      out.cut = true;
    } else {
      ++out.bad_records;
    }
  }
  out.too_long = lines.too_long();
  std::erase_if(out.processes, [](const ProcessRecords& process) { return process.records.empty(); });
  if (out.processes.empty()) {
    return Error{
        ErrorCode::kInvalidInput,
        "holds no whole record of NVIDIA Inspector; the job has to run longer than its dump interval "
        "(NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS)",
        path};
  }
  return out;
}

}  // namespace lockstep::readers::inspector
