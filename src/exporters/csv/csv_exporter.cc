// SPDX-License-Identifier: Apache-2.0
// A folder of tables as RFC 4180 has them: a line of names first, lines that end in CR LF, cells in quotes
// where they hold a comma, a quote or a line's end. A cell without a value is empty.
//
// Texts come from other programs, and spreadsheets run a cell that begins with = + - @, a tab or CR. Such a
// text has a ' before it, which makes it text to them. Other control characters are '?'. What must have every
// byte as it was takes the tables as JSON lines.
#include <charconv>

#include "base/utf8.h"
#include "exporters/common/run_tables.h"
#include "exporters/exporter.h"

namespace lockstep::exporters::csv {
namespace {

constexpr size_t kLongestNumber = 24;

// Readers written in C stop at a NUL, and terminals that show a file obey the others.
std::string without_controls(std::string_view text) {
  std::string out;
  for (const char byte : text) {
    const auto c = static_cast<unsigned char>(byte);
    const bool is_c1 = c >= 0x80 && c < 0xa0 && out.ends_with('\xc2');  // U+0080 to U+009F
    if (is_c1) out.pop_back();
    out += (c < 0x20 && c != '\n' && c != '\r' && c != '\t') || c == 0x7f || is_c1 ? '?' : byte;
  }
  return out;
}

class CsvWriter : public common::TableWriter {
 public:
  CsvWriter(common::BufferedOutput& out, std::span<const common::TableColumn> columns) : out_(out) {
    begin_row();
    for (const common::TableColumn& column : columns) text(column.name);
    end_row();
  }
  void begin_row() override { is_first_ = true; }
  void number(int64_t value) override { put_number(value); }
  void unsigned_number(uint64_t value) override { put_number(value); }
  void none() override { separate(); }
  void end_row() override { out_.append("\r\n"); }

  void text(std::string_view value) override {
    separate();
    if (value.empty()) return;
    const bool is_formula = std::string_view("=+-@\t\r").find(value[0]) != std::string_view::npos;
    bool is_plain = !is_formula;
    for (size_t i = 0; is_plain && i < value.size(); ++i) {
      const auto c = static_cast<unsigned char>(value[i]);
      is_plain = c >= 0x20 && c < 0x7f && c != '"' && c != ',';
    }
    if (is_plain) return out_.append(value);
    std::string quoted = is_formula ? "\"'" : "\"";
    for (const char c : without_controls(valid_utf8(value))) {
      if (c == '"') quoted += '"';
      quoted += c;
    }
    out_.append(quoted + "\"");
  }

 private:
  template <class Number>
  void put_number(Number value) {
    separate();
    char* at = out_.room(kLongestNumber);
    out_.take(std::to_chars(at, at + kLongestNumber, value).ptr);
  }
  void separate() {
    if (!is_first_) out_.append(",");
    is_first_ = false;
  }
  common::BufferedOutput& out_;
  bool is_first_ = true;
};

constexpr common::TableFormat kFormat{
    ".csv",
    [](common::BufferedOutput& out, std::span<const common::TableColumn> columns)
        -> std::unique_ptr<common::TableWriter> { return std::make_unique<CsvWriter>(out, columns); }};

Result<ExportResult> write(model::TraceSource& source, const std::string& path, const Progress& progress) {
  return common::write_tables(source, path, progress, kFormat);
}

}  // namespace

extern const Exporter kExporter;
const Exporter kExporter{
    .name = "csv",
    .summary = "a folder of CSV tables: operations, ranks, communicators, kernels, losses",
    .extension = ".csv",
    .is_folder = true,
    .counts = "row",
    .write = write};

}  // namespace lockstep::exporters::csv
