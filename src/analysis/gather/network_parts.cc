// SPDX-License-Identifier: Apache-2.0
#include "analysis/gather/network_parts.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace lockstep::analysis::gather {
namespace {

using model::kNoRow;
using model::StepWait;

int64_t between(int64_t from, int64_t until) { return from != 0 && until > from ? until - from : 0; }

StepWait waits_for(const model::ProxyStepTable& steps, size_t i) {
  if (steps.is_send[i]) {
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

class Sums {
 public:
  Sums(const model::Trace& trace, model::JobProcess& process) : trace_(trace), process_(process) {}

  void add_all() {
    device_.assign(trace_.proxy_steps.size(), -1);
    for (size_t i = 0; i < trace_.net_events.size(); ++i) {
      if (trace_.net_events.proxy_step[i] < device_.size())
        device_[trace_.net_events.proxy_step[i]] = trace_.net_events.device[i];
    }
    for (size_t i = 0; i < trace_.proxy_steps.size(); ++i) add(i);
    for (const auto& [key, pair] : pairs_) process_.net_pairs.push_back(pair);
    for (const auto& [key, step] : open_) process_.open_steps.push_back(step);
  }

 private:
  using Lane = std::tuple<uint32_t, int32_t, uint16_t, bool>;

  void add(size_t i) {
    const model::ProxyStepTable& steps = trace_.proxy_steps;
    const model::ProxyOpTable& proxy_ops = trace_.proxy_ops;
    uint32_t op = steps.proxy_op[i];
    if (op >= proxy_ops.size()) return;
    bool is_send = proxy_ops.is_send[op] != 0;
    Lane lane{proxy_ops.comm[op], proxy_ops.peer[op], proxy_ops.channel[op], is_send};
    if (steps.end_ns[i] == 0) {
      add_open(lane, i, op);
      return;
    }
    model::NetPair& sum = pairs_[{lane, device_[i]}];
    if (sum.steps++ == 0) {
      std::tie(sum.member, sum.peer, sum.channel, sum.is_send) = lane;
      sum.device = device_[i];
      sum.first_ns = steps.start_ns[i];
    }
    sum.bytes += steps.bytes[i];
    sum.first_ns = std::min(sum.first_ns, steps.start_ns[i]);
    sum.last_ns = std::max(sum.last_ns, steps.end_ns[i]);
    int64_t first = between(steps.wait1_ns[i], steps.wait2_ns[i]);
    int64_t second = between(steps.wait2_ns[i], steps.wait3_ns[i]);
    int64_t third = between(steps.wait3_ns[i], steps.end_ns[i]);
    (is_send ? sum.gpu_ns : sum.wire_ns) += first;
    (is_send ? sum.peer_ns : sum.flush_ns) += second;
    (is_send ? sum.wire_ns : sum.gpu_ns) += third;
  }

  void add_open(const Lane& lane, size_t i, uint32_t op) {
    const model::ProxyStepTable& steps = trace_.proxy_steps;
    auto [at, is_new] = open_.try_emplace(lane);
    model::OpenStep& open = at->second;
    if (!is_new && open.since_ns <= newest(steps, i)) return;
    std::tie(open.member, open.peer, open.channel, open.is_send) = lane;
    open.wait = waits_for(steps, i);
    open.step = steps.step[i];
    open.steps = trace_.proxy_ops.steps[op];
    open.since_ns = newest(steps, i);
  }

  const model::Trace& trace_;
  model::JobProcess& process_;
  std::vector<int32_t> device_;
  std::map<std::pair<Lane, int32_t>, model::NetPair> pairs_;
  std::map<Lane, model::OpenStep> open_;
};

}  // namespace

void add_network(const model::Trace& trace, model::JobProcess& process) { Sums(trace, process).add_all(); }

}  // namespace lockstep::analysis::gather
