// SPDX-License-Identifier: Apache-2.0
// Numbers are written into the output's buffer directly: std::to_chars knows no locale, copies nothing and
// allocates nothing. Times are whole nanoseconds, so their three decimals are exact; a double would round the
// times of long runs.
#include "exporters/chrome_json/json_writer.h"

#include <charconv>

namespace lockstep::exporters::chrome_json {

JsonWriter& JsonWriter::number(uint64_t value) {
  char* at = out_.room(kLongestNumber);
  out_.take(std::to_chars(at, at + kLongestNumber, value).ptr);
  return *this;
}

JsonWriter& JsonWriter::signed_number(int64_t value) {
  char* at = out_.room(kLongestNumber);
  out_.take(std::to_chars(at, at + kLongestNumber, value).ptr);
  return *this;
}

JsonWriter& JsonWriter::thousandths(int64_t value) {
  char* at = out_.room(kLongestNumber);
  char* limit = at + kLongestNumber;
  auto size = static_cast<uint64_t>(value);
  if (value < 0) {
    *at++ = '-';
    // Unsigned: the smallest number has no positive counterpart in int64_t.
    size = 0 - size;
  }
  at = std::to_chars(at, limit, size / 1000).ptr;
  auto rest = static_cast<unsigned>(size % 1000);
  *at++ = '.';
  *at++ = static_cast<char>('0' + rest / 100);
  *at++ = static_cast<char>('0' + rest / 10 % 10);
  *at++ = static_cast<char>('0' + rest % 10);
  out_.take(at);
  return *this;
}

}  // namespace lockstep::exporters::chrome_json
