// SPDX-License-Identifier: Apache-2.0
// The tables of a store, as data: CREATE TABLE, the columns of a block, and the query that counts what a run
// has stored, all come from one list. docs/fleet.md shows them to users.
//
// Every table keeps one row per key, the one with the highest `version`: a row that was sent twice counts
// once for whoever reads with FINAL, which all queries do.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "store/clickhouse/wire/answers.h"
#include "store/clickhouse/wire/native_block.h"

namespace lockstep::store::clickhouse {

// In the order in which they are filled: a run is in `runs` once all of it is there.
enum class TableId : uint8_t {
  kProcesses,
  kComms,
  kOps,
  kRollups,
  kFindings,
  kLosses,
  kRuns,
  kBatches,
  // Of running jobs: written by followers, and by no push.
  kNow,
  kNowProcesses
};
constexpr size_t number(TableId id) { return static_cast<size_t>(id); }
inline constexpr size_t kTables = 10;

struct Table {
  std::string_view name;
  std::span<const Column> columns;  // `version` follows them
  std::string_view partition;       // what a part of it can be dropped by
  std::string_view key;             // begins with `run`
};
// Valid as long as the program runs.
const Table& table(TableId id);

// What rows are made of. A store of an earlier schema gets what is new in this one when a run is pushed;
// `runs.schema` is the one that a run was pushed with.
//   0  the first
//   1  rollups; runs.schema
inline constexpr uint32_t kSchema = 1;
// The schema that a column came with, where its table is older.
uint32_t schema_of(const Table& table, const Column& column);

// Columns are packed by their kind where the server can.
std::string create_table_sql(const std::string& database, const Table& table, const Version& version);
// A column that a store of an earlier schema lacks, behind the one before it: not the first.
std::string add_column_sql(const std::string& database, const Table& table, size_t column);
// In the order of BlockWriter's columns, in the Native format: a block follows as the body.
std::string insert_sql(const std::string& database, const Table& table);
// One row: the number of rows of a run, then the sums of its columns as class BlockWriter has them.
std::string sums_sql(const std::string& database, const Table& table, uint64_t run);

}  // namespace lockstep::store::clickhouse
