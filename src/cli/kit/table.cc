// SPDX-License-Identifier: Apache-2.0
// Lays out text in columns as wide as their widest cell. All rows are kept until then, so a caller bounds
// their number. Cells may be foreign names and are tamed and cut when they come in, before their width is
// measured.
#include "cli/kit/table.h"

#include <algorithm>

#include "base/text/style.h"
#include "base/text/wording.h"
#include "base/text/wrap.h"

namespace lockstep::cli {
namespace {

constexpr std::string_view kGap = "  ";
// Text that is folded to less than this is hard to read, so columns go first.
constexpr size_t kReadableText = 18, kLeastText = 8;

size_t width_of(const auto& shown) {
  size_t width = 0;
  for (const auto& one : shown) width += (width == 0 ? 0 : kGap.size()) + one.width;
  return width;
}

// In lines of at most `width`; a word that is longer is broken.
std::vector<std::string> folded(const std::string& cell, size_t width) {
  std::vector<std::string> out;
  if (columns(cell) <= width) return {cell};
  const std::string text = wrap(cell, 0, width);
  for (std::string_view line : lines(text)) {
    while (columns(line) > width) {
      size_t end = 0;
      // Behind the last byte of the last character that fits.
      for (size_t taken = 0; taken < width || (line[end] & 0xc0) == 0x80; ++end)
        taken += (line[end] & 0xc0) != 0x80;
      out.emplace_back(line.substr(0, end));
      line.remove_prefix(end);
    }
    out.emplace_back(line);
  }
  return out;
}

}  // namespace

Table::Table(std::vector<std::string> headings) {
  for (std::string& heading : headings) {
    Column column;
    column.spare = std::min(heading.find_first_not_of('~'), heading.size());
    heading.erase(0, column.spare);
    column.is_left = heading.starts_with('<');
    if (column.is_left) heading.erase(0, 1);
    column.width = columns(heading);
    column.heading = std::move(heading);
    columns_.push_back(std::move(column));
  }
}

void Table::add(std::vector<std::string> cells) {
  constexpr size_t kMost = 300;
  // A row may end early: a rank that called nothing has no further cells.
  cells.resize(columns_.size());
  for (size_t i = 0; i < cells.size(); ++i) {
    cells[i] = wording::name(cells[i], kMost);
    columns_[i].width = std::max(columns_[i].width, columns(cells[i]));
  }
  rows_.push_back(std::move(cells));
}

std::vector<size_t> Table::columns_that_go() const {
  std::vector<size_t> order;
  for (size_t i = columns_.size(); i-- > 0;)
    if (columns_[i].spare > 0) order.push_back(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return columns_[a].spare > columns_[b].spare; });
  return order;
}

bool Table::fits(size_t left_out, size_t least_text, size_t width, std::vector<Shown>& shown) const {
  shown.clear();
  const std::vector<size_t> order = columns_that_go();
  const auto gone = order.begin() + static_cast<ptrdiff_t>(left_out);
  for (size_t i = 0; i < columns_.size(); ++i)
    if (std::find(order.begin(), gone, i) == gone) shown.push_back({i, columns_[i].width});
  for (size_t whole = width_of(shown); whole > width; whole = width_of(shown)) {
    Shown* widest = nullptr;
    for (Shown& one : shown)
      if (columns_[one.column].is_left && (widest == nullptr || one.width > widest->width)) widest = &one;
    const size_t least =
        widest == nullptr ? 0 : std::max(least_text, columns(columns_[widest->column].heading));
    if (widest == nullptr || widest->width <= least) return false;
    --widest->width;
  }
  return true;
}

std::vector<Table::Shown> Table::chosen(size_t width) const {
  std::vector<Shown> shown;
  const size_t most = columns_that_go().size();
  for (size_t left_out = 0; left_out <= most; ++left_out)
    if (fits(left_out, kReadableText, width, shown)) return shown;
  // Numbers are never folded: what remains may be wider than the terminal.
  fits(most, kLeastText, width, shown);
  return shown;
}

// One below the other, each with the first column, which says whose rows they are.
std::vector<std::vector<Table::Shown>> Table::blocks(size_t width) const {
  std::vector<std::vector<Shown>> out;
  for (const Shown& one : chosen(width)) {
    const bool has_room = !out.empty() && width_of(out.back()) + kGap.size() + one.width <= width;
    if (has_room || (!out.empty() && out.back().size() == 1)) {
      out.back().push_back(one);
    } else {
      const std::vector<Shown> first = out.empty() ? std::vector<Shown>() : std::vector{out.front().front()};
      out.push_back(first);
      out.back().push_back(one);
    }
  }
  if (out.empty()) out.emplace_back();
  return out;
}

std::string Table::text(std::string_view indent) const { return text(indent, Style::of_stdout().room()); }

std::string Table::text(std::string_view indent, size_t width) const {
  std::string out;
  std::vector<Shown> all;
  for (const std::vector<Shown>& block : blocks(width - std::min(width, indent.size()))) {
    out += (out.empty() ? "" : "\n") + block_text(block, indent);
    all.insert(all.end(), block.begin(), block.end());
  }
  return out + hidden_text(all, indent, width);
}

std::string Table::block_text(const std::vector<Shown>& shown, std::string_view indent) const {
  std::string out;
  const auto add_row = [&](const auto& cell_of) {
    std::vector<std::vector<std::string>> cells;
    size_t height = 1;
    for (const Shown& one : shown) {
      cells.push_back(folded(cell_of(one.column), one.width));
      height = std::max(height, cells.back().size());
    }
    for (size_t line = 0; line < height; ++line) {
      std::string built(indent);
      for (size_t i = 0; i < shown.size(); ++i) {
        const std::string cell = line < cells[i].size() ? cells[i][line] : "";
        const std::string pad(shown[i].width - columns(cell), ' ');
        if (i > 0) built += kGap;
        built += columns_[shown[i].column].is_left ? cell + pad : pad + cell;
      }
      // No blanks at the end of a line, which would wrap on a narrow terminal.
      out += built.erase(built.find_last_not_of(' ') + 1) + '\n';
    }
  };
  add_row([&](size_t column) { return columns_[column].heading; });
  std::string rule(indent);
  for (size_t i = 0; i < shown.size(); ++i)
    rule += std::string(i > 0 ? kGap : "") + std::string(shown[i].width, '-');
  out += rule + '\n';
  for (const auto& row : rows_) add_row([&](size_t column) { return row[column]; });
  return out;
}

std::string Table::hidden_text(const std::vector<Shown>& shown, std::string_view indent, size_t width) const {
  std::string hidden;
  for (size_t i = 0; i < columns_.size(); ++i)
    if (std::none_of(shown.begin(), shown.end(), [&](const Shown& one) { return one.column == i; }))
      hidden += (hidden.empty() ? "" : ", ") + columns_[i].heading;
  if (hidden.empty()) return {};
  hidden = "No room for " + hidden + "; a wider terminal shows them.";
  return std::string(indent) + wrap(hidden, indent.size(), width) + '\n';
}

}  // namespace lockstep::cli
