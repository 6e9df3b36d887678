// SPDX-License-Identifier: Apache-2.0
// Appends JSON text to the output. Formatting is by hand, because numbers are most of a timeline. The caller
// keeps the JSON well-formed; text() escapes what it must. One thread.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "exporters/common/buffered_output.h"
#include "exporters/common/json_text.h"

namespace lockstep::exporters::chrome_json {

using common::json_string;

class JsonWriter {
 public:
  explicit JsonWriter(common::OutputFile& file) : out_(file) {}
  JsonWriter& raw(std::string_view text) {
    out_.append(text);
    return *this;
  }
  // Begins an element of the list of events with `text`: a comma stands before every one but the first.
  JsonWriter& event(std::string_view text) {
    raw(separator_);
    separator_ = ",\n";
    return raw(text);
  }
  // Elements come behind others that were written as text.
  void follow() { separator_ = ",\n"; }
  JsonWriter& number(uint64_t value);
  JsonWriter& signed_number(int64_t value);
  // Nanoseconds as microseconds with three decimals.
  JsonWriter& micros(int64_t ns) { return thousandths(ns); }
  // A thousandth of the value, with three decimals.
  JsonWriter& thousandths(int64_t value);
  JsonWriter& text(std::string_view value) { return raw(json_string(value)); }
  void flush() { out_.flush(); }

 private:
  static constexpr size_t kLongestNumber = 32;
  common::BufferedOutput out_;
  std::string_view separator_ = "\n";
};

}  // namespace lockstep::exporters::chrome_json
