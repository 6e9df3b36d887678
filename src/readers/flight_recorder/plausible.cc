// SPDX-License-Identifier: Apache-2.0
// Holds each entry against what a recorder writes: its keys, the record after the one before, times near each
// other, a group that has the rank, numbers that ascend. A pickle has no checksum, and one changed byte in a
// number or a text still parses; without this it would become an operation that no rank called. An entry that
// fails is counted and kept, and the dump counts as damaged.
#include "readers/flight_recorder/plausible.h"

#include <algorithm>

namespace lockstep::readers::flight_recorder {
namespace {

constexpr int64_t kHourNs = int64_t{3'600} * 1'000'000'000;  // a clock may be set
constexpr int64_t kMonthNs = 31 * 24 * kHourNs;
constexpr int64_t kMostUnseen = 16;  // operations of a group that leave no entry: coalesced ones may

bool is_near(int64_t ns, int64_t other_ns) { return ns >= other_ns - kHourNs && ns - kMonthNs <= other_ns; }

}  // namespace

void Plausibility::look(const Values& values, ValueId from, const Entry& entry, const Dump& dump) {
  // All four are asked, as three of them remember the entry for the next one.
  const bool keys = has_its_keys(values, from), record = follows(values, from),
             time = has_its_time(values, from, entry), group = has_its_group(entry, dump);
  impossible_ += !(keys && record && time && group);
}

bool Plausibility::has_its_keys(const Values& values, ValueId from) const {
  for (const char* key : {"profiling_name", "time_created_ns", "input_sizes"}) {
    if (values.find(from, key) == kNoValue) return false;
  }
  const std::string_view state = values.text(values.find(from, "state"));
  if (state != "scheduled" && state != "started" && state != "completed") return false;
  const std::string_view name = values.text(values.find(from, "profiling_name"));
  constexpr size_t kLongest = 1024;
  return !name.empty() && name.size() <= kLongest &&
         std::all_of(name.begin(), name.end(), [](char c) { return c >= ' ' && c < 0x7f; });
}

bool Plausibility::follows(const Values& values, ValueId from) {
  const int64_t record = values.integer(values.find(from, "record_id"), -1), before = record_;
  record_ = record;
  return record >= 0 && (before < 0 || record - 1 == before);
}

bool Plausibility::has_its_time(const Values& values, ValueId from, const Entry& entry) {
  const int64_t before = created_ns_;
  created_ns_ = entry.created_ns;
  if (entry.created_ns <= 0 || (before != 0 && !is_near(entry.created_ns, before))) return false;
  for (const char* key : {"time_discovered_started_ns", "time_discovered_completed_ns"}) {
    const int64_t seen = values.integer(values.find(from, key), 0);
    if (seen != 0 && !is_near(seen, entry.created_ns)) return false;
  }
  return true;
}

bool Plausibility::has_its_group(const Entry& entry, const Dump& dump) {
  const Group& group = dump.groups[entry.group];
  const bool is_member = dump.rank < 0 || group.ranks.empty() ||
                         std::find(group.ranks.begin(), group.ranks.end(), dump.rank) != group.ranks.end();
  // Sends and receives have numbers of the rank's own.
  if (!is_member || entry.is_p2p || entry.seq < 0) return is_member;
  const auto [at, is_first] = seq_.try_emplace(entry.group, entry.seq);
  const int64_t before = at->second;
  at->second = entry.seq;
  return is_first || (entry.seq >= before && entry.seq - before <= kMostUnseen);
}

}  // namespace lockstep::readers::flight_recorder
