// SPDX-License-Identifier: Apache-2.0
// What other tools print about links, as records that can be judged: one file a tool here, and one line in
// printed/formats.def. A reader refuses what is cut or worded otherwise, since half a table would be praised.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "links/record.h"

namespace lockstep::links {

struct PrintedFormat {
  std::string_view tool;
  std::string_view scope;  // what it reports; nothing else is judged
  bool (*is)(std::string_view text);
  Result<LinksRecord> (*parse)(std::string_view text, const std::string& where);
};

std::span<const PrintedFormat> printed_formats();
// nullptr: none of these tools printed it.
const PrintedFormat* printed_format_of(std::string_view text);
// Of any of these tools, or of `lockstep links --record`, by its first bytes.
bool is_any(std::string_view text);
// "ibstat", "lockstep links"
std::string_view tool_of(std::string_view text);
Result<LinksRecord> parse_any(std::string_view text, const std::string& where);

}  // namespace lockstep::links
