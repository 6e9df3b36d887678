// SPDX-License-Identifier: Apache-2.0
#include "model/element_size.h"

#include <gtest/gtest.h>

namespace lockstep::model {
namespace {

TEST(ElementSize, KnowsEverySpelling) {
  static constexpr struct {
    const char* name;
    uint32_t bytes;
  } kTypes[] = {
      {"ncclInt8", 1},
      {"ncclChar", 1},
      {"ncclUint8", 1},
      {"ncclInt32", 4},
      {"ncclInt", 4},
      {"ncclUint32", 4},
      {"ncclInt64", 8},
      {"ncclUint64", 8},
      {"ncclFloat16", 2},
      {"ncclHalf", 2},
      {"ncclFloat32", 4},
      {"ncclFloat", 4},
      {"ncclFloat64", 8},
      {"ncclDouble", 8},
      {"ncclBfloat16", 2},
      {"ncclFloat8e4m3", 1},
      {"ncclFp8E5M2", 1},
      {"rcclFloat8", 1},
      {"Byte", 1},
      {"Char", 1},
      {"Short", 2},
      {"Int", 4},
      {"Long", 8},
      {"Half", 2},
      {"Float", 4},
      {"Double", 8},
      {"ComplexHalf", 4},
      {"ComplexFloat", 8},
      {"ComplexDouble", 16},
      {"Bool", 1},
      {"QInt8", 1},
      {"QUInt8", 1},
      {"QInt32", 4},
      {"BFloat16", 2},
      {"QUInt4x2", 1},
      {"Bits1x8", 1},
      {"Bits16", 2},
      {"Float8_e5m2", 1},
      {"Float8_e4m3fn", 1},
      {"UInt16", 2},
      {"UInt32", 4},
      {"UInt64", 8},
      {"Float4_e2m1fn_x2", 1},
      {"c10::BFloat16", 2},
      {"c10::Half", 2},
      {"c10::complex<float>", 8},
      {"c10::complex<double>", 16},
      {"c10::complex<c10::Half>", 4},
      {"long int", 8},
      {"unsigned char", 1},
      {"signed char", 1},
      {"torch.float32", 4},
      {"torch.complex64", 8},
      {"torch.bool", 1},
      {"torch.bfloat16", 2},
      {"float32", 4},
      {"complex64", 8},
      {"complex128", 16},
      {"complex256", 32},
      {"float128", 16},
      {"longdouble", 16},
      {"bool_", 1},
      {"int8", 1},
      {"uint16", 2},
      {"<f4", 4},
      {">c16", 16},
      {"|u1", 1},
      {"bf16", 2},
      {"f32", 4},
      {"s8", 1},
      {"s64", 8},
      {"u16", 2},
      {"c64", 8},
      {"c128", 16},
      {"pred", 1},
      {"f8e4m3fn", 1},
      {"fp16", 2},
      {"__half", 2},
      {"__nv_bfloat16", 2},
      {"hip_bfloat16", 2},
      {"__hip_bfloat16", 2},
      {"__nv_fp8_e4m3", 1},
      {"HIP_R_16F", 2},
      {"HIP_R_16BF", 2},
      {"CUDA_R_32F", 4},
      {"CUDA_C_32F", 8},
      {"HIP_C_64F", 16},
      {"CUDA_R_8I", 1},
      {"int8_t", 1},
      {"uint64_t", 8},
      {"Unknown", 1},
      {"", 1},
      {"my_type_32", 1},
      {"i1", 1},
      {"i64", 8},
      {"cfloat", 8},
      {"std::complex<double>", 16},
      {"cuComplex", 1},
  };
  for (const auto& type : kTypes) EXPECT_EQ(element_size(type.name), type.bytes) << type.name;
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
