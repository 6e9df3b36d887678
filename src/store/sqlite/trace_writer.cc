// SPDX-License-Identifier: Apache-2.0
// Writes rows by INSERT ... SELECT from virtual tables over the model's columns (column_module.h): a prepared
// INSERT with bound values costs a call for each value. Values that all rows have in common stand in the
// statement itself. Ids are given here, over the whole run, while references in a trace are local rows; a
// reference past the end of its table becomes NULL and is counted.
#include "store/sqlite/trace_writer.h"

#include <type_traits>

#include "model/record_gaps.h"
#include "store/sqlite/attachments.h"
#include "store/sqlite/diagnostics.h"
#include "store/sqlite/host_counters.h"
#include "store/sqlite/schema.h"

namespace lockstep::store::sqlite {
namespace {

// No journal and no syncing: the file is thrown away unless it is completed. 16 KiB pages and 8 MiB of cache
// give 2.0 M rows/s for a whole merge; 4 KiB pages cost 40 %, larger ones gain 4 % but make small files
// large, and a larger cache gains nothing, because rows are only appended.
constexpr const char* kPragmas = R"SQL(
PRAGMA page_size=16384; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA locking_mode=EXCLUSIVE;
PRAGMA cache_size=-8192; PRAGMA temp_store=MEMORY;
)SQL";

constexpr std::string_view kParent = "parent";

template <class T>
BoundColumn derived(const T* values) {
  using How = BoundColumn::How;
  How how = How::kI64;
  // kI32 keeps its numbers as they are; kU32 and kU64 make NULL of the largest (kNoRow, kNoSeq).
  if constexpr (std::is_same_v<T, int32_t>) how = How::kI32;
  if constexpr (std::is_same_v<T, uint32_t>) how = How::kU32;
  if constexpr (std::is_same_v<T, uint64_t>) how = How::kU64;
  return {.how = how, .data = values};
}

// From so many rows on statements of their own are worth the 100 us of preparing them.
constexpr size_t kManyRows = 10'000;

// Copy the first row of a virtual table, and the others. SQLite gives these their ids, which go on from the
// first one's: so it appends them and searches for no place, which takes a quarter off. Values of constant
// columns stand in the statements, as SQLite calls for each other one: of an AMD GPU's kernels 12 of 16
// columns may be constant in a process.
struct CopyStatements {
  std::string first, others;
};
CopyStatements copy_statements(const TableLayout& layout, const BoundTable& bound) {
  std::string names, values;
  auto column = bound.columns.begin();
  for (const auto* columns : {&layout.columns, &layout.derived}) {
    for (const ColumnLayout& named : *columns) {
      const BoundColumn& source = *column++;
      const char* comma = names.empty() ? "" : ",";
      names.append(comma).append(quoted(named.name));
      values += comma;
      if (!is_constant(source, bound.rows))
        values += quoted(named.name);
      else if (const auto value = stored_value(source, 0))
        values += std::to_string(*value);
      else
        values += "NULL";
    }
  }
  const std::string table = "INSERT INTO " + quoted(layout.name),
                    from = " FROM source_" + std::string(layout.name);
  return {.first = table + " SELECT id," + values + from + " LIMIT 1",
          .others = table + '(' + names + ") SELECT " + values + from + " LIMIT -1 OFFSET 1"};
}

// References past the end of their table: written as NULL, which must be said.
uint64_t dangling(std::span<const uint32_t> values, size_t limit) {
  uint64_t count = 0;
  for (uint32_t value : values) count += value >= limit && value != model::kNoRow;
  return count;
}

}  // namespace

Result<std::unique_ptr<TraceWriter>> TraceWriter::create(const std::string& path) {
  std::unique_ptr<TraceWriter> writer(new TraceWriter);
  LOCKSTEP_ASSIGN(writer->database_, Database::open(path, Database::Access::kCreate));
  const Database& database = *writer->database_;
  LOCKSTEP_TRY(database.execute(kPragmas));
  LOCKSTEP_TRY(database.execute("PRAGMA application_id=" + std::to_string(kApplicationId) +
                                "; PRAGMA user_version=" + std::to_string(kSchemaVersion) + "; BEGIN;" +
                                table_sql()));
  for (size_t i = 0; i < kTables; ++i) {
    const TableLayout& layout = table_layouts()[i];
    LOCKSTEP_TRY(register_source(database, layout, &writer->bound_[i]));
    // Prepared once for the run: the virtual table reads whatever `bound_` holds when the statement runs.
    LOCKSTEP_ASSIGN(Statement insert, database.prepare("INSERT INTO " + quoted(layout.name) +
                                                       " SELECT * FROM source_" + std::string(layout.name)));
    writer->inserts_.push_back(std::move(insert));
  }
  LOCKSTEP_ASSIGN(writer->add_part_, database.prepare("INSERT INTO part VALUES (?, ?, ?, ?, ?)"));
  return writer;
}

