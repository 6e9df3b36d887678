// SPDX-License-Identifier: Apache-2.0
#include "golden/tape_run.h"

#include <map>

#include "job/assemble/assemble.h"
#include "model/event_kind.h"
#include "nccl_host/tape.h"

namespace lockstep::golden {
namespace {

using model::EventKind;
using model::kNoRow;
using sim::Call;
using sim::CallKind;
namespace abi = nccl_abi;

constexpr int64_t kEpoch = 1'760'000'000'000'000'000;  // of the recording's monotonic clock

int64_t host_ns(const Call& call) { return kEpoch + static_cast<int64_t>(call.when_ns); }

class Builder {
 public:
  Builder(const sim::Program& program, bool gpu_times, model::Trace& trace)
      : program_(program), gpu_times_(gpu_times), trace_(trace), rows_(program.handle_count) {}

  void build(int32_t rank, int32_t world) {
    model::Process process;
    process.rank = process.local_rank = process.gpu = process.device = rank;
    process.world = world;
    process.pid = 1000 + rank;
    process.host = trace_.strings.intern("node0");
    process.boot_id = trace_.strings.intern("b007");
    process.gpu_clock = static_cast<uint8_t>(model::GpuClock::kNvidiaNs);
    process.closed = 1;
    process.first_ns = host_ns(program_.calls.front());
    process.last_ns = host_ns(program_.calls.back());
    trace_.processes.append(process);
    for (const Call& call : program_.calls) add(call);
  }

 private:
  struct Row {
    EventKind kind = EventKind::kNone;
    uint32_t row = kNoRow;
  };

  void add(const Call& call) {
    switch (call.kind) {
      case CallKind::kInit:
        return init(call);
      case CallKind::kStart:
        return start(call, program_.starts[call.detail]);
      case CallKind::kStop:
        return stop(call, rows_[call.handle]);
      case CallKind::kState:
        if (call.state == abi::kKernelChStop && rows_[call.handle].kind == EventKind::kKernelCh)
          trace_.channels.gpu_stop[rows_[call.handle].row] = call.value;
        return;
      case CallKind::kFinalize:
      case CallKind::kBarrier:
        return;
    }
  }

  void init(const Call& call) {
    const sim::CommInfo& info = program_.comms[call.detail];
    model::Comm comm{};
    comm.comm_id = info.id;
    comm.name = info.name == nullptr ? 0 : trace_.strings.intern(info.name);
    comm.rank = info.rank;
    comm.ranks = info.ranks;
    comm.nodes = info.nodes;
    comm.api_version = 5;
    comm.device = comm.gpu = -1;
    comm.init_ns = host_ns(call);
    comms_[call.context] = trace_.comms.append(comm);
  }

  Row parent(const sim::Start& start) const {
    return start.parent == sim::kNone ? Row{} : rows_[start.parent];
  }
  static uint32_t row_if(Row row, EventKind kind) { return row.kind == kind ? row.row : kNoRow; }

  uint32_t shape(const char* func, const char* datatype, const char* algo, const char* proto, int root) {
    auto text = [&](const char* value) { return value == nullptr ? 0 : trace_.strings.intern(value); };
    return trace_.intern_shape({.func = text(func),
                                .datatype = text(datatype),
                                .algo = text(algo),
                                .proto = text(proto),
                                .root = root});
  }

  uint32_t add_call(const Call& call, EventKind kind, uint32_t shape = kNoRow, uint64_t count = 0,
                    uint32_t parent = kNoRow) {
    model::Call row{};
    row.thread = call.thread;
    row.comm = comms_.contains(call.context) ? comms_.at(call.context) : kNoRow;
    row.kind = number(kind);
    row.parent = parent;
    row.shape = shape;
    row.count = count;
    row.start_ns = host_ns(call);
    return trace_.calls.append(row);
  }

  model::Task task(const Call& call, Row api, uint32_t plan) const {
    model::Task row{};
    row.thread = call.thread;
    row.comm = comms_.contains(call.context) ? comms_.at(call.context) : kNoRow;
    row.call = api.row;
    row.plan = plan;
    row.peer = -1;
    row.start_ns = host_ns(call);
    return row;
  }
  uint32_t plan_of(const sim::Start& start) const {
    return start.parent_group == sim::kNone ? kNoRow : rows_[start.parent_group].row;
  }

