// SPDX-License-Identifier: Apache-2.0
// How long data takes: a start-up time and bytes over the bandwidth of the slowest link used. Read-only once
// made.
#pragma once
#include <cstdint>
#include <vector>

#include "job/faults/disturbance.h"
#include "job/layout.h"

namespace lockstep::sim::job {

inline constexpr double kNvlinkGBps = 350, kNicGBps = 45;

class Links {
 public:
  Links(const Layout& layout, const Disturbance& disturbance);

  // A collective of `group`, from the last arrival on, ns.
  double collective_ns(int group, const Task& task) const;
  // One transfer between two members, of `together` that share the links.
  double transfer_ns(int group, int from, int to, uint64_t bytes, size_t together) const;
  // The time factor of the network path between two ranks.
  double slowness(int from, int to) const;
  // The largest of a group's ring.
  double ring_slowness(int group) const { return ring_slowness_[static_cast<size_t>(group)]; }

 private:
  const Layout& layout_;
  const Disturbance& disturbance_;
  std::vector<double> ring_slowness_;  // by group
};

}  // namespace lockstep::sim::job
