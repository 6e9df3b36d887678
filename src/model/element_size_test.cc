// SPDX-License-Identifier: Apache-2.0
#include "model/element_size.h"

#include <gtest/gtest.h>

namespace lockstep::model {
namespace {

TEST(ElementSize, KnowsNcclsSpelling) {
  EXPECT_EQ(element_size("ncclInt8"), 1u);
  EXPECT_EQ(element_size("ncclUint32"), 4u);
  EXPECT_EQ(element_size("ncclInt64"), 8u);
  EXPECT_EQ(element_size("ncclFloat16"), 2u);
  EXPECT_EQ(element_size("ncclBfloat16"), 2u);
  EXPECT_EQ(element_size("ncclFloat64"), 8u);
  EXPECT_EQ(element_size("ncclFloat8e4m3"), 1u);
}

TEST(ElementSize, KnowsOtherSpellings) {
  EXPECT_EQ(element_size("Float"), 4u);
  EXPECT_EQ(element_size("BFloat16"), 2u);
  EXPECT_EQ(element_size("float32"), 4u);
  EXPECT_EQ(element_size("Long"), 8u);
  EXPECT_EQ(element_size("Byte"), 1u);
}

TEST(ElementSize, TakesUnknownTypesAsBytes) {
  EXPECT_EQ(element_size("Unknown"), 1u);
  EXPECT_EQ(element_size(""), 1u);
}

}  // namespace
}  // namespace lockstep::model
