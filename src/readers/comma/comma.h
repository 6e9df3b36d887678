// SPDX-License-Identifier: Apache-2.0
// The reader of CoMMA's latency files (google/CoMMA, a profiler plugin of 2025): JSON lines, one file a
// process. They tell when hosts enqueued operations, how long the network was at work for them, and its
// transfers; nothing of GPUs.
#pragma once
#include "readers/reader.h"

namespace lockstep::readers::comma {

extern const Format kFormat;

}  // namespace lockstep::readers::comma
