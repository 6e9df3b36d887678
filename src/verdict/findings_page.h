// SPDX-License-Identifier: Apache-2.0
// docs/findings.md, which the program carries with it: what it says of each finding.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/text/style.h"

namespace lockstep::verdict {

extern const std::string_view kFindingsPage;

// Views into the page.
struct Entry {
  std::string_view id;
  std::string_view chapter;  // heading under which it stands
  std::string_view body;     // Markdown: a section, or a row of a table
  std::string_view columns;  // of a row: the table's head; else empty
};

// In the order of the page.
const std::vector<Entry>& entries();

// For a terminal.
std::string text(const Entry& entry, const Style& style);

}  // namespace lockstep::verdict
