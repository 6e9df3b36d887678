// SPDX-License-Identifier: Apache-2.0
// Lines of a log as web pages, issue trackers and collectors keep them: with tags and named characters of
// HTML, or with the escapes that JSON's writers use for brackets and colours.
#pragma once
#include <string>
#include <string_view>

namespace lockstep {

// Whether a text has any of that; of its first bytes.
bool has_markup(std::string_view text);

// A line without it. Valid while `scratch` and the line are. Tags that are not HTML's, such as "<host>",
// stay.
std::string_view without_markup(std::string_view line, std::string& scratch);

}  // namespace lockstep
