// SPDX-License-Identifier: Apache-2.0
#include "capture/nccl/shim.h"

extern "C"
    __attribute__((visibility("default"))) constinit const lockstep::nccl_abi::v5::Plugin ncclProfiler_v5 =
        lockstep::capture::nccl::make_plugin<5>();
