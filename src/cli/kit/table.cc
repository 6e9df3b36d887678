// SPDX-License-Identifier: Apache-2.0
// Lays out text in columns as wide as their widest cell. All rows are kept until then, so a caller bounds
// their number. Cells may be foreign names and are tamed and cut when they come in, before their width is
// measured.
#include "cli/kit/table.h"
#include "base/text/wrap.h"

#include <algorithm>

#include "base/text/wording.h"

namespace lockstep::cli {

Table::Table(std::vector<std::string> headings) : headings_(std::move(headings)) {
  for (std::string& heading : headings_) {
    left_.push_back(heading.starts_with('<'));
    if (left_.back()) heading.erase(0, 1);
  }
}

void Table::add(std::vector<std::string> cells) {
  constexpr size_t kMost = 300;
  // A row may end early: a rank that called nothing has no further cells.
  cells.resize(headings_.size());
  for (std::string& cell : cells) cell = wording::name(cell, kMost);
  rows_.push_back(std::move(cells));
}

std::string Table::text(std::string_view indent) const {
  std::vector<size_t> widths;
  for (const std::string& heading : headings_) widths.push_back(columns(heading));
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], columns(row[i]));
  }
  std::string out;
  auto line = [&](const std::vector<std::string>& cells) {
    std::string built(indent);
    for (size_t i = 0; i < cells.size(); ++i) {
      std::string pad(widths[i] - columns(cells[i]), ' ');
      if (i > 0) built += "  ";
      built += left_[i] ? cells[i] + pad : pad + cells[i];
    }
    // No blanks at the end of a line, which would wrap on a narrow terminal.
    built.erase(built.find_last_not_of(' ') + 1);
    out += built + '\n';
  };
  line(headings_);
  std::vector<std::string> rule;
  for (size_t width : widths) rule.emplace_back(width, '-');
  line(rule);
  for (const auto& row : rows_) line(row);
  return out;
}

}  // namespace lockstep::cli
