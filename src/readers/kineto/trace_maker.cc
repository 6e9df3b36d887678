// SPDX-License-Identifier: Apache-2.0
// PyTorch's traces name a group's members, a rank and a device in many places, which differ between versions
// and disagree in some captures. So each fact is taken from the place that cannot be about another rank: the
// rank from `distributedInfo` where NCCL's version stands there too, then from an operation that has no root
// or peer, then from the file's name. A rank that nothing names stays unknown, as a wrong one would put the
// blame on somebody else.
#include "readers/kineto/trace_maker.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <set>

#include "base/utf8.h"
#include "model/event_kind.h"
#include "model/limits.h"
#include "model/names/element_size.h"
#include "model/names/operation_size.h"
#include "model/record_gaps.h"
#include "model/torch/process_group.h"
#include "model/torch/torch_groups.h"
#include "readers/common/kernel_links.h"

namespace lockstep::readers::kineto {
namespace {

using common::kNoTime;
using model::EventKind;
using model::kNoRow;
using model::Trace;

// How well the profiler brings GPU times to the host's clock, where nothing in the file contradicts it.
constexpr int64_t kGpuErrorNs = 2'000;

// "host_4711.1760000000000.pt.trace.json", as PyTorch's own handler calls files.
struct MadeUpName {
  std::string host;
  int64_t pid = -1;
};
// From the right, as a host's name may hold dots and underscores.
MadeUpName parse_made_up_name(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename();
  const size_t suffix = name.find(".pt.trace.json");
  const size_t time = suffix == std::string::npos ? suffix : name.rfind('.', suffix - 1);
  const size_t pid = time == std::string::npos ? time : name.rfind('_', time);
  MadeUpName out;
  if (pid == std::string::npos || pid == 0) return out;
  const auto [end, error] = std::from_chars(name.data() + pid + 1, name.data() + time, out.pid);
  if (error != std::errc{} || end != name.data() + time) return {};
  out.host = valid_utf8(name.substr(0, pid));
  return out;
}

bool is_rooted(std::string_view func) { return model::has_root(func); }

class TraceMaker {
 public:
  TraceMaker(Recording& recording, Trace& trace) : in_(recording), trace_(trace) {}

  void make() {
    std::stable_sort(in_.calls.begin(), in_.calls.end(),
                     [](const CommCall& a, const CommCall& b) { return a.start_ns < b.start_ns; });
    // A copy without what only Kineto reports: the join serves other readers as well.
    const std::vector<common::LinkedCall> calls(in_.calls.begin(), in_.calls.end());
    links_ = common::link(calls, in_.kernels, in_.launches, trace_);
    rank_ = own_rank();
    add_process();
    for (const GroupConfig& group : in_.info.groups) add_configured(group);
    for (const Group& group : in_.groups) {
      comm_of_group_.push_back(comm_of(group));
      name_group(comm_of_group_.back(), group);
    }
    add_calls();
    add_marks();
    finish_kernels();
    add_losses();
  }

 private:
  int64_t absolute(int64_t ns) const { return ns == kNoTime ? 0 : in_.base_ns + ns; }

  // The rank that a group rank stands for, in a group of evenly spaced ranks.
  static int64_t global_rank(const Group& group, int64_t rank) {
    if (rank < 0 || group.start < 0 || group.stride <= 0 || rank >= group.size) return -1;
    int64_t global = 0;
    const bool fits = !__builtin_mul_overflow(group.stride, rank, &global) &&
                      !__builtin_add_overflow(global, group.start, &global);
    return fits ? global : -1;
  }

  int32_t own_rank() const {
    auto sane = [](int64_t rank) { return rank >= 0 && rank < model::kMostRanks; };
    // Captures on demand take the rank from an operation's `Rank`, which is the root's or a peer's in some.
    const bool has_rank = in_.has_info && in_.info.nccl_version != "unknown" && sane(in_.info.rank);
    if (has_rank) return static_cast<int32_t>(in_.info.rank);
    // `Rank` is the own one only where no root and no peer takes its place.
    for (const CommCall& call : in_.calls) {
      if (call.is_p2p || is_rooted(trace_.strings[call.func])) continue;
      const int64_t rank = global_rank(in_.groups[call.group], call.group_rank);
      if (sane(rank)) return static_cast<int32_t>(rank);
    }
    const int32_t named = rank_of_trace_name(in_.path);
    if (sane(named)) return named;
    return sane(in_.info.rank) ? static_cast<int32_t>(in_.info.rank) : -1;
  }

