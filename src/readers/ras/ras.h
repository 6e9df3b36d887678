// SPDX-License-Identifier: Apache-2.0
// Snapshots of a running job, as NCCL's RAS subsystem gives them: read_ras.h reads them.
#pragma once
#include "readers/reader.h"

namespace lockstep::readers::ras {

extern const Format kFormat;

}  // namespace lockstep::readers::ras
