// SPDX-License-Identifier: Apache-2.0
// Text in columns of fixed width, as wide as their widest cell. Numbers stand right, text left. Cells are
// shown as names from outside are (base/text), up to 300 bytes.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::cli {

class Table {
 public:
  // A heading that begins with '<' makes a left-aligned column (the mark is not shown); others align right.
  explicit Table(std::vector<std::string> headings);
  // Missing cells stay empty; cells beyond the headings are left out. Rows are kept, so the caller bounds
  // them.
  void add(std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }
  // Headings, a rule and the rows, each line behind `indent`.
  std::string text(std::string_view indent = "  ") const;

 private:
  std::vector<bool> left_;
  std::vector<std::string> headings_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace lockstep::cli
