// SPDX-License-Identifier: Apache-2.0
// Pairs the classes of two runs. A class that the other run has only with times of another kind is listed
// apart: it is there, and its times do not compare. Only what the other run lacks in any kind of time counts
// as lacking.
#include "analysis/compare/class_pairs.h"

#include <map>
#include <optional>

namespace lockstep::analysis::compare {
namespace {

// The class of the same function, size and communicator with the first of its times.
const ClassKey* in_any_time(const Classes& classes, ClassKey key) {
  // The source is the last part of a key, so its classes follow each other from 0 on.
  key.source = 0;
  const auto at = classes.lower_bound(key);
  const bool found = at != classes.end() && at->first.func == key.func && at->first.bucket == key.bucket &&
                     at->first.comm == key.comm;
  return found ? &at->first : nullptr;
}

}  // namespace

ClassPairs pair_classes(const Classes& a, const Classes& b, std::span<const CommPair> comms, bool resized) {
  std::map<uint32_t, uint32_t> to_b, to_a;
  for (const CommPair& pair : comms) {
    if (pair.resized && !resized) continue;
    to_b.emplace(pair.a, pair.b);
    to_a.emplace(pair.b, pair.a);
  }
  const auto translated = [](ClassKey key,
                             const std::map<uint32_t, uint32_t>& comms) -> std::optional<ClassKey> {
    const auto comm = comms.find(key.comm);
    if (comm == comms.end()) return std::nullopt;
    key.comm = comm->second;
    return key;
  };
  ClassPairs out;
  for (const auto& [key, of] : a) {
    const auto there = translated(key, to_b);
    if (!there) continue;
    if (b.contains(*there))
      out.same.emplace_back(key, *there);
    else if (const ClassKey* near = in_any_time(b, *there); near != nullptr)
      out.other_clock.emplace_back(key, *near);
    else
      out.only_a.push_back(key);
  }
  for (const auto& [key, of] : b) {
    const auto there = translated(key, to_a);
    if (there && in_any_time(a, *there) == nullptr) out.only_b.push_back(key);
  }
  return out;
}

}  // namespace lockstep::analysis::compare
