// SPDX-License-Identifier: Apache-2.0
// Makes a trace of one process of an export. Operations are NCCL's NVTX ranges; kernels are joined to them by
// the call that launched them, as for PyTorch's traces. Ranks of the job are not in an export, so those of
// the largest communicator stand for them, which is said as a loss. Where several GPUs of one process are in
// a communicator, which of them called is unknown: that is a loss, too.
#include "readers/nsys/trace_maker.h"

#include <algorithm>
#include <set>

#include "model/event_kind.h"
#include "model/names/kernel_name.h"
#include "readers/common/kernel_links.h"

namespace lockstep::readers::nsys {
namespace {

using model::EventKind;
using model::kNoRow;
using model::Trace;

// How well Nsight Systems brings GPU times to the host's clock, where nothing in the export contradicts it.
constexpr int64_t kGpuErrorNs = 2'000;

bool is_p2p(std::string_view func) { return func == "Send" || func == "Recv"; }
// In the spelling of the rest of NCCL; empty: no operation.
// Ranges such as GroupStart or CommInitRank are NCCL's, too, and move no data.
std::string_view operation(std::string_view func) {
  constexpr std::string_view kOperations[] = {"AllReduce", "AllGather", "ReduceScatter", "Broadcast",
                                              "Reduce",    "AlltoAll",  "Gather",        "Scatter",
                                              "Send",      "Recv"};
  if (func == "Bcast") return "Broadcast";
  const auto at = std::find(std::begin(kOperations), std::end(kOperations), func);
  return at == std::end(kOperations) ? std::string_view() : *at;
}

class TraceMaker {
 public:
  TraceMaker(const Placed& in, const common::World& world, Trace& trace)
      : in_(in), process_(*in.process), world_(world), trace_(trace) {}

  void make() {
    for (const NcclRange& range : process_.ranges) note_member(range);
    add_process();
    add_work();
    find_calls();
    // After the kernels are rows and before the operations are: links name kernels by row and calls by their
    // place.
    links_ = common::link(calls_, kernels_, launches_, trace_);
    for (size_t i = 0; i < calls_.size(); ++i) add_op(i);
    for (size_t i = 0; i < kernels_.size(); ++i) {
      if (links_.call_of_kernel[i] != kNoRow) trace_.kernels.op[kernels_[i].row] = links_.call_of_kernel[i];
    }
    trace_.processes.window[0] =
        static_cast<uint8_t>(all_begun() ? model::Window::kNumbered : model::Window::kCounted);
    add_losses();
  }

 private:
  // Ranges that make a communicator name the own rank in it, and how many there are. One process may make it
  // once for each of its GPUs.
  void note_member(const NcclRange& range) {
    if (range.comm == 0 || range.rank < 0 || range.ranks <= range.rank) return;
    const auto [at, is_new] = members_.try_emplace(range.comm, range);
    if (!is_new && at->second.rank != range.rank) several_.insert(range.comm);
  }

  void add_process() {
    model::Process row{};
    row.host = trace_.strings.intern(in_.of->host);
    row.boot_id = trace_.strings.intern(in_.clock);
    row.pid = process_.pid;
    row.rank = row.local_rank = row.node_rank = row.device = row.gpu = -1;
    row.world = world_.ranks;
    const auto world = members_.find(world_.comm);
    if (world_.comm != 0 && world != members_.end()) row.rank = world->second.rank;
    if (!process_.work.empty()) {
      // The device that worked first stands for a process with several.
      row.device = static_cast<int32_t>(process_.work.front().device);
      row.gpu = gpu_of(process_.work.front().device);
      const auto gpu = in_.of->gpus.find({process_.pid, process_.work.front().device});
      if (gpu != in_.of->gpus.end()) {
        row.gpu_model = trace_.strings.intern(gpu->second.name);
        row.pci = trace_.strings.intern(gpu->second.pci);
        row.uuid = trace_.strings.intern(gpu->second.uuid);
      }
    }
    int64_t first = INT64_MAX, last = 0;
    // A range that never ended has an end of 0, so its begin counts, too.
    const auto widen = [&](const auto& of) {
      first = std::min(first, of.start_ns);
      last = std::max({last, of.start_ns, of.end_ns});
    };
    for (const NcclRange& range : process_.ranges) widen(range);
    for (const GpuWork& work : process_.work) widen(work);
    if (first != INT64_MAX) row.first_ns = first;
    row.last_ns = row.heartbeat_ns = last;
    trace_.processes.append(row);
  }

