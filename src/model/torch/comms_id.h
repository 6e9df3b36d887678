// SPDX-License-Identifier: Apache-2.0
// PyTorch's `Comms Id`: the number that its traces give to one collective on all ranks. It hashes a tuple
// weakly (nearby tuples collide), so what is compared and shown is the tuple; the number is a checksum and a
// quick index.
//
// Where it comes from: what a program says through lockstep.h, and PyTorch's own files (Flight Recorder,
// profiler), hold the tuple, or the id itself. NCCL's callbacks do not: there torch_groups.h derives
// it.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::model {

struct CommsTuple {
  std::string_view pg_name;
  int64_t seq = 0;
  bool is_p2p = false;
  int32_t start = -1;   // global rank of the group's first member; -1 unknown to PyTorch
  int32_t stride = -1;  // -1 irregular
  int32_t world = 1;    // members
  bool operator==(const CommsTuple&) const = default;
};

// std::hash<std::string> of 64-bit libstdc++, written out so that it never depends on how we are built.
uint64_t pg_name_hash(std::string_view name);
uint64_t comms_id(const CommsTuple& tuple);
// "(0, 12, coll, 0, 1, 8)": name, seq, coll or p2p, start, stride, world.
std::string to_text(const CommsTuple& tuple);

// The group name in a communicator name of PyTorch's form, `<group description>:<group name>` (2026 on),
// where the group name is a decimal counter or a SHA-1 in hex; empty if it has another form.
std::string_view torch_group_name(std::string_view comm_name);
// The same of a group that a program named: every name is one, alone or in that form.
struct ParsedGroup {
  std::string_view name, description;
};
ParsedGroup parse_group(std::string_view name);

// "[4, 12]": a list as PyTorch prints it, of more than 30 numbers the first 29 and the last: "[0, 1, ...,
// 63]". `values`: all of them, or those alone; `total`: how many there are.
inline constexpr size_t kTorchListNumbers = 30;
template <class Number>
std::string torch_list(const std::vector<Number>& values, size_t total) {
  std::string text = "[";
  const bool is_cut = total > kTorchListNumbers;
  const size_t shown = is_cut ? std::min(values.size(), kTorchListNumbers - 1) : values.size();
  for (size_t i = 0; i < shown; ++i) text += (i == 0 ? "" : ", ") + std::to_string(values[i]);
  if (is_cut && !values.empty()) text += ", ..., " + std::to_string(values.back());
  return text + "]";
}

// How PyTorch describes the members of a group.
struct RankProgression {
  int32_t start = -1, stride = -1;
  bool operator==(const RankProgression&) const = default;
};
// What a stride is that PyTorch does not print, as it is not above 0.
constexpr int32_t default_stride(int64_t world) { return world == 1 ? 0 : -1; }
// Ranks in group order, at least one: a progression has its step, a single member stride 0, anything else -1.
RankProgression progression_of(std::span<const int32_t> ranks);

}  // namespace lockstep::model
