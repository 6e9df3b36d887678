// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string_view>

#include "model/trace.h"

namespace lockstep::job::assemble {

// A loss of this stage: of the process, when the trace holds one.
inline void lose(model::Trace& trace, std::string_view kind, uint64_t count, std::string_view detail) {
  trace.lose(trace.processes.size() == 1 ? 0 : model::kNoRow, "assemble", kind, count, detail);
}

}  // namespace lockstep::job::assemble