  int32_t world() const {
    int64_t world = in_.info.world;
    for (const Group& group : in_.groups) {
      // PyTorch's first group holds all ranks.
      if (world <= 0 && group.name == "0" && group.start == 0 && group.stride == 1) world = group.size;
    }
    return world > 0 && world <= model::kMostRanks ? static_cast<int32_t>(world) : -1;
  }

  // The device that communicates, else the first that works.
  int32_t main_device() const {
    const model::KernelTable& kernels = trace_.kernels;
    if (!in_.kernels.empty()) return kernels.gpu[in_.kernels.front().row];
    return kernels.size() > 0 ? kernels.gpu[0] : -1;
  }

  void add_process() {
    const MadeUpName name = parse_made_up_name(in_.path);
    const std::string& host = in_.host.empty() ? name.host : in_.host;
    // Without a host each process has a clock of its own.
    // Ranks share a clock only where the file proves that they share a host.
    const std::string clock = !host.empty() ? "clock of " + host
                              : rank_ >= 0  ? "profiler of rank " + std::to_string(rank_)
                                            : "profiler of " + in_.path;
    model::Process process{};
    process.host = trace_.strings.intern(host);
    process.boot_id = trace_.strings.intern(clock);
    process.pid = in_.pid >= 0 ? in_.pid : name.pid;
    process.rank = rank_;
    process.local_rank = process.node_rank = -1;
    process.world = world();
    process.job = trace_.strings.intern(in_.job);
    process.nccl_version = model::parse_nccl_version(in_.info.nccl_version);
    process.device = main_device();
    // Ranks do not share a device.
    process.gpu = process.device >= 0 ? rank_ : -1;
    if (process.device >= 0 && static_cast<size_t>(process.device) < in_.devices.size())
      process.gpu_model = trace_.strings.intern(in_.devices[static_cast<size_t>(process.device)]);
    process.closed = in_.is_whole;
    process.window =
        // A window begins in the middle of a run: with PyTorch's numbers places are known, else they are
        // shifted to fit (job/match/windows.cc).
        static_cast<uint8_t>(all_numbered() ? model::Window::kNumbered : model::Window::kCounted);
    if (in_.first_ns <= in_.last_ns) {
      process.first_ns = absolute(in_.first_ns);
      process.last_ns = absolute(in_.last_ns);
    }
    process.heartbeat_ns = std::max(process.last_ns, in_.end_ns == 0 ? 0 : absolute(in_.end_ns));
    trace_.processes.append(process);
  }

  uint32_t thread(int64_t tid) {
    const auto [at, is_new] = threads_.try_emplace(tid, kNoRow);
    if (!is_new) return at->second;
    const auto name = in_.thread_names.find(tid);
    const model::StringId id = name == in_.thread_names.end() ? 0 : trace_.strings.intern(name->second);
    return at->second = trace_.threads.append({.process = 0, .tid = tid, .name = id, .pthread = 0});
  }

  // Global ranks in ascending order, and their ranks in the communicator.
  using Places = std::vector<std::pair<int32_t, int32_t>>;
  static int32_t place_of(const Places& places, int64_t rank) {
    if (rank < 0 || rank > INT32_MAX) return -1;
    const auto at =
        std::lower_bound(places.begin(), places.end(), std::pair(static_cast<int32_t>(rank), int32_t{0}));
    return at != places.end() && at->first == rank ? at->second : -1;
  }

  uint32_t add_comm(const std::string& name, const std::vector<int32_t>& members, int64_t size) {
    model::Comm comm{};
    comm.index_in_process = static_cast<uint32_t>(trace_.comms.size());
    // No id is in the file, so it is made of what all members see alike: name and members.
    comm.comm_id = model::process_group_id(name, members);
    comm.name = trace_.strings.intern(name);
    comm.members = trace_.strings.intern(model::members_text(members));
    comm.ranks = !members.empty() ? static_cast<int32_t>(members.size())
                 : size > 0       ? static_cast<int32_t>(size)
                                  : -1;
    comm.nodes = comm.rank = -1;
    Places places;
    places.reserve(members.size());
    for (size_t i = 0; i < members.size(); ++i) places.emplace_back(members[i], static_cast<int32_t>(i));
    std::sort(places.begin(), places.end());
    if (rank_ >= 0) comm.rank = place_of(places, rank_);
    comm.device = trace_.processes.device[0];
    comm.gpu = trace_.processes.gpu[0];
    comm.init_ns = trace_.processes.first_ns[0];
    places_.push_back(std::move(places));
    return trace_.comms.append(comm);
  }

