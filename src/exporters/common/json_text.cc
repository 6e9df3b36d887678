// SPDX-License-Identifier: Apache-2.0
// Makes a JSON text of any bytes. Names come from files and need not be UTF-8: a byte that is none becomes a
// question mark, as one bad byte would make a viewer refuse the whole timeline.
#include "exporters/common/json_text.h"

#include "base/utf8.h"

namespace lockstep::exporters::common {

std::string json_string(std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string out(1, '"');
  while (!text.empty()) {
    auto c = static_cast<unsigned char>(text[0]);
    size_t length = utf8_length(text);
    // DEL is legal in JSON, but Perfetto's importer refuses it bare.
    if (c == '"' || c == '\\') {
      out += '\\';
      out += text[0];
    } else if (c < 0x20 || c == 0x7f) {
      out += "\\u00";
      out += kHex[c >> 4];
      out += kHex[c & 15];
    } else if (length == 0) {
      out += '?';
    } else {
      out.append(text.substr(0, length));
    }
    text.remove_prefix(length ? length : 1);
  }
  out += '"';
  return out;
}

}  // namespace lockstep::exporters::common
