// SPDX-License-Identifier: Apache-2.0
// The environment by which a job's processes find the capture libraries and learn what to record. Children
// inherit it, through torchrun, mpirun and srun too.
#pragma once
#include <string>
#include <vector>

#include "cli/trace/capture_libraries.h"

namespace lockstep::cli::trace {

// Sets the variables in this process. Those of other tools, whose files are to lie in the run directory, only
// where the user has not: NCCL's log, and dumps of PyTorch's Flight Recorder. Call before there are threads.
void set_capture_environment(const CaptureLibraries& libraries, const std::string& run,
                             const std::string& mode, const std::string& retention);
// LOCKSTEP_DIR is what a `lockstep trace` around this one has set, and not the user's wish.
bool directory_is_of_a_launcher();
// What these variables made other tools write into a run directory; none for a path that is no directory.
std::vector<std::string> other_tools_files(const std::string& run);
// Those, and what was sampled of the hosts' links: all that goes into a trace.db as it is.
std::vector<std::string> files_to_attach(const std::string& run);
// Why kernels will have no GPU times, in words; empty: they will, or the user has switched them off.
std::string no_gpu_times(const CaptureLibraries& libraries);
// Why ranges of NVTX that were asked for (LOCKSTEP_CUDA) will not be recorded, in words; else empty.
std::string no_ranges(const CaptureLibraries& libraries);
// NCCL_PROFILER_PLUGIN as the user has set it, if that is another plugin than ours; else empty.
std::string other_profiler_plugin(const CaptureLibraries& libraries);
// That plugin, if ours is to pass every call on to it: it is a library, and LOCKSTEP_CHAIN does not say
// otherwise.
std::string plugin_to_chain(const CaptureLibraries& libraries);
// "stream", "stream:4G", "ring:64M".
bool is_retention(const std::string& text);

}  // namespace lockstep::cli::trace
