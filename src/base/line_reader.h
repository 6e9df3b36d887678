// SPDX-License-Identifier: Apache-2.0
// Lines of a file, one after the other, in bounded memory: a line that is longer than the limit is passed
// over and counted. The file may be written while it is read. One thread.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/input_file.h"

namespace lockstep {

class LineReader {
 public:
  // Bytes behind a line that may be read and have no meaning: parsers that look ahead need them.
  static constexpr size_t kPadding = 64;

  // `file` outlives the reader. Lines of up to `longest` bytes are handed out.
  LineReader(const InputFile& file, size_t longest);

  // The next line without its newline; valid until the next call. Nothing at the end of the file. A carriage
  // return stays.
  std::optional<std::string_view> next();
  // Where the last line that was handed out begins.
  uint64_t offset() const { return offset_; }
  // No newline ended the last line: the file is being written, or is cut.
  bool is_open() const { return open_; }
  uint64_t too_long() const { return too_long_; }

 private:
  void fill();

  const InputFile& file_;
  const size_t longest_;
  std::vector<char> buffer_;
  size_t begin_ = 0, end_ = 0;  // of what the buffer holds and nobody has asked for
  uint64_t file_at_ = 0;        // offset in the file of buffer_[end_]
  uint64_t offset_ = 0, too_long_ = 0;
  bool ended_ = false, open_ = false;
};

}  // namespace lockstep
