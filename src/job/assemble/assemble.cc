// SPDX-License-Identifier: Apache-2.0
// Makes operations of calls and tasks, and gives each its times. The order is that of the calls: NCCL's tasks
// are created later and on other threads. GPU times come from kernels that are proven to be the operation's;
// else from KernelCh events; else there are none. A time that only might be the operation's would turn into a
// wrong culprit.
#include "job/assemble/assemble.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <vector>

#include "job/assemble/copy_join.h"
#include "job/assemble/device_comms.h"
#include "job/assemble/gpu_times.h"
#include "job/assemble/graph_replays.h"
#include "job/assemble/kernel_join.h"
#include "job/assemble/kernel_works.h"
#include "job/assemble/launches.h"
#include "job/assemble/loss.h"
#include "model/event_kind.h"
#include "model/names/element_size.h"
#include "model/names/operation_size.h"

namespace lockstep::job::assemble {
namespace {

using model::EventKind;
using model::GpuTimeSource;
using model::kNoRow;
using model::Trace;

// An operation to be: its task, its call, or both; or a replay that its kernel shows. How many such replays
// are known differs between ranks (one's kernel is not over, another has no CUPTI), so they have no number:
// the first one stands for what was captured, where it was captured, as on a rank that knows of no replay.
struct Entry {
  int64_t order_ns;
  uint32_t task, call;
  uint32_t replay = kNoRow;  // of GraphReplays::operations
  bool is_numbered = true;
  auto operator<=>(const Entry&) const = default;
};

bool is_kind(uint8_t kind, EventKind wanted) { return kind == number(wanted); }
bool is_api_call(uint8_t kind) {
  return is_kind(kind, EventKind::kCollApi) || is_kind(kind, EventKind::kP2pApi);
}

std::vector<Entry> list_entries(const Trace& trace, const GraphReplays& replays) {
  const model::CallTable& calls = trace.calls;
  const model::TaskTable& tasks = trace.tasks;
  std::vector<Entry> entries;
  entries.reserve(tasks.size() + replays.operations().size());
  std::vector<bool> has_task(calls.size());
  for (uint32_t task = 0; task < tasks.size(); ++task) {
    if (replays.is_capture(task)) continue;
    uint32_t call = tasks.call[task];
    bool replay = call != kNoRow && (calls.flags[call] & model::kFlagGraphCaptured) != 0;
    entries.push_back({call == kNoRow || replay ? tasks.start_ns[task] : calls.start_ns[call], task, call});
    if (call != kNoRow) has_task[call] = true;
  }
  for (uint32_t i = 0; i < replays.operations().size(); ++i) {
    const GraphReplays::Replay& replay = replays.operations()[i];
    // The first replay stands at the place of the capture and takes its number.
    const bool is_first = !has_task[replay.call];
    entries.push_back(
        {is_first ? calls.start_ns[replay.call] : replay.launched_ns, replay.task, replay.call, i, is_first});
    has_task[replay.call] = true;
  }
  for (uint32_t call = 0; call < calls.size(); ++call) {
    if (is_api_call(calls.kind[call]) && !has_task[call])
      entries.push_back({calls.start_ns[call], kNoRow, call});
  }
  // They mostly are: a look is cheaper than a sort.
  if (!std::is_sorted(entries.begin(), entries.end())) std::sort(entries.begin(), entries.end());
  return entries;
}

// Numbers operations per comm; collectives and P2P apart.
class Indexer {
 public:
  explicit Indexer(const Trace& trace) : next_(2 * (trace.comms.size() + 1)) {}
  uint32_t next(uint32_t comm, bool p2p) {
    size_t slot = comm == kNoRow ? next_.size() / 2 - 1 : comm;
    return next_[2 * slot + p2p]++;
  }

 private:
  std::vector<uint32_t> next_;
};

// The user's function and type with NCCL's choice of algorithm: NCCL reports AllGather and Broadcast as
// bytes.
class Shapes {
 public:
  explicit Shapes(Trace& trace) : trace_(trace) {}

