// SPDX-License-Identifier: Apache-2.0
#include "model/recording_modes.h"

namespace lockstep::model {
namespace {

// With the blank before the time: no other mode may begin so.
constexpr std::string_view kOff = "off ", kNext = ", ";

}  // namespace

bool was_off(std::string_view modes) {
  return modes.starts_with(kOff) || modes.find(", off ") != std::string_view::npos;
}

bool is_off(std::string_view modes) {
  const size_t last = modes.rfind(kNext);
  return modes.substr(last == std::string_view::npos ? 0 : last + kNext.size()).starts_with(kOff);
}

}  // namespace lockstep::model
