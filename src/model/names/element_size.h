// SPDX-License-Identifier: Apache-2.0
// Bytes of one element by the name of its type, in any spelling that format/element_size.h knows: capture
// counts by the same table.
#pragma once
#include <cstdint>
#include <string_view>

#include "format/element_size.h"

namespace lockstep::model {

inline uint32_t element_size(std::string_view datatype) {
  return format::element_bytes(datatype.data(), datatype.size());
}

}  // namespace lockstep::model
