// SPDX-License-Identifier: Apache-2.0
#include "readers/ras/documents.h"

#include <cstddef>

namespace lockstep::readers::ras {
namespace {

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

// Whether a snapshot begins at `at`: this is its first key, and nothing within one has it.
bool begins_snapshot(std::string_view text, size_t at) {
  if (text[at] != '{') return false;
  for (++at; at < text.size() && is_space(text[at]);) ++at;
  return text.substr(at).starts_with("\"nccl_version\"");
}

// One past the closing quote of the string that begins at `at`; where it has none, the begin of the next
// snapshot or the text's end.
size_t end_of_string(std::string_view text, size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at) {
    if (begins_snapshot(text, at)) return at;
    if (text[at] == '\\' && at + 1 < text.size() && !begins_snapshot(text, at + 1)) ++at;
  }
  return at < text.size() ? at + 1 : text.size();
}

// After these a string may begin.
bool expects_string(char c) { return c == '{' || c == '[' || c == ',' || c == ':'; }

}  // namespace

// One pass that counts brackets outside of texts. It does not judge what lies between: the parser does.
Document next_document(std::string_view& text) {
  Document document;
  const size_t begin = text.find('{');
  text.remove_prefix(begin == std::string_view::npos ? text.size() : begin);
  size_t depth = 0, copied = 0, at = 0;
  char last = 0;  // before `at`, but for space
  while (at < text.size() && !document.whole) {
    const char c = text[at];
    if (at > 0 && begins_snapshot(text, at)) break;
    // Only a key can follow a value here, so a comma is missing.
    if (c == '"' && !expects_string(last)) {
      document.text.append(text.substr(copied, at - copied)).push_back(',');
      copied = at;
    }
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') document.whole = --depth == 0;
    if (!is_space(c)) last = c;
    at = c == '"' ? end_of_string(text, at) : at + 1;
  }
  document.text.append(text.substr(copied, at - copied));
  text.remove_prefix(at);
  return document;
}

}  // namespace lockstep::readers::ras
