// SPDX-License-Identifier: Apache-2.0
// The loss counters as capture names them.
#pragma once
#include "format/losses.h"

namespace lockstep::capture {

using format::Loss;
using enum format::Loss;

}  // namespace lockstep::capture