  // A list that was cut is none.
  static std::vector<int32_t> whole_list(std::string_view text, int64_t size) {
    std::vector<int32_t> ranks = model::parse_ranks(text);
    const bool is_cut = text.find("...") != std::string_view::npos;
    if (is_cut || (size > 0 && ranks.size() != static_cast<size_t>(size))) ranks.clear();
    return ranks;
  }

  // By name and size: an operation names its group so. Of two with both alike the first stands.
  void add_configured(const GroupConfig& group) {
    if (group.size > model::kMostRanks) return;
    std::vector<int32_t> ranks = whole_list(group.ranks, group.size);
    if (ranks.empty()) return;
    const int64_t size = static_cast<int64_t>(ranks.size());
    const std::string name = model::process_group_name(group.name, group.description);
    if (!configured_.contains({group.name, size}))
      configured_[{group.name, size}] = add_comm(name, ranks, size);
  }

  std::vector<int32_t> members_of(const Group& group) {
    std::vector<int32_t> ranks = whole_list(group.ranks, group.size);
    if (!ranks.empty() || group.size <= 0 || group.size > model::kMostRanks) return ranks;
    if (group.size == 1 && group.start >= 0 && group.start < model::kMostRanks)
      return {static_cast<int32_t>(group.start)};
    const bool is_even = group.start >= 0 && group.start < model::kMostRanks && group.stride > 0 &&
                         group.stride < model::kMostRanks;
    const int64_t last = is_even ? group.start + group.stride * (group.size - 1) : INT64_MAX;
    if (last > INT32_MAX || group.size > members_left_) {
      // Rebuilt members are bounded over the whole file: a forged size would make lists of billions.
      ++in_.cut_lists;
      return {};
    }
    members_left_ -= group.size;
    for (int64_t rank = group.start; rank <= last; rank += group.stride)
      ranks.push_back(static_cast<int32_t>(rank));
    return ranks;
  }

  uint32_t comm_of(const Group& group) {
    // `distributedInfo` lists members whole; arguments of operations are cut by the profiler.
    if (const auto at = configured_.find({group.name, group.size}); at != configured_.end())
      return at->second;
    std::vector<int32_t> members = members_of(group);
    auto key = std::tuple(group.name, group.size, members);
    if (const auto at = found_.find(key); at != found_.end()) return at->second;
    const std::string name = model::process_group_name(group.name, group.description);
    const uint32_t comm = add_comm(name, members, group.size);
    found_.emplace(std::move(key), comm);
    return comm;
  }

  // As PyTorch reports it; traces before 2024 report nothing about the members.
  void name_group(uint32_t comm, const Group& group) {
    model::CommTable& comms = trace_.comms;
    const bool fits = std::max(group.start, group.stride) <= INT32_MAX;
    if (comms.group_name[comm] != 0 || comms.ranks[comm] <= 0 || !fits) return;
    if (group.start < 0 && group.ranks.empty()) return;
    comms.group_name[comm] = trace_.strings.intern(group.name);
    comms.group_description[comm] = trace_.strings.intern(group.description);
    comms.rank_start[comm] = static_cast<int32_t>(std::max<int64_t>(group.start, -1));
    comms.rank_stride[comm] = group.stride > 0
                                  ? static_cast<int32_t>(group.stride)
                                  : model::default_stride(group.start < 0 ? 0 : comms.ranks[comm]);
  }

  // As rank of the communicator.
  // `Src Rank` and `Dst Rank` are global; a file without them has the peer's rank in the group.
  int32_t peer_of(const CommCall& call, uint32_t comm) const {
    if (const int32_t place = place_of(places_[comm], call.peer); place >= 0) return place;
    const int32_t ranks = trace_.comms.ranks[comm];
    return call.group_rank >= 0 && call.group_rank < ranks ? static_cast<int32_t>(call.group_rank) : -1;
  }