  void start(const Call& call, const sim::Start& start) {
    const abi::v7::Descriptor& d = start.descriptor;
    Row& row = rows_[call.handle];
    const Row above = parent(start);
    switch (d.type) {
      case abi::kTypeGroupApi:
        row = {EventKind::kGroupApi, add_call(call, EventKind::kGroupApi)};
        break;
      case abi::kTypeCollApi: {
        uint32_t of = shape(d.coll_api.func, d.coll_api.datatype, nullptr, nullptr, d.coll_api.root);
        row = {EventKind::kCollApi, add_call(call, EventKind::kCollApi, of, d.coll_api.count, above.row)};
        trace_.calls.flags[row.row] = d.coll_api.graph_captured ? model::kFlagGraphCaptured : 0;
        break;
      }
      case abi::kTypeP2pApi: {
        uint32_t of = shape(d.p2p_api.func, d.p2p_api.datatype, nullptr, nullptr, 0);
        row = {EventKind::kP2pApi, add_call(call, EventKind::kP2pApi, of, d.p2p_api.count, above.row)};
        trace_.calls.flags[row.row] = d.p2p_api.graph_captured ? model::kFlagGraphCaptured : 0;
        break;
      }
      case abi::kTypeKernelLaunch:
        row = {EventKind::kKernelLaunch, add_call(call, EventKind::kKernelLaunch, kNoRow, 0, above.row)};
        break;
      case abi::kTypeGroup:
        row = {EventKind::kGroup, add_call(call, EventKind::kGroup)};
        break;
      case abi::kTypeColl:
        return coll(call, start, above);
      case abi::kTypeP2p:
        return p2p(call, start, above);
      case abi::kTypeKernelCh:
        return kernel(call, d, above);
      default:
        return;
    }
  }

  void coll(const Call& call, const sim::Start& start, Row api) {
    const abi::v7::Coll& d = start.descriptor.coll;
    model::Task row = task(call, api, plan_of(start));
    row.kind = number(EventKind::kColl);
    row.shape = shape(d.func, d.datatype, d.algo, d.proto, d.root);
    row.seq = d.seq;
    row.count = d.count;
    row.channels = d.channels;
    rows_[call.handle] = {EventKind::kColl, trace_.tasks.append(row)};
  }

  void p2p(const Call& call, const sim::Start& start, Row api) {
    const abi::v7::P2p& d = start.descriptor.p2p;
    model::Task row = task(call, api, plan_of(start));
    row.kind = number(EventKind::kP2p);
    row.shape = shape(d.func, d.datatype, nullptr, nullptr, 0);
    row.count = d.count;
    row.peer = d.peer;
    row.channels = d.channels;
    rows_[call.handle] = {EventKind::kP2p, trace_.tasks.append(row)};
  }

  void kernel(const Call& call, const abi::v7::Descriptor& d, Row task) {
    if (!gpu_times_) return;
    if (task.kind != EventKind::kColl && task.kind != EventKind::kP2p) return;
    model::Channel row{};
    row.thread = call.thread;
    row.comm = trace_.tasks.comm[task.row];
    row.task = task.row;
    row.kind = number(EventKind::kKernelCh);
    row.channel = d.kernel_ch.channel;
    row.gpu_start = d.kernel_ch.ptimer;
    row.start_seen_ns = host_ns(call);
    rows_[call.handle] = {EventKind::kKernelCh, trace_.channels.append(row)};
  }

  void stop(const Call& call, Row row) {
    if (row.row == kNoRow) return;
    switch (row.kind) {
      case EventKind::kKernelCh:
        trace_.channels.stop_seen_ns[row.row] = host_ns(call);
        return;
      case EventKind::kColl:
      case EventKind::kP2p:
        trace_.tasks.end_ns[row.row] = host_ns(call);
        return;
      default:
        trace_.calls.end_ns[row.row] = host_ns(call);
    }
  }

  const sim::Program& program_;
  const bool gpu_times_;
  model::Trace& trace_;
  std::vector<Row> rows_;
  std::map<uint32_t, uint32_t> comms_;  // context -> row
};

}  // namespace

Result<std::unique_ptr<TapeRun>> TapeRun::open(const std::vector<std::string>& paths, bool gpu_times) {
  auto run = std::make_unique<TapeRun>();
  run->gpu_times_ = gpu_times;
  for (const std::string& path : paths) {
    LOCKSTEP_ASSIGN(sim::Program program, sim::read_tape(path));
    if (program.calls.empty()) return Error{ErrorCode::kInvalidInput, "an empty tape", path};
    run->programs_.push_back(std::move(program));
  }
  return run;
}

Result<void> TapeRun::load(size_t i, model::Trace& trace) {
  // The largest communicator is the job's.
  sim::CommInfo world;
  for (const sim::CommInfo& comm : programs_[i].comms) {
    if (comm.ranks > world.ranks) world = comm;
  }
  Builder(programs_[i], gpu_times_, trace).build(world.rank, world.ranks);
  return job::assemble::assemble(trace);
}

}  // namespace lockstep::golden
