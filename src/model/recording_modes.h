// SPDX-License-Identifier: Apache-2.0
// When a process recorded nothing because somebody asked for that, from Process::modes: every mode that was
// in force, with since when in ns: "default 1700000000000000000, off 1700000005000000000".
#pragma once
#include <string_view>

namespace lockstep::model {

// For a while, or to its end.
bool was_off(std::string_view modes);
// To its end: what it called since then is not known.
bool is_off(std::string_view modes);

}  // namespace lockstep::model
