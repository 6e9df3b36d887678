// SPDX-License-Identifier: Apache-2.0
// Appends JSON text to a large buffer that goes to the output when it is full. Formatting is by hand, because numbers
// are most of a timeline. The caller keeps the JSON well-formed; text() escapes what it must. One thread.
#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "exporters/chrome_json/output_file.h"

namespace lockstep::exporters::chrome_json {

// Quoted and escaped, control characters too (Perfetto refuses bare ones, DEL included); bytes that are not UTF-8
// become '?'.
std::string json_string(std::string_view text);

class JsonWriter {
 public:
  explicit JsonWriter(OutputFile& file) : file_(file) {}
  JsonWriter& raw(std::string_view text) {
    if (Buffer::kBytes - buffer_.size < text.size()) return raw_in_pieces(text);
    std::memcpy(buffer_.data.get() + buffer_.size, text.data(), text.size());
    buffer_.size += text.size();
    return *this;
  }
  // Begins an element of the list of events with `text`: a comma stands before every one but the first.
  JsonWriter& event(std::string_view text) {
    raw(separator_);
    separator_ = ",\n";
    return raw(text);
  }
  JsonWriter& number(uint64_t value);
  JsonWriter& signed_number(int64_t value);
  // Nanoseconds as microseconds with three decimals.
  JsonWriter& micros(int64_t ns);
  JsonWriter& text(std::string_view value) { return raw(json_string(value)); }
  void flush() {
    if (buffer_.size > 0) file_.write(buffer_);
  }

 private:
  static constexpr size_t kLongestNumber = 32;
  JsonWriter& raw_in_pieces(std::string_view text);
  char* number_space() {
    if (Buffer::kBytes - buffer_.size < kLongestNumber) flush();
    return buffer_.data.get() + buffer_.size;
  }
  void take_number(const char* end) { buffer_.size = static_cast<size_t>(end - buffer_.data.get()); }
  OutputFile& file_;
  Buffer buffer_;
  std::string_view separator_ = "\n";
};

}  // namespace lockstep::exporters::chrome_json
