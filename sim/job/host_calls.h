// SPDX-License-Identifier: Apache-2.0
// What the host does for one unit, in ns after its call: the sequence that NCCL 2.28 makes, at its pace.
#pragma once
#include <cstdint>

#include "job/random.h"

namespace lockstep::sim::job {

struct HostCalls {
  int64_t group_started, first_call, call_every, call_length, group_ending;
  int64_t launch, launch_end, plan, first_task, task_every, task_length, plan_end, done;

  static HostCalls of(int rank, uint64_t unit, size_t tasks, const Random& random) {
    const double pace =
        random.lognormal(0.15, Draw::kHostCalls, static_cast<uint64_t>(rank), unit) * 1000;  // ns per us
    const auto n = static_cast<double>(tasks);
    double us = 0;
    auto next = [&](double step) { return static_cast<int64_t>((us += step) * pace); };
    HostCalls c{};
    c.group_started = next(1.2);
    c.first_call = next(1.5);
    c.call_every = static_cast<int64_t>(1.9 * pace);
    c.call_length = static_cast<int64_t>(1.4 * pace);
    us += 1.9 * n;
    c.group_ending = next(0.6);
    c.launch = next(9);
    c.launch_end = next(13);
    c.plan = next(1.5);
    c.first_task = next(1.4);
    c.task_every = static_cast<int64_t>(1.6 * pace);
    c.task_length = static_cast<int64_t>(1.2 * pace);
    us += 1.6 * n;
    c.plan_end = next(1.3);
    c.done = next(2.5);
    return c;
  }
};

}  // namespace lockstep::sim::job
