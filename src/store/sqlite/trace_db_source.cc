// SPDX-License-Identifier: Apache-2.0
// Reads a trace.db back as traces, one process at a time. The file may have been cut, edited or written by a
// newer release, so a row is taken only where it belongs: its id has to be the next one, its references have
// to lie in the same process, its numbers have to fit their columns. A digest of each table's rows, written
// beside them, proves that they are what was merged; rows without that proof are read, and counted as
// unproven, so that no rank is blamed by them.
#include "store/sqlite/trace_db_source.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <type_traits>
#include <unordered_map>

#include "base/utf8.h"
#include "model/limits.h"
#include "model/record_gaps.h"
#include "store/sqlite/attachments.h"
#include "store/sqlite/schema.h"
#include "store/store.h"

namespace lockstep::store::sqlite {
namespace {

// Ids index vectors: no text or shape takes fewer bytes than a row, and a process has several rows.
constexpr uint64_t kMaxNumbers = 100'000'000, kLeastRowBytes = 6, kRowsOfAProcess = 20;

// None for a table of a newer version.
std::optional<TableId> table_of(std::string_view sql_name) {
  for (size_t i = 0; i < kTables; ++i) {
    if (table_layouts()[i].name == sql_name) return static_cast<TableId>(i);
  }
  return std::nullopt;
}

}  // namespace

// Turns the result rows of one process into rows of its trace.
class TraceDbSource::RowReader {
 public:
  RowReader(const TraceDbSource& source, const Database& database, const Parts& parts, model::Trace& trace)
      : source_(source), database_(database), parts_(parts), trace_(trace) {}

  template <class Row, class Table>
  void read(TableId id, Table& table) {
    const Range& range = parts_[number(id)];
    if (range.rows == 0) return;
    if (source_.selections_[number(id)].sql.empty()) {
      short_ = true;
      ++unproven_;
      return damage(id, "is no ordinary table", range.rows);
    }
    auto done = read_rows<Row>(id, table, range);
    if (!done) {
      damage(id, done.error().message(), 1);
      ++unproven_;
    }
    // Other tables may name the rows that are missing, so all references are cut at the end.
    if (table.size() < range.rows) {
      damage(id, "rows are missing", range.rows - table.size());
      short_ = true;
    }
  }

