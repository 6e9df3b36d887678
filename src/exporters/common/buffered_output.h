// SPDX-License-Identifier: Apache-2.0
// Appends bytes to a large buffer that goes to the output when it is full. One thread.
#pragma once
#include <algorithm>
#include <cstring>
#include <string_view>

#include "exporters/common/output_file.h"

namespace lockstep::exporters::common {

class BufferedOutput {
 public:
  explicit BufferedOutput(OutputFile& file) : file_(file) {}
  void append(std::string_view text) {
    if (Buffer::kBytes - buffer_.size < text.size()) return append_in_pieces(text);
    std::memcpy(buffer_.data.get() + buffer_.size, text.data(), text.size());
    buffer_.size += text.size();
  }
  // Room for `bytes` (far fewer than a buffer has) in one piece; take() says where the caller stopped writing
  // there.
  char* room(size_t bytes) {
    if (Buffer::kBytes - buffer_.size < bytes) flush();
    return buffer_.data.get() + buffer_.size;
  }
  void take(const char* end) { buffer_.size = static_cast<size_t>(end - buffer_.data.get()); }
  void flush() {
    if (buffer_.size > 0) file_.write(buffer_);
  }

 private:
  void append_in_pieces(std::string_view text) {
    while (!text.empty()) {
      const size_t size = std::min(text.size(), Buffer::kBytes - buffer_.size);
      std::memcpy(buffer_.data.get() + buffer_.size, text.data(), size);
      buffer_.size += size;
      text.remove_prefix(size);
      if (buffer_.size == Buffer::kBytes) flush();
    }
  }
  OutputFile& file_;
  Buffer buffer_;
};

}  // namespace lockstep::exporters::common
