// SPDX-License-Identifier: Apache-2.0
// What of the CUDA driver's interface is called, declared by us from its public documentation. The driver is
// loaded when links are measured; nothing of a toolkit is needed at build or run.
#pragma once
#include <cstddef>
#include <cstdint>

namespace lockstep::links::nvidia::cuda {

using Result = int;  // 0 success
inline constexpr Result kSuccess = 0, kNotReady = 600, kPeerAccessAlreadyEnabled = 704;
using Device = int;
using DevicePointer = uint64_t;
static_assert(sizeof(DevicePointer) == sizeof(void*));
using Context = struct OpaqueContext*;
using Stream = struct OpaqueStream*;
using Event = struct OpaqueEvent*;
using Module = struct OpaqueModule*;
using Function = struct OpaqueFunction*;

inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kEventDefault = 0;
inline constexpr unsigned kHostRegisterPortableMapped = 1 | 2;
inline constexpr unsigned kWaitAtLeast = 0;

}  // namespace lockstep::links::nvidia::cuda
