// SPDX-License-Identifier: Apache-2.0
// The reader of files of AMD's tools: RPD, rocm-trace-lite, and rocprofiler-sdk's rocpd (schema 3), which are
// SQLite's, and the JSON of its rocprofv3.
// They hold what GPUs did, kernel by kernel; of communication nothing but the kernels of RCCL.
#pragma once
#include "readers/reader.h"

namespace lockstep::readers::rocpd {

extern const Format kFormat;

}  // namespace lockstep::readers::rocpd
