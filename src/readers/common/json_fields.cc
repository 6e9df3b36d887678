// SPDX-License-Identifier: Apache-2.0
#include "readers/common/json_fields.h"

namespace lockstep::readers::common {
namespace {

constexpr size_t kLongestText = 256;
// 143 years; in ns it fits into 64 bits.
constexpr uint64_t kMostUs = uint64_t{1} << 52;

}  // namespace

bool is_true(const simdjson::dom::element& object, std::string_view key) {
  bool value = false;
  return object[key].get(value) == simdjson::SUCCESS && value;
}

std::string_view text_or_empty(const simdjson::dom::element& object, std::string_view key) {
  std::string_view text;
  if (object[key].get(text) != simdjson::SUCCESS) return {};
  // Valid until the next line is parsed, as all that the parser gives.
  return text.substr(0, kLongestText);
}

int64_t ns_of_us(uint64_t us) { return us < kMostUs ? static_cast<int64_t>(us * 1'000) : 0; }

}  // namespace lockstep::readers::common
