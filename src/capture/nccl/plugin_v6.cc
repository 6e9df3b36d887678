// SPDX-License-Identifier: Apache-2.0
#include "capture/nccl/shim.h"

// Writable: chain.cc stores other callbacks into it before NCCL can see it.
extern "C" {
__attribute__((visibility("default"))) constinit lockstep::nccl_abi::v6::Plugin ncclProfiler_v6 =
    lockstep::capture::nccl::make_plugin<6>();
}
