// SPDX-License-Identifier: Apache-2.0
// Names of the loss counters (format/losses.def). Per-thread counts live in the log, the others in the file header.
#pragma once
#include "format/file_layout.h"

namespace lockstep::capture {

enum Loss : uint32_t {
#define LOSS(index, name, text) kLoss_##name = index,
#include "format/losses.def"
#undef LOSS
};

}  // namespace lockstep::capture
