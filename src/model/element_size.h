// SPDX-License-Identifier: Apache-2.0
// Bytes of one element by the name of its type, in NCCL's, PyTorch's or NumPy's spelling ("ncclFloat32", "Float",
// "bfloat16"). 1 for a name that says nothing, as NCCL reports uint8 as "Unknown".
#pragma once
#include <cstdint>
#include <string_view>

namespace lockstep::model {

uint32_t element_size(std::string_view datatype);

}  // namespace lockstep::model
