// SPDX-License-Identifier: Apache-2.0
// Reads the lines of Inspector's files of all versions. From v4.3 on a marker says whose the next records
// are, and how many. A damaged line may have been another marker: what follows is then nobody's until the
// next one, as records that were given to the wrong communicator would look like a rank that called other
// operations.
#include "readers/inspector/records.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/hex.h"
#include "model/limits.h"
#include "readers/common/json_fields.h"
#include "readers/common/json_lines.h"

namespace lockstep::readers::inspector {
namespace {

using common::ns_of_us;
using common::number_or;
using common::text_or_empty;
using simdjson::dom::element;

constexpr size_t kLongestLine = 256 << 10;  // a verbose record of 64 channels has some 20 KiB
// Files may be hostile. What is beyond these is counted and left out, or is no record.
constexpr size_t kMostRecords = size_t{1} << 26;
constexpr size_t kMostComms = 1 << 16, kMostShapes = 4096, kMostProcesses = 1 << 16;
constexpr std::string_view kNoVersion = "none";
constexpr uint64_t kMostSeq = uint64_t{1} << 31;
constexpr uint64_t kMostBytes = uint64_t{1} << 56;

class FileReader {
 public:
  explicit FileReader(FileRecords& out) : out_(out) {}

  // Whether the line is one of Inspector's.
  bool add(std::string_view line) {
    element row;
    if (parser_.parse(line.data(), line.size(), false).get(row) != simdjson::SUCCESS) {
      // What is left of it may be another communicator's marker: what follows is then not known to be this
      // one's.
      if (!has_work_key(line)) batch_ = {};
      if (batch_.left > 0) --batch_.left;
      return false;
    }
    element header, metadata;
    const bool has_owner =
        row["header"].get(header) == simdjson::SUCCESS && row["metadata"].get(metadata) == simdjson::SUCCESS;
    if (!has_owner) return add_to_batch(row);
    // A marker, or a line that says whose it is: either ends the batch before it.
    batch_ = {};
    const std::string_view version = text_or_empty(metadata, "inspector_output_format_version");
    note_version(version);
    Owner owner;
    if (!find_owner(header, metadata, owner)) return false;
    element stats;
    if (row["dump_stats"].get(stats) == simdjson::SUCCESS) return begin_batch(owner, stats, version);
    return add_work(row, owner);
  }

  void finish() {
    for (const auto& [key, dropped] : dropped_) out_.overwritten += dropped;
  }

 private:
  // Whose operation it is, and when it was written.
  struct Owner {
    size_t process = 0;
    uint32_t comm = 0;
    int64_t written_ns = 0;
  };
  // What a marker says of the lines behind it.
  struct Batch {
    Owner owner;
    uint64_t left = 0;
  };

  static bool has_work_key(std::string_view line) {
    return line.starts_with("{\"coll_perf\"") || line.starts_with("{\"p2p_perf\"") ||
           line.starts_with("{\"proxy_trace\"");
  }
  // v4.1 has markers, but each of its operations says whose it is.
  static bool rules_lines_behind(std::string_view version) {
    return version != "v4.0" && version != "v4.1" && version != "v4.2";
  }

  bool begin_batch(const Owner& owner, const element& stats, std::string_view version) {
    uint64_t& dropped = dropped_[{owner.process, owner.comm}];
    // The counts are running totals: the largest is all that was lost. Modulo keeps damaged ones from
    // overflowing the sum.
    dropped = std::max(dropped, number_or<uint64_t>(stats, "coll_dropped_total", 0) % kMostSeq +
                                    number_or<uint64_t>(stats, "p2p_dropped_total", 0) % kMostSeq);
    if (!rules_lines_behind(version)) return true;
    batch_.owner = owner;
    for (const char* key : {"coll_records", "p2p_records", "proxy_records"})
      batch_.left += number_or<uint64_t>(stats, key, 0) % kMostSeq;
    return true;
  }

  bool add_to_batch(const element& row) {
    simdjson::dom::object fields;
    if (row.get(fields) != simdjson::SUCCESS) return false;
    if (batch_.left == 0) {
      element work;
      const bool is_work =
          row["coll_perf"].get(work) == simdjson::SUCCESS || row["p2p_perf"].get(work) == simdjson::SUCCESS;
      // Counted as a line of Inspector's, so that a file of such lines gets an error that says why.
      if (is_work) ++out_.without_owner;
      return is_work;
    }
    --batch_.left;
    return add_work(row, batch_.owner);
  }

  bool add_work(const element& row, const Owner& owner) {
    element work;
    if (row["proxy_trace"].get(work) == simdjson::SUCCESS) return ++out_.proxy_records, true;
    Record record;
    record.is_p2p = row["coll_perf"].get(work) != simdjson::SUCCESS;
    if (record.is_p2p && row["p2p_perf"].get(work) != simdjson::SUCCESS) return false;
    if (!fill(work, record)) return false;
    record.ended_ns = owner.written_ns;
    take_trace(work, record);
    return place(work, owner, record);
  }

