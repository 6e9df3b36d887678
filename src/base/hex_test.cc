// SPDX-License-Identifier: Apache-2.0
#include "base/hex.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(Hex, Numbers) {
  EXPECT_EQ(hex(0), "0x0");
  EXPECT_EQ(hex(UINT64_MAX), "0xffffffffffffffff");
  EXPECT_EQ(hex16(0x12ab), "00000000000012ab");
  EXPECT_EQ(hex16(UINT64_MAX), "ffffffffffffffff");
}

TEST(Hex, Bytes) {
  EXPECT_EQ(hex_of_bytes(""), "");
  EXPECT_EQ(hex_of_bytes(std::string_view("\x00\x7f\xff", 3)), "007fff");
}

TEST(Hex, BackToNumbers) {
  EXPECT_EQ(number_of_hex("0x12AB"), 0x12abu);
  EXPECT_EQ(number_of_hex("ffffffffffffffff"), UINT64_MAX);
  for (const char* text : {"", "0x", "12g", " 12", "-1", "1ffffffffffffffff", "0x0x1"})
    EXPECT_EQ(number_of_hex(text), 0u) << text;
}

}  // namespace
}  // namespace lockstep
