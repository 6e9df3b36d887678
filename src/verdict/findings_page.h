// SPDX-License-Identifier: Apache-2.0
// What each finding means: docs/findings.md, which the program carries with it, and the rules of logs
// (rules.def).
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/text/style.h"

namespace lockstep::verdict {

extern const std::string_view kFindingsPage;

// Views of texts that live as long as the program.
struct Entry {
  std::string_view id;
  std::string_view chapter;  // heading under which it stands
  std::string_view body;  // Markdown: a section, or a row of a table (of a rule of logs: made of rules.def)
  std::string_view columns;  // of a row: the table's head; else empty
};

// In the order of the page; behind them the rules of logs that the page only lists.
const std::vector<Entry>& entries();

// All findings of analysis/findings.def with their meanings, one a line where `width` allows it, so that they
// can be searched.
std::string list(const Style& style, size_t width);
// The ids of those whose class the word before the first point is a part of: " slow-link slow-link.hosts";
// else empty.
std::string alike(std::string_view id);

// For a terminal.
std::string text(const Entry& entry, const Style& style);

}  // namespace lockstep::verdict
