// SPDX-License-Identifier: Apache-2.0
// The process's segment (format/segment_layout.h): memory for the chunks that are not finally in the file,
// which outlives the process where the host allows it.
#pragma once
#include <cstdint>

#include "capture/core/file/own_file.h"
#include "capture/core/host/identity.h"
#include "format/segment_layout.h"

namespace lockstep::capture {

class Segment {
 public:
  // A mapping of so many places, none of which has memory yet; smaller where address space is limited. It has
  // a name where there is room for `needed` of them and for others. False, with errno.
  bool create(const Identity& identity, format::Source source, uint32_t places, uint32_t needed);
  bool usable() const { return base_ != nullptr; }
  // Memory for these places, so that no store to them can fail. Any thread.
  bool allocate(uint32_t first, uint32_t places);
  bool allocate_header();
  // Says whose it is: from now on it can be found.
  void publish(const OwnFile& file, uint64_t key);
  // The process ends in order; whoever finds the segment may close the file.
  void mark_closed() { __atomic_store_n(&header()->closed, 1u, __ATOMIC_RELEASE); }
  // Its name goes; the memory stays.
  void remove();

  uint32_t places() const { return places_; }
  // Of the file's header, which the places follow.
  char* file_begin() const { return base_ + format::segment_file_offset(places_); }
  uint32_t* table() const { return reinterpret_cast<uint32_t*>(base_ + format::kSegmentHeaderBytes); }
  // Empty: it dies with the process, and with whoever has opened descriptor().
  const char* name() const { return name_; }
  // By which the launcher can open a segment without a name; 0 none.
  uint32_t descriptor() { return name_[0] == 0 && file_.get() > 0 ? static_cast<uint32_t>(file_.get()) : 0; }

 private:
  format::SegmentHeader* header() const { return reinterpret_cast<format::SegmentHeader*>(base_); }
  bool make_named(const Identity& identity, format::Source source, uint64_t bytes);
  bool make_nameless(uint64_t bytes);
  void drop();
  bool map(uint32_t places, int fd);

  char* base_ = nullptr;
  uint32_t places_ = 0;
  OwnFile file_;
  char name_[sizeof format::FileHeader::segment] = {};
};

}  // namespace lockstep::capture
