// SPDX-License-Identifier: Apache-2.0
// Makes traces of CoMMA's files. They name neither host nor rank of the job: each process has a clock of its
// own, and the rank in the largest communicator stands for that in the job. NCCL numbers each function apart;
// one order over all functions of a communicator comes from all its members' files together
// (readers/common/call_order.h).
#include "readers/comma/comma.h"

#include <algorithm>
#include <map>
#include <set>

#include "model/event_kind.h"
#include "readers/comma/records.h"
#include "readers/common/call_order.h"
#include "readers/common/read_all.h"
#include "readers/common/world.h"

namespace lockstep::readers::comma {
namespace {

using model::EventKind;
using model::kNoRow;
using model::Trace;

bool sniff(std::span<const std::byte> first_bytes) {
  const std::string_view text(reinterpret_cast<const char*>(first_bytes.data()), first_bytes.size());
  const std::string_view line = text.substr(0, text.find('\n'));
  const auto has = [&](std::string_view part) { return line.find(part) != std::string_view::npos; };
  // Events of Chrome's trace format, one a line. Other tools write these as well, so keys that only CoMMA has
  // are asked for. Keys come sorted, so these stand before a long list of network operations.
  if (!line.starts_with('{') || !has("\"ph\":\"X\"")) return false;
  return has("\"comm_hash\":\"0x") || (has("\"cat\":\"PROXY\"") && has("\"is_send\":")) ||
         (has("\"cat\":\"GROUP\"") && has("\"name\":\"Group\""));
}

using CallOrders = std::map<uint64_t, common::CallOrder>;  // by communicator
using CommSizes = std::map<uint64_t, int32_t>;

class TraceMaker {
 public:
  TraceMaker(const FileRecords& file, const common::World& world, const CallOrders& orders,
             const CommSizes& sizes, Trace& trace)
      : file_(file), world_(world), orders_(orders), sizes_(sizes), trace_(trace) {}

  void make() {
    add_process();
    for (const CommMember& comm : file_.comms) add_comm(comm);
    if (has_network()) thread_ = trace_.threads.append({0, 0, trace_.strings.intern("NCCL network"), 0});
    for (const Placed& op : place()) add_op(op);
    // They have no operation, but show that the network moved.
    for (const NetworkOp& op : file_.unplaced) add_network_op(op, kNoRow, kNoRow);
    add_losses();
  }

 private:
  struct Placed {
    const Operation* operation;
    uint32_t index;
    auto key() const { return std::tuple(operation->comm, operation->is_p2p, index); }
  };

  bool has_network() const {
    return !file_.unplaced.empty() || std::any_of(file_.operations.begin(), file_.operations.end(),
                                                  [](const Operation& op) { return !op.network.empty(); });
  }

  void add_process() {
    model::Process process{};
    // Without a host each process has a clock of its own.
    process.boot_id = trace_.strings.intern("CoMMA of " + file_.path);
    process.pid = file_.pid;
    process.rank = process.local_rank = process.node_rank = -1;
    process.device = process.gpu = -1;
    process.world = world_.ranks;
    for (const CommMember& comm : file_.comms) {
      // The only number that the ranks of a job have in these files.
      if (comm.id == world_.comm) process.rank = comm.rank;
    }
    process.first_ns = INT64_MAX;
    const auto widen = [&](int64_t from, int64_t until) {
      process.first_ns = std::min(process.first_ns, from);
      process.last_ns = std::max(process.last_ns, until);
    };
    for (const Operation& operation : file_.operations) widen(operation.enqueued_ns, operation.seen_ns);
    for (const NetworkOp& op : file_.unplaced) widen(op.start_ns, std::max(op.start_ns, op.end_ns));
    process.heartbeat_ns = process.last_ns;
    trace_.processes.append(process);
  }

  void add_comm(const CommMember& member) {
    model::Comm comm{};
    comm.index_in_process = static_cast<uint32_t>(trace_.comms.size());
    comm.comm_id = member.id;
    comm.rank = member.rank;
    comm.ranks = sizes_.at(member.id);
    comm.nodes = comm.device = comm.gpu = -1;
    comm.api_version = -1;
    // Places come from the files of all members together, so they compare across ranks.
    comm.numbered = 1;
    comm.init_ns = trace_.processes.first_ns[0];
    trace_.comms.append(comm);
  }

  // In the order of calls of each communicator; sends and receives as they come.
  std::vector<Placed> place() {
    std::vector<Placed> placed;
    placed.reserve(file_.operations.size());
    std::vector<uint32_t> p2ps(file_.comms.size());
    for (const Operation& op : file_.operations) {
      placed.push_back(
          {&op, op.is_p2p ? p2ps[op.comm]++ : orders_.at(file_.comms[op.comm].id).index(op.func, op.seq)});
    }
    repeated_ = common::sort_by_place(placed);
    return placed;
  }

