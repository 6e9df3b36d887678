// SPDX-License-Identifier: Apache-2.0
// The layout is read off the model's lists: the text of a column says what it refers to ("row of comms"), so
// text and reference cannot disagree, and a text that names no table aborts when the layouts are made.
#include "store/sqlite/table_layout.h"

#include <type_traits>

#include "base/result.h"
#include "model/event_kind.h"

namespace lockstep::store::sqlite {
namespace {

template <class T>
constexpr ColumnType type_of() {
  if constexpr (std::is_same_v<T, uint8_t>) return ColumnType::kU8;
  if constexpr (std::is_same_v<T, uint16_t>) return ColumnType::kU16;
  if constexpr (std::is_same_v<T, int32_t>) return ColumnType::kI32;
  if constexpr (std::is_same_v<T, int64_t>) return ColumnType::kI64;
  if constexpr (std::is_same_v<T, uint32_t>) return ColumnType::kU32;
  if constexpr (std::is_same_v<T, uint64_t>) return ColumnType::kU64;
}

// The table that a column's text says it refers to.
void find_reference(ColumnLayout& column) {
  constexpr std::string_view kRowOf = "row of ";
  if (!column.text.starts_with(kRowOf)) return;
  std::string_view member = column.text.substr(kRowOf.size());
  // Texts go on after the table's name: "row of comms; kNoRow none".
  member = member.substr(0, member.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"));
#define TABLE(Row, table, sql)            \
  if (member == #table) {                 \
    column.role = ColumnRole::kReference; \
    column.target = TableId::k##Row;      \
  }
  LOCKSTEP_MODEL_TABLES(TABLE)
#undef TABLE
  // A text that names no table would make a column of numbers that nobody can follow.
  LOCKSTEP_CHECK(column.role == ColumnRole::kReference && column.type == ColumnType::kU32);
}

template <class Row>
TableLayout layout_of(std::string_view sql_name) {
  TableLayout table;
  table.name = sql_name;
  Row row;
  Row::each_column(
      row, [&](std::string_view type_name, std::string_view name, std::string_view text, auto& field) {
        if (name == "id") name = "type_id";  // `id` is the row's own
        ColumnLayout column{
            .name = name, .text = text, .type = type_of<std::remove_reference_t<decltype(field)>>()};
        if (type_name == "StringId") column.role = ColumnRole::kString;
        find_reference(column);
        table.columns.push_back(column);
      });
  return table;
}

ColumnLayout derived_string(std::string_view name, std::string_view text) {
  return {.name = name, .text = text, .type = ColumnType::kU32};
}
ColumnLayout derived_number(std::string_view name, std::string_view text, ColumnType type) {
  return {.name = name, .text = text, .type = type};
}

std::vector<TableLayout> make_layouts() {
  std::vector<TableLayout> tables;
#define TABLE(Row, member, sql) tables.push_back(layout_of<model::Row>(sql));
  LOCKSTEP_MODEL_TABLES(TABLE)
#undef TABLE
  auto at = [&](TableId id) -> TableLayout& { return tables[number(id)]; };
  for (TableId id :
       {TableId::kCall, TableId::kMark, TableId::kOp, TableId::kLaunch, TableId::kKernel, TableId::kRange})
    at(id).ids = IdSequence::kEvents;
  // Ranks have nearly all shapes in common: one table for the run, and processes name its rows.
  at(TableId::kShape).per_process = false;
  at(TableId::kProcess).derived = {derived_number("node", "number of its host in the run", ColumnType::kI32)};
  at(TableId::kComm).derived = {
      derived_number("run_comm", "number of the communicator in the run: equal on all its members",
                     ColumnType::kU32),
      derived_number("collectives", "collective operations of this member", ColumnType::kU64),
      derived_number("p2ps", "point-to-point operations of this member", ColumnType::kU64),
      derived_number("same_index", "1: `index` of its collectives is equal on all members; 0: not known",
                     ColumnType::kI32)};
  at(TableId::kShape).derived = {
      derived_string("kernel_name", "string: name of its GPU work in rocpd_op"),
      derived_string("api_name", "string: name of its host call in rocpd_api and rocpd_op"),
      derived_string("args", "string: datatype, algorithm, protocol and root as text")};
  at(TableId::kCall).derived = {derived_string("name", "string: its name in rocpd_api")};
  at(TableId::kMark).derived = {derived_string("label", "string: name, and number of a step")};
  at(TableId::kOp).derived = {
      derived_number("gpu", "run-wide device number; -1 unknown", ColumnType::kI32),
      derived_string("name", "string: its name in rocpd_op"),
      derived_number("host_end_ns", "the host was done with enqueueing it; its begin if that is unknown",
                     ColumnType::kI64)};
  at(TableId::kLaunch).derived = {derived_string("name", "string: its name in rocpd_api")};
  at(TableId::kKernel).derived = {derived_number(
      "run_gpu", "gpu, or the number that stands for the unknown device of its process", ColumnType::kI32)};
  return tables;
}

}  // namespace

const std::vector<TableLayout>& table_layouts() {
  // Made once, by the first thread that asks; the language makes others wait.
  static const std::vector<TableLayout> tables = make_layouts();
  return tables;
}

TableId call_parent_table(uint8_t kind) {
  bool of_task =
      kind == model::number(model::EventKind::kCeSync) || kind == model::number(model::EventKind::kCeBatch);
  return of_task ? TableId::kTask : TableId::kCall;
}

std::string quoted(std::string_view name) {
  std::string text = "\"";
  text += name;
  text += '"';
  return text;
}

}  // namespace lockstep::store::sqlite
