// SPDX-License-Identifier: Apache-2.0
// The bytes of a process file as they would be if all that its process has recorded were in it: on the host
// of the process, what is in its segment (format/segment_layout.h) is laid over the file. A chunk that leaves
// the segment while it is read is in the file by then. Reads may come from any thread.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/input_file.h"
#include "base/result.h"
#include "format/records.h"
#include "format/segment_layout.h"

namespace lockstep::readers::native {

class ProcessBytes {
 public:
  // The errors of InputFile::open. A segment that is gone, or not this file's, is none: then the file is all.
  static Result<ProcessBytes> open(const std::string& path);

  // As InputFile, but a read ends at the end of the header or chunk that it begins in. `is_live`: these bytes
  // come from the segment, and what lies behind the published entries of the chunk means nothing. What a read
  // sees, the next one sees, too; the bytes of one read may be of different moments, in any order.
  size_t read_at(uint64_t offset, std::span<std::byte> out, bool* is_live = nullptr) const;
  // What is there of a record. Its head is read first: what that says of the other fields holds for what is
  // read after it.
  template <class Record>
  Record record_at(uint64_t offset) const {
    format::RecordHead head{};
    Record record{};
    read_at(offset, std::as_writable_bytes(std::span(&head, 1)));
    read_at(offset, std::as_writable_bytes(std::span(&record, 1)));
    std::memcpy(static_cast<void*>(&record), &head, sizeof head);
    return record;
  }
  // As InputFile, with the segment's chunks: whoever scans skips what is a hole in both.
  uint64_t next_data(uint64_t offset) const;
  bool has_segment() const { return segment_.has_value(); }
  uint64_t size() const { return size_; }  // when it was opened
  uint64_t device() const { return file_.device(); }
  uint64_t inode() const { return file_.inode(); }
  const std::string& path() const { return file_.path(); }

 private:
  // The chunk with this number in the file lies in this place of the segment.
  struct Place {
    uint32_t number, place;
  };
  explicit ProcessBytes(InputFile file) : file_(std::move(file)), size_(file_.size()) {}
  static std::optional<InputFile> open_segment(const InputFile& file, const format::FileHeader& header,
                                               format::SegmentHeader& own);
  // Which chunks the segment has, as of now. Later ones are not seen.
  void read_table();
  const Place* find(uint32_t number) const;
  size_t read_header(uint64_t offset, std::span<std::byte> out) const;

  InputFile file_;
  std::optional<InputFile> segment_;
  format::SegmentHeader own_{};  // of the segment
  std::vector<Place> places_;    // by number
  uint64_t size_;
};

}  // namespace lockstep::readers::native
