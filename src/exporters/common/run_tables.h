// SPDX-License-Identifier: Apache-2.0
// A run as flat tables of readable rows: the columns, ids, units and gaps of trace.db's views `processes`,
// `comms`, `ops`, `kernels`, `ranges` and `losses`, and `marks`. Every format that is a folder of such tables
// writes the same cells.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "exporters/common/buffered_output.h"
#include "exporters/exporter.h"
#include "model/run_numbers.h"
#include "model/trace.h"

namespace lockstep::exporters::common {

// Takes the cells of a table, row by row, in the order of its columns. A cell without a value is none().
class TableWriter {
 public:
  virtual ~TableWriter() = default;
  virtual void begin_row() = 0;
  virtual void number(int64_t value) = 0;
  virtual void unsigned_number(uint64_t value) = 0;
  virtual void text(std::string_view value) = 0;
  virtual void none() = 0;
  virtual void end_row() = 0;
};

// One process of the run while its rows are written.
struct TableContext {
  const model::Trace& trace;
  const model::RunNumbers& numbers;
  int64_t process = -1;    // -1: what belongs to no process
  int64_t first_comm = 0;  // ids of the trace's first rows
  int64_t first_mark = 0, first_op = 0, first_kernel = 0, first_range = 0;
};

enum class CellType : uint8_t { kNumber, kUnsigned, kText };

// Ids of rows count on from process to process, as trace.db's do, so that both name one row alike.
class TableNumbers {
 public:
  // Good until the next call.
  TableContext of(const model::Trace& trace);
  // What belongs to no process.
  TableContext of_run(const model::Trace& run) const { return {run, numbers_}; }

 private:
  model::RunNumbers numbers_;
  int64_t process_ = 0, comms_ = 0, events_ = 1;  // as trace.db counts: events of all kinds together, from 1
};

struct TableColumn {
  std::string_view name;
  CellType type;  // of every cell that has a value
  std::string_view meaning;
  void (*write)(const TableContext& context, uint32_t row, TableWriter& cell);
};

// A table as data. `meaning` is what docs and `columns` files say; names and order are an interface and only
// grow.
struct TableLayout {
  std::string_view name, meaning;
  std::span<const TableColumn> columns;
  size_t (*rows)(const model::Trace& trace);
};

std::span<const TableLayout> run_tables();

struct TableFormat {
  std::string_view ending;  // of a table's file
  // A writer of one table; it begins the file with what stands before the first row.
  std::unique_ptr<TableWriter> (*open)(BufferedOutput& out, std::span<const TableColumn> columns);
};

// Writes a folder with a file for each table, and `columns`, which says what each column means. The folder
// appears when it is whole. An older one of the same tables in its place is replaced; anything else there is
// an error.
Result<ExportResult> write_tables(model::TraceSource& source, const std::string& path,
                                  const Progress& progress, const TableFormat& format);

}  // namespace lockstep::exporters::common