  int32_t gpu_of(uint32_t device) const {
    const auto at = in_.gpus.find(device);
    return at == in_.gpus.end() ? -1 : at->second;
  }

  void add_work() {
    trace_.kernels.reserve(process_.work.size());
    for (const GpuWork& work : process_.work) {
      model::Kernel row{};
      row.op = row.launch = kNoRow;
      const auto text = in_.of->texts.find(work.name);
      const std::string_view name = work.is_copy                  ? "copy"
                                    : text == in_.of->texts.end() ? std::string_view()
                                                                  : text->second;
      row.name = trace_.strings.intern(name);
      const model::KernelWork does = work.is_copy ? model::KernelWork::kNone : model::work_of_kernel(name);
      row.kind = static_cast<uint8_t>(work.is_copy                       ? model::KernelKind::kCopy
                                      : does == model::KernelWork::kNone ? model::KernelKind::kCompute
                                                                         : model::KernelKind::kCommunication);
      row.gpu = gpu_of(work.device);
      row.stream = work.stream;
      row.graph = work.graph;
      row.start_ns = work.start_ns;
      row.end_ns = work.end_ns;
      row.correlation = work.correlation;
      row.blocks = work.blocks;
      row.bytes = work.bytes;
      const uint32_t kernel = trace_.kernels.append(row);
      if (does != model::KernelWork::kNone)
        kernels_.push_back({.row = kernel, .correlation = int64_t{work.correlation}, .work = does});
    }
    for (const LaunchCall& launch : process_.launches)
      launches_.push_back({.correlation = int64_t{launch.correlation},
                           .start_ns = launch.start_ns,
                           .end_ns = launch.end_ns,
                           .tid = int64_t{launch.tid}});
  }

  // `ranks` and the rest stay unknown where the recording did not see the communicator begin.
  uint32_t comm_of(const NcclRange& range) {
    if (range.comm == 0) return kNoRow;
    const auto [at, is_new] = comms_.try_emplace(range.comm, kNoRow);
    if (!is_new) return at->second;
    model::Comm comm{};
    comm.index_in_process = static_cast<uint32_t>(trace_.comms.size());
    comm.comm_id = range.comm;
    comm.rank = comm.ranks = comm.nodes = comm.api_version = comm.device = comm.gpu = -1;
    comm.init_ns = range.start_ns;
    const auto member = members_.find(range.comm);
    if (member != members_.end()) {
      comm.ranks = member->second.ranks;
      comm.init_ns = member->second.start_ns;
      if (!several_.contains(range.comm)) {
        comm.rank = member->second.rank;
        comm.device = member->second.device;
        comm.gpu = comm.device < 0 ? -1 : gpu_of(static_cast<uint32_t>(comm.device));
      }
    }
    return at->second = trace_.comms.append(comm);
  }

  uint32_t thread(uint32_t tid) {
    const auto [at, is_new] = threads_.try_emplace(tid, kNoRow);
    if (is_new)
      at->second = trace_.threads.append({.process = 0, .tid = int64_t{tid}, .name = 0, .pthread = 0});
    return at->second;
  }

  void find_calls() {
    for (const NcclRange& range : process_.ranges) {
      const std::string_view func = operation(range.func);
      if (func.empty()) continue;
      if (range.comm == 0) {
        // An operation of an unknown communicator can be compared with nothing, so it becomes no row; its
        // kernel stays.
        ++without_comm_;
        continue;
      }
      calls_.push_back({.start_ns = range.start_ns,
                        .end_ns = std::max(range.end_ns, range.start_ns),
                        .tid = int64_t{range.tid},
                        .group = comm_of(range),
                        .func = trace_.strings.intern(func)});
      ranges_.push_back(&range);
    }
  }

