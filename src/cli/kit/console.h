// SPDX-License-Identifier: Apache-2.0
// The two voices of the program: results on stdout, everything said about them on stderr, each remark one
// line that begins with `lockstep: `. What is said and printed is tamed.
#pragma once
#include <string>
#include <string_view>

#include "base/result.h"

namespace lockstep::cli {

// Says what went wrong and returns kExitUsage.
int fail(const Error& error);
int fail(std::string_view message);
// Says something that is not an error.
void warn(std::string_view message);
// Writes to stdout. A closed or full stdout is an error: kExitUsage, else `code`.
int print(std::string_view text, int code = 0);
// The same for what draws on a terminal and therefore is written as it is: all but its own commands must be
// tamed.
int draw(std::string_view screen);
// Control characters become '?', but for ends of lines, tabs and the codes of Style: whatever names a file
// holds, a terminal obeys none.
std::string tamed(std::string_view text);

}  // namespace lockstep::cli
