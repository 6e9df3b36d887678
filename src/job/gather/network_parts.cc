// SPDX-License-Identifier: Apache-2.0
// Sums the transfers of a process by lane, network device and kind of traffic, so that the job keeps sums and
// not millions of steps. Transfers of one lane overlap, so busy time is the union of their intervals. Each
// flow is cut into parts of equal length, whose scatter later shows how sure its rate is.
#include "job/gather/network_parts.h"

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>

#include "model/event_kind.h"
#include "model/foreign_proxy_op.h"

namespace lockstep::job::gather {
namespace {

using model::NetTransport;
using model::StepWait;
using model::Traffic;

int64_t between(int64_t from, int64_t until) { return from != 0 && until > from ? until - from : 0; }

// Instants between which a step waited, in the order of tables/proxy_step.def. One that was not seen (older
// versions of the interface have fewer states) ends where the next one was.
struct Waits {
  int64_t first, second, third, end;
  Waits(const model::ProxyStepTable& steps, size_t i) : end(steps.end_ns[i]) {
    third = steps.wait3_ns[i] != 0 ? steps.wait3_ns[i] : end;
    second = steps.wait2_ns[i] != 0 ? steps.wait2_ns[i] : third;
    first = steps.wait1_ns[i];
  }
};

NetTransport transport_of(int64_t net_id) {
  constexpr int64_t kIb = 1, kSocket = 2;
  int64_t type = net_id >> 16;
  return type == kIb ? NetTransport::kIb : type == kSocket ? NetTransport::kSocket : NetTransport::kUnknown;
}

StepWait waits_for(const model::ProxyStepTable& steps, size_t i) {
  if (steps.is_send[i]) {
    // The last state that was seen is the one that it stands in.
    if (steps.wait3_ns[i] != 0) return StepWait::kSend;
    if (steps.wait2_ns[i] != 0) return StepWait::kPeer;
    return steps.wait1_ns[i] != 0 ? StepWait::kGpu : StepWait::kPosted;
  }
  if (steps.wait3_ns[i] != 0) return StepWait::kGpu;
  if (steps.wait2_ns[i] != 0) return StepWait::kFlush;
  return steps.wait1_ns[i] != 0 ? StepWait::kReceive : StepWait::kPosted;
}

int64_t newest(const model::ProxyStepTable& steps, size_t i) {
  return std::max(
      {steps.start_ns[i], steps.wait1_ns[i], steps.wait2_ns[i], steps.wait3_ns[i], steps.end_ns[i]});
}

struct Finished {
  uint64_t steps = 0, bytes = 0;
};

// The steps of each proxy operation that came to an end.
std::vector<Finished> finished_of(const model::Trace& trace) {
  const model::ProxyStepTable& steps = trace.proxy_steps;
  std::vector<Finished> all(trace.proxy_ops.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    const uint32_t op = steps.proxy_op[i];
    if (op >= all.size() || steps.end_ns[i] == 0) continue;
    ++all[op].steps;
    all[op].bytes += steps.bytes[i];
  }
  return all;
}

// The operation of another process (PXN) is not in this trace: its transfers compare with each other, by what
// they are alone.
Traffic traffic_of(const model::Trace& trace, size_t op, bool is_foreign, const Finished& finished) {
  Traffic traffic;
  const uint32_t task = trace.proxy_ops.task[op];
  const bool has_task = task < trace.tasks.size();
  if (!has_task && !is_foreign) return traffic;
  traffic.kind = has_task ? trace.tasks.kind[task] : number(model::EventKind::kProxyOp);
  traffic.channels = has_task ? trace.tasks.channels[task] : 0;
  // By powers of two: transfers of like number and size compare, and there are few classes.
  traffic.transfers = static_cast<uint8_t>(std::bit_width(finished.steps));
  traffic.size = static_cast<uint8_t>(std::bit_width(finished.bytes / std::max<uint64_t>(finished.steps, 1)));
  if (!has_task) return traffic;
  const uint32_t shape = trace.tasks.shape[task];
  // One end sends where the other receives: theirs is one traffic.
  if (traffic.kind == number(model::EventKind::kP2p) || shape >= trace.shapes.size()) return traffic;
  traffic.func = trace.shapes.func[shape];
  traffic.algo = trace.shapes.algo[shape];
  traffic.proto = trace.shapes.proto[shape];
  return traffic;
}

class Sums {
 public:
  Sums(const model::Trace& trace, ProcessPart& part) : trace_(trace), part_(part), process_(part.process) {}

