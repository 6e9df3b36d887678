// SPDX-License-Identifier: Apache-2.0
// PyTorch's Comms Id by the real std::hash, for tests of our own hash: the fields combined in the order in
// which PyTorch does.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

namespace lockstep::model::testing {

inline uint64_t std_comms_id(const std::string& pg_name, int64_t seq, bool is_p2p, int start, int stride,
                             int world) {
  uint64_t id = std::hash<std::string>()(pg_name);
  const auto add = [&id](uint64_t field) { id = field ^ (id + 0x9e3779b9 + (field << 6) + (field >> 2)); };
  add(std::hash<int64_t>()(seq));
  add(std::hash<bool>()(is_p2p));
  for (const int field : {start, stride, world}) add(std::hash<int>()(field));
  return id;
}

}  // namespace lockstep::model::testing
