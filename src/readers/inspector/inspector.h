// SPDX-License-Identifier: Apache-2.0
// The reader of NVIDIA Inspector's JSON lines, format v4.0 (NCCL 2.28 to 2.30). It tells how long operations
// took on the GPU, of those that Inspector kept; not when they ran, and nothing of what did not end.
#pragma once
#include "readers/reader.h"

namespace lockstep::readers::inspector {

extern const Format kFormat;

}  // namespace lockstep::readers::inspector