  void add_all() {
    find_members();
    find_flows();
    // Only builds of NCCL whose network plugin reports events name the device; others need no column for it.
    network_.assign(trace_.net_events.size() == 0 ? 0 : trace_.proxy_steps.size(), kUnknown);
    for (size_t i = 0; i < trace_.net_events.size(); ++i) {
      uint32_t step = trace_.net_events.proxy_step[i];
      if (step < network_.size())
        network_[step] = {trace_.net_events.device[i], transport_of(trace_.net_events.id[i])};
    }
    for (size_t i = 0; i < trace_.proxy_steps.size(); ++i) add(i);
    for (const auto& [key, sum] : pairs_) process_.net_pairs.push_back(sum.pair);
    for (const auto& [key, open] : open_) process_.open_steps.push_back(open.step);
  }

 private:
  using Lane = std::tuple<uint32_t, int32_t, uint16_t, bool>;
  using Network = std::pair<int32_t, NetTransport>;  // device and transport
  static constexpr Network kUnknown{-1, NetTransport::kUnknown};
  struct Open {
    int64_t start_ns = 0;
    model::OpenStep step;
  };
  // What one lane carries of one traffic.
  struct Flow {
    Traffic traffic;
    uint64_t steps = 0, seen = 0;
    // The n-th step falls into a part by its place: parts of equal counts, whatever time they take.
    size_t next_part() { return static_cast<size_t>(seen++ * model::kRateParts / steps); }
  };
  struct Sum {
    model::NetPair pair;
    int64_t busy_until_ns = 0;
  };

  Lane lane_of(uint32_t op) const {
    const model::ProxyOpTable& ops = trace_.proxy_ops;
    return {members_[op], ops.peer[op], ops.channel[op], ops.is_send[op] != 0};
  }

  void find_members() {
    const model::ProxyOpTable& ops = trace_.proxy_ops;
    std::map<std::pair<int64_t, uint64_t>, uint32_t> numbers;
    members_.resize(ops.size());
    for (size_t i = 0; i < ops.size(); ++i) {
      members_[i] = ops.comm[i];
      // With PXN this process drives the network for another one of its host. Its work gets numbers behind
      // the own members, until the job knows whose it is.
      if (!model::is_foreign_proxy_op(ops, i, process_.row.pid)) continue;
      const auto [at, is_new] = numbers.try_emplace({ops.originator_pid[i], ops.context[i]},
                                                    static_cast<uint32_t>(part_.foreign.size()));
      if (is_new) part_.foreign.push_back({ops.originator_pid[i], ops.context[i], 0});
      ++part_.foreign[at->second].proxy_ops;
      process_.drives_others = true;
      members_[i] = static_cast<uint32_t>(part_.members.size()) + at->second;
    }
  }

  void find_flows() {
    const std::vector<Finished> finished = finished_of(trace_);
    flow_of_.resize(finished.size());
    std::map<std::pair<Lane, Traffic>, uint32_t> rows;
    for (uint32_t op = 0; op < finished.size(); ++op) {
      if (finished[op].steps == 0) continue;
      const bool is_foreign = members_[op] != model::kNoRow && members_[op] >= part_.members.size();
      const Traffic traffic = traffic_of(trace_, op, is_foreign, finished[op]);
      const auto [at, is_new] =
          rows.try_emplace({lane_of(op), traffic}, static_cast<uint32_t>(flows_.size()));
      if (is_new) flows_.push_back({.traffic = traffic});
      flows_[at->second].steps += finished[op].steps;
      flow_of_[op] = at->second;
    }
  }

