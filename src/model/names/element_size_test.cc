// SPDX-License-Identifier: Apache-2.0
#include "model/names/element_size.h"

#include <gtest/gtest.h>

#include "model/testing/spelled_types.h"

namespace lockstep::model {
namespace {

TEST(ElementSize, KnowsEverySpelling) {
  for (const auto& type : testing::kSpelledTypes) EXPECT_EQ(element_size(type.name), type.bytes) << type.name;
}

TEST(ElementSize, SurvivesAnyName) {
  EXPECT_EQ(element_size(std::string(1000, 'f')), 1u);
  EXPECT_EQ(element_size("complex"), 1u);
  EXPECT_EQ(element_size("complex<"), 1u);
  EXPECT_EQ(element_size("float99999999999999"), 1u);
  EXPECT_EQ(element_size("<"), 1u);
  EXPECT_EQ(element_size("|b"), 1u);
  EXPECT_EQ(element_size(std::string_view("float32\0x", 9)), 4u);
  EXPECT_EQ(format::element_bytes(nullptr), 1u);
}

}  // namespace
}  // namespace lockstep::model
