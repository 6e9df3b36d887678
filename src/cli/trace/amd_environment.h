// SPDX-License-Identifier: Apache-2.0
// Which of two libraries records kernels of AMD GPUs, and how it comes into the job's processes: by the
// runtime's tools interface (HSA_TOOLS_LIB), or, where rocprofiler's SDK is going to be in the process, as
// one of its clients (ROCP_TOOL_LIBRARIES). Never both: two owners of a queue's signals give one wrong times.
#pragma once
#include <string>

#include "cli/trace/capture_libraries.h"

namespace lockstep::cli::trace {

// Sets the variables in this process; foreign libraries stay first in their lists. Before there are threads.
void set_amd_environment(const CaptureLibraries& libraries);
// Whether kernels of AMD GPUs are asked for: the library is there, and LOCKSTEP_HSA is not off.
bool expects_hsa(const CaptureLibraries& libraries);
// Why kernels of AMD GPUs may have no GPU times, in words; empty: they should.
std::string no_amd_times(const CaptureLibraries& libraries);

}  // namespace lockstep::cli::trace
