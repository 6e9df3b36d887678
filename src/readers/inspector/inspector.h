// SPDX-License-Identifier: Apache-2.0
// The reader of NVIDIA Inspector's JSON lines, formats v4.0 to v4.4 (from NCCL 2.28 on). It tells how long
// operations took on the GPU, of those that Inspector kept; not when they ran, and nothing of what did not
// end.
#pragma once
#include "readers/reader.h"

namespace lockstep::readers::inspector {

extern const Format kFormat;

}  // namespace lockstep::readers::inspector