  // Keys have the same names behind "coll" and "p2p".
  static std::string key(const Record& record, std::string_view rest) {
    return (record.is_p2p ? "p2p" : "coll") + std::string(rest);
  }

  void note_version(std::string_view version) {
    constexpr std::string_view kKnown[] = {"v4", "v4.0", "v4.1", "v4.2", "v4.3", "v4.4"};
    if (std::find(std::begin(kKnown), std::end(kKnown), version) == std::end(kKnown))
      out_.newer_version = version.empty() ? kNoVersion : version;
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
    // The record was written some time after the end that the host saw.
    if (seen_ns != 0) record.ended_ns = std::min(record.ended_ns, seen_ns);
  }

  bool place(const element& work, const Owner& owner, Record& record) {
    if (kept_ == kMostRecords) return ++out_.left_out, true;
    ProcessRecords& process = out_.processes[owner.process];
    const auto shape = shape_of(work, record, process);
    if (shape < 0) return false;
    record.comm = owner.comm;
    // The peer is a rank of this communicator; another number is a damaged one.
    if (record.is_p2p && record.peer >= process.comms[record.comm].ranks) return false;
    record.shape = static_cast<uint32_t>(shape);
    process.records.push_back(record);
    ++kept_;
    return true;
  }

  bool find_owner(const element& header, const element& metadata, Owner& owner) {
    owner.written_ns = ns_of_us(number_or<uint64_t>(metadata, "dump_timestamp_us", 0));
    ProcessRecords* const process = owner.written_ns == 0 ? nullptr : process_of(metadata);
    if (process == nullptr) return false;
    const auto comm = comm_of(header, *process);
    owner.process = last_;
    owner.comm = static_cast<uint32_t>(comm);
    return comm >= 0;
  }

  ProcessRecords* process_of(const element& metadata) {
    const std::string_view host = text_or_empty(metadata, "hostname");
    const auto pid = number_or<int64_t>(metadata, "pid", -1);
    // Lines of one process follow each other, so the one before is asked first.
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
    const uint64_t id = number_of_hex(text_or_empty(header, "id"));
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

  static ptrdiff_t shape_of(const element& work, const Record& record, ProcessRecords& process) {
    WorkShape shape{.func = std::string(text_or_empty(work, record.is_p2p ? "p2p" : "coll")),
                    .algo = std::string(text_or_empty(work, "coll_algo")),
                    .proto = std::string(text_or_empty(work, "coll_proto"))};
    if (shape.func.empty()) return -1;
    // A job has some dozens of shapes. The limit bounds what a hostile file makes of this search.
    const auto at = std::find(process.shapes.begin(), process.shapes.end(), shape);
    if (at == process.shapes.end() && process.shapes.size() == kMostShapes) return -1;
    const auto row = at - process.shapes.begin();
    if (at == process.shapes.end()) process.shapes.push_back(std::move(shape));
    return row;
  }

  FileRecords& out_;
  simdjson::dom::parser parser_{kLongestLine};
  std::map<std::pair<std::string, int64_t>, size_t> known_;
  std::map<std::tuple<size_t, uint64_t, int32_t>, ptrdiff_t> comms_;  // by process
  std::map<std::pair<size_t, uint32_t>, uint64_t> dropped_;           // by process and communicator
  Batch batch_;
  size_t last_ = 0, kept_ = 0;
};

// Why nothing of the file could be kept.
Error no_record(const FileRecords& file) {
  std::string why =
      "holds no whole record of NVIDIA Inspector; the job has to run longer than its dump interval "
      "(NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS)";
  if (!file.newer_version.empty() && file.newer_version != kNoVersion) {
    why = "is of Inspector's format " + file.newer_version +
          ", newer than this reader, which knows v4.0 to v4.4: nothing in it could be read";
  } else if (file.without_owner > 0) {
    why = "holds " + std::to_string(file.without_owner) +
          " operations without the markers that say whose they are: its beginning is missing";
  } else if (file.proxy_records > 0) {
    why = "holds transfers of NVIDIA Inspector alone, which are not read";
  }
  return {ErrorCode::kInvalidInput, std::move(why), file.path};
}

}  // namespace

Result<FileRecords> read_file(const std::string& path) {
  FileRecords out;
  out.path = path;
  FileReader reader(out);
  LOCKSTEP_TRY(common::for_each_json_line(path, kLongestLine, out,
                                          [&](std::string_view line) { return reader.add(line); }));
  std::erase_if(out.processes, [](const ProcessRecords& process) { return process.records.empty(); });
  reader.finish();
  if (out.processes.empty()) return no_record(out);
  return out;
}

}  // namespace lockstep::readers::inspector
