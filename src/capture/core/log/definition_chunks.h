// SPDX-License-Identifier: Apache-2.0
// The chunks that hold a log's definitions, one behind the other. Owner thread of the log only; all zero
// before begin().
#pragma once
#include "capture/core/log/chunk.h"
#include "capture/core/log/definition_writer.h"

namespace lockstep::capture {

// A full chunk names its successor before anything is written there.
class DefinitionChunks {
 public:
  void begin(uint32_t index, LogOwner owner) {
    owner_ = owner;
    chunk_ = open_chunk(index, format::Purpose::kDefs, 0, owner);
    used_ = sizeof(format::ChunkHeader);
  }
  void set_owner(LogOwner owner) { owner_ = owner; }

  // Uncleared room; nullptr if there is no chunk for it.
  char* room(size_t bytes) {
    if (used_ + bytes > format::kLastUnit * format::kUnitBytes) {
      const uint32_t index = Session::get().file().claim_definitions();
      if (index == kNoChunk) return nullptr;
      name_next(chunk_, index);
      chunk_ = open_chunk(index, format::Purpose::kDefs, ++chunk_no_, owner_);
      used_ = sizeof(format::ChunkHeader);
    }
    char* at = chunk_ + used_;
    used_ += static_cast<uint32_t>(bytes);
    return at;
  }
  // A cleared definition, to be filled and published; nullptr if there is no chunk for it.
  template <class Definition>
  Definition* define() {
    char* at = room(sizeof(Definition));
    return at != nullptr ? clear_definition<Definition>(at) : nullptr;
  }

 private:
  char* chunk_;
  uint32_t used_;  // bytes
  uint32_t chunk_no_;
  LogOwner owner_;
};

}  // namespace lockstep::capture
