// SPDX-License-Identifier: Apache-2.0
// Makes traces of Inspector's files. Each record has the length of an operation and when it was written, not
// when it began; so its GPU time is right in length and placed where it was written
// (GpuTimeSource::kInspector says so). Times are the host's real time and compare within a host, unless
// processes of one host are shown to be on different clocks.
#include "readers/inspector/inspector.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "model/event_kind.h"
#include "readers/common/call_order.h"
#include "readers/common/identities.h"
#include "readers/common/read_all.h"
#include "readers/common/world.h"
#include "readers/inspector/records.h"

namespace lockstep::readers::inspector {
namespace {

using model::EventKind;
using model::kNoRow;
using model::Trace;

constexpr int32_t kApiVersion = 5;  // the only one that Inspector uses

bool sniff(std::span<const std::byte> first_bytes) {
  const std::string_view text(reinterpret_cast<const char*>(first_bytes.data()), first_bytes.size());
  if (!text.starts_with('{')) return false;
  // A file whose beginning is lost: lines of v4.3 do not say what they are but by their keys.
  return text.find("\"inspector_output_format_version\"") != std::string_view::npos ||
         text.starts_with("{\"coll_perf\":") || text.starts_with("{\"p2p_perf\":");
}

using CallOrders = std::map<uint64_t, common::CallOrder>;  // by communicator

class TraceMaker {
 public:
  TraceMaker(const ProcessRecords& process, const common::World& world, const CallOrders& orders,
             Trace& trace)
      : process_(process), world_(world), orders_(orders), trace_(trace) {}

  void make() {
    add_process();
    for (const CommHeader& comm : process_.comms) add_comm(comm);
    for (const WorkShape& shape : process_.shapes)
      shapes_.push_back(
          trace_.intern_shape({trace_.strings.intern(shape.func), 0, trace_.strings.intern(shape.algo),
                               trace_.strings.intern(shape.proto), 0}));
    const std::vector<Placed> placed = place();
    trace_.ops.reserve(placed.size());
    for (const Placed& op : placed) add_op(op);
    add_losses(placed);
  }

 private:
  struct Placed {
    const Record* record;
    uint32_t index;
    auto key() const { return std::tuple(record->comm, record->is_p2p, index); }
  };

  void add_process() {
    model::Process process{};
    process.host = trace_.strings.intern(process_.host);
    // Times are the host's CLOCK_REALTIME: one clock for all its processes, except those that are shown to be
    // on another.
    const std::string host =
        process_.host + (process_.alike > 0 ? " " + std::to_string(process_.alike + 1) : "");
    process.boot_id = trace_.strings.intern("clock of " + host);
    process.pid = process_.pid;
    process.rank = process.local_rank = process.node_rank = -1;
    process.device = process.gpu = -1;
    process.world = world_.ranks;
    for (const CommHeader& comm : process_.comms) {
      // The only number that the ranks of a job have in these files.
      if (comm.id == world_.comm) process.rank = comm.rank;
    }
    process.first_ns = INT64_MAX;
    for (const Record& record : process_.records) {
      process.first_ns = std::min(process.first_ns, begin_ns(record));
      process.last_ns = std::max(process.last_ns, record.ended_ns);
    }
    process.heartbeat_ns = process.last_ns;
    trace_.processes.append(process);
  }

  static int64_t begin_ns(const Record& record) {
    // 1 at least: 0 stands for a time that is not known.
    const int64_t begun = std::max<int64_t>(record.ended_ns - record.duration_ns, 1);
    return record.enqueued_ns != 0 ? std::min(record.enqueued_ns, begun) : begun;
  }

  void add_comm(const CommHeader& header) {
    model::Comm comm{};
    comm.index_in_process = static_cast<uint32_t>(trace_.comms.size());
    comm.comm_id = header.id;
    comm.name = trace_.strings.intern(header.name);
    comm.rank = header.rank;
    comm.ranks = header.ranks;
    comm.nodes = header.nodes;
    comm.api_version = kApiVersion;
    comm.device = comm.gpu = -1;
    // Places come from the files of all members together, so they compare across ranks.
    comm.numbered = 1;
    comm.init_ns = trace_.processes.first_ns[0];
    trace_.comms.append(comm);
  }

  // In the order of calls of each communicator; of records with one number the first.
  std::vector<Placed> place() {
    std::vector<Placed> placed;
    placed.reserve(process_.records.size());
    for (const Record& record : process_.records) {
      const uint32_t index = record.is_p2p ? std::max(record.seq, 1u) - 1
                                           : orders_.at(process_.comms[record.comm].id)
                                                 .index(process_.shapes[record.shape].func, record.seq);
      placed.push_back({&record, index});
    }
    repeated_ = common::sort_by_place(placed);
    return placed;
  }

