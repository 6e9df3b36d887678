// SPDX-License-Identifier: Apache-2.0
// Puts the data into the built page as text inside a script element, so that a report is one file that opens
// without a server. Names in it come from files and may be hostile: whatever could end the element or the
// script is escaped, and the result is still JSON. The page is built once; the place for data is found by its
// exact text, and a page with two places is refused.
#include "report/page.h"

namespace lockstep::report {
namespace {

constexpr std::string_view kOpen = R"(<script type="application/json" id="lockstep-data">)";
constexpr std::string_view kEmpty = "null</script>";

}  // namespace

std::string script_text(const Json& data) {
  // Bytes that are not UTF-8 are replaced; the library would throw by default.
  const std::string json = data.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string out;
  out.reserve(json.size() + json.size() / 64);
  for (size_t i = 0; i < json.size(); ++i) {
    switch (json[i]) {
      // `</script` and `<!--` end or change a script element wherever they stand, also inside a string.
      case '<':
        out += "\\u003c";
        break;
      case '>':
        out += "\\u003e";
        break;
      case '&':
        out += "\\u0026";
        break;
      case '\xe2':
        // U+2028 and U+2029: ends of lines in JavaScript, though not in JSON.
        if (json.compare(i + 1, 1, "\x80") == 0 && i + 2 < json.size() &&
            (json[i + 2] == '\xa8' || json[i + 2] == '\xa9')) {
          out += json[i + 2] == '\xa8' ? "\\u2028" : "\\u2029";
          i += 2;
          break;
        }
        out += json[i];
        break;
      default:
        out += json[i];
    }
  }
  return out;
}

Result<std::string> page_with(std::string_view page, const Json& data) {
  const std::string place = std::string(kOpen) + std::string(kEmpty);
  const size_t at = page.find(place);
  if (at == std::string_view::npos || page.find(kOpen, at + 1) != std::string_view::npos)
    return Error{
        ErrorCode::kUnsupported, "the page that this program was built with has no one place for data", {}};
  std::string out(page.substr(0, at + kOpen.size()));
  out += script_text(data);
  out += page.substr(at + kOpen.size() + std::string_view("null").size());
  return out;
}

}  // namespace lockstep::report
