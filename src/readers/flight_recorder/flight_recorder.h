// SPDX-License-Identifier: Apache-2.0
// The reader of PyTorch's Flight Recorder: one dump is one process. It tells which operations a rank issued,
// and of each whether it was seen to end, not how long it took: ends are those that a watchdog noticed,
// starts are mostly unknown.
#pragma once
#include "readers/reader.h"

namespace lockstep::readers::flight_recorder {

extern const Format kFormat;

}  // namespace lockstep::readers::flight_recorder