  void add_op(const Placed& placed) {
    const Record& record = *placed.record;
    model::Op op{};
    op.comm = record.comm;
    op.kind = number(record.is_p2p ? EventKind::kP2p : EventKind::kColl);
    op.shape = shapes_[record.shape];
    op.index = placed.index;
    op.seq = record.is_p2p ? model::kNoSeq : record.seq;
    op.bytes = record.bytes;
    op.peer = record.peer;
    op.thread = op.task = op.call = op.group = kNoRow;
    op.enqueued_ns = record.enqueued_ns;
    op.gpu_error_ns = -1;
    op.gpu_end_ns = record.ended_ns;
    op.gpu_source = static_cast<uint8_t>(model::GpuTimeSource::kInspector);
    // What the host measured holds its own delays, so such an operation has an end and no length.
    if (record.gpu_timed) {
      op.gpu_start_ns = std::max<int64_t>(record.ended_ns - record.duration_ns, 1);
    } else {
      ++untimed_;
    }
    trace_.ops.append(op);
  }

  // Numbers begin with the communicator, so those before a process' first one are missing too.
  uint64_t missing(const std::vector<Placed>& placed) const {
    std::map<std::tuple<uint32_t, bool, std::string_view>, std::pair<uint64_t, uint64_t>>
        counts;  // numbers, records
    for (const Placed& op : placed) {
      const Record& r = *op.record;
      auto& [numbers, records] =
          counts[{r.comm, r.is_p2p, r.is_p2p ? std::string_view() : process_.shapes[r.shape].func}];
      numbers = std::max<uint64_t>(numbers, r.is_p2p ? op.index + 1 : r.seq + uint64_t{1});
      ++records;
    }
    uint64_t missing = 0;
    // place() left one record of each number: there are never more records than numbers.
    for (const auto& [key, count] : counts) missing += count.first - count.second;
    return missing;
  }

  void lose(std::string_view kind, uint64_t count, std::string_view text) {
    trace_.lose(0, "read", kind, count, text);
  }
  void add_losses(const std::vector<Placed>& placed) {
    lose("missing_record", missing(placed),
         "operations that Inspector did not keep, according to gaps in their numbers");
    // Of every file: the dump thread writes at intervals, and nothing shows when it wrote last.
    lose("unwritten_tail", 1, "what Inspector had not yet written, or had not ended, is not in the files");
    lose("repeated_record", repeated_, "operations with a repeated number");
    lose("no_gpu_time", untimed_,
         "operations that Inspector timed on the host only: their durations are not used");
  }

  const ProcessRecords& process_;
  const common::World& world_;
  const CallOrders& orders_;
  Trace& trace_;
  std::vector<uint32_t> shapes_;  // by ProcessRecords::shapes
  uint64_t repeated_ = 0, untimed_ = 0;
};

class Source : public model::TraceSource {
 public:
  static Result<std::unique_ptr<model::TraceSource>> open(std::vector<std::string> paths) {
    LOCKSTEP_ASSIGN(auto read, common::read_all(std::move(paths), "files of NVIDIA Inspector", read_file));
    auto source = std::make_unique<Source>();
    for (FileRecords& file : read.files) source->add(std::move(file));
    source->bad_files_ = std::move(read.bad_files);
    source->name_ = std::move(read.name);
    source->find_world();
    source->number();
    return std::unique_ptr<model::TraceSource>(std::move(source));
  }

  size_t processes() const override { return processes_.size(); }
  Result<void> load(size_t i, Trace& trace) override {
    LOCKSTEP_CHECK(i < processes_.size());
    TraceMaker(processes_[i], world_, orders_, trace).make();
    return {};
  }
  void run_losses(Trace& trace) override {
    const auto lose = [&](std::string_view kind, uint64_t count, const std::string& text) {
      trace.lose(kNoRow, "read", kind, count, text);
    };
    for (const std::string& file : bad_files_) lose("unreadable_file", 1, file);
    for (const FileRecords& file : files_) {
      lose("bad_record", file.bad_records, "lines that are not operations: " + file.path);
      lose("bad_record", file.too_long, "lines longer than any record: " + file.path);
      lose("missing_record", file.left_out, "operations beyond the limit for one file: " + file.path);
      lose("unknown_size", file.without_size,
           "operations of a type whose size Inspector did not know: " + file.path);
      lose("cut_file", file.cut, "the last line is incomplete: " + file.path);
      lose("no_owner", file.without_owner,
           "operations without a marker, so their owner is unknown: " + file.path);
      lose("overwritten", file.overwritten,
           "operations that Inspector itself counts as overwritten before it wrote them (its ring was too "
           "small): " +
               file.path);
      lose("unread_transfers", file.proxy_records, "transfers, which are not read: " + file.path);
      if (!file.newer_version.empty())
        lose("newer_version", 1,
             "format version " + file.newer_version +
                 " is newer than this reader; read by the keys it knows: " + file.path);
    }
    lose("implausible_numbers", implausible_,
         "communicators whose operations have numbers that are far apart");
    lose(
        "equal_names", identities_.kept_apart(),
        "processes with the same host name and pid but different ranks in their communicators: kept apart, as containers on several hosts may share a name");
    lose("dump_time", 1,
         "Inspector says how long operations took, not when: they are placed at the time it wrote them");
    if (world_.comm != 0)
      lose("guessed_rank", 1,
           "Inspector does not give the job's ranks: those of the largest communicator are used");
  }
  std::string name() const override { return name_; }