Result<void> TraceWriter::append(const model::Trace& trace) {
  // The order matters: derived columns are numbers of the names, and references need the first ids of all
  // tables before any column is bound.
  names_.add(trace);
  derived_.compute(trace, names_);
  assign_ids(trace);
#define TABLE(Row, member, sql) bind<model::Row>(TableId::k##Row, trace.member);
  LOCKSTEP_MODEL_TABLES(TABLE)
#undef TABLE
  bind_call_parents(trace);
  bind_derived();
  is_foreign_ = has_foreign(trace);
  for (size_t i = 0; i < kTables; ++i) {
    if (table_layouts()[i].per_process) LOCKSTEP_TRY(insert(static_cast<TableId>(i)));
  }
  LOCKSTEP_TRY(write_diagnostics(*database_, trace, bound_[number(TableId::kProcess)].first_id, rows_));
  ++traces_;
  return {};
}

void TraceWriter::assign_ids(const model::Trace& trace) {
#define TABLE(Row, member, sql) bound_[number(TableId::k##Row)].rows = trace.member.size();
  LOCKSTEP_MODEL_TABLES(TABLE)
#undef TABLE
  for (size_t i = 0; i < kTables; ++i) {
    int64_t& next = table_layouts()[i].ids == IdSequence::kEvents ? next_event_id_ : next_id_[i];
    bound_[i].first_id = next;
    if (table_layouts()[i].per_process) next += static_cast<int64_t>(bound_[i].rows);
  }
}

template <class Row, class Table>
void TraceWriter::bind(TableId id, const Table& table) {
  BoundTable& bound = bound_[number(id)];
  const TableLayout& layout = table_layouts()[number(id)];
  bound.columns.clear();
  Row::each_column(table, [&](auto&&, auto&&, auto&&, const auto& values) {
    using How = BoundColumn::How;
    const ColumnLayout& column = layout.columns[bound.columns.size()];
    BoundColumn source{.how = static_cast<How>(column.type), .data = values.data()};
    if constexpr (std::is_same_v<decltype(values), const model::TableColumn<uint32_t>&>) {
      if (column.role == ColumnRole::kString) {
        source.how = How::kMapped;
        source.map = names_.string_map().data();
        source.limit = static_cast<uint32_t>(names_.string_map().size());
      } else if (column.role == ColumnRole::kReference) {
        const BoundTable& target = bound_[number(column.target)];
        source.how = column.target == TableId::kShape ? How::kMapped : How::kReference;
        source.map = names_.shape_map().data();
        // Local rows from here on would be rows of the next process.
        source.limit = static_cast<uint32_t>(target.rows);
        source.base = target.first_id;
        // Those of call.parent go to two tables: bind_call_parents() counts them.
        if (id != TableId::kCall || column.name != kParent)
          lose_dangling(id, column.name, dangling({values.data(), table.size()}, target.rows));
      }
    }
    bound.columns.push_back(source);
  });
}

void TraceWriter::lose_dangling(TableId id, std::string_view column, uint64_t count) {
  losses_.lose(model::kNoRow, "merge", "dangling_reference", count,
               std::string(table_layouts()[number(id)].name) + "." + std::string(column) +
                   " named a row that does not exist");
}

