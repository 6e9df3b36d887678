// SPDX-License-Identifier: Apache-2.0
#include "model/comms_id.h"

#include <charconv>
#include <cstring>

namespace lockstep::model {
namespace {

uint64_t mix(uint64_t v) { return v ^ (v >> 47); }

uint64_t load_little_endian(const char* bytes, size_t n) {
  uint64_t value = 0;
  for (size_t i = 0; i < n; ++i) value |= uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  return value;
}

bool all_of(std::string_view text, std::string_view alphabet) {
  return text.find_first_not_of(alphabet) == std::string_view::npos;
}

// Sets start and stride from "4,6,8"; false unless the list has `world` members. PyTorch: a progression has its
// step, a single member stride 0, anything else -1.
bool ranks_from_members(std::string_view members, CommsTuple& tuple) {
  std::vector<int32_t> ranks;
  while (!members.empty()) {
    int32_t rank = 0;
    auto [end, error] = std::from_chars(members.data(), members.data() + members.size(), rank);
    if (error != std::errc{}) return false;
    ranks.push_back(rank);
    members.remove_prefix(static_cast<size_t>(end - members.data()));
    if (!members.empty() && members.front() != ',') return false;
    if (!members.empty()) members.remove_prefix(1);
  }
  if (ranks.empty() || ranks.size() != static_cast<size_t>(tuple.world)) return false;
  tuple.start = ranks[0];
  int64_t step = ranks.size() == 1 ? 0 : int64_t{ranks[1]} - ranks[0];
  for (size_t i = 1; i < ranks.size(); ++i) {
    if (int64_t{ranks[i]} - ranks[i - 1] != step || step <= 0) step = -1;
    if (step == -1) break;
  }
  tuple.stride = static_cast<int32_t>(step);
  return true;
}

}  // namespace

uint64_t pg_name_hash(std::string_view name) {
  constexpr uint64_t kMul = 0xc6a4a7935bd1e995;
  uint64_t h = 0xc70f6907 ^ (name.size() * kMul);
  size_t i = 0;
  for (; i + 8 <= name.size(); i += 8)
    h = (h ^ (mix(load_little_endian(name.data() + i, 8) * kMul) * kMul)) * kMul;
  if (i < name.size()) h = (h ^ load_little_endian(name.data() + i, name.size() - i)) * kMul;
  return mix(mix(h) * kMul);
}

uint64_t comms_id(const CommsTuple& tuple) {
  uint64_t t = pg_name_hash(tuple.pg_name);
  for (int64_t field : {tuple.seq, int64_t{tuple.is_p2p}, int64_t{tuple.start}, int64_t{tuple.stride},
                        int64_t{tuple.world}}) {
    auto x = static_cast<uint64_t>(field);
    t = x ^ (t + 0x9e3779b9 + (x << 6) + (x >> 2));
  }
  return t;
}

std::string to_text(const CommsTuple& tuple) {
  std::string text = "(";
  text += tuple.pg_name;
  text += ", " + std::to_string(tuple.seq) + (tuple.is_p2p ? ", p2p, " : ", coll, ");
  text += std::to_string(tuple.start) + ", " + std::to_string(tuple.stride) + ", " +
          std::to_string(tuple.world) + ")";
  return text;
}

std::string_view torch_group_name(std::string_view comm_name) {
  size_t colon = comm_name.rfind(':');
  if (colon == std::string_view::npos) return {};
  std::string_view name = comm_name.substr(colon + 1);
  bool counter = !name.empty() && name.size() <= 10 && all_of(name, "0123456789");
  bool sha1 = name.size() == 40 && all_of(name, "0123456789abcdef");
  return counter || sha1 ? name : std::string_view{};
}

TorchGroups::TorchGroups(const Trace& trace) : trace_(trace), groups_(trace.comms.size()) {
  const CommTable& comms = trace.comms;
  for (uint32_t row = 0; row < comms.size(); ++row) {
    Group& group = groups_[row];
    group.tuple.pg_name = torch_group_name(trace.strings[comms.name[row]]);
    group.tuple.world = comms.ranks[row];
    if (group.tuple.pg_name.empty() || group.tuple.world <= 0) continue;
    if (std::string_view members = trace.strings[comms.members[row]]; !members.empty()) {
      group.certain = ranks_from_members(members, group.tuple);
    } else if (trace.processes.size() == 1 && trace.processes.world[0] == group.tuple.world) {
      group.tuple.start = group.tuple.world == 1 ? trace.processes.rank[0] : 0;
      group.tuple.stride = group.tuple.world == 1 ? 0 : 1;
      group.certain = trace.processes.rank[0] >= 0;
    }
  }
}

std::optional<CommsTuple> TorchGroups::next(uint32_t op) {
  const OpTable& ops = trace_.ops;
  uint32_t comm = ops.comm[op];
  if (comm >= groups_.size() || !groups_[comm].certain || ops.index[op] == kNoIndex) return std::nullopt;
  Group& group = groups_[comm];
  bool coalesced = ops.group[op] != kNoRow && ops.group[op] == group.last_group_call;
  if (ops.peer[op] >= 0 || coalesced || ops.index[op] != group.next_index) {
    group.certain = false;
    return std::nullopt;
  }
  group.last_group_call = ops.group[op];
  group.next_index = ops.index[op] + 1;
  group.tuple.seq = int64_t{ops.index[op]} + 1;
  return group.tuple;
}

}  // namespace lockstep::model