  // Losses, and references into tables that came out short.
  void finish() {
#define TABLE(Row, member, sql) \
  if (short_) cut_references<model::Row>(TableId::k##Row, trace_.member);
    LOCKSTEP_MODEL_TABLES(TABLE)
#undef TABLE
    // After the cuts: what remains may still be values that no recording has.
    bad_values_ += model::drop_impossible(trace_);
    lose_proof();
    trace_.lose(0, "read", "bad_value", bad_values_, source_.path_ + ": values outside their range or table");
  }

 private:
  template <class Row, class Table>
  Result<void> read_rows(TableId id, Table& table, const Range& range) {
    const Selection& selection = source_.selections_[number(id)];
    RowDigest digest;
    LOCKSTEP_ASSIGN(Statement rows, database_.prepare(selection.sql));
    rows.bind(1, range.first);
    rows.bind(2, range.first + range.rows - 1);
    while (true) {
      LOCKSTEP_ASSIGN(bool more, rows.step());
      // At a gap later rows have lost their place.
      if (!more || rows.integer(0) != range.first + static_cast<int64_t>(table.size())) break;
      table.append(row<Row>(id, rows, selection, digest));
      digest.end_row();
    }
    if (range.digest)
      // A digest is of all columns of the release that wrote it: with other columns only the number of rows
      // can be held against it.
      unproven_ += selection.is_ours ? *range.digest != digest.value() : table.size() != range.rows;
    return {};
  }

  template <class Row>
  Row row(TableId id, const Statement& rows, const Selection& selection, RowDigest& digest) {
    const std::vector<ColumnLayout>& layout = table_layouts()[number(id)].columns;
    Row row;
    size_t i = 0;
    Row::each_column(row, [&](auto&&, auto&&, auto&&, auto& field) {
      const ColumnLayout& column = layout[i];
      if (int place = selection.columns[i++]; place > 0) {
        const bool is_null = rows.is_null(place);
        const int64_t value = rows.integer(place);
        digest.add(i - 1, is_null ? RowDigest::kNull : value);
        read_field(id, column, is_null, value, field);
      } else if constexpr (std::is_same_v<std::remove_reference_t<decltype(field)>, uint32_t>) {
        if (column.role == ColumnRole::kReference) field = model::kNoRow;  // an older file's
      }
    });
    if constexpr (std::is_same_v<Row, model::Call>) {
      // A second look: read_field() sees one column and took every parent for a call.
      if (call_parent_table(row.kind) != TableId::kCall) {
        row.parent = model::kNoRow;
        int place = selection.columns[parent_column(layout)];
        if (place > 0 && !rows.is_null(place))
          row.parent = local(call_parent_table(row.kind), rows.integer(place));
      }
    }
    return row;
  }

  static size_t parent_column(const std::vector<ColumnLayout>& layout) {
    size_t i = 0;
    while (layout[i].name != "parent") ++i;
    return i;
  }

  template <class T>
  void read_field(TableId table, const ColumnLayout& column, bool is_null, int64_t value, T& field) {
    if constexpr (std::is_same_v<T, uint32_t> || std::is_same_v<T, uint64_t>) {
      if (is_null) {
        field = column.role == ColumnRole::kString ? T{0} : std::numeric_limits<T>::max();
        return;
      }
    }
    if constexpr (std::is_same_v<T, uint32_t>) {
      if (column.role == ColumnRole::kString) {
        field = text(value);
        return;
      }
      if (column.role == ColumnRole::kReference) {
        const bool of_task =
            column.name == "parent" && column.target == TableId::kCall;  // decided once the kind is known
        const bool may_be_foreign = table == TableId::kProxyOp;          // PXN
        field = column.target == TableId::kShape ? shape(value)
                                                 : local(column.target, value, !of_task && !may_be_foreign);
        return;
      }
    }
    field = static_cast<T>(value);
    if constexpr (sizeof(T) < 8) {
      // Negative and too large numbers alike: what does not come back from its own type was never stored by
      // us.
      if (static_cast<int64_t>(field) != value) {
        ++bad_values_;
        field = T{};
      }
    }
  }

  uint32_t local(TableId target, int64_t id, bool count = true) {
    const Range& range = parts_[number(target)];
    if (id >= range.first && id - range.first < int64_t{range.rows})
      return static_cast<uint32_t>(id - range.first);
    bad_values_ += count;
    return model::kNoRow;
  }

  model::StringId text(int64_t id) {
    if (id < 0 || id >= static_cast<int64_t>(source_.strings_.size())) {
      ++bad_values_;
      return 0;
    }
    auto [place, added] = texts_.try_emplace(id, 0);
    // Only texts that the process uses: a trace would else hold those of the whole run.
    if (added) place->second = trace_.strings.intern(source_.strings_[static_cast<size_t>(id)]);
    return place->second;
  }

  uint32_t shape(int64_t id) {
    if (id < 0 || id >= static_cast<int64_t>(source_.shapes_.size())) {
      ++bad_values_;
      return model::kNoRow;
    }
    auto [place, added] = shapes_.try_emplace(id, 0);
    if (added) {
      const model::Shape& run = source_.shapes_[static_cast<size_t>(id)];
      place->second = trace_.intern_shape(
          {text(run.func), text(run.datatype), text(run.algo), text(run.proto), run.root});
    }
    return place->second;
  }

  void damage(TableId id, std::string_view what, uint64_t count) {
    trace_.lose(
        0, "read", "damaged_table", count,
        source_.path_ + ": " + std::string(table_layouts()[number(id)].name) + ": " + std::string(what));
  }

  // What cannot be proven may be anything, and is held against nobody.
  void lose_proof() {
    const uint64_t tables = unproven_ + source_.unproven_;
    trace_.lose(0, "read", model::kLossIncompleteMiddle, tables,
                "tables do not read back as they were written: " + source_.path_);
    trace_.lose(0, "read", model::kLossUnproven, tables,
                "tables, with all that rests on them: " + source_.path_);
  }

  size_t table_size(TableId id) const {
    switch (id) {
#define TABLE(Row, member, sql) \
  case TableId::k##Row:         \
    return trace_.member.size();
      LOCKSTEP_MODEL_TABLES(TABLE)
#undef TABLE
    }
    return 0;
  }

  template <class Row, class Table>
  void cut_references(TableId id, Table& table) {
    size_t i = 0;
    Row::each_column(table, [&](auto&&, auto&&, auto&&, auto& values) {
      const ColumnLayout& column = table_layouts()[number(id)].columns[i++];
      if constexpr (std::is_same_v<decltype(values), model::TableColumn<uint32_t>&>) {
        if (column.role != ColumnRole::kReference) return;
        for (size_t r = 0; r < table.size(); ++r) {
          TableId target = column.target;
          if constexpr (std::is_same_v<Row, model::Call>) {
            if (column.name == "parent") target = call_parent_table(table.kind[r]);
          }
          if (values[r] >= table_size(target)) values[r] = model::kNoRow;
        }
      }
    });
  }

  const TraceDbSource& source_;
  const Database& database_;
  const Parts& parts_;
  model::Trace& trace_;
  std::unordered_map<int64_t, uint32_t> texts_, shapes_;
  uint64_t bad_values_ = 0, unproven_ = 0;
  bool short_ = false;
};

Result<std::unique_ptr<model::TraceSource>> TraceDbSource::open(const std::string& path) {
  if (!is_trace_db(path)) return Error{ErrorCode::kInvalidInput, "is not a Lockstep trace.db", path};
  std::unique_ptr<TraceDbSource> source(new TraceDbSource(path));
  LOCKSTEP_ASSIGN(source->database_, Database::open(path, Database::Access::kRead));
  LOCKSTEP_ASSIGN(int64_t version, source->database_->integer("PRAGMA user_version"));
  if (version > kSchemaVersion) {
    return Error{ErrorCode::kUnsupported,
                 "was written by a newer Lockstep (schema " + std::to_string(version) + "); update", path};
  }
  LOCKSTEP_ASSIGN(const int64_t pages, source->database_->integer("PRAGMA page_count"));
  LOCKSTEP_ASSIGN(const int64_t page_bytes, source->database_->integer("PRAGMA page_size"));
  // One row with a huge id would otherwise make vectors of any size.
  source->most_numbers_ = static_cast<int64_t>(std::min(
      kMaxNumbers, static_cast<uint64_t>(pages) * static_cast<uint64_t>(page_bytes) / kLeastRowBytes));
  LOCKSTEP_TRY(source->check_tables());
  // Parts first: they hold the digests that texts and shapes are checked against.
  LOCKSTEP_TRY(source->read_parts());
  LOCKSTEP_TRY(source->read_strings());
  LOCKSTEP_TRY(source->read_shapes());
  LOCKSTEP_TRY(source->prepare_selections());
  return std::unique_ptr<model::TraceSource>(std::move(source));
}

Result<void> TraceDbSource::check_tables() const {
  for (const char* table : {"part", "string", "shape", "loss"}) {
    LOCKSTEP_ASSIGN(const std::vector<std::string> columns, database_->columns(table));
    if (columns.empty())
      return Error{ErrorCode::kInvalidInput, "is damaged: `" + std::string(table) + "` is no ordinary table",
                   path_};
  }
  return {};
}

Result<void> TraceDbSource::read_parts() {
  LOCKSTEP_ASSIGN(int64_t count,
                  database_->integer("SELECT count(DISTINCT trace) FROM part WHERE name = 'process'"));
  if (static_cast<uint64_t>(count) > static_cast<uint64_t>(most_numbers_) / kRowsOfAProcess)
    return Error{ErrorCode::kInvalidInput, "is damaged: it names more processes than it can hold", path_};
  // Numbers of processes count from 0 without gaps, so this many are all of them.
  parts_.resize(static_cast<size_t>(count));
  bad_parts_.resize(parts_.size());
  LOCKSTEP_ASSIGN(const std::vector<std::string> columns, database_->columns("part"));
  const bool is_proven = std::find(columns.begin(), columns.end(), "digest") != columns.end();
  LOCKSTEP_ASSIGN(Statement rows, database_->prepare("SELECT trace, name, first, rows, " +
                                                     std::string(is_proven ? "digest" : "NULL") +
                                                     " FROM part ORDER BY rowid"));
  RowDigest digest;
  int64_t seen = 0;
  PartRow proof;
  while (true) {
    LOCKSTEP_ASSIGN(bool more, rows.step());
    if (!more) break;
    const PartRow row{rows.integer(0), rows.text(1), rows.integer(2), rows.integer(3), rows.integer(4)};
    if (row.table == "part") {
      proof = row;
      continue;
    }
    add_part_row(digest, row);
    ++seen;
    take_part(row, is_proven, count);
  }
  unproven_ += is_proven && (proof.rows != seen || proof.digest != digest.value());
  drop_shared_parts();
  return {};
}

void TraceDbSource::take_part(const PartRow& row, bool is_proven, int64_t processes) {
  const std::optional<int64_t> digest = is_proven ? std::optional(row.digest) : std::nullopt;
  if (row.trace == processes) {  // of the run
    if (row.table == "string") texts_digest_ = digest;
    if (row.table == "shape") shapes_digest_ = digest;
    return;
  }
  const std::optional<TableId> table = table_of(row.table);
  if (!table) return;
  if (row.trace < 0 || row.trace > processes) {
    ++stray_parts_;
    return;
  }
  const auto process = static_cast<size_t>(row.trace);
  Range& range = parts_[process][number(*table)];
  const bool is_possible = row.first >= 0 && row.rows > 0 && row.rows < int64_t{model::kNoRow} &&
                           row.first <= std::numeric_limits<int64_t>::max() - row.rows;
  // A second range for one table of a process cannot be ours: the first one stands.
  if (is_possible && range.rows == 0) {
    range = {row.first, static_cast<uint32_t>(row.rows), digest};
  } else {
    ++bad_parts_[process];
  }
}

// Each row is of one process: else a small file could ask for any number of rows.
void TraceDbSource::drop_shared_parts() {
  for (size_t table = 0; table < kTables; ++table) {
    std::vector<size_t> order;
    for (size_t i = 0; i < parts_.size(); ++i) {
      if (parts_[i][table].rows > 0) order.push_back(i);
    }
    std::sort(order.begin(), order.end(),
              [&](size_t a, size_t b) { return parts_[a][table].first < parts_[b][table].first; });
    // Ranges are taken in the order of their ids. Each must begin where the ones before have ended, or later.
    int64_t free_from = 0;
    for (const size_t i : order) {
      Range& range = parts_[i][table];
      if (range.first >= free_from) {
        free_from = range.first + range.rows;
      } else {
        range = {};
        ++bad_parts_[i];
      }
    }
  }
}

Result<void> TraceDbSource::read_strings() {
  LOCKSTEP_ASSIGN(Statement rows, database_->prepare("SELECT id, text FROM string ORDER BY id"));
  RowDigest digest;
  while (true) {
    LOCKSTEP_ASSIGN(bool more, rows.step());
    if (!more) break;
    int64_t id = rows.integer(0);
    if (id < static_cast<int64_t>(strings_.size()) || id >= most_numbers_)
      return Error{ErrorCode::kInvalidInput, "has a text numbered " + std::to_string(id), path_};
    strings_.resize(static_cast<size_t>(id));  // a gap is empty texts
    strings_.push_back(valid_utf8(rows.text(1)));
    digest.add_text(rows.text(1));
    digest.end_row();
  }
  unproven_ += texts_digest_ && *texts_digest_ != digest.value();
  return {};
}

Result<void> TraceDbSource::read_shapes() {
  LOCKSTEP_ASSIGN(Statement rows,
                  database_->prepare("SELECT id, func, datatype, algo, proto, root FROM shape ORDER BY id"));
  RowDigest digest;
  while (true) {
    LOCKSTEP_ASSIGN(bool more, rows.step());
    if (!more) break;
    int64_t id = rows.integer(0);
    if (id < static_cast<int64_t>(shapes_.size()) || id >= most_numbers_)
      return Error{ErrorCode::kInvalidInput, "has a shape numbered " + std::to_string(id), path_};
    auto text = [&](int column) {
      int64_t number = rows.integer(column);
      return number >= 0 && number < static_cast<int64_t>(strings_.size())
                 ? static_cast<model::StringId>(number)
                 : 0;
    };
    shapes_.resize(static_cast<size_t>(id));
    shapes_.push_back({text(1), text(2), text(3), text(4), static_cast<int32_t>(rows.integer(5))});
    for (int column = 1; column <= 5; ++column)
      digest.add(static_cast<size_t>(column - 1),
                 rows.is_null(column) ? RowDigest::kNull : rows.integer(column));
    digest.end_row();
  }
  unproven_ += shapes_digest_ && *shapes_digest_ != digest.value();
  return {};
}

Result<void> TraceDbSource::prepare_selections() {
  for (size_t i = 0; i < kTables; ++i) {
    const TableLayout& layout = table_layouts()[i];
    LOCKSTEP_ASSIGN(const std::vector<std::string> present, database_->columns(layout.name));
    if (std::find(present.begin(), present.end(), "id") == present.end()) continue;
    Selection& selection = selections_[i];
    selection.sql = "SELECT id";
    selection.is_ours = present.size() == 1 + layout.columns.size() + layout.derived.size();
    int place = 0;
    for (const ColumnLayout& column : layout.columns) {
      const bool has = std::find(present.begin(), present.end(), column.name) != present.end();
      selection.columns.push_back(has ? ++place : -1);
      selection.is_ours = selection.is_ours && has;
      if (has) selection.sql.append(",").append(quoted(column.name));
    }
    selection.sql += " FROM " + quoted(layout.name) + " WHERE id BETWEEN ? AND ? ORDER BY id";
  }
  return {};
}

Result<std::unique_ptr<Database>> TraceDbSource::take_database() {
  std::unique_lock lock(mutex_);
  if (idle_.empty()) {
    lock.unlock();
    // Without the lock: opening reads the file, and other threads shall not wait for it.
    return Database::open(path_, Database::Access::kRead);
  }
  std::unique_ptr<Database> database = std::move(idle_.back());
  idle_.pop_back();
  return database;
}

void TraceDbSource::give_back(std::unique_ptr<Database> database) {
  std::lock_guard lock(mutex_);
  idle_.push_back(std::move(database));
}

Result<void> TraceDbSource::load(size_t i, model::Trace& trace) {
  LOCKSTEP_ASSIGN(std::unique_ptr<Database> database, take_database());
  auto read = read_process(*database, i, trace);
  give_back(std::move(database));
  return read;
}

Result<void> TraceDbSource::read_process(const Database& database, size_t i, model::Trace& trace) const {
  RowReader reader(*this, database, parts_[i], trace);
#define TABLE(Row, member, sql) reader.read<model::Row>(TableId::k##Row, trace.member);
  LOCKSTEP_MODEL_TABLES(TABLE)
#undef TABLE
  if (trace.processes.size() == 0)
    return Error{ErrorCode::kInvalidInput, "process " + std::to_string(i) + " cannot be read", path_};
  trace.lose(0, "read", "damaged_table", bad_parts_[i],
             path_ + ": part: rows of a table that cannot be identified");
  reader.finish();
  return {};
}

void TraceDbSource::run_losses(model::Trace& trace) {
  trace.lose(model::kNoRow, "read", "damaged_table", stray_parts_, path_ + ": part: rows of no process");
  auto rows =
      database_->prepare("SELECT stage, kind, count, detail FROM loss WHERE process IS NULL ORDER BY id");
  if (!rows) return trace.lose(model::kNoRow, "read", "damaged_table", 1, rows.error().message());
  auto text = [&](int column) -> std::string_view {
    int64_t id = rows->integer(column);
    return id >= 0 && id < static_cast<int64_t>(strings_.size())
               ? std::string_view(strings_[static_cast<size_t>(id)])
               : "";
  };
  auto more = rows->step();
  for (; more && *more; more = rows->step()) {
    trace.lose(model::kNoRow, text(0), text(1), static_cast<uint64_t>(rows->integer(2)), text(3));
  }
  if (!more) trace.lose(model::kNoRow, "read", "damaged_table", 1, more.error().message());
}

}  // namespace lockstep::store::sqlite

namespace lockstep::store {

Result<std::unique_ptr<model::TraceSource>> open_trace_db(const std::string& path) {
  return sqlite::TraceDbSource::open(path);
}

Result<std::vector<std::string>> extract_attachments(const std::string& path,
                                                     const std::function<Result<std::string>()>& folder) {
  LOCKSTEP_ASSIGN(const auto database, sqlite::Database::open(path, sqlite::Database::Access::kRead));
  return sqlite::read_attachments(*database, path, folder);
}

}  // namespace lockstep::store
