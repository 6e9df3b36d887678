// SPDX-License-Identifier: Apache-2.0
// Puts the events of one operation together as NCCL nests them: the calls around it, its plan and task, then
// what the GPU ran. Rows name their parents since assembly, so nothing is guessed here; only the launch has
// to be found by its time. Each kind of child is one pass over its table. An index by task would cost more
// than one operation is worth.
#include "cli/show/event_tree.h"

#include <algorithm>

#include "base/text/units.h"
#include "cli/show/event_nodes.h"
#include "cli/show/network_tree.h"
#include "model/event_kind.h"

namespace lockstep::cli::show {
namespace {

using model::EventKind;
using model::kNoRow;

class Builder {
 public:
  Builder(const model::Trace& trace, uint32_t op, size_t most)
      : trace_(trace), op_(op), task_(trace.ops.task[op]), most_(most) {}

  // In the order of time: the host calls, NCCL enqueues, the GPU runs.
  std::vector<EventNode> build() {
    std::vector<EventNode> roots;
    add_calls(roots);
    if (task_ != kNoRow) add_task(roots);
    add_kernels(roots);
    return roots;
  }

 private:
  EventNode call_node(uint32_t call) const {
    const model::CallTable& calls = trace_.calls;
    EventNode made =
        event_node(trace_, calls.kind[call], calls.thread[call], calls.start_ns[call], calls.end_ns[call]);
    // `count` and `depth` mean something else for each kind: see model/tables/call.def.
    if (calls.kind[call] == number(EventKind::kGroupApi)) {
      made.detail = "depth " + std::to_string(calls.depth[call]);
      add_state(made, "group start done", calls.group_start_ns[call]);
      add_state(made, "group end begins", calls.group_end_ns[call]);
    } else if (calls.kind[call] == number(EventKind::kCeSync)) {
      made.detail = plural(calls.count[call], "rank");
    } else if (calls.kind[call] == number(EventKind::kCeBatch)) {
      made.detail = std::to_string(calls.depth[call]) + " copies, " + format_bytes(calls.count[call]);
    } else if (calls.shape[call] < trace_.shapes.size()) {
      made.detail = std::string(trace_.strings[trace_.shapes.func[calls.shape[call]]]) + ", " +
                    plural(calls.count[call], "element") + " of " +
                    std::string(trace_.strings[trace_.shapes.datatype[calls.shape[call]]]);
    }
    if ((calls.flags[call] & model::kFlagGraphCaptured) != 0)
      made.detail = comma(made.detail, "captured into a graph");
    return made;
  }

  void add_calls(std::vector<EventNode>& roots) const {
    const uint32_t group = trace_.ops.group[op_], call = trace_.ops.call[op_];
    std::vector<EventNode> inside;
    if (call < trace_.calls.size()) inside.push_back(call_node(call));
    if (const uint32_t launch = find_launch(); launch != kNoRow) inside.push_back(call_node(launch));
    if (group < trace_.calls.size()) {
      EventNode outside = call_node(group);
      outside.children = std::move(inside);
      inside.clear();
      inside.push_back(std::move(outside));
    }
    for (EventNode& made : inside) roots.push_back(std::move(made));
  }
  // The launch that assemble found, by its time.
  uint32_t find_launch() const {
    // An operation keeps the time of its launch and not its row.
    const int64_t launched_ns = trace_.ops.launched_ns[op_];
    if (launched_ns == 0) return kNoRow;
    for (uint32_t call = 0; call < trace_.calls.size(); ++call) {
      if (trace_.calls.kind[call] == number(EventKind::kKernelLaunch) &&
          trace_.calls.start_ns[call] == launched_ns && trace_.calls.comm[call] == trace_.ops.comm[op_])
        return call;
    }
    return kNoRow;
  }

  void add_task(std::vector<EventNode>& roots) {
    const model::TaskTable& tasks = trace_.tasks;
    EventNode made = event_node(trace_, tasks.kind[task_], tasks.thread[task_], tasks.start_ns[task_],
                                tasks.end_ns[task_]);
    made.detail = task_detail();
    add_copy_engines(made);
    add_channels(made);
    // Only what this process drove itself; add_foreign_network() adds the rest (PXN).
    std::vector<uint32_t> proxy_ops;
    for (uint32_t row = 0; row < trace_.proxy_ops.size(); ++row) {
      if (trace_.proxy_ops.task[row] == task_) proxy_ops.push_back(row);
    }
    for (EventNode& network : network_tree(trace_, proxy_ops, most_))
      made.children.push_back(std::move(network));
    const uint32_t plan = tasks.plan[task_];
    if (plan < trace_.calls.size()) {
      EventNode outside = call_node(plan);
      const auto all_plans = tasks.all(&model::TaskTable::plan);
      const auto fused = static_cast<uint64_t>(std::count(all_plans.begin(), all_plans.end(), plan));
      // Operations of one plan share one kernel and its times, which the reader has to know.
      if (fused > 1) outside.detail = comma(outside.detail, plural(fused, "operation") + " in this plan");
      outside.children.push_back(std::move(made));
      made = std::move(outside);
    }
    roots.push_back(std::move(made));
  }
  std::string task_detail() const {
    const model::TaskTable& tasks = trace_.tasks;
    std::string text;
    if (const uint32_t shape = tasks.shape[task_]; shape < trace_.shapes.size()) {
      text = trace_.strings[trace_.shapes.algo[shape]];
      const std::string proto(trace_.strings[trace_.shapes.proto[shape]]);
      if (!proto.empty()) text += (text.empty() ? "" : " ") + proto;
    }
    if (tasks.peer[task_] >= 0) text = comma(text, "peer " + std::to_string(tasks.peer[task_]));
    if (tasks.channels[task_] > 0) text = comma(text, plural(tasks.channels[task_], "channel"));
    if (tasks.warps[task_] > 0) text = comma(text, plural(tasks.warps[task_], "warp"));
    if (trace_.ops.seq[op_] != model::kNoSeq)
      text = comma(text, "seq " + std::to_string(trace_.ops.seq[op_]));
    return text;
  }

