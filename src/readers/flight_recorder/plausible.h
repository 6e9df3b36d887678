// SPDX-License-Identifier: Apache-2.0
// A dump has no checksum. What its recorder always does stands in for one: each entry has the keys that are
// needed and a state that there is, records are numbered one by one, operations of a group do not go back,
// and times are near each other.
#pragma once
#include <cstdint>
#include <map>
#include <string>

#include "readers/flight_recorder/dump.h"
#include "readers/flight_recorder/value.h"

namespace lockstep::readers::flight_recorder {

class Plausibility {
 public:
  // The next entry as it stands in the file, and as it was understood.
  void look(const Values& values, ValueId from, const Entry& entry, const Dump& dump);
  // Entries that no recorder writes so.
  uint64_t impossible() const { return impossible_; }

 private:
  bool has_its_keys(const Values& values, ValueId from) const;
  bool follows(const Values& values, ValueId from);
  bool has_its_time(const Values& values, ValueId from, const Entry& entry);
  bool has_its_group(const Entry& entry, const Dump& dump);

  int64_t record_ = -1, created_ns_ = 0;
  std::map<uint32_t, int64_t> seq_;  // by group: the newest
  uint64_t impossible_ = 0;
};

}  // namespace lockstep::readers::flight_recorder
