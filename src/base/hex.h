// SPDX-License-Identifier: Apache-2.0
// Numbers and bytes in hexadecimal digits, and back.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep {

std::string hex(uint64_t number);    // "0x1f"
std::string hex16(uint64_t number);  // "000000000000001f", as NCCL's ids of communicators are written
std::string hex_of_bytes(std::string_view bytes);  // "1f00": two digits each
// "0x1f" or "1f"; 0 for what is no such number.
uint64_t number_of_hex(std::string_view text);

}  // namespace lockstep
