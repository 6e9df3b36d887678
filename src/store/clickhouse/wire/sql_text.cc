// SPDX-License-Identifier: Apache-2.0
// One rule for texts and names: the quote and the backslash get a backslash, control characters become \x and
// two digits. All else stays as it is, also bytes that are not UTF-8, which ClickHouse takes. The oldest
// servers know no parameters, so every text from outside comes through here.
#include "store/clickhouse/wire/sql_text.h"

namespace lockstep::store::clickhouse {
namespace {

std::string escaped(std::string_view text, char quote) {
  std::string sql(1, quote);
  for (const char c : text) {
    if (c == quote || c == '\\') {
      sql += '\\';
      sql += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      constexpr char kDigits[] = "0123456789ABCDEF";
      sql += "\\x";
      sql += kDigits[c >> 4];
      sql += kDigits[c & 15];
    } else {
      sql += c;
    }
  }
  return sql += quote;
}

}  // namespace

std::string literal(std::string_view text) { return escaped(text, '\''); }
std::string identifier(std::string_view name) { return escaped(name, '`'); }

}  // namespace lockstep::store::clickhouse
