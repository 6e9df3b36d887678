// SPDX-License-Identifier: Apache-2.0
// "Memcpy DtoH (Device -> Pinned)": what a copy or a fill is called, as PyTorch's profiler names them.
#pragma once
#include <cstdint>
#include <string>

#include "format/records.h"

namespace lockstep::readers::native {

inline constexpr uint8_t kMemoryKinds = 8;  // of CUPTI; larger ones are unknown

// Kinds of memory are CUPTI's numbers, from an untrusted file: any value gives a name.
std::string copy_name(format::CopyKind kind, uint8_t from, uint8_t to);

}  // namespace lockstep::readers::native
