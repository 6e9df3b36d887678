// SPDX-License-Identifier: Apache-2.0
#include "analysis/clock/clock.h"

namespace lockstep::analysis::clock {

void align(model::Job& job, std::vector<Finding>&) {
  for (model::JobHost& host : job.hosts) {
    if (host.boot_id == job.hosts.front().boot_id) host.clock = model::HostClock::same();
  }
}

}  // namespace lockstep::analysis::clock
