// SPDX-License-Identifier: Apache-2.0
// Values of a dump, whatever wrote it. A wrong kind, an absent key and a number that does not fit all give
// the caller's default, so that reading needs no checks of its own.
#include "readers/flight_recorder/value.h"

#include <charconv>
#include <cmath>

namespace lockstep::readers::flight_recorder {

ValueId Values::find(ValueId dict, std::string_view key) const {
  if (!is_dict(dict)) return kNoValue;
  const std::vector<ValueId>& items = values_[dict].items;
  // From the end: of a key that is there twice Python keeps the last.
  for (size_t i = items.size() / 2; i-- > 0;) {
    if (text(items[2 * i]) == key) return items[2 * i + 1];
  }
  return kNoValue;
}

const std::vector<ValueId>& Values::items(ValueId id) const {
  static const std::vector<ValueId> kNothing;
  return id == kNoValue ? kNothing : values_[id].items;
}

int64_t Values::integer(ValueId id, int64_t otherwise) const {
  if (id == kNoValue) return otherwise;
  const Value& value = values_[id];
  switch (value.kind) {
    case Value::Kind::kBool:
    case Value::Kind::kInt:
      return value.integer;
    case Value::Kind::kFloat:
      // Converting a number that does not fit is undefined behaviour. This refuses "inf" and "nan" as well.
      return std::abs(value.number) < 0x1p62 ? static_cast<int64_t>(value.number) : otherwise;
    case Value::Kind::kText: {
      int64_t integer = 0;
      const auto [end, error] =
          std::from_chars(value.text.data(), value.text.data() + value.text.size(), integer);
      return error == std::errc{} && end == value.text.data() + value.text.size() ? integer : otherwise;
    }
    default:
      return otherwise;
  }
}

std::string_view Values::text(ValueId id) const {
  return id == kNoValue ? std::string_view() : values_[id].text;
}

}  // namespace lockstep::readers::flight_recorder
