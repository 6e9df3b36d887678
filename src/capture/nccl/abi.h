// SPDX-License-Identifier: Apache-2.0
// The NCCL profiler plugin interface, versions 1 to 7, written from the published layout facts; sizes and
// offsets are asserted in each. A plugin exports a data object `ncclProfiler_v<N>`; NCCL takes the newest it
// knows, and only that one.
//
// Threads: `init` and `finalize` from any thread, also concurrently; events of one comm from several threads.
// A descriptor is valid only during `start_event`. Only `start_event` and `finalize` receive the context.
// The meaning of every field, state and sequence is in docs/nccl-events.md.
#pragma once
#include "capture/nccl/abi/rccl.h"
#include "capture/nccl/abi/v1.h"
#include "capture/nccl/abi/v2.h"
#include "capture/nccl/abi/v3.h"
#include "capture/nccl/abi/v4.h"
#include "capture/nccl/abi/v5.h"
#include "capture/nccl/abi/v6.h"
#include "capture/nccl/abi/v7.h"
