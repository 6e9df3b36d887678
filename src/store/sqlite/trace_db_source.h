// SPDX-License-Identifier: Apache-2.0
// Reads a trace.db back into traces, one process at a time. The file is untrusted: ids outside their table,
// values that do not fit and pages that cannot be read become losses. Each thread that loads has a connection
// of its own.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "model/trace_source.h"
#include "store/sqlite/database.h"
#include "store/sqlite/row_digest.h"
#include "store/sqlite/table_layout.h"

namespace lockstep::store::sqlite {

// load() may run on several threads at once; the rest belongs to the thread that opened. Texts and shapes of
// the whole run are read when it opens, as every process names them by number.
class TraceDbSource : public model::TraceSource {
 public:
  // An error: a file that is none of ours, of a newer schema, or without the tables that all others rest on;
  // texts or shapes that cannot be read. Other damage becomes losses.
  static Result<std::unique_ptr<model::TraceSource>> open(const std::string& path);
  size_t processes() const override { return parts_.size(); }
  Result<void> load(size_t i, model::Trace& trace) override;
  void run_losses(model::Trace& trace) override;
  Result<void> host_counters(const HostCounterVisitor& visit) override;
  std::string name() const override { return path_; }

 private:
  struct Range {
    int64_t first = 0;
    uint32_t rows = 0;
    std::optional<int64_t> digest = {};  // none in files of older releases
  };
  using Parts = std::array<Range, kTables>;  // rows of one process, by TableId
  struct Selection {
    std::string sql;  // SELECT of the columns that the file has, by id range; empty: it lacks the table
    std::vector<int> columns;  // by model column: place in the result, -1 if the file lacks it
    bool is_ours = false;      // the columns are those of this release, which digests are of
  };
  class RowReader;

  explicit TraceDbSource(std::string path) : path_(std::move(path)) {}
  // A connection that no other thread uses, until it is given back.
  Result<std::unique_ptr<Database>> take_database();
  void give_back(std::unique_ptr<Database> database);
  Result<void> read_process(const Database& database, size_t i, model::Trace& trace) const;
  Result<void> check_tables() const;
  Result<void> read_parts();
  void take_part(const PartRow& row, bool is_proven, int64_t processes);
  void drop_shared_parts();
  Result<void> read_strings();
  Result<void> read_shapes();
  Result<void> prepare_selections();

  std::string path_;
  std::unique_ptr<Database> database_;  // of the thread that opened the source
  std::mutex mutex_;
  std::vector<std::unique_ptr<Database>> idle_;
  std::vector<Parts> parts_;
  std::vector<uint64_t> bad_parts_;  // by process: tables whose rows cannot be identified
  uint64_t stray_parts_ = 0;         // of no process
  std::optional<int64_t> texts_digest_, shapes_digest_;
  uint64_t unproven_ = 0;             // tables of the whole run that do not read back as they were written
  int64_t most_numbers_ = 0;          // that its bytes can hold, of texts and of shapes
  std::vector<std::string> strings_;  // by run-wide number
  std::vector<model::Shape> shapes_;  // by run-wide number, texts as run-wide numbers
  std::array<Selection, kTables> selections_;
};

}  // namespace lockstep::store::sqlite
