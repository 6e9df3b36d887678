// SPDX-License-Identifier: Apache-2.0
#include "job/links.h"

#include <algorithm>
#include <cmath>

namespace lockstep::sim::job {
namespace {

constexpr double kLocalStartNs = 8'000, kRemoteStartNs = 22'000;
constexpr double kSocketFactor = 6;

// What a rank's link carries, in multiples of the count's bytes.
double traffic(Func func, double n) {
  switch (func) {
    case Func::kAllReduce:
      return 2 * (n - 1) / n;
    case Func::kAllGather:
    case Func::kReduceScatter:
      return n - 1;
    default:
      return 1;
  }
}

}  // namespace

Links::Links(const Layout& layout, const Disturbance& disturbance)
    : layout_(layout), disturbance_(disturbance) {
  for (const Group& group : layout.groups()) {
    double worst = 1;
    for (int member = 0; member < group.size() && group.nodes > 1; ++member) {
      const int peer = layout.network_peer(group, member, true);
      if (peer < 0) continue;
      worst = std::max(
          worst, slowness(group.ranks[static_cast<size_t>(member)], group.ranks[static_cast<size_t>(peer)]));
    }
    ring_slowness_.push_back(worst);
  }
}

double Links::slowness(int from, int to) const {
  const int from_host = layout_.host_of(from), to_host = layout_.host_of(to);
  if (from_host == to_host) return 1;
  double factor = 1;
  for (const SlowEdge& edge : disturbance_.slow_edges) {
    if ((edge.from < 0 || edge.from == from) && (edge.to < 0 || edge.to == to))
      factor = std::max(factor, edge.factor);
  }
  if (disturbance_.socket_hosts.contains(from_host) || disturbance_.socket_hosts.contains(to_host))
    factor = std::max(factor, kSocketFactor);
  return factor;
}

double Links::collective_ns(int group, const Task& task) const {
  const Group& g = layout_.group(group);
  const auto n = static_cast<double>(g.size());
  const bool remote = g.nodes > 1;
  const double start = (remote ? kRemoteStartNs : kLocalStartNs) * (1 + 0.15 * std::log2(n));
  const double rails = kNicGBps * g.rails / ring_slowness_[static_cast<size_t>(group)];
  const double bandwidth = remote ? std::min(kNvlinkGBps, rails) : kNvlinkGBps;  // GB/s = bytes/ns
  return start + static_cast<double>(task.bytes()) * traffic(task.func, n) / bandwidth;
}

double Links::transfer_ns(int group, int from, int to, uint64_t bytes, size_t together) const {
  const Group& g = layout_.group(group);
  const int a = g.ranks[static_cast<size_t>(from)], b = g.ranks[static_cast<size_t>(to)];
  const bool remote = layout_.host_of(a) != layout_.host_of(b);
  const double bandwidth = remote ? kNicGBps / slowness(a, b) : kNvlinkGBps;
  return (remote ? kRemoteStartNs : kLocalStartNs) +
         static_cast<double>(bytes) * static_cast<double>(together) / bandwidth;
}

}  // namespace lockstep::sim::job
