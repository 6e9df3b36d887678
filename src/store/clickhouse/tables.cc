// SPDX-License-Identifier: Apache-2.0
// What may be absent from a server of 2018 is left out of all: LowCardinality takes no String of a block
// there and saves nothing, as rows of one operation lie together; TTL would delete an old run while it is
// pushed.
#include "store/clickhouse/tables.h"

#include "store/clickhouse/wire/sql_text.h"

namespace lockstep::store::clickhouse {
namespace {

using enum ColumnType;

constexpr Column kProcessColumns[] = {
    {"day", kDate},        {"run", kUInt64},     {"process", kUInt64},     {"rank", kInt32},
    {"host", kString},     {"boot_id", kString}, {"pid", kInt64},          {"gpu_model", kString},
    {"gpu_uuid", kString}, {"pci", kString},     {"nccl_version", kInt32}, {"first_ns", kInt64},
    {"last_ns", kInt64},   {"closed", kUInt8},   {"ops", kUInt64},         {"lost", kUInt64}};
constexpr Column kCommColumns[] = {{"day", kDate},       {"run", kUInt64},    {"comm", kUInt64},
                                   {"comm_id", kString}, {"name", kString},   {"ranks", kInt32},
                                   {"nodes", kInt32},    {"members", kInt32s}};
constexpr Column kOpColumns[] = {{"day", kDate},
                                 {"run", kUInt64},
                                 {"comm", kUInt64},
                                 {"kind", kUInt8},
                                 {"op_index", kUInt32},
                                 {"rank", kInt32},
                                 {"process", kUInt64},
                                 {"peer", kInt32},
                                 {"nth", kUInt32},
                                 {"host", kString},
                                 {"func", kString},
                                 {"datatype", kString},
                                 {"algo", kString},
                                 {"proto", kString},
                                 {"root", kInt32},
                                 {"channels", kUInt8},
                                 {"seq", kInt64},
                                 {"count", kUInt64},
                                 {"bytes", kUInt64},
                                 {"comms_id", kUInt64},
                                 {"entered_ns", kInt64},
                                 {"clock_error_ns", kInt64},
                                 {"enqueue_after_ns", kInt64},
                                 {"launch_after_ns", kInt64},
                                 {"gpu_after_ns", kInt64},
                                 {"gpu_ns", kInt64},
                                 {"gpu_source", kUInt8},
                                 {"gpu_error_ns", kInt64}};
constexpr Column kRollupColumns[] = {
    {"day", kDate},           {"run", kUInt64},         {"minute", kDateTime},    {"process", kUInt64},
    {"comm", kUInt64},        {"kind", kUInt8},         {"func", kString},        {"algo", kString},
    {"proto", kString},       {"size_bits", kUInt8},    {"rank", kInt32},         {"host", kString},
    {"gpu_model", kString},   {"nccl_version", kInt32}, {"ranks", kInt32},        {"nodes", kInt32},
    {"ops", kUInt64},         {"bytes", kUInt64},       {"timed", kUInt64},       {"gpu_ns", kUInt64},
    {"compared", kUInt64},    {"waited_ns", kUInt64},   {"late_ops", kUInt64},    {"blamed_ns", kUInt64},
    {"moved_ops", kUInt64},   {"bus_bytes", kUInt64},   {"moving_ns", kUInt64},   {"late_bins", kInt32s},
    {"late_counts", kInt32s}, {"busbw_bins", kInt32s},  {"busbw_counts", kInt32s}};
constexpr Column kFindingColumns[] = {
    {"day", kDate},         {"run", kUInt64},         {"finding", kUInt32},        {"id", kString},
    {"class", kString},     {"severity", kString},    {"is_verdict", kUInt8},      {"statement", kString},
    {"ranks", kInt32s},     {"hosts", kStrings},      {"comm", kUInt64},           {"comm_name", kString},
    {"func", kString},      {"op_index", kInt64},     {"comms_id", kUInt64},       {"since_ns", kInt64},
    {"effect", kFloat64},   {"effect_low", kFloat64}, {"effect_high", kFloat64},   {"effect_unit", kString},
    {"evidence", kStrings}, {"advice", kString},      {"needed_evidence", kString}};
constexpr Column kLossColumns[] = {{"day", kDate},       {"run", kUInt64},   {"loss", kUInt32},
                                   {"process", kUInt64}, {"stage", kString}, {"kind", kString},
                                   {"lost", kUInt64},    {"detail", kString}};
constexpr Column kRunColumns[] = {{"day", kDate},
                                  {"run", kUInt64},
                                  {"name", kString},
                                  {"job", kString},
                                  {"started_ns", kInt64},
                                  {"ended_ns", kInt64},
                                  {"processes", kUInt32},
                                  {"world", kInt32},
                                  {"hosts", kStrings},
                                  {"gpu_models", kStrings},
                                  {"nccl_versions", kInt32s},
                                  {"ops", kUInt64},
                                  {"lost", kUInt64},
                                  {"verdict", kString},
                                  {"verdict_class", kString},
                                  {"verdict_text", kString},
                                  {"lockstep_version", kString},
                                  {"schema", kUInt32}};
constexpr Column kBatchColumns[] = {{"day", kDate},        {"run", kUInt64},  {"target", kString},
                                    {"batch", kUInt32},    {"rows", kUInt64}, {"digest", kUInt64},
                                    {"written_ns", kInt64}};
constexpr Column kNowColumns[] = {
    {"day", kDate},       {"run", kUInt64},       {"process", kUInt64},  {"comm", kUInt32},
    {"comm_id", kString}, {"comm_name", kString}, {"comm_rank", kInt32}, {"comm_ranks", kInt32},
    {"host", kString},    {"pid", kInt64},        {"rank", kInt32},      {"called", kUInt64},
    {"op_index", kInt64}, {"peer", kInt32},       {"func", kString},     {"datatype", kString},
    {"count", kUInt64},   {"state", kString},     {"since_ns", kInt64},  {"newest", kString}};
constexpr Column kNowProcessColumns[] = {{"day", kDate},      {"run", kUInt64},         {"process", kUInt64},
                                         {"name", kString},   {"host", kString},        {"pid", kInt64},
                                         {"rank", kInt32},    {"world", kInt32},        {"liveness", kString},
                                         {"closed", kUInt8},  {"heartbeat_ns", kInt64}, {"seen_ns", kInt64},
                                         {"details", kString}};

// Operations are many and old ones are dropped by day; the others are small and are dropped by month. Keys
// begin with the run, so that its rows lie together.
constexpr Table kAll[kTables] = {
    {"processes", kProcessColumns, "toYYYYMM(day)", "run, process"},
    {"comms", kCommColumns, "toYYYYMM(day)", "run, comm"},
    {"ops", kOpColumns, "day", "run, comm, kind, op_index, rank, process, peer, nth"},
    {"rollups", kRollupColumns, "day", "run, minute, process, comm, kind, func, algo, proto, size_bits"},
    {"findings", kFindingColumns, "toYYYYMM(day)", "run, finding"},
    {"losses", kLossColumns, "toYYYYMM(day)", "run, loss"},
    {"runs", kRunColumns, "toYYYYMM(day)", "run"},
    {"batches", kBatchColumns, "toYYYYMM(day)", "run, target, batch"},
    {"now", kNowColumns, "toYYYYMM(day)", "run, process, comm"},
    {"now_processes", kNowProcessColumns, "toYYYYMM(day)", "run, process"}};

// Of a server that has codecs. Measured on rows of operations: 13 bytes a row, 24 without.
std::string_view codec(const Column& column, const Version& version) {
  constexpr Version kFirst{20, 3};
  if (version < kFirst) return "";
  // Distances are small numbers of any order: T64 crops their upper bits. Times ascend, which Delta likes.
  if (column.type == kInt64 && column.name.ends_with("after_ns")) return " CODEC(T64, ZSTD(1))";
  if (column.name == "gpu_ns") return " CODEC(T64, ZSTD(1))";
  if (column.type == kInt64) return " CODEC(Delta(8), ZSTD(1))";
  return " CODEC(ZSTD(1))";
}

std::string full_name(const std::string& database, const Table& table) {
  return identifier(database) + "." + identifier(table.name);
}

std::string sum_of(const Column& column) {
  const std::string name = identifier(column.name);
  switch (column.type) {
    case kString:
    case kInt32s:
    case kStrings:
      // Sums are modulo 2^64 on both sides, so they compare exactly. Texts count by bytes and arrays by
      // elements.
      return "sum(toUInt64(length(" + name + ")))";
    case kDate:
    case kFloat64:
      // Dates are derived from times, and sums of floating-point numbers depend on their order.
      return "toUInt64(0)";
    default:
      return "sum(toUInt64(" + name + "))";
  }
}

}  // namespace

const Table& table(TableId id) { return kAll[number(id)]; }

uint32_t schema_of(const Table& table, const Column& column) {
  return table.name == "runs" && column.name == "schema" ? 1 : 0;
}

std::string add_column_sql(const std::string& database, const Table& table, size_t column) {
  // No codec: a column that is added to an old table is as the oldest server takes it.
  const Column& added = table.columns[column];
  std::string sql =
      "ALTER TABLE " + full_name(database, table) + " ADD COLUMN " + identifier(added.name) + " ";
  sql += type_text(added.type);
  return sql + " AFTER " + identifier(table.columns[column - 1].name);
}

std::string create_table_sql(const std::string& database, const Table& table, const Version& version) {
  std::string sql = "CREATE TABLE IF NOT EXISTS " + full_name(database, table) + " (";
  for (const Column& column : table.columns) {
    sql += identifier(column.name) + " ";
    sql += type_text(column.type);
    sql += codec(column, version);
    sql += ", ";
  }
  // Of rows with one key the newest version stays: sending a batch twice does no harm.
  sql += "`version` UInt64) ENGINE = ReplacingMergeTree(version) PARTITION BY ";
  sql += table.partition;
  sql += " ORDER BY (";
  sql += table.key;
  return sql + ")";
}

std::string insert_sql(const std::string& database, const Table& table) {
  std::string sql = "INSERT INTO " + full_name(database, table) + " (";
  for (const Column& column : table.columns) sql += identifier(column.name) + ", ";
  return sql + "`version`) FORMAT Native";
}

std::string sums_sql(const std::string& database, const Table& table, uint64_t run) {
  std::string sql = "SELECT count()";
  for (const Column& column : table.columns) sql += ", " + sum_of(column);
  return sql + " FROM " + full_name(database, table) + " FINAL WHERE run = " + std::to_string(run);
}

}  // namespace lockstep::store::clickhouse
