// SPDX-License-Identifier: Apache-2.0
// Tells records that capture can have written from damage, where no checksum does: by their kind and their
// times, which lie between the begin of the file and its last heartbeat.
#pragma once
#include <cstdint>

#include "format/records.h"
#include "readers/native/file/file_view.h"

namespace lockstep::readers::native {

// Made from the file's header alone. Not changed afterwards; any number of threads may ask.
class Plausible {
 public:
  explicit Plausible(const FileView& view);

  // Says nothing of a record's other fields: those are checked where they are used.
  bool operator()(const format::RecordHead& head) const;
  // Records that only name others have none.
  static bool has_time(format::Kind kind) {
    return kind != format::Kind::kLink && kind != format::Kind::kUserTag;
  }

 private:
  bool is_time(uint64_t ticks) const { return ticks >= earliest_ && ticks <= latest_; }

  // Ticks of the host clock that an event can have.
  uint64_t earliest_ = 0, latest_ = UINT64_MAX;
};

// The last sign of life of a file in ticks of its host clock; 0 unknown. The header has it on three clocks:
// where the cycle counter's contradicts the others, as after damage, it is worked out from them.
uint64_t heartbeat_ticks(const format::FileHeader& header);

}  // namespace lockstep::readers::native
