// SPDX-License-Identifier: Apache-2.0
// What `ethtool -S` printed of network interfaces, one or several: their drivers' counters. It names no
// interface; a line with the command, as a terminal shows it, does.
#pragma once
#include <string>
#include <string_view>

#include "base/result.h"
#include "links/record.h"

namespace lockstep::links {

bool is_ethtool(std::string_view text);
// An error if an interface has no counters or one twice, a counter is no number, or the text is cut.
Result<LinksRecord> parse_ethtool(std::string_view text, const std::string& where);

}  // namespace lockstep::links