 private:
  // A process may have left several files, and a file may hold several processes.
  void add(FileRecords&& file) {
    for (ProcessRecords& process : file.processes) {
      const common::Identities::Place place =
          identities_.place(process.host + ' ' + std::to_string(process.pid), facts_of(process));
      if (place.is_new) {
        process.alike = place.alike;
        processes_.push_back(std::move(process));
      } else {
        join(processes_[place.number], std::move(process));
      }
    }
    file.processes.clear();
    files_.push_back(std::move(file));
  }

  // Its ranks in communicators. Several in one: it drives several GPUs.
  static common::Facts facts_of(const ProcessRecords& process) {
    common::Facts facts;
    for (const CommHeader& comm : process.comms)
      facts[std::to_string(comm.id)].insert(std::to_string(comm.rank));
    return facts;
  }

  // Each file numbers communicators and shapes by itself, so records get the numbers of the process.
  static void join(ProcessRecords& process, ProcessRecords&& more) {
    std::map<std::pair<uint64_t, int32_t>, uint32_t> comms;
    for (uint32_t i = 0; i < process.comms.size(); ++i)
      comms[{process.comms[i].id, process.comms[i].rank}] = i;
    std::vector<uint32_t> comm_rows;
    for (CommHeader& comm : more.comms) {
      const auto [at, is_new] =
          comms.try_emplace({comm.id, comm.rank}, static_cast<uint32_t>(process.comms.size()));
      if (is_new) process.comms.push_back(std::move(comm));
      comm_rows.push_back(at->second);
    }
    std::vector<uint32_t> shape_rows;
    for (const WorkShape& shape : more.shapes) {
      const auto at = std::find(process.shapes.begin(), process.shapes.end(), shape);
      shape_rows.push_back(static_cast<uint32_t>(at - process.shapes.begin()));
      if (at == process.shapes.end()) process.shapes.push_back(shape);
    }
    for (Record record : more.records) {
      record.comm = comm_rows[record.comm];
      record.shape = shape_rows[record.shape];
      process.records.push_back(record);
    }
  }

  void find_world() {
    std::vector<std::vector<common::Membership>> members;
    for (const ProcessRecords& process : processes_) {
      members.emplace_back();
      for (const CommHeader& comm : process.comms) members.back().push_back({comm.id, comm.rank, comm.ranks});
    }
    world_ = common::find_world(members);
  }

  // Over all processes, as each holds only some operations of a communicator.
  void number() {
    for (const ProcessRecords& process : processes_) {
      for (const Record& record : process.records) {
        if (!record.is_p2p)
          orders_[process.comms[record.comm].id].add(
              process.shapes[record.shape].func, record.seq,
              // When it was enqueued orders calls best; only verbose files have it.
              record.enqueued_ns != 0 ? record.enqueued_ns : record.ended_ns);
      }
    }
    for (auto& [comm, order] : orders_) implausible_ += order.finish() ? 0 : 1;
  }

  std::vector<FileRecords> files_;  // without their processes
  std::vector<ProcessRecords> processes_;
  common::Identities identities_;  // of `processes_`
  std::vector<std::string> bad_files_;
  common::World world_;
  CallOrders orders_;
  uint64_t implausible_ = 0;
  std::string name_;
};

}  // namespace

const Format kFormat = {
    .name = "inspector",
    .summary = "files of NVIDIA Inspector",
    .sniff = sniff,
    .open = Source::open,
    .setting =
        "NCCL_PROFILER_PLUGIN=/path/to/libnccl-profiler-inspector.so NCCL_INSPECTOR_ENABLE=1 "
        "NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS=500"};

}  // namespace lockstep::readers::inspector