  uint32_t combined(uint32_t call_shape, uint32_t task_shape) {
    // The call knows the type that was asked for, the task what NCCL made of it.
    if (trace_.shapes.datatype[call_shape] == trace_.shapes.datatype[task_shape]) return task_shape;
    auto [at, is_new] = combined_.try_emplace(uint64_t{call_shape} << 32 | task_shape, kNoRow);
    if (is_new) {
      model::Shape shape = trace_.shapes.row(task_shape);
      shape.datatype = trace_.shapes.datatype[call_shape];
      at->second = trace_.intern_shape(shape);
    }
    return at->second;
  }
  uint64_t bytes(uint32_t shape, uint64_t count) {
    while (element_sizes_.size() <= shape) {
      element_sizes_.push_back(
          model::element_size(trace_.strings[trace_.shapes.datatype[element_sizes_.size()]]));
    }
    uint64_t bytes = 0;
    // A count of a damaged file: the largest number, and it is counted, so that no sum looks right by chance.
    if (!__builtin_mul_overflow(count, uint64_t{element_sizes_[shape]}, &bytes)) return bytes;
    ++overflows_;
    return UINT64_MAX;
  }
  uint64_t overflows() const { return overflows_; }

 private:
  Trace& trace_;
  std::unordered_map<uint64_t, uint32_t> combined_;
  std::vector<uint32_t> element_sizes_;  // by shape
  uint64_t overflows_ = 0;
};

class Assembler {
 public:
  explicit Assembler(Trace& trace)
      : trace_(trace),
        launches_(trace),
        gpu_times_(trace, launches_),
        works_(trace),
        device_comms_(trace),
        kernels_(trace, launches_, device_comms_, works_),
        replays_(trace, device_comms_, works_),
        copies_(trace),
        indexer_(trace),
        shapes_(trace) {}

  void run() {
    find_contradiction();
    std::vector<Entry> entries = list_entries(trace_, replays_);
    trace_.ops.reserve(entries.size());
    op_of_task_.assign(trace_.splits.size() == 0 ? 0 : trace_.tasks.size(), kNoRow);
    for (const Entry& entry : entries) add(entry);
    for (size_t i = 0; i < trace_.splits.size(); ++i) {
      const uint32_t task = trace_.splits.task[i];
      trace_.splits.op[i] = task < op_of_task_.size() ? op_of_task_[task] : kNoRow;
    }
    lose(
        trace_, "op_without_kernel", without_kernel_,
        "launched operations without a known kernel, though others have one: their GPU times are not the kernel's");
    lose(trace_, "clamped_bytes", shapes_.overflows(), "operations of more than 2^64 bytes");
  }

 private:
  void add(const Entry& entry) {
    model::Op op{};
    op.task = entry.task;
    op.call = entry.call;
    op.group = kNoRow;
    op.seq = model::kNoSeq;
    op.peer = -1;
    op.gpu_error_ns = -1;
    if (entry.task != kNoRow) take_task(op);
    if (entry.call != kNoRow) take_call(op);
    if (entry.replay != kNoRow)
      take_replay(op, replays_.operations()[entry.replay]);
    else
      take_kernels(op);
    op.bytes = shapes_.bytes(op.shape, op.count);
    bool p2p = is_kind(op.kind, EventKind::kP2p) || is_kind(op.kind, EventKind::kP2pApi) ||
               (is_kind(op.kind, EventKind::kApiOp) && op.peer >= 0);
    // The number by which ranks are matched (docs/decisions/0006): given in the order of calls, collectives
    // apart.
    op.index = entry.is_numbered ? indexer_.next(op.comm, p2p) : model::kNoIndex;
    if (op.task < op_of_task_.size()) op_of_task_[op.task] = static_cast<uint32_t>(trace_.ops.size());
    if (!is_kind(op.kind, EventKind::kApiOp)) count_elements(op);
    trace_.ops.append(op);
  }

