// SPDX-License-Identifier: Apache-2.0
// Text in columns of fixed width, as wide as their widest cell. Numbers stand right, text left. Cells are
// shown as names from outside are (base/text), up to 300 bytes. A table that is wider than a terminal folds
// long text, then leaves out columns and says which, then goes on below itself; no cell is cut.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::cli {

class Table {
 public:
  // A heading that begins with '<' makes a left-aligned column; others align right. One that begins with '~'
  // is needed less: where there is no room its column goes, those with more '~' first, and of these the last
  // one. '~' stands before '<'; no mark is shown.
  explicit Table(std::vector<std::string> headings);
  // Missing cells stay empty; cells beyond the headings are left out. Rows are kept, so the caller bounds
  // them.
  void add(std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }
  // Headings, a rule and the rows, each line behind `indent`; then a line about columns without room. The
  // width is that of stdout: Style::room().
  std::string text(std::string_view indent = "  ") const;
  std::string text(std::string_view indent, size_t width) const;

 private:
  struct Column {
    std::string heading;
    bool is_left = false;
    size_t spare = 0;  // how many '~'
    size_t width = 0;  // of its widest cell
  };
  struct Shown {
    size_t column, width;
  };
  // Columns but those of the first `left_out` that go; text is folded to no less than `least_text`. False if
  // that is still wider than `width`.
  bool fits(size_t left_out, size_t least_text, size_t width, std::vector<Shown>& shown) const;
  std::vector<Shown> chosen(size_t width) const;
  std::vector<std::vector<Shown>> blocks(size_t width) const;
  std::string block_text(const std::vector<Shown>& shown, std::string_view indent) const;
  std::vector<size_t> columns_that_go() const;
  std::string hidden_text(const std::vector<Shown>& shown, std::string_view indent, size_t width) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace lockstep::cli
