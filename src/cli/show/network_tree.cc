// SPDX-License-Identifier: Apache-2.0
// The network's part of the tree: proxy operations by peer and direction, their steps, and the network
// plugin's events. A large operation has a proxy operation per channel and many steps in each. A folded node
// therefore sums what its steps waited for, which says whether GPU, peer, wire or flush was slow.
#include "cli/show/network_tree.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/text/units.h"
#include "cli/show/event_nodes.h"
#include "model/event_kind.h"

namespace lockstep::cli::show {
namespace {

using model::EventKind;
using model::kNoRow;

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

class Network {
 public:
  Network(const model::Trace& trace, const std::vector<uint32_t>& proxy_ops, size_t most)
      : trace_(trace), most_(most) {
    // One pass over each table builds the lists for all nodes.
    std::vector<bool> is_wanted(trace.proxy_ops.size());
    for (uint32_t row : proxy_ops) is_wanted[row] = true;
    for (uint32_t step = 0; step < trace.proxy_steps.size(); ++step) {
      const uint32_t proxy_op = trace.proxy_steps.proxy_op[step];
      // A step whose proxy operation is unknown has kNoRow, which is beyond the end.
      if (proxy_op < is_wanted.size() && is_wanted[proxy_op]) steps_[proxy_op].push_back(step);
    }
    for (uint32_t event = 0; event < trace.net_events.size() && !steps_.empty(); ++event) {
      const uint32_t step = trace.net_events.proxy_step[event];
      if (step < trace.proxy_steps.size() && steps_.contains(trace.proxy_steps.proxy_op[step]))
        net_events_[step].push_back(event);
    }
  }

  std::vector<EventNode> build(const std::vector<uint32_t>& proxy_ops) {
    std::vector<EventNode> made;
    const model::ProxyOpTable& ops = trace_.proxy_ops;
    // Channels to one peer in one direction do the same work, so they may fold together; others may not.
    std::map<std::tuple<int32_t, bool>, std::vector<uint32_t>> lanes;  // by peer and direction
    for (uint32_t row : proxy_ops) lanes[{ops.peer[row], ops.is_send[row] != 0}].push_back(row);
    for (const auto& [lane, rows] : lanes) {
      if (rows.size() <= most_) {
        for (uint32_t row : rows) made.push_back(proxy_op_node({row}));
        continue;
      }
      std::vector<uint32_t> ended;
      size_t alone = 0;
      for (uint32_t row : rows) {
        // What never ended is what a hang is looked at for, so it keeps its own node.
        if (ops.end_ns[row] == 0 && alone < most_) {
          made.push_back(proxy_op_node({row}));
          ++alone;
        } else {
          ended.push_back(row);
        }
      }
      if (!ended.empty()) made.push_back(proxy_op_node(ended));
    }
    return made;
  }

 private:
  // Of one proxy operation, or of several with one peer and direction.
  EventNode proxy_op_node(const std::vector<uint32_t>& rows) {
    const model::ProxyOpTable& ops = trace_.proxy_ops;
    const uint32_t first = rows.front();
    const bool is_send = ops.is_send[first] != 0;
    EventNode made = event_node(trace_, number(EventKind::kProxyOp), ops.thread[first], 0, 0);
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
    if (rows.size() == 1) add_state(made, "in progress", ops.progress_ns[first]);
    add_steps(made, steps, is_send);
    return made;
  }

  void add_steps(EventNode& into, const std::vector<uint32_t>& steps, bool is_send) {
    const model::ProxyStepTable& table = trace_.proxy_steps;
    std::vector<uint32_t> folded;
    size_t alone = 0;
    for (uint32_t step : steps) {
      // Steps that all fit are all shown; else `alone` counts the open ones that are.
      const bool shown = steps.size() <= most_ || (table.end_ns[step] == 0 && alone++ < most_);
      if (shown)
        into.children.push_back(step_node(step));
      else
        folded.push_back(step);
    }
    if (folded.empty()) return;
    EventNode all = event_node(trace_, number(EventKind::kProxyStep), kNoRow, 0, 0);
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
    return table.end_ns[step] == 0 || table.start_ns[step] == 0 ? 0
                                                                : table.end_ns[step] - table.start_ns[step];
  }
  // Where the time of a step goes: see docs/nccl-events.md.
  void add_waits(uint32_t step, Waits& waits) const {
    const model::ProxyStepTable& table = trace_.proxy_steps;
    auto between = [](int64_t from, int64_t until) { return from != 0 && until > from ? until - from : 0; };
    waits.bytes += table.bytes[step];
    waits.restarts += table.restarts[step];
    // The same column holds another state of a receive than of a send.
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
    EventNode made =
        event_node(trace_, number(EventKind::kProxyStep), kNoRow, table.start_ns[step], table.end_ns[step]);
    made.detail = "step " + std::to_string(table.step[step]) + ", " + format_bytes(table.bytes[step]);
    add_state(made, is_send ? "waits for the GPU" : "posted", table.wait1_ns[step]);
    add_state(made, is_send ? "waits for the peer" : "received", table.wait2_ns[step]);
    add_state(made, is_send ? "sent" : "flushed, waits for the GPU", table.wait3_ns[step]);
    std::vector<EventNode> below;
    if (const auto found = net_events_.find(step); found != net_events_.end()) {
      const model::NetEventTable& events = trace_.net_events;
      for (uint32_t event : found->second) {
        below.push_back(event_node(trace_, number(EventKind::kNetPlugin), events.thread[event],
                                   events.start_ns[event], events.end_ns[event]));
        below.back().detail = format_bytes(events.bytes[event]);
      }
    }
    add_folded(made, std::move(below), most_);
    return made;
  }

  const model::Trace& trace_;
  const size_t most_;
  std::map<uint32_t, std::vector<uint32_t>> steps_;       // of the operation's proxy operations
  std::map<uint32_t, std::vector<uint32_t>> net_events_;  // of those steps
};

}  // namespace

std::vector<EventNode> network_tree(const model::Trace& trace, const std::vector<uint32_t>& proxy_ops,
                                    size_t most) {
  if (proxy_ops.empty()) return {};
  return Network(trace, proxy_ops, most).build(proxy_ops);
}

}  // namespace lockstep::cli::show
