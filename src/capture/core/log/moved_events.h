// SPDX-License-Identifier: Apache-2.0
// Ring retention: an event that is still open when its chunk is overwritten moves on with the newest records.
// Here is under which handle the host knows it, where it is now, and which events have ended although their
// own records do not say so. The log's owner thread moves events; any thread may ask for one, or note an end.
// All zero is empty.
#pragma once
#include <cstdint>

#include "format/records.h"

namespace lockstep::capture {

// Events that were open in a chunk which is overwritten, while they have no place in the file.
struct OpenEvents {
  static constexpr uint32_t kMost = 32;
  uint32_t count = 0;
  struct {
    uint64_t handle;
    char bytes[sizeof(format::ApiOpRecord)];
  } events[kMost];
};

class MovedEvents {
 public:
  // Owner: where an event is now; 0 if it is none of these.
  uint64_t now(uint64_t handle) const;
  // Any thread.
  bool has(uint64_t handle) const;
  // Any thread: the event ended, and its record cannot say so. The first call maps memory, a bit for each
  // unit that the log can hold. If the event is just being overwritten, the call may come too late: the bit
  // is then that of the next event in its place, which is overwritten and counted, or the event moves on as
  // one that never ends.
  void note_end(uint64_t handle);

  // Owner: of a handle's record as it is now.
  bool has_noted_end(uint64_t handle) const;
  // Owner: the chunk's units get other events.
  void forget_ends(uint64_t chunk_no);
  // Owner: forgets events whose records are older than `oldest_chunk_no` and not among the open ones.
  void forget_overwritten(const OpenEvents& open, uint64_t oldest_chunk_no);
  struct Entry {
    uint64_t issued;  // as the host knows it; 0 free; atomic
    uint64_t now;     // of its newest record
    uint64_t ended;   // `issued`, once note_end() was called for it; atomic
  };
  // Owner: the entry of the event whose newest record was at `handle`, or a free one; nullptr if there is
  // none.
  Entry* entry_for(uint64_t handle);

 private:
  Entry entries_[OpenEvents::kMost];
  uint64_t* ends_;  // atomic, as what it points to; nullptr until note_end() needs it
};

}  // namespace lockstep::capture
