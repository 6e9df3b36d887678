// SPDX-License-Identifier: Apache-2.0
// Bytes of one element, by NCCL's or c10's spelling of the type. Unknown types count as 1 (NCCL calls uint8 "Unknown").
#pragma once
#include <cstdint>
#include <cstring>

namespace lockstep::capture {

inline uint8_t element_bytes(const char* datatype) {
  if (datatype == nullptr) return 1;
  if (strncmp(datatype, "nccl", 4) == 0) {
    switch (datatype[4 + strcspn(datatype + 4, "0123456789")]) {
      case '1':
        return 2;
      case '3':
        return 4;
      case '6':
        return 8;
      default:
        return 1;
    }
  }
  static constexpr struct {
    char name[15];
    uint8_t bytes;
  } kWide[] = {{"Short", 2},  {"Half", 2},   {"BFloat16", 2},     {"UInt16", 2},        {"Int", 4},
               {"Float", 4},  {"QInt32", 4}, {"UInt32", 4},       {"ComplexHalf", 4},   {"Long", 8},
               {"Double", 8}, {"UInt64", 8}, {"ComplexFloat", 8}, {"ComplexDouble", 16}};
  for (const auto& type : kWide) {
    if (strcmp(datatype, type.name) == 0) return type.bytes;
  }
  return 1;
}

}  // namespace lockstep::capture
