// SPDX-License-Identifier: Apache-2.0
// Ring retention: seals the chunks of a process file (format/seal.h) beside the threads that write them: by the keeper with each heartbeat, and
// at close. A chunk that nobody writes to any more is sealed once. One thread at a time; never on the event path.
#pragma once
#include <cstdint>

#include "capture/core/process_file.h"
#include "format/seal.h"

namespace lockstep::capture {

class Sealer {
 public:
  void seal_all(ProcessFile& file);

 private:
  void find_newest(const ProcessFile& file, uint32_t chunks);
  bool is_past(const format::ChunkHeader& header) const;
  void seal(char* chunk, uint32_t index);

  struct Newest {  // number of the newest chunk of each list of a log
    uint32_t defs, records;
  };
  Newest newest_[format::kMaxLogs + 1] = {};
  uint32_t* sealed_ = nullptr;  // by chunk: 1 + the number that it had when it was sealed for good
  alignas(64) unsigned char copy_[format::kChunkBytes] = {};
};

}  // namespace lockstep::capture
