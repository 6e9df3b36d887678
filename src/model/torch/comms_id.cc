// SPDX-License-Identifier: Apache-2.0
// Ids have to be those of PyTorch bit for bit, whatever library and compiler build this. So both parts are
// written out: the hash of a text that 64-bit libstdc++ has (MurmurHash64A with its own seed), and the way in
// which c10 folds a tuple.
#include "model/torch/comms_id.h"

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

}  // namespace

uint64_t pg_name_hash(std::string_view name) {
  constexpr uint64_t kMul = 0xc6a4a7935bd1e995;
  uint64_t h = 0xc70f6907 ^ (name.size() * kMul);
  size_t i = 0;
  for (; i + 8 <= name.size(); i += 8)
    h = (h ^ (mix(load_little_endian(name.data() + i, 8) * kMul) * kMul)) * kMul;
  // The last bytes are read as one number, the missing ones as 0.
  if (i < name.size()) h = (h ^ load_little_endian(name.data() + i, name.size() - i)) * kMul;
  return mix(mix(h) * kMul);
}

uint64_t comms_id(const CommsTuple& tuple) {
  uint64_t t = pg_name_hash(tuple.pg_name);
  for (int64_t field : {tuple.seq, int64_t{tuple.is_p2p}, int64_t{tuple.start}, int64_t{tuple.stride},
                        int64_t{tuple.world}}) {
    auto x = static_cast<uint64_t>(field);
    // c10 takes the field for the seed and what came before for the value, not the other way round. A number
    // is its own hash.
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

ParsedGroup parse_group(std::string_view name) {
  const std::string_view torch = torch_group_name(name);
  if (torch.empty()) return {name, {}};
  return {torch, name.substr(0, name.size() - torch.size() - 1)};
}

RankProgression progression_of(std::span<const int32_t> ranks) {
  int64_t step = ranks.size() == 1 ? 0 : int64_t{ranks[1]} - ranks[0];
  for (size_t i = 1; i < ranks.size(); ++i) {
    if (step <= 0 || step > INT32_MAX || int64_t{ranks[i]} - ranks[i - 1] != step) return {ranks[0], -1};
  }
  return {ranks[0], static_cast<int32_t>(step)};
}

}  // namespace lockstep::model
