// SPDX-License-Identifier: Apache-2.0
// Documents go to terminals as well as to programs, and texts in them come from outside. So what a terminal
// obeys is escaped, which for a parser is the same text.
#include "base/text/json_text.h"

#include <cstdio>

#include "base/hex.h"

namespace lockstep {

namespace {

// JSON lets DEL and U+0080 to U+009F stand in texts; some terminals obey them. Elsewhere in a document they
// do not occur.
std::string dumped(const Json& document, int indent) {
  const std::string text = document.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    const bool is_c1 = c == 0xc2 && static_cast<unsigned char>(text[i + 1]) < 0xa0;
    if (c != 0x7f && !is_c1) {
      out += text[i];
      continue;
    }
    char escaped[8];
    std::snprintf(escaped, sizeof escaped, "\\u%04x", is_c1 ? static_cast<unsigned char>(text[++i]) : c);
    out += escaped;
  }
  return out;
}

}  // namespace

std::string json_text(const Json& document) { return dumped(document, 2); }

std::string json_line(const Json& document) { return dumped(document, -1); }

Json known(int64_t number) { return number < 0 ? Json(nullptr) : Json(number); }

Json id_json(uint64_t id) { return id == 0 ? Json(nullptr) : Json(hex(id)); }

}  // namespace lockstep