  void add_op(size_t i) {
    const common::LinkedCall& call = calls_[i];
    const common::CallWork& work = links_.work[i];
    const NcclRange& range = *ranges_[i];
    const std::string_view func = trace_.strings[call.func];
    const bool p2p = is_p2p(func);
    model::Op op{};
    op.comm = call.group;
    op.kind = number(p2p ? EventKind::kP2p : EventKind::kColl);
    op.shape = trace_.intern_shape({call.func, 0, 0, 0, std::max(range.root, 0)});
    // Counted, as a range has no number; sends and receives apart, since job/match pairs them by peer.
    op.index = next_[{op.comm, p2p}]++;
    op.seq = model::kNoSeq;
    // NCCL's payload gives bytes and no data type, so `count` stays 0.
    op.bytes = range.bytes;
    op.peer = p2p ? range.peer : -1;
    op.thread = thread(range.tid);
    op.task = op.group = kNoRow;
    op.called_ns = call.start_ns;
    op.gpu_error_ns = -1;
    if (work.launch != nullptr) op.launched_ns = work.launch->start_ns;
    if (work.gpu_start_ns != common::kNoTime) {
      op.gpu_start_ns = work.gpu_start_ns;
      op.gpu_end_ns = work.gpu_end_ns;
      op.gpu_source = static_cast<uint8_t>(model::GpuTimeSource::kCupti);
      op.gpu_error_ns =
          static_cast<int32_t>(std::clamp<int64_t>(links_.contradiction_ns, kGpuErrorNs, INT32_MAX));
    }
    op.call = trace_.calls.append({.process = 0,
                                   .thread = op.thread,
                                   .comm = op.comm,
                                   .kind = number(p2p ? EventKind::kP2pApi : EventKind::kCollApi),
                                   .flags = 0,
                                   .parent = kNoRow,
                                   .shape = op.shape,
                                   .stream = 0,
                                   .count = 0,
                                   .depth = 0,
                                   .start_ns = call.start_ns,
                                   .end_ns = range.end_ns,
                                   .group_start_ns = 0,
                                   .group_end_ns = 0,
                                   .user_tag = 0});
    trace_.ops.append(op);
  }

  // The recording saw how each communicator began, so its operations count from there.
  // A communicator that began earlier has operations that the export does not show, and indexes would begin
  // too low.
  bool all_begun() const {
    return std::all_of(comms_.begin(), comms_.end(),
                       [&](const auto& comm) { return members_.contains(comm.first); });
  }

  void add_losses() {
    const auto lose = [this](std::string_view kind, uint64_t count, const std::string& text) {
      trace_.lose(0, "read", kind, count, text);
    };
    lose(
        "no_communicator", without_comm_,
        "operations without a communicator: NCCL before 2.25 does not name it, or NVTX payloads were not recorded");
    lose(
        "several_members", several_.size(),
        "communicators in which the process has several GPUs: the export does not say which GPU a call is for");
    lose("call_without_kernel", links_.silent_calls,
         "operations whose kernel is not in the export: no GPU times");
    lose("graph_kernel", links_.graph_kernels,
         "communication kernels of CUDA graphs: the export does not show which operations they replay");
    lose("unlinked_kernel", links_.unlinked_kernels,
         "communication kernels that belong to no recorded operation");
    // Only without any range: with some, each kernel that has none was counted above.
    if (calls_.empty() && without_comm_ == 0)
      lose("kernels_alone", kernels_.size(),
           "communication kernels without NCCL's ranges: record with `nsys profile -t cuda,nvtx`");
  }

  const Placed& in_;
  const ExportedProcess& process_;
  const common::World& world_;
  Trace& trace_;
  std::map<uint64_t, NcclRange> members_;  // how each communicator began, by its id
  std::set<uint64_t> several_;             // of them: more than one GPU of this process is in it
  std::map<uint64_t, uint32_t> comms_;     // rows, by id
  std::map<uint32_t, uint32_t> threads_;
  std::map<std::pair<uint32_t, bool>, uint32_t> next_;  // by communicator, sends and receives apart
  std::vector<common::LinkedCall> calls_;
  std::vector<const NcclRange*> ranges_;  // by call
  std::vector<common::LinkedKernel> kernels_;
  std::vector<common::KernelLaunch> launches_;
  common::Links links_;
  uint64_t without_comm_ = 0;
};

}  // namespace

// The same ranges as note_member sees, for a look at all processes before one is loaded. A communicator with
// several GPUs of this process gives it no single rank, so it cannot give the job's.
std::vector<common::Membership> memberships(const ExportedProcess& process) {
  std::map<uint64_t, common::Membership> found;
  std::set<uint64_t> several;
  for (const NcclRange& range : process.ranges) {
    if (range.comm == 0 || range.rank < 0 || range.ranks <= range.rank) continue;
    const auto [at, is_new] =
        found.try_emplace(range.comm, common::Membership{range.comm, range.rank, range.ranks});
    if (!is_new && at->second.rank != range.rank) several.insert(range.comm);
  }
  std::vector<common::Membership> members;
  for (const auto& [comm, member] : found) {
    if (!several.contains(comm)) members.push_back(member);
  }
  return members;
}

void make_trace(const Placed& placed, const common::World& world, model::Trace& trace) {
  TraceMaker(placed, world, trace).make();
}

}  // namespace lockstep::readers::nsys
