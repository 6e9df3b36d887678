// SPDX-License-Identifier: Apache-2.0
// Proxy operations that a process did for another one (PXN) can be tied to that one's communicator only when
// both are in the database. The join goes by boot, pid and context, and to the task by the handle's position,
// whose kind may differ between the two records of one event.
#include "store/sqlite/foreign_rows.h"

#include <string>

#include "model/foreign_proxy_op.h"
#include "store/sqlite/row_digest.h"
#include "store/sqlite/table_layout.h"

namespace lockstep::store::sqlite {
namespace {

// 0x7ffffffffffffff is model::kHandlePlace.
static_assert(model::kHandlePlace == 0x7ffffffffffffff);
// Contexts are numbers of one process, so a row is found by context, pid and boot together. The top bits of a
// handle are its kind and are left out: two records of one event may differ in them.
constexpr const char* kOrigins = R"SQL(
CREATE TEMP TABLE origin AS
SELECT p.boot_id AS boot, p.pid AS pid, c.context AS context, c.id AS comm, c.process AS process
FROM comm c JOIN process p ON p.id = c.process WHERE c.context != 0;
CREATE INDEX temp.origin_by_context ON origin(context, pid, boot);
CREATE TEMP TABLE origin_task AS
SELECT process, handle & 0x7ffffffffffffff AS position, id AS task FROM task WHERE handle != 0;
CREATE INDEX temp.origin_task_by_position ON origin_task(process, position);
)SQL";

// Only rows that the process itself could not place, and only such as belong to another pid.
constexpr const char* kJoin = R"SQL(
UPDATE proxy_op SET (comm, task) = (
  SELECT o.comm, (SELECT t.task FROM temp.origin_task t
                  WHERE t.process = o.process AND t.position = proxy_op.parent & 0x7ffffffffffffff)
  FROM temp.origin o JOIN process p ON p.id = proxy_op.process
  WHERE o.context = proxy_op.context AND o.pid = proxy_op.originator_pid AND o.boot = p.boot_id LIMIT 1)
WHERE id BETWEEN ? AND ? AND comm IS NULL AND context != 0
      AND originator_pid != (SELECT pid FROM process WHERE id = proxy_op.process)
)SQL";

// Counted after the join: these have an originator whose file is not in the run.
constexpr const char* kLeft = R"SQL(
SELECT count(*) FROM proxy_op o JOIN process p ON p.id = o.process
WHERE o.comm IS NULL AND o.context != 0 AND o.originator_pid > 0 AND o.originator_pid != p.pid
)SQL";

}  // namespace

bool has_foreign(const model::Trace& trace) {
  for (size_t i = 0; i < trace.proxy_ops.size(); ++i) {
    if (model::is_foreign_proxy_op(trace.proxy_ops, i, trace.processes.pid[0])) return true;
  }
  return false;
}

Result<uint64_t> join_foreign_rows(const Database& database, std::span<const ForeignRows> rows) {
  if (rows.empty()) return uint64_t{0};
  // In temporary tables with indexes of their own: the database keeps no index for the sake of a join that
  // happens once.
  LOCKSTEP_TRY(database.execute(kOrigins));
  LOCKSTEP_ASSIGN(Statement join, database.prepare(kJoin));
  for (const ForeignRows& of : rows) {
    // By ranges of ids: proxy operations of processes that have no foreign ones are not looked at.
    join.bind(1, of.first_id);
    join.bind(2, of.first_id + static_cast<int64_t>(of.rows) - 1);
    LOCKSTEP_TRY(join.run());
  }
  LOCKSTEP_TRY(database.execute("DROP TABLE temp.origin; DROP TABLE temp.origin_task;"));
  LOCKSTEP_ASSIGN(const int64_t left, database.integer(kLeft));
  return static_cast<uint64_t>(left);
}

Result<int64_t> digest_of_proxy_ops(const Database& database, const ForeignRows& rows) {
  const TableLayout& layout = table_layouts()[number(TableId::kProxyOp)];
  std::string sql = "SELECT id";
  for (const ColumnLayout& column : layout.columns) sql += "," + quoted(column.name);
  sql += " FROM " + quoted(layout.name) + " WHERE id BETWEEN ? AND ? ORDER BY id";
  LOCKSTEP_ASSIGN(Statement select, database.prepare(sql));
  select.bind(1, rows.first_id);
  select.bind(2, rows.first_id + static_cast<int64_t>(rows.rows) - 1);
  RowDigest digest;
  while (true) {
    LOCKSTEP_ASSIGN(const bool more, select.step());
    if (!more) return digest.value();
    for (size_t i = 0; i < layout.columns.size(); ++i) {
      const int place = static_cast<int>(i) + 1;
      digest.add(i, select.is_null(place) ? RowDigest::kNull : select.integer(place));
    }
    digest.end_row();
  }
}

}  // namespace lockstep::store::sqlite
