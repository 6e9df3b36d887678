// SPDX-License-Identifier: Apache-2.0
#include "capture/nccl/shim.h"

// Writable: chain.cc stores other callbacks into it before NCCL can see it.
extern "C" {
__attribute__((visibility("default"))) constinit lockstep::nccl_abi::v4::Plugin ncclProfiler_v4 =
    lockstep::capture::nccl::make_plugin<4>();
// The same under a name that no other library of the process can take.
extern __attribute__((visibility("hidden"), alias("ncclProfiler_v4")))
lockstep::nccl_abi::v4::Plugin lockstep_profiler_v4;
}
