// SPDX-License-Identifier: Apache-2.0
// Declares the operations of declared_test.cc as a call site of PyTorch's RECORD_PARAM_COMMS_DATA does.
#include <string>
#include <tuple>
#include <vector>

#include "lockstep/lockstep.h"

namespace {

enum class ScalarType { kHalf, kBFloat16, kFloat, kInt };
const char* toString(ScalarType type) {
  static const char* const kNames[] = {"Half", "BFloat16", "Float", "Int"};
  return kNames[static_cast<int>(type)];
}

std::tuple<int64_t, bool> seq(int64_t number, bool is_p2p = false) { return std::make_tuple(number, is_p2p); }
std::tuple<std::string, std::string> group(const char* name, const char* description) {
  return std::make_tuple(std::string(name), std::string(description));
}

struct Tensor {};

}  // namespace

int main() {
  const std::vector<int64_t> even, in_split = {4, 12, 8, 16}, out_split = {24, 0, 20, 4};
  std::vector<int64_t> many;
  for (int64_t i = 0; i < 40; ++i) many.push_back(i);
  Tensor in, out;
  (void)in, (void)out;  // the macro does not look at them
  {
    LOCKSTEP_RECORD_PARAM_COMMS_DATA(seq(5), group("aiter_custom_ar", ""), in, out, 0, "reduce_scatter",
                                     1048576, 524288, ScalarType::kHalf, even, even, 0, 1, 2, false);
  }
  {
    LOCKSTEP_RECORD_PARAM_COMMS_DATA(seq(6), group("3", "mesh_tp"), in, out, 0, "all_gather", 524288, 1048576,
                                     ScalarType::kBFloat16, even, even, 0, 2, 2, true);
  }
  {
    LOCKSTEP_RECORD_PARAM_COMMS(seq(7), group("0", "default_pg"), 0, "all_to_allv", 40, 48,
                                ScalarType::kFloat, in_split, out_split, 0, 1, 4);
  }
  {
    LOCKSTEP_RECORD_PARAM_COMMS(seq(1), group("experts", ""), 0, "allreduce", 256, 256, ScalarType::kFloat,
                                even, even, 0, -1, 3);
  }
  {
    LOCKSTEP_RECORD_PARAM_COMMS(seq(1, true), group("1", "mesh_pp"), 1, "send", 4096, 4096, ScalarType::kHalf,
                                even, even, 0, 2, 2, true);
  }
  {
    LOCKSTEP_RECORD_PARAM_COMMS(seq(1), std::string("aiter_custom_ar"), 0, "fused_allreduce_rmsnorm", 64, 64,
                                "BFloat16", even, even, 0, 1, 2);
  }
  {
    LOCKSTEP_RECORD_PARAM_COMMS(seq(1), group("9", "wide"), 0, "all_to_allv", 780, 780, ScalarType::kInt,
                                many, many, 0, 1, 40);
  }
  return 0;
}