  void add_op(const Placed& placed) {
    const Operation& from = *placed.operation;
    const uint32_t shape =
        trace_.intern_shape({trace_.strings.intern(from.func), 0, trace_.strings.intern(from.algo),
                             trace_.strings.intern(from.proto), 0});
    model::Op op{};
    op.comm = from.comm;
    op.kind = number(from.is_p2p ? EventKind::kP2p : EventKind::kColl);
    op.shape = shape;
    op.index = placed.index;
    op.seq = from.is_p2p ? model::kNoSeq : from.seq;
    op.bytes = from.bytes;
    op.peer = from.peer;
    op.channels = from.channels;
    op.thread = op.task = op.call = op.group = kNoRow;
    op.enqueued_ns = from.enqueued_ns;
    op.gpu_error_ns = -1;
    // The only times that tell how long the work took. They are the network's, and the source says so.
    if (from.network_start_ns != 0) {
      op.gpu_start_ns = from.network_start_ns;
      op.gpu_end_ns = from.network_end_ns;
      op.gpu_source = static_cast<uint8_t>(model::GpuTimeSource::kNetwork);
    }
    unended_ += from.ended ? 0 : 1;
    if (!from.network.empty()) op.task = add_task(from, shape);
    for (const NetworkOp& network : from.network) add_network_op(network, from.comm, op.task);
    add_number(from);
    trace_.ops.append(op);
  }

  uint32_t add_task(const Operation& from, uint32_t shape) {
    model::Task task{};
    task.comm = from.comm;
    task.kind = number(from.is_p2p ? EventKind::kP2p : EventKind::kColl);
    task.shape = shape;
    task.thread = task.call = task.plan = kNoRow;
    task.seq = from.seq;
    task.peer = from.peer;
    task.channels = from.channels;
    task.start_ns = from.enqueued_ns;
    task.end_ns = std::max(from.enqueued_ns, from.network_start_ns);  // enqueued before its first transfer
    return trace_.tasks.append(task);
  }

  void add_network_op(const NetworkOp& from, uint32_t comm, uint32_t task) {
    model::ProxyOp op{};
    op.thread = thread_;
    op.comm = comm;
    op.task = task;
    op.originator_pid = from.pid;
    op.rank = from.rank;
    op.peer = from.peer;
    op.channel = from.channel;
    op.is_send = from.is_send;
    op.steps = from.steps;
    op.chunk_size = from.chunk_bytes;
    op.start_ns = from.start_ns;
    op.end_ns = from.end_ns;
    const uint32_t row = trace_.proxy_ops.append(op);
    for (const Step& step : from.transfers) add_step(step, from.is_send, row);
  }

  // A send first waits for its peer's room, a receive is posted at once.
  void add_step(const Step& from, bool is_send, uint32_t proxy_op) {
    model::ProxyStep step{};
    step.proxy_op = proxy_op;
    step.step = from.step;
    step.bytes = static_cast<uint32_t>(std::min<uint64_t>(from.bytes, UINT32_MAX));
    step.is_send = is_send;
    step.start_ns = from.start_ns;
    step.end_ns = from.end_ns;
    if (!is_send) {
      step.wait1_ns = from.start_ns;
      step.wait2_ns = from.end_ns;
    } else if (from.ready_ns != 0) {
      step.wait2_ns = from.start_ns;
      step.wait3_ns = from.ready_ns;
    } else {
      step.wait3_ns = from.start_ns;
    }
    trace_.proxy_steps.append(step);
  }

  void add_number(const Operation& from) {
    // Sends and receives have no numbers that could have gaps.
    if (from.is_p2p) {
      has_p2p_ = true;
      return;
    }
    auto& [numbers, records] = numbers_[{from.comm, from.func}];
    numbers = std::max<uint64_t>(numbers, from.seq + uint64_t{1});
    ++records;
  }

  void add_losses() {
    const auto lose = [this](std::string_view kind, uint64_t count, std::string_view text) {
      trace_.lose(0, "read", kind, count, text);
    };
    uint64_t missing = 0;
    // Numbers begin with the communicator, and place() left one operation of each: the rest is missing.
    for (const auto& [key, count] : numbers_) missing += count.first - count.second;
    lose("missing_record", missing, "collectives that CoMMA skipped, according to gaps in their numbers");
    lose("missing_record", has_p2p_,
         "sends and receives that CoMMA skipped: they have no numbers, so the count is unknown");
    lose("missing_record", file_.left_out, "operations beyond the limit for one file");
    // Of every file: nothing in it tells whether its last operation was the process' last.
    lose("unwritten_tail", 1, "what CoMMA had not yet written is not in the files");
    lose("unended", unended_, "operations that CoMMA gave up on, as it did not see them end");
    lose("repeated_record", repeated_, "collectives with a repeated number");
    lose("bad_record", file_.bad_records, "impossible lines, network operations and steps");
    lose("bad_record", file_.too_long, "lines longer than any record");
    lose("group", file_.groups, "groups of calls, which name no operation");
    lose("cut_file", file_.cut, "the last line is incomplete");
    lose("step_clock", !file_.steps_aligned,
         "no single offset maps steps into their network operations: they may lie outside");
  }

