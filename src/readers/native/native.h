// SPDX-License-Identifier: Apache-2.0
// The reader of Lockstep's own process files (*.lks).
#pragma once
#include "readers/reader.h"

namespace lockstep::readers::native {

extern const Format kFormat;

}  // namespace lockstep::readers::native
