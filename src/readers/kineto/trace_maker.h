// SPDX-License-Identifier: Apache-2.0
// Makes the model's rows of one recording.
#pragma once
#include "model/trace.h"
#include "readers/kineto/recording.h"

namespace lockstep::readers::kineto {

// `trace` holds the recording's kernels, and after this everything.
// Times become absolute here, as the base time may stand behind the events. Never fails: what does not fit is
// a loss.
void make_trace(Recording&& recording, model::Trace& trace);

}  // namespace lockstep::readers::kineto
