// SPDX-License-Identifier: Apache-2.0
#include "cli/show/event_tree.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/text/units.h"
#include "model/event_kind.h"

namespace lockstep::cli::show {
namespace {

using model::EventKind;
using model::kNoRow;

std::string comma(const std::string& text, const std::string& more) {
  if (text.empty() || more.empty()) return text + more;
  return text + ", " + more;
}

// What the transfers of a proxy operation waited for, in ns.
struct Waits {
  int64_t gpu = 0, peer = 0, wire = 0, flush = 0;
  uint64_t bytes = 0, restarts = 0;

  std::string text(bool is_send) const {
    auto part = [](int64_t ns, const char* name) {
      return ns > 0 ? std::string(name) + " " + format_duration(static_cast<double>(ns)) : std::string();
    };
    std::string waits = comma(part(gpu, "GPU"), part(peer, "peer"));
    waits = comma(waits, part(wire, is_send ? "wire" : "sender"));
    waits = comma(waits, part(flush, "flush"));
    std::string text = format_bytes(bytes) + " in all";
    if (!waits.empty()) text += "; waits: " + waits;
    if (restarts > 0) text += "; " + plural(restarts, "restart");
    return text;
  }
};

class Builder {
 public:
  Builder(const model::Trace& trace, uint32_t op, size_t most)
      : trace_(trace), op_(op), task_(trace.ops.task[op]), most_(most) {
    for (uint32_t step = 0; step < trace.proxy_steps.size() && task_ != kNoRow; ++step) {
      const uint32_t proxy_op = trace.proxy_steps.proxy_op[step];
      if (proxy_op < trace.proxy_ops.size() && trace.proxy_ops.task[proxy_op] == task_)
        steps_[proxy_op].push_back(step);
    }
    for (uint32_t event = 0; event < trace.net_events.size() && !steps_.empty(); ++event) {
      const uint32_t step = trace.net_events.proxy_step[event];
      if (step < trace.proxy_steps.size() && steps_.contains(trace.proxy_steps.proxy_op[step]))
        net_events_[step].push_back(event);
    }
  }

  std::vector<EventNode> build() {
    std::vector<EventNode> roots;
    add_calls(roots);
    if (task_ != kNoRow) add_task(roots);
    add_kernels(roots);
    return roots;
  }

 private:
  EventNode node(uint8_t kind, uint32_t thread, int64_t begin_ns, int64_t end_ns) const {
    EventNode made;
    made.event = model::event_name(kind);
    if (thread < trace_.threads.size()) {
      made.tid = trace_.threads.tid[thread];
      made.thread = trace_.strings[trace_.threads.name[thread]];
    }
    made.begin_ns = begin_ns;
    made.end_ns = end_ns;
    made.open = end_ns == 0;
    return made;
  }

