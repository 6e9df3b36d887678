// SPDX-License-Identifier: Apache-2.0
// Fields of JSON objects that other tools wrote. A field that is absent, of another type or out of range is
// its fallback.
#pragma once
#include <simdjson.h>

#include <cstdint>
#include <limits>
#include <string_view>

#include "base/line_reader.h"

namespace lockstep::readers::common {

static_assert(LineReader::kPadding >= simdjson::SIMDJSON_PADDING, "a line is parsed where it lies");

// Whole numbers from 0 on.
template <class T>
T number_or(const simdjson::dom::element& object, std::string_view key, T fallback) {
  uint64_t value = 0;
  if (object[key].get(value) != simdjson::SUCCESS || value > uint64_t{std::numeric_limits<T>::max()})
    return fallback;
  return static_cast<T>(value);
}
// False where it is absent or no boolean.
bool is_true(const simdjson::dom::element& object, std::string_view key);
// At most 256 bytes of it.
std::string_view text_or_empty(const simdjson::dom::element& object, std::string_view key);
// 0 where that is more than any time.
int64_t ns_of_us(uint64_t us);

}  // namespace lockstep::readers::common
