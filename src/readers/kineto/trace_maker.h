// SPDX-License-Identifier: Apache-2.0
// Makes the model's rows of one recording.
#pragma once
#include "model/trace.h"
#include "readers/kineto/recording.h"

namespace lockstep::readers::kineto {

// `trace` holds the recording's kernels, and after this everything.
void make_trace(Recording&& recording, model::Trace& trace);

}  // namespace lockstep::readers::kineto