  // A kernel that begins before it was launched shows how far the clocks are apart, on its device and about
  // then: one bad record says nothing of a whole run.
  void find_contradiction() {
    const model::KernelTable& kernels = trace_.kernels;
    uint64_t count = 0;
    for (uint32_t row = 0; row < kernels.size(); ++row) {
      if (kernels.launch[row] == kNoRow) continue;
      const int64_t early = trace_.launches.start_ns[kernels.launch[row]] - kernels.start_ns[row];
      // No kernel begins before its launch: what looks so is an error of the GPU's times.
      if (early <= 0) continue;
      ++count;
      int64_t& most = early_ns_[window_of(row)];
      most = std::max(most, early);
    }
    lose(
        trace_, "kernel_before_launch", count,
        "kernels that begin before the call that launched them: GPU times of their device are uncertain by as much, for up to two seconds around them");
  }

  using Window = std::pair<int32_t, int64_t>;  // a second of a device
  Window window_of(uint32_t kernel) const {
    constexpr int64_t kWindowNs = 1'000'000'000;
    return {trace_.kernels.gpu[kernel], trace_.kernels.start_ns[kernel] / kWindowNs};
  }
  bool is_amd(uint32_t process) const {
    return process < trace_.processes.size() &&
           trace_.processes.gpu_clock[process] == static_cast<uint8_t>(model::GpuClock::kAmdTicks);
  }
  int32_t error_of(uint32_t kernel) const {
    const auto [gpu, second] = window_of(kernel);
    int64_t most = 0;
    // Windows are cut by the clock, so a kernel at the border looks at both neighbours.
    for (auto at = early_ns_.lower_bound({gpu, second - 1});
         at != early_ns_.end() && at->first <= Window(gpu, second + 1); ++at)
      most = std::max(most, at->second);
    return static_cast<int32_t>(std::min<int64_t>(most, INT32_MAX));
  }

  void take_kernel(model::Op& op, uint32_t kernel) {
    model::KernelTable& kernels = trace_.kernels;
    const auto source =
        static_cast<uint8_t>(is_amd(kernels.process[kernel]) ? GpuTimeSource::kHsa : GpuTimeSource::kCupti);
    const bool is_first = op.gpu_source != source;
    op.gpu_start_ns =
        is_first ? kernels.start_ns[kernel] : std::min(op.gpu_start_ns, kernels.start_ns[kernel]);
    op.gpu_end_ns = is_first ? kernels.end_ns[kernel] : std::max(op.gpu_end_ns, kernels.end_ns[kernel]);
    op.gpu_source = source;
    op.gpu_error_ns = is_first ? error_of(kernel) : std::max(op.gpu_error_ns, error_of(kernel));
    op.stream = kernels.stream[kernel];
    // One kernel may be many operations, as a group of sends is: it names the first.
    if (kernels.op[kernel] == kNoRow) kernels.op[kernel] = static_cast<uint32_t>(trace_.ops.size());
  }

  void take_kernels(model::Op& op) {
    const std::span<const uint32_t> own = kernels_.of(op.task, op.call);
    for (const uint32_t kernel : own) take_kernel(op, kernel);
    // Versions 1 to 4 of the profiler's API report no launches: the kernel's own is all there is.
    if (!own.empty() && op.launched_ns == 0 && trace_.kernels.launch[own[0]] != kNoRow)
      op.launched_ns = trace_.launches.start_ns[trace_.kernels.launch[own[0]]];
    if (is_kind(op.kind, EventKind::kCeColl)) {
      for (const uint32_t copy : copies_.of(op.task)) take_kernel(op, copy);
    }
    const uint32_t replayed = op.task == kNoRow ? kNoRow : replays_.kernel_of(op.task);
    if (replayed != kNoRow) {
      take_kernel(op, replayed);
      const uint32_t launch = trace_.kernels.launch[replayed];
      if (launch != kNoRow) op.launched_ns = trace_.launches.start_ns[launch];
    }
    // Where kernels are recorded at all, one that is missing is said; a capture has none.
    without_kernel_ += kernels_.any() && own.empty() && replayed == kNoRow && op.launched_ns != 0 &&
                       (op.flags & model::kFlagGraphCaptured) == 0;
  }