  void add(size_t i) {
    const model::ProxyStepTable& steps = trace_.proxy_steps;
    const model::ProxyOpTable& proxy_ops = trace_.proxy_ops;
    uint32_t op = steps.proxy_op[i];
    if (op >= proxy_ops.size()) return;
    bool is_send = proxy_ops.is_send[op] != 0;
    Lane lane = lane_of(op);
    // It has no end: it says where the lane stands, and its time belongs to no sum.
    if (steps.end_ns[i] == 0) {
      add_open(lane, i, op);
      return;
    }
    Network network = network_.empty() ? kUnknown : network_[i];
    Flow& flow = flows_[flow_of_[op]];
    Sum& sum = pairs_[{lane, network, flow.traffic}];
    model::NetPair& pair = sum.pair;
    if (pair.steps++ == 0) {
      std::tie(pair.member, pair.peer, pair.channel, pair.is_send) = lane;
      pair.traffic = flow.traffic;
      pair.device = network.first;
      pair.transport = network.second;
      pair.first_ns = steps.start_ns[i];
    }
    pair.bytes += steps.bytes[i];
    pair.first_ns = std::min(pair.first_ns, steps.start_ns[i]);
    pair.last_ns = std::max(pair.last_ns, steps.end_ns[i]);
    Waits at(steps, i);
    model::RatePart& part = pair.parts[flow.next_part()];
    part.bytes += steps.bytes[i];
    const int64_t busy_before = pair.busy_ns;
    if (is_send) {
      pair.gpu_ns += between(at.first, at.second);
      pair.peer_ns += between(at.second, at.third);
      add_transfer(sum, at.third, at.end);
    } else {
      add_transfer(sum, at.first, at.second);
      pair.flush_ns += between(at.second, at.third);
      pair.gpu_ns += between(at.third, at.end);
    }
    part.busy_ns += pair.busy_ns - busy_before;
  }

  // Transfers of a lane overlap, and come in the order in which they began.
  static void add_transfer(Sum& sum, int64_t from, int64_t until) {
    int64_t wire = between(from, until);
    sum.pair.wire_ns += wire;
    sum.pair.wire_squares += static_cast<double>(wire) * static_cast<double>(wire);
    if (wire == 0) return;
    sum.pair.wire.add(static_cast<float>(wire));
    sum.pair.busy_ns += std::max<int64_t>(0, until - std::max(from, sum.busy_until_ns));
    sum.busy_until_ns = std::max(sum.busy_until_ns, until);
  }

  void add_open(const Lane& lane, size_t i, uint32_t op) {
    const model::ProxyStepTable& steps = trace_.proxy_steps;
    // A lane works its steps off in order, so the one that began first is the one that the others wait for.
    auto [at, is_new] = open_.try_emplace(lane, Open{steps.start_ns[i], {}});
    if (!is_new && at->second.start_ns <= steps.start_ns[i]) return;
    at->second.start_ns = steps.start_ns[i];
    model::OpenStep& open = at->second.step;
    std::tie(open.member, open.peer, open.channel, open.is_send) = lane;
    open.wait = waits_for(steps, i);
    open.step = steps.step[i];
    open.steps = trace_.proxy_ops.steps[op];
    open.since_ns = newest(steps, i);
  }

  const model::Trace& trace_;
  ProcessPart& part_;
  model::JobProcess& process_;
  std::vector<uint32_t> members_;  // by proxy operation
  std::vector<Network> network_;   // by step; empty without events of the network plugin
  std::vector<uint32_t> flow_of_;  // by proxy operation
  std::vector<Flow> flows_;
  std::map<std::tuple<Lane, Network, Traffic>, Sum> pairs_;
  std::map<Lane, Open> open_;
};

}  // namespace

void add_network(const model::Trace& trace, ProcessPart& part) { Sums(trace, part).add_all(); }

}  // namespace lockstep::job::gather
