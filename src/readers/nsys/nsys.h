// SPDX-License-Identifier: Apache-2.0
// Exports of NVIDIA Nsight Systems: `nsys export --type sqlite`, and `--type parquetdir`.
#pragma once
#include "readers/reader.h"

namespace lockstep::readers::nsys {

extern const Format kFormat;

}  // namespace lockstep::readers::nsys
