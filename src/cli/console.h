// SPDX-License-Identifier: Apache-2.0
// The two voices of the program: results on stdout, everything said about them on stderr, each remark one line that
// begins with `lockstep: `. Control characters become '?', but for those of Style.
#pragma once
#include <string_view>

#include "base/result.h"

namespace lockstep::cli {

// Says what went wrong and returns kExitUsage.
int fail(const Error& error);
int fail(std::string_view message);
// Says something that is not an error.
void note(std::string_view message);
// Writes to stdout. A closed or full stdout is an error: kExitUsage, else kExitOk.
int print(std::string_view text);

}  // namespace lockstep::cli
