// SPDX-License-Identifier: Apache-2.0
// Proxy operations that a process did for another one of its host (PXN): their communicator and task are in
// the trace of the one that asked for them.
#pragma once
#include <cstddef>
#include <cstdint>

#include "model/trace.h"

namespace lockstep::model {

// Whether row `i`, recorded by process `pid`, is one whose communicator has not been found yet.
inline bool is_foreign_proxy_op(const ProxyOpTable& ops, size_t i, int64_t pid) {
  return ops.comm[i] == kNoRow && ops.context[i] != 0 && ops.originator_pid[i] > 0 &&
         ops.originator_pid[i] != pid;
}

// What handles of one event have in common: log and position; its records differ in kind.
inline constexpr uint64_t kHandlePlace = (uint64_t{1} << 59) - 1;

}  // namespace lockstep::model