// The parent of a CeSync or CeBatch is a task, that of other calls a call.
void TraceWriter::bind_call_parents(const model::Trace& trace) {
  call_parents_.resize(trace.calls.size());
  uint64_t dangling = 0;
  for (uint32_t i = 0; i < call_parents_.size(); ++i) {
    const BoundTable& target = bound_[number(call_parent_table(trace.calls.kind[i]))];
    uint32_t parent = trace.calls.parent[i];
    call_parents_[i] = parent < target.rows ? static_cast<uint64_t>(target.first_id) + parent : model::kNoSeq;
    dangling += parent >= target.rows && parent != model::kNoRow;
  }
  lose_dangling(TableId::kCall, kParent, dangling);
  const TableLayout& layout = table_layouts()[number(TableId::kCall)];
  for (size_t i = 0; i < layout.columns.size(); ++i) {
    if (layout.columns[i].name == kParent)
      bound_[number(TableId::kCall)].columns[i] = derived(call_parents_.data());
  }
}

void TraceWriter::bind_derived() {
  auto add = [this](TableId id, const auto&... values) {
    (bound_[number(id)].columns.push_back(derived(values.data())), ...);
    LOCKSTEP_CHECK(table_layouts()[number(id)].derived.size() == sizeof...(values));
  };
  add(TableId::kProcess, derived_.run.process_node);
  add(TableId::kComm, derived_.run.comm_run, derived_.run.comm_collectives, derived_.run.comm_p2ps,
      derived_.run.comm_same_index);
  add(TableId::kCall, derived_.call_name);
  add(TableId::kMark, derived_.mark_label);
  add(TableId::kOp, derived_.run.op_gpu, derived_.op_name, derived_.op_host_end);
  add(TableId::kLaunch, derived_.launch_name);
  add(TableId::kKernel, derived_.run.kernel_gpu);
}

Result<uint64_t> TraceWriter::copy_rows(TableId id) {
  const BoundTable& bound = bound_[number(id)];
  if (bound.rows < kManyRows) return inserts_[number(id)].run();
  const CopyStatements statements = copy_statements(table_layouts()[number(id)], bound);
  LOCKSTEP_ASSIGN(Statement first, database_->prepare(statements.first));
  LOCKSTEP_ASSIGN(const uint64_t one, first.run());
  LOCKSTEP_ASSIGN(Statement others, database_->prepare(statements.others));
  LOCKSTEP_ASSIGN(const uint64_t rest, others.run());
  return one + rest;
}

Result<void> TraceWriter::insert(TableId id) {
  const BoundTable& bound = bound_[number(id)];
  if (bound.rows == 0) return {};
  LOCKSTEP_ASSIGN(const uint64_t added, copy_rows(id));
  LOCKSTEP_CHECK(added == bound.rows);
  table_rows_[number(id)] += added;
  rows_ += added;
  // Their values change once the other processes are in: join_foreign() makes the digest then.
  if (id == TableId::kProxyOp && is_foreign_) {
    foreign_.push_back({traces_, bound.first_id, added});
    return {};
  }
  return add_part(traces_, table_layouts()[number(id)].name, bound.first_id, added,
                  digest_of(bound, table_layouts()[number(id)].columns.size()));
}

Result<uint64_t> TraceWriter::join_foreign() {
  LOCKSTEP_ASSIGN(const uint64_t left, join_foreign_rows(*database_, foreign_));
  for (const ForeignRows& rows : foreign_) {
    LOCKSTEP_ASSIGN(const int64_t digest, digest_of_proxy_ops(*database_, rows));
    LOCKSTEP_TRY(add_part(rows.trace, table_layouts()[number(TableId::kProxyOp)].name, rows.first_id,
                          rows.rows, digest));
  }
  return left;
}

Result<void> TraceWriter::add_part(int64_t trace, std::string_view table, int64_t first, uint64_t rows,
                                   int64_t digest) {
  add_part_->bind(1, trace);
  add_part_->bind(2, table);
  add_part_->bind(3, first);
  add_part_->bind(4, static_cast<int64_t>(rows));
  add_part_->bind(5, digest);
  add_part_row(parts_digest_, {trace, table, first, static_cast<int64_t>(rows), digest});
  ++parts_;
  LOCKSTEP_ASSIGN(const uint64_t added, add_part_->run());
  rows_ += added;
  return {};
}

Result<std::vector<std::string>> TraceWriter::attach(const std::vector<std::string>& paths) {
  return write_attachments(*database_, paths, rows_);
}

Result<void> TraceWriter::add_host_counters(model::TraceSource& source) {
  return write_host_counters(*database_, source, rows_);
}

