// SPDX-License-Identifier: Apache-2.0
// trace.db's tables as data: the model's tables column by column, and the columns that merging adds to them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/trace.h"

namespace lockstep::store::sqlite {

enum class TableId : uint8_t {
#define TABLE(Row, member, sql) k##Row,
  LOCKSTEP_MODEL_TABLES(TABLE)
#undef TABLE
};
#define TABLE(Row, member, sql) +1
inline constexpr size_t kTables = 0 LOCKSTEP_MODEL_TABLES(TABLE);
#undef TABLE
constexpr size_t number(TableId id) { return static_cast<size_t>(id); }

enum class ColumnType : uint8_t { kU8, kU16, kI32, kI64, kU32, kU64 };
enum class ColumnRole : uint8_t {
  kValue,      // as it is; the largest u32 and u64 (kNoRow, kNoSeq) are NULL
  kString,     // number of a text: run-wide in the file
  kReference,  // row of `target`: run-wide in the file, NULL for kNoRow
};

// A column of a table: its name in SQL is that of the model, `text` its meaning in the .def file.
struct ColumnLayout {
  std::string_view name;
  std::string_view text;
  ColumnType type = ColumnType::kI64;
  ColumnRole role = ColumnRole::kValue;
  TableId target = TableId::kProcess;
};

// Where the row numbers of a table come from. Ids of kEvents are unique over all tables that share it, so
// that views may put those tables side by side (rocpd_api is calls, marks, ranges and some ops).
enum class IdSequence : uint8_t { kOwn, kEvents };

struct TableLayout {
  std::string_view name;  // in SQL
  IdSequence ids = IdSequence::kOwn;
  bool per_process = true;            // false: one table for the run, deduplicated (shapes)
  std::vector<ColumnLayout> columns;  // the model's
  std::vector<ColumnLayout> derived;  // added by the merge; not read back
};

// By TableId. A reference column is one whose text in the .def file begins with "row of <table>".
const std::vector<TableLayout>& table_layouts();

// The table that `parent` of a call of this kind refers to.
TableId call_parent_table(uint8_t kind);

// "name", quoted for SQL: some column names are SQL words.
std::string quoted(std::string_view name);

}  // namespace lockstep::store::sqlite
