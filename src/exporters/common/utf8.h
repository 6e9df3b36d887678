// SPDX-License-Identifier: Apache-2.0
// Names come from programs that may write anything.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace lockstep::exporters::common {

// Length of the well-formed UTF-8 sequence at the start, 0 if there is none.
size_t utf8_length(std::string_view text);
// The text with '?' for each byte that is not UTF-8.
std::string valid_utf8(std::string_view text);

}  // namespace lockstep::exporters::common
