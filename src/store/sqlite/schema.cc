// SPDX-License-Identifier: Apache-2.0
// Tables are made from the model's own lists of columns; what stands here are the tables beside them and the
// views. rocpd's and RPD's names are views, too: their users only select, and a copy could disagree with the
// original (docs/decisions/0005-rocpd-as-views.md).
#include "store/sqlite/schema.h"

#include "model/event_kind.h"

namespace lockstep::store::sqlite {
namespace {

constexpr const char* kOwnTables = R"SQL(
CREATE TABLE string(id INTEGER PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE kind(id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE metadata(tag TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE part( -- which rows of a table came from which process
  trace INTEGER, -- number of the process in the order of merging
  name TEXT, -- table
  first INTEGER, -- id of its first row
  rows INTEGER,
  digest INTEGER -- of the values of those rows, so that damage shows; texts, shapes and this table as well, of no process
);
CREATE TABLE diagnostic( -- counters per process; process NULL: the whole run
  process INTEGER, counter TEXT, value INTEGER, text TEXT
);
CREATE TABLE attachment( -- files of other tools that lay in the run directory: logs, Flight Recorder dumps
  id INTEGER PRIMARY KEY, name TEXT NOT NULL, bytes INTEGER
);
CREATE TABLE attachment_piece( -- their content, 1 MiB a piece
  attachment INTEGER, number INTEGER, bytes INTEGER, -- before compression
  content BLOB, -- zlib
  PRIMARY KEY (attachment, number)
) WITHOUT ROWID;
CREATE TABLE host_counter( -- counters of hosts' links and GPUs beside the job; all that uses the host counts
  id INTEGER PRIMARY KEY, host TEXT NOT NULL,
  kind TEXT, -- port nic net pci gpu
  device TEXT, -- mlx5_0/1, eth0, 0000:1b:00.0
  name TEXT, unit TEXT,
  is_gauge INTEGER -- 1: a value as it was; 0: how much was counted since the job began
);
CREATE TABLE host_sample( -- only where the value has changed
  counter INTEGER, time_ns INTEGER, value INTEGER,
  PRIMARY KEY (counter, time_ns)
) WITHOUT ROWID;
-- Of RPD's schema, without content of ours.
CREATE TABLE rocpd_copyapi(api_ptr_id INTEGER PRIMARY KEY, stream TEXT, size INTEGER, width INTEGER, height INTEGER,
  kind INTEGER, dst TEXT, src TEXT, dstDevice INTEGER, srcDevice INTEGER, sync INTEGER, pinned INTEGER);
CREATE TABLE rocpd_monitor(id INTEGER PRIMARY KEY, deviceType TEXT, deviceId INTEGER, monitorType TEXT, start INTEGER,
  end INTEGER, value TEXT);
CREATE TABLE rocpd_counter(id INTEGER PRIMARY KEY, value REAL, op_id INTEGER, name_id INTEGER);
CREATE TABLE rocpd_stackframe(id INTEGER PRIMARY KEY, api_ptr_id INTEGER, depth INTEGER, name_id INTEGER);
CREATE TABLE rocpd_metadata(id INTEGER PRIMARY KEY, tag TEXT NOT NULL, value TEXT NOT NULL);
)SQL";

// Readable text. comms_id is the tuple `comm hash:coll or p2p:number of the operation`, equal on all ranks
// for collectives, and absent, as op_index is, where a recording lacks it; torch_comms_id is PyTorch's
// own number, only where its inputs are known.
constexpr const char* kTextViews = R"SQL(
CREATE VIEW processes AS
SELECT p.id, p.rank, p.local_rank, p.world, h.text AS host, p.node, p.pid, p.device, p.gpu, pci.text AS pci,
       uuid.text AS uuid, model.text AS gpu_model, b.text AS boot_id, l.text AS launcher, j.text AS job, a.text AS argv, p.nccl_version,
       library.text AS nccl_library, build.text AS nccl_build_id, other.text AS other_nccl,
       p.closed, p.start_ns, p.first_ns, p.last_ns
FROM process p LEFT JOIN string h ON h.id = p.host LEFT JOIN string b ON b.id = p.boot_id
LEFT JOIN string l ON l.id = p.launcher LEFT JOIN string j ON j.id = p.job LEFT JOIN string a ON a.id = p.argv
LEFT JOIN string pci ON pci.id = p.pci LEFT JOIN string uuid ON uuid.id = p.uuid
LEFT JOIN string model ON model.id = p.gpu_model LEFT JOIN string library ON library.id = p.nccl_library
LEFT JOIN string build ON build.id = p.nccl_build_id LEFT JOIN string other ON other.id = p.other_nccl;

CREATE VIEW host_counters AS
SELECT c.host, c.kind, c.device, c.name, c.unit, s.time_ns, s.value
FROM host_sample s JOIN host_counter c ON c.id = s.counter;

CREATE VIEW comms AS
SELECT c.id, c.run_comm, c.process, p.rank AS global_rank, n.text AS name, printf('%016x', c.comm_id) AS hash, c.rank,
       c.ranks, c.nodes, c.gpu, c.collectives, c.p2ps, c.api_version, c.init_ns, c.end_ns, m.text AS members,
       g.text AS group_name, d.text AS group_description
FROM comm c JOIN process p ON p.id = c.process LEFT JOIN string n ON n.id = c.name LEFT JOIN string m ON m.id = c.members
LEFT JOIN string g ON g.id = c.group_name LEFT JOIN string d ON d.id = c.group_description;

CREATE VIEW ops AS
SELECT o.id, o.process, p.rank, n.text AS comm, CASE WHEN c.id IS NOT NULL THEN printf('%016x', c.comm_id) END AS comm_hash,
       c.run_comm, c.rank AS comm_rank, c.ranks, CASE WHEN o.peer >= 0 OR c.same_index IS NOT 0 THEN o."index" END AS op_index, k.name AS kind, f.text AS func, d.text AS datatype, al.text AS algo,
       pr.text AS proto, s.root, CASE WHEN o.peer >= 0 THEN o.peer END AS peer, o.seq, o.count, o.bytes, o.channels,
       o.gpu, CASE WHEN o.stream != 0 THEN printf('0x%x', o.stream) END AS stream, t.tid,
       nullif(o.called_ns, 0) AS called_ns, nullif(o.enqueued_ns, 0) AS enqueued_ns,
       nullif(o.launched_ns, 0) AS launched_ns, nullif(o.gpu_start_ns, 0) AS gpu_start_ns,
       nullif(o.gpu_end_ns, 0) AS gpu_end_ns,
       CASE WHEN o.gpu_start_ns != 0 AND o.gpu_end_ns != 0 THEN o.gpu_end_ns - o.gpu_start_ns END AS gpu_ns,
       CASE o.gpu_source WHEN 0 THEN 'none' WHEN 1 THEN 'KernelCh' WHEN 2 THEN 'Api' WHEN 3 THEN 'Cupti'
                         WHEN 4 THEN 'Hsa' WHEN 5 THEN 'Watchdog' WHEN 6 THEN 'Inspector' WHEN 7 THEN 'Network' END AS gpu_source,
       CASE WHEN o.gpu_error_ns >= 0 THEN o.gpu_error_ns END AS gpu_error_ns,
       CASE WHEN c.same_index OR (o.peer >= 0 AND c.id IS NOT NULL) THEN
         printf('%016x:%s:%s', c.comm_id, CASE WHEN o.peer >= 0 THEN 'p2p' ELSE 'coll' END, coalesce(o."index", 'replay')) END AS comms_id,
       CASE WHEN o.torch_comms_id != 0 THEN printf('%u', o.torch_comms_id) END AS torch_comms_id,
       CASE WHEN o.torch_comms_id != 0 OR o.torch_seq > 0 THEN o.torch_seq END AS torch_seq, o.in_count, o.out_count,
       nullif(pl.text, '') AS place
FROM op o JOIN process p ON p.id = o.process LEFT JOIN comm c ON c.id = o.comm LEFT JOIN string n ON n.id = c.name
LEFT JOIN kind k ON k.id = o.kind LEFT JOIN thread t ON t.id = o.thread LEFT JOIN shape s ON s.id = o.shape
LEFT JOIN string f ON f.id = s.func LEFT JOIN string d ON d.id = s.datatype LEFT JOIN string al ON al.id = s.algo
LEFT JOIN string pr ON pr.id = s.proto LEFT JOIN string pl ON pl.id = o.place;

CREATE VIEW kernels AS
SELECT k.id, k.process, p.rank, k.run_gpu AS gpu, k.stream, n.text AS name,
       CASE k.kind WHEN 0 THEN 'compute' WHEN 1 THEN 'communication' WHEN 2 THEN 'copy' END AS kind, k.op,
       nullif(k.graph, 0) AS graph, nullif(k.graph_node, 0) AS graph_node, k.start_ns, k.end_ns,
       k.end_ns - k.start_ns AS gpu_ns, l.start_ns AS launched_ns, t.tid AS launched_by, nullif(k.blocks, 0) AS blocks,
       nullif(k.bytes, 0) AS bytes
FROM gpu_kernel k JOIN process p ON p.id = k.process LEFT JOIN string n ON n.id = k.name
LEFT JOIN launch l ON l.id = k.launch LEFT JOIN thread t ON t.id = l.thread;

CREATE VIEW ranges AS
SELECT r.id, r.process, p.rank, t.tid, n.text AS name, d.text AS domain,
       CASE r.kind WHEN 1 THEN 'nested' WHEN 2 THEN 'free' END AS kind, r.start_ns, nullif(r.end_ns, 0) AS end_ns,
       CASE WHEN r.end_ns != 0 THEN r.end_ns - r.start_ns END AS ns
FROM nvtx_range r JOIN process p ON p.id = r.process LEFT JOIN thread t ON t.id = r.thread
LEFT JOIN string n ON n.id = r.name LEFT JOIN string d ON d.id = r.domain;

CREATE VIEW losses AS
SELECT l.process, p.rank, s.text AS stage, k.text AS kind, l.count, d.text AS detail
FROM loss l LEFT JOIN process p ON p.id = l.process JOIN string s ON s.id = l.stage JOIN string k ON k.id = l.kind
JOIN string d ON d.id = l.detail;

-- Members of a communicator that did less than the busiest one, and communicators and runs with members missing.
CREATE VIEW asymmetry AS
WITH most AS (SELECT run_comm, max(collectives) AS collectives, max(p2ps) AS p2ps, max(ranks) AS ranks,
                     count(DISTINCT rank) AS present FROM comm GROUP BY run_comm),
     kernels AS (SELECT process, count(*) AS n FROM gpu_kernel WHERE kind != 2 GROUP BY process)
SELECT c.run_comm, c.process, p.rank AS global_rank, c.rank AS comm_rank, 'collectives' AS what, c.collectives AS ops,
       m.collectives AS expected,
       CASE WHEN c.collectives = 0 THEN 'zero' WHEN c.collectives * 2 < m.collectives THEN 'low' ELSE 'note' END AS finding
FROM comm c JOIN most m ON m.run_comm = c.run_comm JOIN process p ON p.id = c.process
WHERE c.collectives * 5 < m.collectives * 4
UNION ALL
SELECT c.run_comm, c.process, p.rank, c.rank, 'p2ps', c.p2ps, m.p2ps, 'note'
FROM comm c JOIN most m ON m.run_comm = c.run_comm JOIN process p ON p.id = c.process
WHERE c.p2ps * 5 < m.p2ps * 4
UNION ALL
SELECT NULL, p.id, p.rank, NULL, 'kernels', coalesce(k.n, 0), m.n,
       CASE WHEN k.n IS NULL THEN 'zero' WHEN k.n * 2 < m.n THEN 'low' ELSE 'note' END
FROM process p LEFT JOIN kernels k ON k.process = p.id JOIN (SELECT max(n) AS n FROM kernels) m
WHERE coalesce(k.n, 0) * 5 < m.n * 4 AND (p.rank >= 0 OR k.n IS NOT NULL OR NOT EXISTS (SELECT 1 FROM process WHERE rank >= 0))
UNION ALL
SELECT run_comm, NULL, NULL, NULL, 'members', present, ranks, 'missing-ranks' FROM most WHERE present < ranks
UNION ALL
SELECT NULL, NULL, NULL, NULL, 'processes', count(DISTINCT rank), max(world), 'missing-ranks' FROM process
WHERE rank >= 0 HAVING count(DISTINCT rank) < max(world)
UNION ALL
SELECT NULL, p.id, p.rank, NULL, 'operations', 0, NULL, 'zero' FROM process p
WHERE NOT EXISTS (SELECT 1 FROM comm c WHERE c.process = p.id AND c.collectives + c.p2ps > 0)
      AND (p.rank >= 0 OR EXISTS (SELECT 1 FROM comm c WHERE c.process = p.id) OR NOT EXISTS (SELECT 1 FROM process WHERE rank >= 0));
)SQL";

// What rocm-trace-lite and RPD (schema 3) call these things. Views over our own tables: measured, a physical
// copy would add 12 % (deep) to 78 % (host side only) to the rows written, and readers only select. An op is
// one row, with GPU times where they are known (opType KernelExecution), else with the interval of its
// enqueueing (HostEnqueue). Ranges and marks are UserMarkers, their names as arguments. Kernels and copies
// that belong to no op are rows of their own (KernelExecution, Copy), with the call that launched them as
// their API call. pid is unique over hosts as RPD does it.
constexpr const char* kRocpdViews = R"SQL(
CREATE VIEW rocpd_string AS SELECT id, text AS string FROM string;
CREATE VIEW rocpd_ustring AS SELECT id, text AS string FROM string;

CREATE VIEW rocpd_op AS
SELECT id, gpu AS gpuId, CASE WHEN stream != 0 THEN stream ELSE coalesce(comm, 0) END AS queueId,
       coalesce(seq, 0) AS sequenceId, NULL AS completionSignal,
       CASE WHEN gpu_start_ns != 0 AND gpu_end_ns != 0 THEN gpu_start_ns WHEN enqueued_ns != 0 THEN enqueued_ns
            WHEN called_ns != 0 THEN called_ns ELSE launched_ns END AS start,
       CASE WHEN gpu_start_ns != 0 AND gpu_end_ns != 0 THEN gpu_end_ns ELSE host_end_ns END AS end,
       name AS description_id,
       CASE WHEN gpu_start_ns != 0 AND gpu_end_ns != 0 THEN 1 ELSE 2 END AS opType_id, 0 AS roctxId
FROM op
UNION ALL
SELECT id, run_gpu, stream, 0, NULL, start_ns, end_ns, name, CASE WHEN kind = 2 THEN 5 ELSE 1 END, 0
FROM gpu_kernel WHERE op IS NULL;

CREATE VIEW rocpd_api AS
SELECT c.id, p.node * 10000000 + p.pid AS pid, t.tid, c.start_ns AS start, max(c.start_ns, c.end_ns) AS end,
       c.name AS apiName_id, 5 + c.kind AS category_id, 4 AS domain_id, coalesce(s.args, 0) AS args_id
FROM call c JOIN process p ON p.id = c.process
LEFT JOIN thread t ON t.id = c.thread LEFT JOIN shape s ON s.id = c.shape
UNION ALL
SELECT o.id, p.node * 10000000 + p.pid, t.tid,
       CASE WHEN o.enqueued_ns != 0 THEN o.enqueued_ns WHEN o.called_ns != 0 THEN o.called_ns
            WHEN o.launched_ns != 0 THEN o.launched_ns ELSE o.gpu_start_ns END,
       o.host_end_ns, s.api_name, 5 + o.kind, 4, s.args
FROM op o JOIN process p ON p.id = o.process
JOIN shape s ON s.id = o.shape LEFT JOIN thread t ON t.id = o.thread WHERE o.call IS NULL
UNION ALL
SELECT m.id, p.node * 10000000 + p.pid, t.tid, m.time_ns, m.time_ns, 3, 3, 4, m.label
FROM mark m JOIN process p ON p.id = m.process LEFT JOIN thread t ON t.id = m.thread
UNION ALL
SELECT l.id, p.node * 10000000 + p.pid, t.tid, l.start_ns, max(l.start_ns, l.end_ns), l.name, l.name, 4, 0
FROM launch l JOIN process p ON p.id = l.process LEFT JOIN thread t ON t.id = l.thread
UNION ALL
SELECT r.id, p.node * 10000000 + p.pid, t.tid, r.start_ns, CASE WHEN r.end_ns != 0 THEN r.end_ns ELSE max(r.start_ns, p.last_ns, p.heartbeat_ns) END,
       3, 3, 4, r.name
FROM nvtx_range r JOIN process p ON p.id = r.process LEFT JOIN thread t ON t.id = r.thread;

CREATE VIEW rocpd_api_ops AS
SELECT id, coalesce(call, id) AS api_id, id AS op_id FROM op
UNION ALL
SELECT id, launch, id FROM gpu_kernel WHERE op IS NULL AND launch IS NOT NULL;

CREATE VIEW rocpd_kernelapi AS
SELECT coalesce(o.call, o.id) AS api_ptr_id, coalesce(o.call, o.id) AS api_id, printf('0x%x', o.stream) AS stream,
       o.channels AS gridX, 1 AS gridY, 1 AS gridZ, coalesce(t.warps, 0) * 32 AS workgroupX, 1 AS workgroupY,
       1 AS workgroupZ, 0 AS groupSegmentSize, 0 AS privateSegmentSize, o.name AS kernelName_id,
       o.id AS op_id
FROM op o LEFT JOIN task t ON t.id = o.task WHERE o.gpu_start_ns != 0 AND o.gpu_end_ns != 0
UNION ALL
SELECT launch, launch, CAST(stream AS TEXT), nullif(blocks, 0), NULL, NULL, NULL, NULL, NULL, 0, 0, name, id
FROM gpu_kernel WHERE op IS NULL AND kind != 2;

-- Columns of rocm-trace-lite first, then RPD's. GPU work first; Pct is the share of its kind (GPU work, or host enqueueing).
CREATE VIEW top AS
SELECT Name, Calls, TotalNs, AvgNs, MinNs, MaxNs, ROUND(100.0 * TotalNs / SUM(TotalNs) OVER (PARTITION BY opType_id), 2) AS Pct,
       Calls AS TotalCalls, TotalNs / 1000 AS TotalDuration_us, AvgNs / 1000.0 AS Ave_us,
       100.0 * TotalNs / SUM(TotalNs) OVER (PARTITION BY opType_id) AS Percentage
FROM (SELECT s.text AS Name, o.opType_id, COUNT(*) AS Calls, SUM(o.end - o.start) AS TotalNs,
             ROUND(AVG(o.end - o.start), 1) AS AvgNs, MIN(o.end - o.start) AS MinNs, MAX(o.end - o.start) AS MaxNs
      FROM rocpd_op o JOIN string s ON s.id = o.description_id WHERE o.end > o.start
      GROUP BY o.description_id)
ORDER BY opType_id, TotalNs DESC, Name;

-- Time in which the GPU did anything (union of intervals), so never above 100 %. GPU-timed rows only.
CREATE VIEW busy AS
SELECT gpuId, ROUND(100.0 * busy_ns / wall_ns, 2) AS utilization_pct, ops, busy_ns, wall_ns, busy_ns AS GpuTime,
       wall_ns AS WallTime, 1.0 * busy_ns / wall_ns AS Busy
FROM (SELECT gpuId, COUNT(*) AS ops, SUM(MAX(0, end - MAX(start, covered))) AS busy_ns, MAX(end) - MIN(start) AS wall_ns
      FROM (SELECT gpuId, start, end,
                   coalesce(MAX(end) OVER (PARTITION BY gpuId ORDER BY start ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING),
                            start) AS covered
            FROM rocpd_op WHERE opType_id IN (1, 5) AND end > start AND gpuId >= 0)
      GROUP BY gpuId);

-- RPD's helper views; its `op` is called nop here, because op is a table.
CREATE VIEW api AS
SELECT a.id, pid, tid, start, end, d.text AS domain, c.text AS category, n.text AS apiName, g.text AS args
FROM rocpd_api a JOIN string d ON d.id = a.domain_id JOIN string c ON c.id = a.category_id
JOIN string n ON n.id = a.apiName_id JOIN string g ON g.id = a.args_id;
CREATE VIEW napi AS
SELECT id, pid / 10000000 AS node, pid % 10000000 AS pid, tid, start, end, domain, category, apiName, args FROM api;
CREATE VIEW nop AS
SELECT o.id, p.node, o.gpuId, o.queueId, o.sequenceId, o.start, o.end, d.text AS description, t.text AS opType
FROM rocpd_op o JOIN (SELECT id, process FROM op UNION ALL SELECT id, process FROM gpu_kernel) b ON b.id = o.id
JOIN process p ON p.id = b.process JOIN string d ON d.id = o.description_id
JOIN string t ON t.id = o.opType_id;
CREATE VIEW kernel AS
SELECT o.id, gpuId, queueId, sequenceId, start, end, end - start AS duration, k.stream, gridX, gridY, gridZ, workgroupX,
       workgroupY, workgroupZ, groupSegmentSize, privateSegmentSize, n.text AS kernelName
FROM rocpd_kernelapi k JOIN rocpd_op o ON o.id = k.op_id JOIN string n ON n.id = k.kernelName_id;
CREATE VIEW copy AS
SELECT b.id, pid, tid, start, end, n.text AS apiName, stream, size, width, height, kind, dst, src, dstDevice, srcDevice, sync,
       pinned FROM rocpd_copyapi a JOIN rocpd_api b ON b.id = a.api_ptr_id JOIN string n ON n.id = b.apiName_id;

INSERT INTO rocpd_metadata(tag, value) VALUES ('schema_version', '3'), ('gpu_stride', '1000'), ('pid_stride', '10000000');
INSERT INTO rocpd_metadata(tag, value) SELECT 'pid', pid FROM process;
INSERT INTO rocpd_metadata(tag, value)
SELECT 'process', json_object('pid', p.pid, 'rank', p.rank, 'host', h.text, 'gpu', p.gpu, 'node', p.node)
FROM process p LEFT JOIN string h ON h.id = p.host;
)SQL";

// "  name INTEGER, -- meaning": `.schema` is the documentation of the file.
void add_column(std::string& sql, const ColumnLayout& column, std::string_view note, bool last) {
  sql += "  " + quoted(column.name) + " INTEGER" + (last ? "" : ",") + " -- " + std::string(note);
  if (column.role == ColumnRole::kString) sql += "string: ";
  sql += std::string(column.text) + "\n";
}

}  // namespace

// No indexes while rows are appended: each would be a second tree to keep in order. All numbers are INTEGER,
// since SQLite stores them by their size.
std::string table_sql() {
  std::string sql;
  for (const TableLayout& table : table_layouts()) {
    sql += "CREATE TABLE " + quoted(table.name) + "(\n  id INTEGER PRIMARY KEY,\n";
    for (const ColumnLayout& column : table.columns) {
      add_column(sql, column, "", table.derived.empty() && &column == &table.columns.back());
    }
    for (const ColumnLayout& column : table.derived) {
      add_column(sql, column, "added by the merge: ", &column == &table.derived.back());
    }
    sql += ");\n";
  }
  sql += kOwnTables;
  for (uint8_t kind = 1; kind < model::kEventKinds; ++kind) {
    sql += "INSERT INTO kind VALUES (" + std::to_string(kind) + ", '" + std::string(model::event_name(kind)) +
           "');\n";
  }
  return sql;
}

// By the expression of the view: so `WHERE torch_comms_id = '...'` on ops finds them at once. Runs without
// ids pay nothing.
std::string index_sql() {
  constexpr std::string_view kText = "CASE WHEN torch_comms_id != 0 THEN printf('%u', torch_comms_id) END";
  std::string sql = "CREATE INDEX op_by_torch_comms_id ON op(";
  return sql.append(kText).append(") WHERE (").append(kText).append(") IS NOT NULL;");
}

std::string view_sql() { return std::string(kTextViews) + kRocpdViews; }

}  // namespace lockstep::store::sqlite
