// SPDX-License-Identifier: Apache-2.0
// Appends traces to a new trace.db, one process after the other, giving every row its run-wide id. Holds no
// rows of a process between appends. One thread. After an error the file is of no use.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/trace.h"
#include "model/trace_source.h"
#include "store/sqlite/column_module.h"
#include "store/sqlite/database.h"
#include "store/sqlite/derived_columns.h"
#include "store/sqlite/foreign_rows.h"
#include "store/sqlite/row_digest.h"
#include "store/sqlite/run_names.h"
#include "store/sqlite/table_layout.h"

namespace lockstep::store::sqlite {

// The order of calls is create(), append() for each process, attach(), finish(). Everything is one
// transaction, without journal: a file that is not finished is thrown away.
class TraceWriter {
 public:
  // Creates the file; it must not exist.
  static Result<std::unique_ptr<TraceWriter>> create(const std::string& path);
  // One process: row 0 of `processes` and all that belongs to it. References that lead nowhere become NULL
  // and are counted.
  Result<void> append(const model::Trace& trace);
  // Files of other tools, as they are. Returns those that were taken.
  Result<void> add_host_counters(model::TraceSource& source);
  Result<std::vector<std::string>> attach(const std::vector<std::string>& paths);
  // Adds the losses of the run (rows with process kNoRow), shapes, texts and views, and closes the file.
  Result<void> finish(model::Trace& run, const std::string& source_name);
  uint64_t rows() const { return rows_; }
  // Rows that each table holds, for verification.
  const std::array<uint64_t, kTables>& table_rows() const { return table_rows_; }

 private:
  TraceWriter() = default;
  // Appends the bound rows of one table and remembers which trace they came from.
  Result<void> insert(TableId id);
  // Returns how many.
  Result<uint64_t> copy_rows(TableId id);
  Result<void> add_part(int64_t trace, std::string_view table, int64_t first, uint64_t rows, int64_t digest);
  // Joins network operations to those of the process that they were done for (PXN), once all are there.
  Result<uint64_t> join_foreign();
  void assign_ids(const model::Trace& trace);
  template <class Row, class Table>
  void bind(TableId id, const Table& table);
  void lose_dangling(TableId id, std::string_view column, uint64_t count);
  void bind_call_parents(const model::Trace& trace);
  void bind_derived();
  Result<void> write_strings();
  Result<void> write_shapes();
  Result<void> write_metadata(const std::string& source_name);

  std::unique_ptr<Database> database_;
  std::array<BoundTable, kTables> bound_;
  std::vector<Statement> inserts_;  // by TableId
  std::optional<Statement> add_part_;
  std::vector<ForeignRows> foreign_;  // proxy operations, whose digests wait for what they are joined to
  bool is_foreign_ = false;           // the process at hand has some
  RowDigest parts_digest_;
  uint64_t parts_ = 0;
  std::vector<uint64_t> call_parents_;  // ids, because a parent is a call or a task
  RunNames names_;
  DerivedColumns derived_;
  model::Trace losses_;  // of the merge itself
  std::array<int64_t, kTables> next_id_{};
  int64_t next_event_id_ = 1;  // RPD's ids count from 1
  std::array<uint64_t, kTables> table_rows_{};
  uint64_t rows_ = 0;
  int64_t traces_ = 0;
};

}  // namespace lockstep::store::sqlite
