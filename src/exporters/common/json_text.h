// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

namespace lockstep::exporters::common {

// Quoted and escaped, control characters too (Perfetto refuses bare ones, DEL included); bytes that are not
// UTF-8 become '?'.
std::string json_string(std::string_view text);

}  // namespace lockstep::exporters::common
