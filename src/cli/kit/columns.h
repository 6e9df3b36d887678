// SPDX-License-Identifier: Apache-2.0
// What a command shows of a row, once: the objects of `--json` and the table come from one list of columns, a
// function `void show(const Row&, Columns&)`. A column has a key in the object, a heading in the table ('<':
// left), a value, and a unit, which is the function that adds it. What is not known is null, and "-".
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/json_text.h"
#include "base/text/units.h"
#include "cli/kit/table.h"

namespace lockstep::cli {

class Columns {
 public:
  // Of both, or of one alone.
  void add(const char* key, std::string_view heading, std::string text, Json value) {
    add_json(key, std::move(value));
    add_text(heading, std::move(text));
  }
  void add_json(const char* key, Json value) { object_[key] = std::move(value); }
  void add_text(std::string_view heading, std::string text) {
    headings_.emplace_back(heading);
    cells_.push_back(std::move(text));
  }

  void name(const char* key, std::string_view heading, const std::string& text) {
    add(key, heading, text, text);
  }
  // Not known if empty.
  void name_if_any(const char* key, std::string_view heading, const std::string& text) {
    add(key, heading, text.empty() ? "-" : text, text.empty() ? Json(nullptr) : Json(text));
  }
  // Which one it is. Not known below 0.
  void number(const char* key, std::string_view heading, int64_t number) {
    add(key, heading, number < 0 ? "-" : std::to_string(number), known(number));
  }
  // How many: 1,234.
  void count(const char* key, std::string_view heading, uint64_t count) {
    add(key, heading, format_count(count), count);
  }
  void bytes(const char* key, std::string_view heading, uint64_t bytes) {
    add(key, heading, format_bytes(bytes), bytes);
  }
  void duration(const char* key, std::string_view heading, double ns, bool is_known = true) {
    add(key, heading, is_known ? format_duration(ns) : "-", is_known ? Json(ns) : Json(nullptr));
  }
  // Not known if 0: GB/s.
  void rate(const char* key, std::string_view heading, double gbps) {
    add(key, heading, format_rate(gbps), gbps > 0 ? Json(gbps) : Json(nullptr));
  }

 private:
  template <class Rows, class Show>
  friend Json json_rows(const Rows& rows, const Show& show);
  template <class Rows, class Show>
  friend Table table_of(const Rows& rows, size_t most, const Show& show);

  Json object_ = Json::object();
  std::vector<std::string> headings_, cells_;
};

// An object for each row.
template <class Rows, class Show>
Json json_rows(const Rows& rows, const Show& show) {
  Json list = Json::array();
  for (const auto& row : rows) {
    Columns columns;
    show(row, columns);
    list.push_back(std::move(columns.object_));
  }
  return list;
}

// At most `most` of the rows; the headings come from the first one.
template <class Rows, class Show>
Table table_of(const Rows& rows, size_t most, const Show& show) {
  Table table({});
  size_t shown = 0;
  for (const auto& row : rows) {
    if (shown > 0 && shown >= most) break;
    Columns columns;
    show(row, columns);
    if (shown++ == 0) table = Table(std::move(columns.headings_));
    if (shown <= most) table.add(std::move(columns.cells_));
  }
  return table;
}

}  // namespace lockstep::cli
