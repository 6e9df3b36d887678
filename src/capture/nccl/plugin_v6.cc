// SPDX-License-Identifier: Apache-2.0
#include "capture/nccl/shim.h"

// Writable: chain.cc stores other callbacks into it before NCCL can see it.
extern "C" {
__attribute__((visibility("default"))) constinit lockstep::nccl_abi::v6::Plugin ncclProfiler_v6 =
    lockstep::capture::nccl::make_plugin<6>();
// The same under a name that no other library of the process can take.
extern __attribute__((visibility("hidden"), alias("ncclProfiler_v6")))
lockstep::nccl_abi::v6::Plugin lockstep_profiler_v6;
}