  void add_copy_engines(EventNode& into) const {
    std::vector<EventNode> syncs, batches;
    for (uint32_t call = 0; call < trace_.calls.size(); ++call) {
      if (trace_.calls.parent[call] != task_) continue;
      if (trace_.calls.kind[call] == number(EventKind::kCeSync)) syncs.push_back(call_node(call));
      if (trace_.calls.kind[call] == number(EventKind::kCeBatch)) batches.push_back(call_node(call));
    }
    add_folded(into, std::move(syncs), most_);
    add_folded(into, std::move(batches), most_);
  }

  void add_channels(EventNode& into) const {
    const model::ChannelTable& channels = trace_.channels;
    std::vector<EventNode> works, phases;
    for (uint32_t row = 0; row < channels.size(); ++row) {
      if (channels.task[row] != task_) continue;
      const bool phase = channels.kind[row] == number(EventKind::kKernelPhase);
      EventNode made = event_node(trace_, channels.kind[row], channels.thread[row],
                                  channels.start_seen_ns[row], channels.stop_seen_ns[row]);
      made.detail = "channel " + std::to_string(channels.channel[row]);
      if (phase) made.detail += ", phase " + std::to_string(channels.phase[row]);
      // Only NVIDIA's clock (1) counts ns; AMD's ticks have no known length here.
      if (channels.gpu_stop[row] > channels.gpu_start[row] && trace_.processes.gpu_clock[0] == 1)
        made.detail +=
            ", " + format_duration(static_cast<double>(channels.gpu_stop[row] - channels.gpu_start[row])) +
            " by the GPU's clock";
      (phase ? phases : works).push_back(std::move(made));
    }
    // Apart, since a folded node stands for events of one kind.
    add_folded(into, std::move(works), most_);
    add_folded(into, std::move(phases), most_);
  }

  void add_kernels(std::vector<EventNode>& roots) const {
    const model::KernelTable& kernels = trace_.kernels;
    EventNode all;
    for (uint32_t row = 0; row < kernels.size(); ++row) {
      if (!is_of_operation(kernels.op[row])) continue;
      // Kind 0 is none: these are records of the GPU driver's tools and not events of NCCL's profiler.
      EventNode made = event_node(trace_, 0, kNoRow, kernels.start_ns[row], kernels.end_ns[row]);
      made.event =
          kernels.kind[row] == static_cast<uint8_t>(model::KernelKind::kCopy) ? "GPU copy" : "GPU kernel";
      made.detail = trace_.strings[kernels.name[row]];
      if (kernels.graph[row] != 0) made.detail += ", graph " + std::to_string(kernels.graph[row]);
      all.children.push_back(std::move(made));
    }
    EventNode folded;
    add_folded(folded, std::move(all.children), most_);
    for (EventNode& made : folded.children) roots.push_back(std::move(made));
  }

  // A plan is one kernel, which stands with the first of its operations. Replays of a graph may share the
  // task of the capture; launches tell them apart.
  bool is_of_operation(uint32_t op) const {
    if (op == op_ || task_ == kNoRow || op >= trace_.ops.size()) return op == op_;
    const bool is_captured = (trace_.ops.flags[op_] & model::kFlagGraphCaptured) != 0;
    if (is_captured && trace_.ops.launched_ns[op] != trace_.ops.launched_ns[op_]) return false;
    const uint32_t plan = trace_.tasks.plan[task_], other = trace_.ops.task[op];
    return plan != kNoRow && other < trace_.tasks.size() && trace_.tasks.plan[other] == plan;
  }

  const model::Trace& trace_;
  const uint32_t op_, task_;
  const size_t most_;
};

}  // namespace

std::vector<EventNode> event_tree(const model::Trace& trace, uint32_t op, size_t most) {
  return Builder(trace, op, most).build();
}

}  // namespace lockstep::cli::show