  const FileRecords& file_;
  const common::World& world_;
  const CallOrders& orders_;
  const CommSizes& sizes_;
  Trace& trace_;
  uint32_t thread_ = kNoRow;
  uint64_t repeated_ = 0, unended_ = 0;
  bool has_p2p_ = false;
  std::map<std::pair<uint32_t, std::string_view>, std::pair<uint64_t, uint64_t>>
      numbers_;  // numbers, records
};

class Source : public model::TraceSource {
 public:
  static Result<std::unique_ptr<model::TraceSource>> open(std::vector<std::string> paths) {
    LOCKSTEP_ASSIGN(auto read, common::read_all(std::move(paths), "files of CoMMA", read_file));
    auto source = std::make_unique<Source>();
    source->files_ = std::move(read.files);
    source->bad_files_ = std::move(read.bad_files);
    source->name_ = std::move(read.name);
    source->find_comms();
    source->number();
    return std::unique_ptr<model::TraceSource>(std::move(source));
  }

  size_t processes() const override { return files_.size(); }
  Result<void> load(size_t i, Trace& trace) override {
    LOCKSTEP_CHECK(i < files_.size());
    TraceMaker(files_[i], world_, orders_, sizes_, trace).make();
    return {};
  }
  void run_losses(Trace& trace) override {
    const auto lose = [&](std::string_view kind, uint64_t count, const std::string& text) {
      trace.lose(kNoRow, "read", kind, count, text);
    };
    for (const std::string& file : bad_files_) lose("unreadable_file", 1, file);
    lose("implausible_numbers", implausible_,
         "communicators whose operations have numbers that are far apart");
    lose("network_time", 1,
         "CoMMA knows nothing about GPUs: an operation's time is that from its first to its last transfer");
    lose("guessed_rank", world_.comm != 0,
         "CoMMA does not give the job's ranks: those of the largest communicator are used");
    lose("guessed_ranks", guessed_sizes_,
         "communicators without a size from CoMMA: assumed to have as many ranks as left files");
  }
  std::string name() const override { return name_; }

 private:
  // How many ranks a communicator has follows where those that are there are the first ones, without a gap.
  void find_comms() {
    std::map<uint64_t, std::set<int32_t>> ranks;
    for (const FileRecords& file : files_) {
      // CoMMA does not report sizes.
      for (const CommMember& comm : file.comms) ranks[comm.id].insert(comm.rank);
    }
    for (const auto& [comm, of] : ranks) {
      // One rank alone proves nothing: the others may have left no file.
      const bool is_whole = of.size() > 1 && *of.rbegin() + 1 == static_cast<int32_t>(of.size());
      sizes_[comm] = is_whole ? *of.rbegin() + 1 : -1;
      guessed_sizes_ += is_whole ? 1 : 0;
    }
    std::vector<std::vector<common::Membership>> members;
    for (const FileRecords& file : files_) {
      members.emplace_back();
      for (const CommMember& comm : file.comms)
        members.back().push_back({comm.id, comm.rank, sizes_[comm.id]});
    }
    world_ = common::find_world(members);
  }

  // Over the files of all members: each of them lacks some operations of a communicator.
  void number() {
    for (const FileRecords& file : files_) {
      // Where times are not since the Unix epoch, processes compare from their first operation on.
      const int64_t begin =
          file.is_epoch || file.operations.empty() ? 0 : file.operations.front().enqueued_ns;
      for (const Operation& op : file.operations) {
        if (!op.is_p2p) orders_[file.comms[op.comm].id].add(op.func, op.seq, op.enqueued_ns - begin);
      }
    }
    for (auto& [comm, order] : orders_) implausible_ += order.finish() ? 0 : 1;
  }

  std::vector<FileRecords> files_;
  std::vector<std::string> bad_files_;
  common::World world_;
  CallOrders orders_;
  CommSizes sizes_;
  uint64_t implausible_ = 0, guessed_sizes_ = 0;
  std::string name_;
};

}  // namespace

const Format kFormat = {
    .name = "comma",
    .summary = "latency files of CoMMA",
    .sniff = sniff,
    .open = Source::open,
    .setting = "NCCL_PROFILER_LATENCY_FILE=/shared/job/latency-%p.txt, with CoMMA as NCCL's profiler plugin"};

}  // namespace lockstep::readers::comma