  void add_calls() {
    index_.resize(trace_.comms.size());
    p2ps_.resize(trace_.comms.size());
    op_of_call_.assign(in_.calls.size(), kNoRow);
    trace_.ops.reserve(in_.calls.size());
    // A kernel that begins before its launch shows by how much the two clocks are apart at least.
    const int64_t error = std::min<int64_t>(std::max(kGpuErrorNs, links_.contradiction_ns), INT32_MAX);
    for (uint32_t i = 0; i < in_.calls.size(); ++i) add_call(i, static_cast<int32_t>(error));
  }

  void add_call(uint32_t i, int32_t error_ns) {
    const CommCall& call = in_.calls[i];
    const common::CallWork& work = links_.work[i];
    const uint32_t comm = comm_of_group_[call.group];
    const std::string_view func = trace_.strings[call.func];
    model::Op op{};
    op.comm = comm;
    op.peer = call.is_p2p ? peer_of(call, comm) : -1;
    if (call.is_p2p && op.peer < 0) {
      ++in_.unplaced_p2p;
      return;
    }
    // Where the members are unknown, the own rank in the group stands in such an operation.
    if (!call.is_p2p && !is_rooted(func) && trace_.comms.rank[comm] < 0 &&
        call.group_rank < trace_.comms.ranks[comm])
      trace_.comms.rank[comm] = static_cast<int32_t>(call.group_rank);
    const bool has_root = is_rooted(func) && call.group_rank >= 0 && call.group_rank < model::kMostRanks;
    op.kind = number(call.is_p2p ? EventKind::kP2p : EventKind::kColl);
    op.shape = trace_.intern_shape(
        {call.func, call.datatype, 0, 0, has_root ? static_cast<int32_t>(call.group_rank) : 0});
    op.index = call.is_p2p ? p2ps_[comm]++ : index_[comm].of(call.seq);
    op.seq = model::kNoSeq;  // PyTorch's counts over all functions
    op.count = call.count;
    op.in_count = call.in;
    op.out_count = call.out;
    op.flags = call.flags;
    model::set_torch_number(trace_, op, call.seq, call.is_p2p);
    if (call.comms_id != 0) op.torch_comms_id = call.comms_id;
    if (__builtin_mul_overflow(call.count, uint64_t{model::element_size(trace_.strings[call.datatype])},
                               &op.bytes))
      op.bytes = 0;
    op.thread = thread(call.tid);
    op.task = op.group = kNoRow;
    op.called_ns = absolute(call.start_ns);
    op.launched_ns = work.launch == nullptr ? 0 : absolute(work.launch->start_ns);
    op.gpu_start_ns = absolute(work.gpu_start_ns);
    op.gpu_end_ns = absolute(work.gpu_end_ns);
    op.gpu_error_ns = -1;
    if (work.gpu_start_ns != kNoTime) {
      op.gpu_source = static_cast<uint8_t>(model::GpuTimeSource::kCupti);
      op.gpu_error_ns = error_ns;
    }
    op.call = trace_.calls.append({.process = 0,
                                   .thread = op.thread,
                                   .comm = comm,
                                   .kind = number(call.is_p2p ? EventKind::kP2pApi : EventKind::kCollApi),
                                   .flags = 0,
                                   .parent = kNoRow,
                                   .shape = op.shape,
                                   .stream = 0,
                                   .count = op.count,
                                   .depth = 0,
                                   .start_ns = op.called_ns,
                                   .end_ns = absolute(call.end_ns),
                                   .group_start_ns = 0,
                                   .group_end_ns = 0,
                                   .user_tag = 0});
    op_of_call_[i] = trace_.ops.append(op);
    if (call.in_split != 0 || call.out_split != 0)
      trace_.splits.append({.process = 0,
                            .op = op_of_call_[i],
                            .task = kNoRow,
                            .in_split = call.in_split,
                            .out_split = call.out_split});
    if (work.launch != nullptr) add_launch(*work.launch, op);
  }

  // One launch may do several operations.
  void add_launch(const common::KernelLaunch& launch, const model::Op& op) {
    if (!launches_.insert(&launch).second) return;
    trace_.calls.append({.process = 0,
                         .thread = thread(launch.tid),
                         .comm = op.comm,
                         .kind = number(EventKind::kKernelLaunch),
                         .flags = 0,
                         .parent = op.call,
                         .shape = kNoRow,
                         .stream = 0,
                         .count = 0,
                         .depth = 0,
                         .start_ns = absolute(launch.start_ns),
                         .end_ns = absolute(launch.end_ns),
                         .group_start_ns = 0,
                         .group_end_ns = 0,
                         .user_tag = 0});
  }

