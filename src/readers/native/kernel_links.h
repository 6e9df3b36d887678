// SPDX-License-Identifier: Apache-2.0
// Which call launched which kernel, by the correlation that both bear.
//
// Both records come from one file, of CUDA or of AMD, whose correlations are unique within a process.
#pragma once
#include <cstdint>

#include "model/trace.h"
#include "readers/native/file/read_losses.h"

namespace lockstep::readers::native {

// Fills `launch` of the kernels from `first_kernel` on with the launches from `first_launch` on: those of one
// file. A correlation that several launches bear proves nothing, and is counted.
void link_kernels(model::Trace& trace, size_t first_kernel, size_t first_launch, const std::string& path,
                  ReadLosses& losses);

}  // namespace lockstep::readers::native
