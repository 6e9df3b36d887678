// SPDX-License-Identifier: Apache-2.0
// What names an event by handle and may come before or after the event's row exists: states and stops that
// another thread reported, far parents, user tags. `apply_state` knows which column each state belongs to.
#pragma once
#include <cstdint>

#include "format/records.h"
#include "model/trace.h"
#include "readers/native/row_index.h"

namespace lockstep::readers::native {

enum class StateResult : uint8_t {
  kStored,
  kOnlyFirstKept,  // per-step states 0..7 of NCCL before 2.27: the model keeps the proxy op's first progress
  kMismatch,       // the event cannot have this state
};
// `number` is an event state, or format::kStateStop and those behind it (their value: a time in RunNs, 0
// unknown).
// `target` is any row of the trace, `when_ns` RunNs, `value` as the record has it (bytes, appended
// operations, the GPU's raw stop). Number and value are not trusted: what does not fit changes nothing.
StateResult apply_state(model::Trace& trace, RowRef target, uint16_t number, int64_t when_ns, uint64_t value);

// False if the event has no place for a tag.
bool apply_user_tag(model::Trace& trace, RowRef target, uint64_t tag);

}  // namespace lockstep::readers::native