  void add_marks() {
    std::stable_sort(in_.steps.begin(), in_.steps.end(),
                     [](const Step& a, const Step& b) { return a.start_ns < b.start_ns; });
    const model::StringId name = trace_.strings.intern("step");
    for (const Step& step : in_.steps) {
      trace_.marks.append({.process = 0,
                           .thread = thread(step.tid),
                           .name = name,
                           .value = step.number,
                           .is_step = 1,
                           .time_ns = absolute(step.start_ns)});
    }
  }

  void finish_kernels() {
    model::KernelTable& kernels = trace_.kernels;
    const int32_t device = trace_.processes.device[0], gpu = trace_.processes.gpu[0];
    for (size_t i = 0; i < kernels.size(); ++i) {
      kernels.start_ns[i] += in_.base_ns;
      kernels.end_ns[i] += in_.base_ns;
      // Other devices of the process have no number over the run.
      kernels.gpu[i] = kernels.gpu[i] == device ? gpu : -1;
    }
    for (size_t i = 0; i < in_.kernels.size(); ++i) {
      const uint32_t call = links_.call_of_kernel[i];
      if (call == kNoRow || op_of_call_[call] == kNoRow) continue;
      const uint32_t row = in_.kernels[i].row, op = op_of_call_[call];
      kernels.op[row] = op;
      trace_.ops.stream[op] = kernels.stream[row];
    }
  }

  // Numbers of PyTorch's hold a collective's place even where others are gone.
  bool all_numbered() const {
    return std::all_of(in_.calls.begin(), in_.calls.end(),
                       [](const CommCall& call) { return call.is_p2p || call.seq >= 1; });
  }

  void add_losses() {
    auto lose = [this](std::string_view kind, uint64_t count, const std::string& text) {
      trace_.lose(0, "read", kind, count, text + ": " + in_.path);
    };
    lose("cut_file", !in_.is_whole, "the file ends before the trace does");
    lose("bad_record", in_.bad_events,
         "pieces that are not JSON were left out, the first at byte " + std::to_string(in_.first_damage));
    lose(model::kLossIncompleteEnd, !in_.is_whole, "trace that ends early");
    lose(model::kLossIncompleteMiddle, in_.bad_events, "pieces of the trace are not JSON");
    lose(model::kLossUnproven, in_.bad_events > 0, "trace that is damaged");
    lose("oversized_value", in_.oversized, "metadata larger than any profiler writes was left out");
    lose("unnamed_call", in_.unnamed_calls,
         "operations that do not say what they are: PyTorch before 2.2 did not record this");
    lose("unplaced_p2p", in_.unplaced_p2p, "sends and receives that name no peer");
    lose("unknown_members", in_.cut_lists, "groups whose ranks the file does not list completely");
    lose("comms_id_mismatch", in_.wrong_comms_ids,
         "operations whose Comms Id is not that of their group and number");
    lose("call_without_kernel", links_.silent_calls,
         "operations whose kernel is not in the trace: no GPU times");
    lose("graph_kernel", links_.graph_kernels,
         "communication kernels of CUDA graphs: the trace does not show which operations they replay");
    lose("unlinked_kernel", links_.unlinked_kernels,
         "communication kernels that belong to no recorded operation");
    lose("unknown_rank", rank_ < 0, "traces without a rank, and none in the file's name");
  }

  Recording& in_;
  Trace& trace_;
  common::Links links_;
  int32_t rank_ = -1;
  std::map<int64_t, uint32_t> threads_;
  std::map<std::pair<std::string, int64_t>, uint32_t> configured_;  // comms, by group name and size
  std::map<std::tuple<std::string, int64_t, std::vector<int32_t>>, uint32_t> found_;
  std::vector<Places> places_;                  // by comm
  int64_t members_left_ = model::kMostMembers;  // that groups may be rebuilt of
  std::vector<uint32_t> comm_of_group_;
  std::vector<model::GroupIndex> index_;  // by comm
  std::vector<uint32_t> p2ps_;            // by comm
  std::vector<uint32_t> op_of_call_;
  std::set<const common::KernelLaunch*> launches_;  // that have a row
};

}  // namespace

void make_trace(Recording&& recording, Trace& trace) { TraceMaker(recording, trace).make(); }

}  // namespace lockstep::readers::kineto
