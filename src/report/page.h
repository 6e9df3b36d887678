// SPDX-License-Identifier: Apache-2.0
// The page that shows a report's data: built from report-ui/ and carried inside the program.
#pragma once
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/text/json_text.h"

namespace lockstep::report {

// The page without data; empty where the program was built without it.
std::string_view built_page();
// Why it is not there; empty where it is.
std::string_view page_absent_because();

// JSON text that no HTML parser takes for the end of a script element: <, >, &, U+2028 and U+2029 as \u003c
// and so on.
std::string script_text(const Json& data);
// `page` with the data in its place. An error if the page has no one place for them.
Result<std::string> page_with(std::string_view page, const Json& data);

}  // namespace lockstep::report