  // The two that follow add to `into` if the row is there.
  static void add_state(EventNode& into, const char* name, int64_t ns) {
    if (ns != 0) into.states.push_back({name, ns});
  }
  EventNode call_node(uint32_t call) const {
    const model::CallTable& calls = trace_.calls;
    EventNode made = node(calls.kind[call], calls.thread[call], calls.start_ns[call], calls.end_ns[call]);
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
    EventNode made = node(tasks.kind[task_], tasks.thread[task_], tasks.start_ns[task_], tasks.end_ns[task_]);
    made.detail = task_detail();
    add_copy_engines(made);
    add_channels(made);
    add_proxy_ops(made);
    const uint32_t plan = tasks.plan[task_];
    if (plan < trace_.calls.size()) {
      EventNode outside = call_node(plan);
      const auto all_plans = tasks.all(&model::TaskTable::plan);
      const auto fused = static_cast<uint64_t>(std::count(all_plans.begin(), all_plans.end(), plan));
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
    add_folded(into, std::move(syncs));
    add_folded(into, std::move(batches));
  }

  void add_channels(EventNode& into) const {
    const model::ChannelTable& channels = trace_.channels;
    std::vector<EventNode> works, phases;
    for (uint32_t row = 0; row < channels.size(); ++row) {
      if (channels.task[row] != task_) continue;
      const bool phase = channels.kind[row] == number(EventKind::kKernelPhase);
      EventNode made = node(channels.kind[row], channels.thread[row], channels.start_seen_ns[row],
                            channels.stop_seen_ns[row]);
      made.detail = "channel " + std::to_string(channels.channel[row]);
      if (phase) made.detail += ", phase " + std::to_string(channels.phase[row]);
      if (channels.gpu_stop[row] > channels.gpu_start[row] && trace_.processes.gpu_clock[0] == 1)
        made.detail +=
            ", " + format_duration(static_cast<double>(channels.gpu_stop[row] - channels.gpu_start[row])) +
            " by the GPU's clock";
      (phase ? phases : works).push_back(std::move(made));
    }
    add_folded(into, std::move(works));
    add_folded(into, std::move(phases));
  }

  void add_proxy_ops(EventNode& into) {
    const model::ProxyOpTable& ops = trace_.proxy_ops;
    std::map<std::tuple<int32_t, bool>, std::vector<uint32_t>> lanes;  // by peer and direction
    for (uint32_t row = 0; row < ops.size(); ++row) {
      if (ops.task[row] == task_) lanes[{ops.peer[row], ops.is_send[row] != 0}].push_back(row);
    }
    for (const auto& [lane, rows] : lanes) {
      if (rows.size() <= most_) {
        for (uint32_t row : rows) into.children.push_back(proxy_op_node({row}));
        continue;
      }
      std::vector<uint32_t> ended;
      size_t alone = 0;
      for (uint32_t row : rows) {
        if (ops.end_ns[row] == 0 && alone < most_) {
          into.children.push_back(proxy_op_node({row}));
          ++alone;
        } else {
          ended.push_back(row);
        }
      }
      if (!ended.empty()) into.children.push_back(proxy_op_node(ended));
    }
  }

  // Of one proxy operation, or of several with one peer and direction.
  EventNode proxy_op_node(const std::vector<uint32_t>& rows) {
    const model::ProxyOpTable& ops = trace_.proxy_ops;
    const uint32_t first = rows.front();
    const bool is_send = ops.is_send[first] != 0;
    EventNode made = node(number(EventKind::kProxyOp), ops.thread[first], 0, 0);
    made.count = rows.size();
    made.open = 0;
    std::vector<uint32_t> steps;
    int64_t announced = 0;
    for (uint32_t row : rows) {
      widen(made, ops.start_ns[row], ops.end_ns[row]);
      announced += ops.steps[row];
      const auto found = steps_.find(row);
      if (found != steps_.end()) steps.insert(steps.end(), found->second.begin(), found->second.end());
    }
    made.detail = (is_send ? "send to " : "receive from ") + std::to_string(ops.peer[first]) + ", ";
    made.detail +=
        rows.size() == 1 ? "channel " + std::to_string(ops.channel[first]) : plural(rows.size(), "channel");
    made.detail += ", " + format_count(steps.size()) + " of " +
                   plural(static_cast<uint64_t>(std::max<int64_t>(announced, 0)), "step");
    if (rows.size() == 1) {
      if (trace_.processes.pid[0] != ops.originator_pid[first])
        made.detail += ", for pid " + std::to_string(ops.originator_pid[first]);
      add_state(made, "in progress", ops.progress_ns[first]);
    }
    add_steps(made, steps, is_send);
    return made;
  }

  void add_steps(EventNode& into, const std::vector<uint32_t>& steps, bool is_send) {
    const model::ProxyStepTable& table = trace_.proxy_steps;
    std::vector<uint32_t> folded;
    size_t alone = 0;
    for (uint32_t step : steps) {
      const bool shown = steps.size() <= most_ || (table.end_ns[step] == 0 && alone++ < most_);
      if (shown)
        into.children.push_back(step_node(step));
      else
        folded.push_back(step);
    }
    if (folded.empty()) return;
    EventNode all = node(number(EventKind::kProxyStep), kNoRow, 0, 0);
    all.count = folded.size();
    all.open = 0;
    Waits waits;
    uint32_t longest = folded.front();
    uint64_t net_events = 0;
    for (uint32_t step : folded) {
      widen(all, table.start_ns[step], table.end_ns[step]);
      add_waits(step, waits);
      if (length_ns(step) > length_ns(longest)) longest = step;
      if (const auto found = net_events_.find(step); found != net_events_.end())
        net_events += found->second.size();
    }
    all.detail = waits.text(is_send) + "; longest step " + std::to_string(table.step[longest]) + ", " +
                 format_duration(static_cast<double>(length_ns(longest)));
    if (net_events > 0) all.detail += "; " + plural(net_events, "NetPlugin event");
    into.children.push_back(std::move(all));
  }

  int64_t length_ns(uint32_t step) const {
    const model::ProxyStepTable& table = trace_.proxy_steps;
    return table.end_ns[step] == 0 ? 0 : table.end_ns[step] - table.start_ns[step];
  }
  // Where the time of a step goes: see docs/nccl-events.md.
  void add_waits(uint32_t step, Waits& waits) const {
    const model::ProxyStepTable& table = trace_.proxy_steps;
    auto between = [](int64_t from, int64_t until) { return from != 0 && until > from ? until - from : 0; };
    waits.bytes += table.bytes[step];
    waits.restarts += table.restarts[step];
    if (table.is_send[step] != 0) {
      waits.gpu += between(table.wait1_ns[step], table.wait2_ns[step]);
      waits.peer += between(table.wait2_ns[step], table.wait3_ns[step]);
      waits.wire += between(table.wait3_ns[step], table.end_ns[step]);
    } else {
      waits.wire += between(table.wait1_ns[step], table.wait2_ns[step]);
      waits.flush += between(table.wait2_ns[step], table.wait3_ns[step]);
      waits.gpu += between(table.wait3_ns[step], table.end_ns[step]);
    }
  }
  EventNode step_node(uint32_t step) const {
    const model::ProxyStepTable& table = trace_.proxy_steps;
    const bool is_send = table.is_send[step] != 0;
    EventNode made = node(number(EventKind::kProxyStep), kNoRow, table.start_ns[step], table.end_ns[step]);
    made.detail = "step " + std::to_string(table.step[step]) + ", " + format_bytes(table.bytes[step]);
    add_state(made, is_send ? "waits for the GPU" : "posted", table.wait1_ns[step]);
    add_state(made, is_send ? "waits for the peer" : "received", table.wait2_ns[step]);
    add_state(made, is_send ? "sent" : "flushed, waits for the GPU", table.wait3_ns[step]);
    std::vector<EventNode> below;
    if (const auto found = net_events_.find(step); found != net_events_.end()) {
      const model::NetEventTable& events = trace_.net_events;
      for (uint32_t event : found->second) {
        below.push_back(node(number(EventKind::kNetPlugin), events.thread[event], events.start_ns[event],
                             events.end_ns[event]));
        below.back().detail = format_bytes(events.bytes[event]);
      }
    }
    add_folded(made, std::move(below));
    return made;
  }

  void add_kernels(std::vector<EventNode>& roots) const {
    const model::KernelTable& kernels = trace_.kernels;
    EventNode all;
    for (uint32_t row = 0; row < kernels.size(); ++row) {
      if (!is_of_operation(kernels.op[row])) continue;
      EventNode made = node(0, kNoRow, kernels.start_ns[row], kernels.end_ns[row]);
      made.event =
          kernels.kind[row] == static_cast<uint8_t>(model::KernelKind::kCopy) ? "GPU copy" : "GPU kernel";
      made.detail = trace_.strings[kernels.name[row]];
      if (kernels.graph[row] != 0) made.detail += ", graph " + std::to_string(kernels.graph[row]);
      all.children.push_back(std::move(made));
    }
    EventNode folded;
    add_folded(folded, std::move(all.children));
    for (EventNode& made : folded.children) roots.push_back(std::move(made));
  }

  // A plan is one kernel, which stands with the first of its operations. Replays of a graph may share the task of the
  // capture; launches tell them apart.
  bool is_of_operation(uint32_t op) const {
    if (op == op_ || task_ == kNoRow || op >= trace_.ops.size()) return op == op_;
    const bool is_captured = (trace_.ops.flags[op_] & model::kFlagGraphCaptured) != 0;
    if (is_captured && trace_.ops.launched_ns[op] != trace_.ops.launched_ns[op_]) return false;
    const uint32_t plan = trace_.tasks.plan[task_], other = trace_.ops.task[op];
    return plan != kNoRow && other < trace_.tasks.size() && trace_.tasks.plan[other] == plan;
  }

  static void widen(EventNode& node, int64_t begin_ns, int64_t end_ns) {
    if (node.begin_ns == 0 || begin_ns < node.begin_ns) node.begin_ns = begin_ns;
    node.end_ns = std::max(node.end_ns, end_ns);
    if (end_ns == 0) ++node.open;
  }

  // Siblings of one kind: each by itself, or those that ended as one.
  void add_folded(EventNode& into, std::vector<EventNode> siblings) const {
    if (siblings.size() <= most_) {
      for (EventNode& made : siblings) into.children.push_back(std::move(made));
      return;
    }
    EventNode all;
    all.event = siblings.front().event;
    all.tid = siblings.front().tid;
    all.thread = siblings.front().thread;
    all.count = 0;
    const EventNode* longest = nullptr;
    auto length = [](const EventNode& made) { return made.end_ns == 0 ? 0 : made.end_ns - made.begin_ns; };
    size_t alone = 0;
    for (EventNode& made : siblings) {
      if (made.open > 0 && alone < most_) {
        into.children.push_back(std::move(made));
        ++alone;
        continue;
      }
      ++all.count;
      widen(all, made.begin_ns, made.end_ns);
      if (made.tid != all.tid) all.tid = -1;
      if (longest == nullptr || length(made) > length(*longest)) longest = &made;
    }
    if (longest == nullptr) return;
    all.detail = "longest: " + longest->detail;
    into.children.push_back(std::move(all));
  }

  const model::Trace& trace_;
  const uint32_t op_, task_;
  const size_t most_;
  std::map<uint32_t, std::vector<uint32_t>> steps_;       // of the operation's proxy operations
  std::map<uint32_t, std::vector<uint32_t>> net_events_;  // of those steps
};

}  // namespace

std::vector<EventNode> event_tree(const model::Trace& trace, uint32_t op, size_t most) {
  return Builder(trace, op, most).build();
}

}  // namespace lockstep::cli::show
