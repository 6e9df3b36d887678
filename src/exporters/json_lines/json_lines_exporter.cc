// SPDX-License-Identifier: Apache-2.0
// A folder of tables with a JSON object a line. A cell without a value is null; bytes that are not UTF-8
// become '?'.
#include <charconv>
#include <vector>

#include "exporters/common/json_text.h"
#include "exporters/common/run_tables.h"
#include "exporters/exporter.h"

namespace lockstep::exporters::json_lines {
namespace {

constexpr size_t kLongestNumber = 24;

class JsonLinesWriter : public common::TableWriter {
 public:
  JsonLinesWriter(common::BufferedOutput& out, std::span<const common::TableColumn> columns) : out_(out) {
    // Keys are the same in every row: escaped once, with what stands before them.
    for (const common::TableColumn& column : columns)
      keys_.push_back((keys_.empty() ? "{" : ",") + common::json_string(column.name) + ":");
  }
  void begin_row() override { cell_ = 0; }
  void number(int64_t value) override { put_number(value); }
  void unsigned_number(uint64_t value) override { put_number(value); }
  void none() override {
    put_key();
    out_.append("null");
  }
  void text(std::string_view value) override {
    put_key();
    out_.append(common::json_string(value));
  }
  void end_row() override { out_.append("}\n"); }

 private:
  void put_key() { out_.append(keys_[cell_++]); }
  template <class Number>
  void put_number(Number value) {
    put_key();
    char* at = out_.room(kLongestNumber);
    out_.take(std::to_chars(at, at + kLongestNumber, value).ptr);
  }
  common::BufferedOutput& out_;
  std::vector<std::string> keys_;
  size_t cell_ = 0;
};

constexpr common::TableFormat kFormat{
    ".jsonl",
    [](common::BufferedOutput& out, std::span<const common::TableColumn> columns)
        -> std::unique_ptr<common::TableWriter> { return std::make_unique<JsonLinesWriter>(out, columns); }};

Result<ExportResult> write(model::TraceSource& source, const std::string& path, const Progress& progress) {
  return common::write_tables(source, path, progress, kFormat);
}

}  // namespace

extern const Exporter kExporter;
const Exporter kExporter{.name = "json",
                         .summary = "the same tables as JSON, an object a line",
                         .extension = ".jsonl",
                         .is_folder = true,
                         .counts = "row",
                         .write = write};

}  // namespace lockstep::exporters::json_lines