  // It was enqueued by the launch of its graph. NCCL's number is that of the capture in all replays.
  void take_replay(model::Op& op, const GraphReplays::Replay& replay) {
    op.enqueued_ns = op.launched_ns = replay.launched_ns;
    op.seq = model::kNoSeq;
    take_kernel(op, replay.kernel);
  }

  void take_task(model::Op& op) {
    const model::TaskTable& tasks = trace_.tasks;
    uint32_t task = op.task;
    op.process = tasks.process[task];
    op.comm = tasks.comm[task];
    op.kind = tasks.kind[task];
    op.flags = tasks.flags[task];
    op.shape = tasks.shape[task];
    // That of a CeColl counts other things than operations of its function.
    if (!is_kind(op.kind, EventKind::kP2p) && !is_kind(op.kind, EventKind::kCeColl)) op.seq = tasks.seq[task];
    op.count = tasks.count[task];
    op.peer = tasks.peer[task];
    op.channels = tasks.channels[task];
    op.stream = tasks.stream[task];
    op.thread = tasks.thread[task];
    op.enqueued_ns = tasks.start_ns[task];
    op.launched_ns = launches_.launched_ns(task);
    if (is_kind(op.kind, EventKind::kApiOp)) {
      op.in_count = tasks.count[task];
      op.out_count = tasks.out_count[task];
      op.called_ns = tasks.start_ns[task];
      if ((op.flags & model::kFlagGpuTimes) == 0) return;
      op.gpu_start_ns = tasks.gpu_start_ns[task];
      op.gpu_end_ns = tasks.gpu_end_ns[task];
      op.gpu_source = static_cast<uint8_t>(GpuTimeSource::kApi);
      return;
    }
    GpuTimes::Times times = gpu_times_.of_task(task);
    // Where a kernel is known to be the operation's, its times replace these afterwards.
    if (times.start_ns == 0) return;
    op.gpu_start_ns = times.start_ns;
    op.gpu_end_ns = times.end_ns;
    op.gpu_error_ns = times.error_ns;
    op.gpu_source = static_cast<uint8_t>(GpuTimeSource::kKernelCh);
  }

  // NCCL's callers name the part of one rank.
  void count_elements(model::Op& op) {
    if (op.shape >= trace_.shapes.size()) return;
    const int32_t ranks = op.comm < trace_.comms.size() ? trace_.comms.ranks[op.comm] : -1;
    const model::Elements elements =
        model::elements_of(trace_.strings[trace_.shapes.func[op.shape]], op.count, ranks);
    op.in_count = elements.in;
    op.out_count = elements.out;
  }

  void take_call(model::Op& op) {
    const model::CallTable& calls = trace_.calls;
    uint32_t call = op.call;
    if (op.task == kNoRow) {
      op.process = calls.process[call];
      op.comm = calls.comm[call];
      op.kind = calls.kind[call];
      op.shape = calls.shape[call];
    } else {
      op.shape = shapes_.combined(calls.shape[call], op.shape);
    }
    op.flags |= calls.flags[call];
    op.count = calls.count[call];
    if (op.stream == 0) op.stream = calls.stream[call];
    op.thread = calls.thread[call];
    op.group = calls.parent[call];
    op.called_ns = calls.start_ns[call];
  }

  Trace& trace_;
  Launches launches_;
  GpuTimes gpu_times_;
  KernelWorks works_;
  DeviceComms device_comms_;
  KernelJoin kernels_;
  GraphReplays replays_;
  CopyJoin copies_;
  Indexer indexer_;
  Shapes shapes_;
  std::vector<uint32_t> op_of_task_;    // where split lists name tasks; else empty
  std::map<Window, int64_t> early_ns_;  // by how much kernels began before their launch, at most
  uint64_t without_kernel_ = 0;
};

}  // namespace

Result<void> assemble(Trace& trace) {
  if (trace.ops.size() != 0) return Error{ErrorCode::kInvalidInput, "the trace has operations already", {}};
  Assembler(trace).run();
  return {};
}

}  // namespace lockstep::job::assemble
