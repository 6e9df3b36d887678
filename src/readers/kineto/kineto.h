// SPDX-License-Identifier: Apache-2.0
// The reader of PyTorch profiler (Kineto) traces, one file a rank: operations as PyTorch called them, their
// kernels, every other kernel and copy, and the steps of the training loop.
#pragma once
#include "readers/reader.h"

namespace lockstep::readers::kineto {

extern const Format kFormat;

}  // namespace lockstep::readers::kineto