Result<void> TraceWriter::finish(model::Trace& run, const std::string& source_name) {
  for (size_t i = 0; i < losses_.losses.size(); ++i) {
    model::Loss loss = losses_.losses.row(i);
    run.lose(model::kNoRow, losses_.strings[loss.stage], losses_.strings[loss.kind], loss.count,
             losses_.strings[loss.detail]);
  }
  run.lose(
      model::kNoRow, "merge", "unknown_gpu", derived_.run.unknown_gpus(),
      "processes whose device is unknown: each counts as a device of its own in op.gpu and rocpd_op.gpuId");
  // Before the losses are written, as what could not be joined is one of them.
  LOCKSTEP_ASSIGN(const uint64_t foreign, join_foreign());
  run.lose(
      model::kNoRow, "merge", model::kLossForeignParent, foreign,
      "network operations that a process did for another one on its host (PXN), whose file is not in the run");
  names_.add(run);
  assign_ids(run);
  bind<model::Loss>(TableId::kLoss, run.losses);
  LOCKSTEP_TRY(insert(TableId::kLoss));
  // All texts have their numbers by now. `part` comes last, as each table adds a row to it.
  LOCKSTEP_TRY(write_shapes());
  LOCKSTEP_TRY(write_strings());
  // The arguments are taken before this row counts itself: the digest is of the rows above it.
  LOCKSTEP_TRY(add_part(traces_, "part", 0, parts_, parts_digest_.value()));
  LOCKSTEP_TRY(database_->execute(index_sql()));
  LOCKSTEP_TRY(database_->execute(view_sql()));
  LOCKSTEP_TRY(write_metadata(source_name));
  LOCKSTEP_TRY(database_->execute("COMMIT"));
  // SQLite cannot close while statements are open.
  add_part_.reset();
  inserts_.clear();
  return database_->close();
}

Result<void> TraceWriter::write_shapes() {
  const model::ShapeTable& shapes = names_.shapes();
  std::vector<uint32_t> kernels, apis, args;
  for (uint32_t i = 0; i < shapes.size(); ++i) {
    kernels.push_back(names_.shape_texts(i).kernel);
    apis.push_back(names_.shape_texts(i).api);
    args.push_back(names_.shape_texts(i).args);
  }
  BoundTable& bound = bound_[number(TableId::kShape)];
  bound = {.rows = shapes.size(), .first_id = 0, .columns = {}};
  model::Shape::each_column(shapes, [&](auto&&, auto&&, auto&&, const auto& values) {
    bound.columns.push_back(derived(values.data()));  // already run-wide numbers
  });
  for (const auto* values : {&kernels, &apis, &args}) bound.columns.push_back(derived(values->data()));
  if (bound.rows == 0) return {};
  LOCKSTEP_ASSIGN(table_rows_[number(TableId::kShape)], inserts_[number(TableId::kShape)].run());
  rows_ += shapes.size();
  return add_part(traces_, "shape", 0, shapes.size(),
                  digest_of(bound, table_layouts()[number(TableId::kShape)].columns.size()));
}

Result<void> TraceWriter::write_strings() {
  LOCKSTEP_ASSIGN(Statement insert, database_->prepare("INSERT INTO string VALUES (?, ?)"));
  const model::StringPool& strings = names_.strings();
  RowDigest digest;
  for (uint32_t i = 0; i < strings.size(); ++i) {
    insert.bind(1, int64_t{i});
    insert.bind(2, strings[i]);
    digest.add_text(strings[i]);
    digest.end_row();
    LOCKSTEP_ASSIGN(uint64_t added, insert.run());
    rows_ += added;
  }
  return add_part(traces_, "string", 0, strings.size(), digest.value());
}

Result<void> TraceWriter::write_metadata(const std::string& source_name) {
  LOCKSTEP_ASSIGN(Statement insert, database_->prepare("INSERT INTO metadata VALUES (?, ?)"));
  const std::pair<std::string_view, std::string> entries[] = {
      {"written_by", "lockstep"},
      {"source", source_name},
      {"processes", std::to_string(traces_)},
      {"shared_ids", "call, op, launch, gpu_kernel, nvtx_range and mark share one sequence of ids"}};
  for (const auto& [tag, value] : entries) {
    insert.bind(1, tag);
    insert.bind(2, value);
    LOCKSTEP_ASSIGN(uint64_t added, insert.run());
    rows_ += added;
  }
  return {};
}

}  // namespace lockstep::store::sqlite
