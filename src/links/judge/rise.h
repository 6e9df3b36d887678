// SPDX-License-Identifier: Apache-2.0
// What one sampled counter did while a job ran. Counters are set back and wrap, which is no rise.
#pragma once
#include <cstdint>
#include <vector>

#include "links/samples/sample_log.h"

namespace lockstep::links {

// A reading at which the counter was higher than before; `ms` since the log's start.
struct RiseEvent {
  int64_t ms = 0;
  uint64_t amount = 0;
};

// `total` is the sum of `events`, which ascend in time. is_at_least: it reached its largest value.
struct Rise {
  uint64_t total = 0;
  uint32_t resets = 0, wraps = 0;
  bool is_at_least = false;
  std::vector<RiseEvent> events;
};

Rise rise_of(const SampledCounter& counter);

}  // namespace lockstep::links
