// SPDX-License-Identifier: Apache-2.0
// What writer and reader of followed runs agree on.
#pragma once
#include <cstdint>
#include <string_view>

#include "model/job.h"

namespace lockstep::store::clickhouse {

// The number of the run that has this name, of at most kMostRunName bytes.
uint64_t followed_run_number(std::string_view name);

// Whether a process lives, as a word: "running", "stopped", "gone", "beats" or "unknown".
std::string_view followed_life(model::Liveness liveness, bool beats);

}  // namespace lockstep::store::clickhouse
