// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "model/event_kind.h"
#include "model/record_gaps.h"
#include "model/testing/synthetic_run.h"
#include "model/torch/comms_id.h"
#include "store/sqlite/attachments.h"
#include "store/sqlite/database.h"
#include "store/sqlite/table_layout.h"
#include "store/store.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::store {
namespace {

using model::Trace;
using model::testing::SyntheticOptions;
using model::testing::SyntheticRun;
using sqlite::Database;

class TraceDbTest : public ::testing::Test {
 protected:
  MergeResult merge(SyntheticOptions options = {}) {
    SyntheticRun run(std::move(options));
    auto result = write_trace_db(run, path, {}, nullptr);
    EXPECT_TRUE(result) << (result ? "" : result.error().message());
    if (!result) std::abort();
    return *result;
  }
  // Rows as lines, values separated by '|'.
  std::string query(const std::string& sql) {
    auto database = Database::open(path, Database::Access::kCreate);
    if (!database) return database.error().message();
    auto statement = (*database)->prepare(sql);
    if (!statement) return statement.error().message();
    std::string text;
    for (auto row = statement->step(); row && *row; row = statement->step()) {
      if (!text.empty()) text += '\n';
      for (int i = 0; i < statement->columns(); ++i) (text += i ? "|" : "") += statement->text(i);
    }
    return text;
  }
  size_t files_in_folder() {
    size_t n = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++n;
    return n;
  }
  const test::TemporaryFolder temporary;
  const std::string folder = temporary.path(), path = folder + "/trace.db";
};

uint64_t lost(const Trace& trace, std::string_view kind) {
  uint64_t count = 0;
  for (size_t i = 0; i < trace.losses.size(); ++i)
    count += trace.strings[trace.losses.kind[i]] == kind ? trace.losses.count[i] : 0;
  return count;
}

std::string shape_text(const Trace& trace, uint32_t row) {
  if (row == model::kNoRow) return "none";
  std::string text;
  for (auto part : {trace.shapes.func[row], trace.shapes.datatype[row], trace.shapes.algo[row],
                    trace.shapes.proto[row]}) {
    text += std::string(trace.strings[part]) + "/";
  }
  return text + std::to_string(trace.shapes.root[row]);
}

// Compares every column of a table; texts and shapes by content, because their numbers may differ.
template <class Row, class Table>
void expect_equal(sqlite::TableId id, const Trace& a, const Table& x, const Trace& b, const Table& y) {
  ASSERT_EQ(x.size(), y.size());
  const auto& layout = sqlite::table_layouts()[sqlite::number(id)].columns;
  std::vector<const void*> other;
  Row::each_column(y, [&](auto&&, auto&&, auto&&, const auto& values) { other.push_back(&values); });
  size_t i = 0;
  Row::each_column(x, [&](auto&&, auto&&, auto&&, const auto& values) {
    const auto& column = layout[i];
    const auto& others = *static_cast<decltype(&values)>(other[i++]);
    for (size_t r = 0; r < x.size(); ++r) {
      if (column.role == sqlite::ColumnRole::kString) {
        ASSERT_EQ(a.strings[static_cast<uint32_t>(values[r])], b.strings[static_cast<uint32_t>(others[r])])
            << column.name << r;
      } else if (column.role == sqlite::ColumnRole::kReference && column.target == sqlite::TableId::kShape) {
        ASSERT_EQ(shape_text(a, static_cast<uint32_t>(values[r])),
                  shape_text(b, static_cast<uint32_t>(others[r])))
            << column.name << r;
      } else {
        ASSERT_EQ(values[r], others[r])
            << sqlite::table_layouts()[sqlite::number(id)].name << "." << column.name << " row " << r;
      }
    }
  });
}

// Numbers index what is held in memory.
TEST_F(TraceDbTest, RefusesNumbersThatTheFileCannotHold) {
  for (const std::string table : {"string", "shape"}) {
    std::filesystem::remove(path);
    merge();
    ASSERT_TRUE(open_trace_db(path));
    query("UPDATE " + table + " SET id = 50000000 WHERE id = (SELECT max(id) FROM " + table + ")");
    const auto source = open_trace_db(path);
    ASSERT_FALSE(source) << table;
    EXPECT_NE(source.error().text.find("numbered 50000000"), std::string::npos) << source.error().message();
  }
}

// Every column of every process, and nothing else lost: so each value is proven.
void expect_given_back(model::TraceSource& run, const std::string& path) {
  ASSERT_TRUE(write_trace_db(run, path, {}, nullptr));
  auto source = open_trace_db(path);
  ASSERT_TRUE(source) << source.error().message();
  ASSERT_EQ((*source)->processes(), run.processes());
  for (size_t i = 0; i < run.processes(); ++i) {
    Trace a, b;
    ASSERT_TRUE(run.load(i, a));
    ASSERT_TRUE((*source)->load(i, b));
#define TABLE(Row, member, sql)          \
  if (std::string_view(#Row) != "Shape") \
    expect_equal<model::Row>(sqlite::TableId::k##Row, a, a.member, b, b.member);
    LOCKSTEP_MODEL_TABLES(TABLE)
#undef TABLE
  }
  Trace a, b;
  run.run_losses(a);
  (*source)->run_losses(b);
  expect_equal<model::Loss>(sqlite::TableId::kLoss, a, a.losses, b, b.losses);
}

TEST_F(TraceDbTest, GivesEveryColumnBack) {
  SyntheticRun run({});
  expect_given_back(run, path);
}

// Many rows are copied by statements of their own, in which the values of constant columns stand.
TEST_F(TraceDbTest, GivesLargeTablesBack) {
  struct Constant : SyntheticRun {
    using SyntheticRun::SyntheticRun;
    Result<void> load(size_t i, Trace& trace) override {
      LOCKSTEP_TRY(SyntheticRun::load(i, trace));
      model::KernelTable& kernels = trace.kernels;
      for (int64_t& time : kernels.all(&model::KernelTable::start_ns)) time = INT64_MIN;
      for (uint64_t& bytes : kernels.all(&model::KernelTable::bytes)) bytes = UINT64_MAX - 1;
      for (uint32_t& op : kernels.all(&model::KernelTable::op)) op = model::kNoRow;
      for (int32_t& gpu : kernels.all(&model::KernelTable::gpu)) gpu = -1;
      return {};
    }
  } run({.ranks = 2, .ops = 12'000, .network = false});
  expect_given_back(run, path);
  EXPECT_EQ(query("SELECT process, max(id) - min(id) + 1 = count(*), count(*) > 12000, min(start_ns), "
                  "max(start_ns), max(bytes), count(op), max(gpu) FROM gpu_kernel GROUP BY process"),
            "0|1|1|-9223372036854775808|-9223372036854775808|-2|0|-1\n"
            "1|1|1|-9223372036854775808|-9223372036854775808|-2|0|-1");
  // Ids that tables share stay unique.
  EXPECT_EQ(
      query("SELECT count(*) = count(DISTINCT id) FROM (SELECT id FROM call UNION ALL SELECT id FROM op "
            "UNION ALL SELECT id FROM launch UNION ALL SELECT id FROM gpu_kernel)"),
      "1");
}

TEST_F(TraceDbTest, GivesCountersOfHostsBack) {
  SyntheticRun run({.ranks = 1, .host_counters = true});
  ASSERT_TRUE(write_trace_db(run, path, {}, nullptr));
  const auto read = [](model::TraceSource& source) {
    std::vector<model::HostCounter> found;
    EXPECT_TRUE(source.host_counters([&](const model::HostCounter& counter) { found.push_back(counter); }));
    return found;
  };
  auto source = open_trace_db(path);
  ASSERT_TRUE(source) << source.error().message();
  EXPECT_EQ(read(**source), read(run));
  EXPECT_EQ(
      query("SELECT host, device, name, max(value) FROM host_counters WHERE unit = 'bytes' GROUP BY host"),
      "node0|mlx5_0/1|sent|300000000000\nnode1|mlx5_0/1|sent|300000000000");
  // A file of an older release has no such tables.
  ASSERT_EQ(query("DROP VIEW host_counters"), "");
  ASSERT_EQ(query("DROP TABLE host_sample"), "");
  source = open_trace_db(path);
  ASSERT_TRUE(source) << source.error().message();
  EXPECT_TRUE(read(**source).empty());
}

TEST_F(TraceDbTest, LeavesOutImpossibleValuesOfHosts) {
  SyntheticRun run({.ranks = 1, .host_counters = true});
  ASSERT_TRUE(write_trace_db(run, path, {}, nullptr));
  ASSERT_EQ(query("INSERT INTO host_counter VALUES (99, 'h', 'net', 'eth0', 'sent', 'bytes', 0)"), "");
  ASSERT_EQ(query("INSERT INTO host_sample VALUES (99, -5, 0), (99, 5, 7), (99, 6, 6), (99, 8, 9),"
                  " (99, 9223372036854775807, 10)"),
            "");
  auto source = open_trace_db(path);
  ASSERT_TRUE(source) << source.error().message();
  model::HostCounter last;
  const auto read = (*source)->host_counters([&](const model::HostCounter& counter) { last = counter; });
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message(), path + ": 3 values in host_sample that no sampler writes, left out");
  EXPECT_EQ(last.values, (std::vector<model::HostCounter::Value>{{5, 7}, {8, 9}}));
}

TEST_F(TraceDbTest, LoadsOnSeveralThreadsAtOnce) {
  merge({.ranks = 8});
  auto source = open_trace_db(path);
  ASSERT_TRUE(source) << source.error().message();
  std::vector<std::thread> threads;
  for (size_t first = 0; first < 4; ++first) {
    threads.emplace_back([&, first] {
      for (size_t i = first; i < 8; i += 4) {
        Trace trace;
        auto loaded = (*source)->load(i, trace);
        ASSERT_TRUE(loaded) << loaded.error().message();
        EXPECT_EQ(trace.processes.rank[0], static_cast<int32_t>(i));
        EXPECT_EQ(trace.losses.size(), 1u);  // the synthetic one
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(TraceDbTest, SyntheticRowsHaveNoDefaults) {
  // The round trip proves nothing about a column that is zero everywhere.
  SyntheticRun run({});
  Trace trace;
  ASSERT_TRUE(run.load(3, trace));
#define TABLE(Row, member, sql)                                                                          \
  model::Row::each_column(trace.member, [&](auto&&, std::string_view name, auto&&, const auto& values) { \
    bool set = false;                                                                                    \
    for (size_t i = 0; i < trace.member.size(); ++i) set |= values[i] != 0;                              \
    bool refers_to_row_0 = name == "process" || name == "comm" || name == "index_in_process";            \
    bool none_here = name == "members" || name == "gpu_start_ns" || name == "gpu_end_ns" ||              \
                     name == "out_count" || name == "root" || name == "device" || name == "phase" ||     \
                     name == "restarts" || name == "window" || name == "rank_start" ||                   \
                     std::string_view(#Row) == "Split";                                                  \
    EXPECT_TRUE(set || refers_to_row_0 || none_here) << #Row << "." << name;                             \
  });
  LOCKSTEP_MODEL_TABLES(TABLE)
#undef TABLE
}

TEST_F(TraceDbTest, CountsWhatItWrote) {
  MergeResult result = merge();
  EXPECT_EQ(result.processes, 4u);
  EXPECT_EQ(result.bytes, std::filesystem::file_size(path));
  uint64_t rows = 0;
  for (const auto& table : sqlite::table_layouts())
    rows += std::stoull(query("SELECT count(*) FROM " + sqlite::quoted(table.name)));
  for (const char* table : {"string", "part", "diagnostic", "metadata"})
    rows += std::stoull(query(std::string("SELECT count(*) FROM ") + table));
  EXPECT_EQ(result.rows, rows);
  EXPECT_EQ(query("PRAGMA integrity_check"), "ok");
  EXPECT_EQ(files_in_folder(), 1u);
}

TEST_F(TraceDbTest, OneGpuIdPerDeviceThoughAllRanksSeeDevice0) {
  merge();
  EXPECT_EQ(query("SELECT gpuId, count(*) FROM rocpd_op GROUP BY gpuId"), "0|47\n1|47\n2|47\n3|47");
  EXPECT_EQ(query("SELECT DISTINCT device FROM process"), "0");
}

TEST_F(TraceDbTest, UnknownDevicesStayApartAndAreSaidToBeUnknown) {
  merge({.gpu_known = false});
  EXPECT_EQ(query("SELECT count(DISTINCT gpuId), min(gpuId) FROM rocpd_op"), "4|100000");
  EXPECT_EQ(query("SELECT count(DISTINCT gpu), min(gpu) FROM kernels"), "4|100000");
  EXPECT_EQ(query("SELECT count FROM losses WHERE stage = 'merge' AND kind = 'unknown_gpu'"), "4");
}

TEST_F(TraceDbTest, PublishedQueriesOfRocmTraceLite) {
  merge();
  EXPECT_EQ(
      query(
          "SELECT s.string, count(*) AS calls FROM rocpd_op o JOIN rocpd_string s ON o.description_id = s.id "
          "WHERE s.string LIKE '%nccl%' GROUP BY s.string"),
      "ncclDevKernel_AllReduce_Sum_f32_RING_LL|80\nncclRecv|4\nncclSend|4");
  EXPECT_EQ(
      query("SELECT (o.end - o.start)/1000 FROM rocpd_op o JOIN rocpd_string s ON o.description_id = s.id "
            "ORDER BY (o.end - o.start) DESC LIMIT 1"),
      "150");
  EXPECT_EQ(query("SELECT Name, Calls, TotalNs, AvgNs, MinNs, MaxNs, Pct FROM top LIMIT 3"),
            "void gemm<float, 4>(float*)|80|12000000|150000.0|150000|150000|60.0\n"
            "ncclDevKernel_AllReduce_Sum_f32_RING_LL|80|8000000|100000.0|100000|100000|40.0\n"
            "ncclRecv|4|8000|2000.0|2000|2000|50.0");
  EXPECT_EQ(query("SELECT gpuId, utilization_pct, ops, busy_ns, wall_ns FROM busy WHERE gpuId = 2"),
            "2|21.09|45|4050000|19200000");
  EXPECT_EQ(
      query("SELECT s.string, ot.string FROM rocpd_op o JOIN rocpd_string s ON o.description_id = s.id "
            "LEFT JOIN rocpd_string ot ON o.opType_id = ot.id WHERE o.completionSignal IS NULL LIMIT 1"),
      "ncclDevKernel_AllReduce_Sum_f32_RING_LL|KernelExecution");
  EXPECT_EQ(query("SELECT value FROM rocpd_metadata WHERE tag = 'pid' ORDER BY id"),
            "4000\n4001\n4000\n4001");
  EXPECT_EQ(
      query(
          "SELECT json_extract(value, '$.rank'), json_extract(value, '$.host'), json_extract(value, '$.gpu') "
          "FROM rocpd_metadata WHERE tag = 'process' LIMIT 1 OFFSET 3"),
      "3|node1|3");
}

TEST_F(TraceDbTest, PublishedQueriesOfRpd) {
  merge();
  EXPECT_EQ(query("SELECT value FROM rocpd_metadata WHERE tag = 'schema_version'"), "3");
  EXPECT_EQ(query("SELECT Name, TotalCalls, TotalDuration_us, Ave_us, Percentage FROM top LIMIT 1"),
            "void gemm<float, 4>(float*)|80|12000|150.0|60.0");
  EXPECT_EQ(query("SELECT max(GpuTime) AS maxGPUTime FROM busy"), "4050000");
  EXPECT_EQ(
      query("select apiname, gpuId, count(*) from api join rocpd_api_ops on api.id = rocpd_api_ops.api_id "
            "join rocpd_op on rocpd_api_ops.op_id=rocpd_op.id where gpuId < 2 group by apiname, gpuId"),
      "cuGraphLaunch|0|10\ncuGraphLaunch|1|10\ncuLaunchKernel|0|10\ncuLaunchKernel|1|10\n"
      "ncclAllReduce|0|20\nncclAllReduce|1|20\nncclRecv|1|2\nncclSend|0|2");
  EXPECT_EQ(query("SELECT count(*), count(DISTINCT pid) FROM rocpd_api"),
            query("SELECT (SELECT count(*) FROM call) + "
                  "(SELECT count(*) FROM mark) + (SELECT count(*) FROM launch) + (SELECT count(*) FROM "
                  "nvtx_range) + (SELECT count(*) FROM op "
                  "WHERE call IS NULL), 4"));
  EXPECT_EQ(query("SELECT DISTINCT node, pid FROM napi ORDER BY 1, 2"), "0|4000\n0|4001\n1|4000\n1|4001");
  EXPECT_EQ(query("SELECT apiName, args FROM api WHERE args LIKE 'step%' AND pid = 4000"),
            "UserMarker|step 0\nUserMarker|step 1");
  EXPECT_EQ(
      query(
          "SELECT count(*) FROM rocpd_api a LEFT JOIN rocpd_string s ON s.id = a.apiName_id "
          "LEFT JOIN rocpd_ustring u ON u.id = a.args_id LEFT JOIN rocpd_string c ON c.id = a.category_id "
          "LEFT JOIN rocpd_string d ON d.id = a.domain_id WHERE s.id IS NULL OR u.id IS NULL OR c.id IS NULL "
          "OR d.id IS NULL OR a.end < a.start"),
      "0");
  for (const char* view : {"kernel", "copy", "nop", "napi", "api", "top", "busy", "rocpd_kernelapi",
                           "rocpd_copyapi", "rocpd_monitor"}) {
    EXPECT_NE(query(std::string("SELECT count(*) FROM ") + view).find_first_of("0123456789"),
              std::string::npos)
        << view;
  }
  EXPECT_EQ(query("SELECT count(*), min(gridX), min(workgroupX) FROM kernel"), "160|2|512");
}

TEST_F(TraceDbTest, KernelsThatAreNoOperationsStandBesideTheOperations) {
  merge();
  EXPECT_EQ(query("SELECT t.string, count(*), sum(o.end - o.start) FROM rocpd_op o JOIN rocpd_string t "
                  "ON t.id = o.opType_id GROUP BY 1 ORDER BY 1"),
            "Copy|20|200000\nHostEnqueue|8|16000\nKernelExecution|160|20000000");
  EXPECT_EQ(query("SELECT count(*), count(DISTINCT id) FROM rocpd_op"), "188|188");
  EXPECT_EQ(query("SELECT kind, count(*), count(op), sum(gpu_ns) FROM kernels GROUP BY kind ORDER BY kind"),
            "communication|80|80|8000000\ncompute|80|0|12000000\ncopy|20|0|200000");
  EXPECT_EQ(
      query("SELECT count(*) FROM kernels k JOIN ops o ON o.id = k.op WHERE k.start_ns = o.gpu_start_ns "
            "AND k.rank = o.rank AND k.gpu = o.gpu"),
      "80");
  EXPECT_EQ(query("SELECT count(*) FROM nop"), "188");
  EXPECT_EQ(query("SELECT count(*) FROM kernel WHERE kernelName LIKE 'void gemm%' AND stream = '7'"), "80");
}

TEST_F(TraceDbTest, RangesAreReadableAndUserMarkers) {
  merge();
  EXPECT_EQ(query("SELECT rank, tid, name, domain, kind, count(*), sum(end_ns IS NULL), min(ns) FROM ranges "
                  "WHERE rank = 1 GROUP BY name"),
            "1|4101|forward||nested|2|0|500400\n1|4101|prefetch|loader|free|2|1|11000300");
  EXPECT_EQ(query("SELECT apiName, args, count(*), min(end - start) > 0 FROM api WHERE args IN ('forward', "
                  "'prefetch') GROUP BY args"),
            "UserMarker|forward|8|1\nUserMarker|prefetch|8|1");
  EXPECT_EQ(query("SELECT count(*) FROM (SELECT id FROM nvtx_range UNION SELECT id FROM op UNION SELECT id "
                  "FROM mark)"),
            "120")
      << "no id twice";
}

// A file of before there were ranges, and one with tables of a version to come.
TEST_F(TraceDbTest, OlderAndNewerTablesAreNoDamage) {
  merge({.ranks = 1});
  auto database = Database::open(path, Database::Access::kCreate);
  ASSERT_TRUE((*database)->execute(
      "ALTER TABLE part DROP COLUMN digest; DROP VIEW ranges; DROP VIEW rocpd_api; DROP TABLE nvtx_range;"
      "DELETE FROM part WHERE name = 'nvtx_range';"
      "INSERT INTO part VALUES (0, 'from_the_future', 0, 2)"));
  auto source = open_trace_db(path);
  ASSERT_TRUE(source) << source.error().message();
  Trace trace, before;
  ASSERT_TRUE((*source)->load(0, trace));
  ASSERT_TRUE(SyntheticRun({.ranks = 1}).load(0, before));
  EXPECT_EQ(trace.ranges.size(), 0u);
  EXPECT_EQ(trace.ops.size(), before.ops.size());
  EXPECT_EQ(trace.losses.size(), before.losses.size());
}

TEST_F(TraceDbTest, HostOnlyCaptureIsNotCalledGpuTime) {
  merge({.gpu_times = false});
  EXPECT_EQ(query("SELECT count(*) FROM busy"), "0");
  EXPECT_EQ(query("SELECT DISTINCT t.string FROM rocpd_op o JOIN rocpd_string t ON t.id = o.opType_id"),
            "HostEnqueue");
  EXPECT_EQ(query("SELECT count(*) FROM rocpd_op WHERE end > start"), "88");
}

TEST_F(TraceDbTest, UtilisationIsAUnionOfIntervals) {
  struct Overlapping : SyntheticRun {
    using SyntheticRun::SyntheticRun;
    Result<void> load(size_t i, Trace& trace) override {
      LOCKSTEP_TRY(SyntheticRun::load(i, trace));
      for (auto& end : trace.ops.all(&model::OpTable::gpu_end_ns)) end += end ? 5 * kOpPeriod : 0;
      return {};
    }
  } run(SyntheticOptions{});
  ASSERT_TRUE(write_trace_db(run, path, {}, nullptr));
  EXPECT_EQ(query("SELECT DISTINCT utilization_pct FROM busy"), "100.0");
}

TEST_F(TraceDbTest, ViewsHaveReadableText) {
  merge();
  std::string id = std::to_string(model::comms_id({"0", 1, false, 0, 1, 4}));
  EXPECT_EQ(query("SELECT rank, comm, comm_hash, op_index, func, datatype, algo, proto, bytes, gpu_ns, "
                  "gpu_source, comms_id, torch_comms_id FROM ops WHERE op_index = 0 AND peer IS NULL AND "
                  "rank = 2"),
            "2|default_pg:0|8000000000000abc|0|AllReduce|ncclFloat32|RING|SIMPLE|4096|100000|KernelCh|"
            "8000000000000abc:coll:0|" +
                id);
  EXPECT_EQ(query("SELECT peer, datatype, gpu_ns, comms_id, torch_comms_id FROM ops WHERE func = 'Send' AND "
                  "rank = 0 LIMIT 1"),
            "1|ncclBfloat16||8000000000000abc:p2p:0|");
  EXPECT_EQ(query("SELECT host, pid, gpu, argv FROM processes WHERE rank = 3"),
            "node1|4001|3|python train.py --name \"x\\y\"");
  EXPECT_EQ(query("SELECT count(DISTINCT run_comm), sum(collectives), sum(p2ps) FROM comms"), "1|80|8");
  EXPECT_EQ(query("SELECT text FROM string WHERE id = 0"), "");
  EXPECT_NE(query("SELECT sql FROM sqlite_master WHERE name = 'op'").find("n-th operation of this process"),
            std::string::npos);
}

// What a ring has forgotten differs between ranks.
TEST_F(TraceDbTest, NumbersThatRanksDoNotShareAreNotShown) {
  struct Rings : SyntheticRun {
    using SyntheticRun::SyntheticRun;
    Result<void> load(size_t i, Trace& trace) override {
      LOCKSTEP_TRY(SyntheticRun::load(i, trace));
      trace.comms.numbered[0] = 0;
      if (i == 1) trace.lose(0, "capture", "overwritten", 5, "older events");
      trace.ops.comm[2] = model::kNoRow;
      return {};
    }
  } run({.ranks = 2});
  ASSERT_TRUE(write_trace_db(run, path, {}, nullptr));
  EXPECT_EQ(
      query("SELECT rank, op_index, comms_id FROM ops WHERE peer IS NULL GROUP BY rank HAVING id = min(id)"),
      "0|0|8000000000000abc:coll:0\n1||");
  EXPECT_EQ(query("SELECT count(*) FROM ops WHERE rank = 1 AND peer IS NULL AND comm IS NOT NULL AND "
                  "(op_index IS NOT NULL OR comms_id IS NOT NULL)"),
            "0");
  EXPECT_NE(query("SELECT count(comms_id) FROM ops WHERE rank = 1 AND peer IS NOT NULL"), "0");
  EXPECT_EQ(query("SELECT count(*), count(comm_hash), count(comms_id) FROM ops WHERE comm IS NULL"), "2|0|0");
}

// Rank 1 drives the network of rank 0, whose process comes before or after it.
TEST_F(TraceDbTest, NetworkOperationsForAnotherProcessAreJoinedToItsOwn) {
  struct Pxn : SyntheticRun {
    explicit Pxn(bool is_absent) : SyntheticRun({.ranks = 4, .ranks_per_host = 4}), is_absent_(is_absent) {}
    Result<void> load(size_t i, Trace& trace) override {
      LOCKSTEP_TRY(SyntheticRun::load(i, trace));
      for (uint64_t& handle : trace.tasks.all(&model::TaskTable::handle)) handle |= uint64_t{6} << 59;
      // Each drives the network of the next, the last that of the first.
      const uint64_t origin = (i + 1) % 4;
      for (uint32_t op = 0; op < trace.proxy_ops.size(); ++op) {
        trace.proxy_ops.comm[op] = trace.proxy_ops.task[op] = model::kNoRow;
        trace.proxy_ops.originator_pid[op] =
            trace.processes.pid[0] - static_cast<int64_t>(i) + static_cast<int64_t>(origin);
        trace.proxy_ops.context[op] = (origin + 1 + (is_absent_ ? 100 : 0)) << 32 | 1;
        trace.proxy_ops.parent[op] = uint64_t{22} << 59 | (64 + op % trace.tasks.size());
      }
      return {};
    }
    bool is_absent_;
  };
  for (const bool is_absent : {false, true}) {
    std::filesystem::remove(path);
    Pxn run(is_absent);
    ASSERT_TRUE(write_trace_db(run, path, {}, nullptr));
    const std::string all = query("SELECT count(*) FROM proxy_op");
    EXPECT_NE(all, "0");
    EXPECT_EQ(
        query("SELECT count(*) FROM proxy_op o JOIN comm c ON c.id = o.comm JOIN task t ON t.id = o.task "
              "WHERE c.process = t.process AND c.process != o.process AND t.handle & 0xfffff = o.parent & "
              "0xfffff"),
        is_absent ? "0" : all);
    EXPECT_EQ(query("SELECT coalesce(sum(count), 0) FROM losses WHERE kind = 'foreign_parent'"),
              is_absent ? all : "0");
    auto source = open_trace_db(path);
    ASSERT_TRUE(source);
    for (size_t i = 0; i < (*source)->processes(); ++i) {
      Trace trace;
      ASSERT_TRUE((*source)->load(i, trace));
      for (size_t loss = 0; loss < trace.losses.size(); ++loss) {
        EXPECT_NE(trace.strings[trace.losses.kind[loss]], "bad_value");
        EXPECT_NE(trace.strings[trace.losses.kind[loss]], "unproven_rest");
      }
      EXPECT_EQ(trace.proxy_ops.comm[0], model::kNoRow);
      EXPECT_NE(trace.proxy_ops.context[0], 0u);
    }
  }
}

TEST_F(TraceDbTest, CommsIdsAreFoundByAnIndex) {
  merge();
  const std::string id = std::to_string(model::comms_id({"0", 1, false, 0, 1, 4}));
  const std::string by_id = " FROM ops WHERE torch_comms_id = '" + id + "'";
  EXPECT_EQ(query("SELECT count(*), count(DISTINCT rank), min(torch_seq), max(torch_seq)" + by_id),
            "4|4|1|1");
  EXPECT_NE(query("EXPLAIN QUERY PLAN SELECT rank" + by_id).find("op_by_torch_comms_id"), std::string::npos);
  EXPECT_EQ(query("SELECT in_count, out_count" + by_id + " LIMIT 1"), "1024|1024");
}

TEST_F(TraceDbTest, DiagnosticCountersAddUp) {
  merge();
  auto counter = [&](const std::string& name) {
    return query("SELECT sum(value) FROM diagnostic WHERE process = 1 AND counter = '" + name + "'");
  };
  EXPECT_EQ(counter("ops"), "22");
  EXPECT_EQ(counter("ops_gpu_timed"), "20");
  EXPECT_EQ(counter("ops_host_only"), "2");
  EXPECT_EQ(counter("events_ProxyStep"), "320");
  EXPECT_EQ(counter("events_CeColl"), "0");
  EXPECT_EQ(counter("lost"), "3");
  EXPECT_EQ(counter("lost_capture"), "3");
  EXPECT_EQ(counter("lost_read"), "0");
  EXPECT_EQ(counter("loss_capture_clamped"), "3");
  for (const char* table : {"channels", "proxy_ops", "proxy_steps", "net_events"}) {
    std::string name(table);
    EXPECT_EQ(std::stoi(counter(name)),
              std::stoi(counter(name + "_resolved")) + std::stoi(counter(name + "_unresolved")))
        << name;
  }
}

TEST_F(TraceDbTest, AsymmetryNamesTheRanksThatDidLess) {
  struct Uneven : SyntheticRun {
    using SyntheticRun::SyntheticRun;
    Result<void> load(size_t i, Trace& trace) override {
      const uint32_t ops[] = {20, 15, 9, 0};
      SyntheticRun part({.ops = ops[i]});
      return part.load(i, trace);
    }
  } run(SyntheticOptions{});
  ASSERT_TRUE(write_trace_db(run, path, {}, nullptr));
  EXPECT_EQ(
      query(
          "SELECT global_rank, ops, expected, finding FROM asymmetry WHERE what = 'collectives' ORDER BY 1"),
      "1|15|20|note\n2|9|20|low\n3|0|20|zero");
  EXPECT_EQ(query("SELECT global_rank, finding FROM asymmetry WHERE what = 'operations'"), "3|zero");
}

TEST_F(TraceDbTest, AsymmetryNamesProcessesWhoseGpusDidLess) {
  struct Uneven : SyntheticRun {
    using SyntheticRun::SyntheticRun;
    Result<void> load(size_t i, Trace& trace) override {
      LOCKSTEP_TRY(SyntheticRun::load(i, trace));
      const auto own = static_cast<uint32_t>(trace.kernels.size());
      const uint32_t kernels[] = {364, 290, 100, 364};
      model::Kernel kernel{};
      kernel.op = kernel.launch = model::kNoRow;
      for (uint32_t more = own; more < kernels[i]; ++more) trace.kernels.append(kernel);
      kernel.kind = static_cast<uint8_t>(model::KernelKind::kCopy);
      for (int copies = 0; copies < 300; ++copies) trace.kernels.append(kernel);
      return {};
    }
  } run({.ops = 2, .gpu_times = false});
  ASSERT_TRUE(write_trace_db(run, path, {}, nullptr));
  EXPECT_EQ(query("SELECT global_rank, ops, expected, finding FROM asymmetry WHERE what = 'kernels'"),
            "1|290|364|note\n2|100|364|low");
}

TEST_F(TraceDbTest, ALauncherThatDidNothingIsNoAsymmetry) {
  struct WithLauncher : SyntheticRun {
    using SyntheticRun::SyntheticRun;
    size_t processes() const override { return SyntheticRun::processes() + 1; }
    Result<void> load(size_t i, Trace& trace) override {
      if (i < SyntheticRun::processes()) return SyntheticRun::load(i, trace);
      trace.processes.append({.rank = -1});
      return {};
    }
  } run({.ops = 2, .gpu_times = true});
  ASSERT_TRUE(write_trace_db(run, path, {}, nullptr));
  EXPECT_EQ(query("SELECT count(*) FROM process WHERE rank < 0"), "1");
  EXPECT_EQ(query("SELECT what, process FROM asymmetry"), "");
}

TEST_F(TraceDbTest, AsymmetryNamesMissingRanks) {
  struct Half : SyntheticRun {
    using SyntheticRun::SyntheticRun;
    size_t processes() const override { return 2; }
  } run(SyntheticOptions{});
  ASSERT_TRUE(write_trace_db(run, path, {}, nullptr));
  EXPECT_EQ(query("SELECT what, ops, expected, finding FROM asymmetry ORDER BY 1"),
            "members|2|4|missing-ranks\nprocesses|2|4|missing-ranks");
}

TEST_F(TraceDbTest, AHealthyRunHasNoAsymmetry) {
  merge();
  EXPECT_EQ(query("SELECT count(*) FROM asymmetry"), "0");
}

TEST_F(TraceDbTest, AProcessThatCannotBeReadIsALoss) {
  struct Broken : SyntheticRun {
    using SyntheticRun::SyntheticRun;
    Result<void> load(size_t i, Trace& trace) override {
      if (i == 2) return Error{ErrorCode::kInvalidInput, "torn header", "rank2.lks"};
      return SyntheticRun::load(i, trace);
    }
  } run(SyntheticOptions{});
  auto result = write_trace_db(run, path, {}, nullptr);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->processes, 3u);
  EXPECT_EQ(query("SELECT detail FROM losses WHERE kind = 'unreadable_process'"), "rank2.lks: torn header");
  auto source = open_trace_db(path);
  ASSERT_TRUE(source);
  EXPECT_EQ((*source)->processes(), 3u);
  Trace last;
  ASSERT_TRUE((*source)->load(2, last));
  EXPECT_EQ(last.processes.rank[0], 3);
}

TEST_F(TraceDbTest, NothingReadableIsAnError) {
  struct Broken : SyntheticRun {
    using SyntheticRun::SyntheticRun;
    Result<void> load(size_t, Trace&) override {
      return Error{ErrorCode::kInvalidInput, "torn header", "x.lks"};
    }
  } broken(SyntheticOptions{});
  auto result = write_trace_db(broken, path, {}, nullptr);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message(), "x.lks: torn header");
  SyntheticRun empty({.ranks = 0});
  EXPECT_FALSE(write_trace_db(empty, path, {}, nullptr));
  EXPECT_EQ(files_in_folder(), 0u);
}

TEST_F(TraceDbTest, DanglingReferencesBecomeNullAndAreCounted) {
  struct Dangling : SyntheticRun {
    using SyntheticRun::SyntheticRun;
    Result<void> load(size_t i, Trace& trace) override {
      LOCKSTEP_TRY(SyntheticRun::load(i, trace));
      trace.ops.task[3] = 1'000'000;
      trace.ops.comm[4] = 7;
      return {};
    }
  } run(SyntheticOptions{});
  ASSERT_TRUE(write_trace_db(run, path, {}, nullptr));
  EXPECT_EQ(query("SELECT sum(count) FROM losses WHERE kind = 'dangling_reference'"), "8");
  EXPECT_EQ(query("SELECT count(*) FROM op WHERE task IS NULL"), "4");
}

// The parent of a CeSync is a task.
TEST_F(TraceDbTest, ParentsAreCountedAgainstTheTableThatTheyAreOf) {
  struct Parents : SyntheticRun {
    using SyntheticRun::SyntheticRun;
    Result<void> load(size_t i, Trace& trace) override {
      LOCKSTEP_TRY(SyntheticRun::load(i, trace));
      const auto calls = static_cast<uint32_t>(trace.calls.size()),
                 tasks = static_cast<uint32_t>(trace.tasks.size());
      if (tasks >= calls) return Error{ErrorCode::kInvalidInput, "has no such rows", {}};
      trace.calls.kind[0] = model::number(model::EventKind::kCeSync);
      trace.calls.parent[0] = tasks;  // a row of calls, and none of tasks
      return {};
    }
  } run({.ranks = 2});
  ASSERT_TRUE(write_trace_db(run, path, {}, nullptr));
  EXPECT_EQ(query("SELECT detail, count FROM losses WHERE kind = 'dangling_reference'"),
            "call.parent named a row that does not exist|2");
}

// One past the last row would be the first of the next process.
TEST_F(TraceDbTest, OnePastTheLastRowIsNoRow) {
  struct Changed : SyntheticRun {
    using SyntheticRun::SyntheticRun;
    Result<void> load(size_t i, Trace& trace) override {
      LOCKSTEP_TRY(SyntheticRun::load(i, trace));
      last_task = static_cast<uint32_t>(trace.tasks.size()) - 1;
      trace.ops.task[1] = last_task;
      trace.ops.task[2] = last_task + 1;
      for (uint32_t call = 0; call < trace.calls.size(); ++call) trace.calls.parent[call] = model::kNoRow;
      last_call = static_cast<uint32_t>(trace.calls.size()) - 1;
      trace.calls.parent[0] = last_call;
      trace.calls.parent[1] = last_call + 1;
      return {};
    }
    uint32_t last_task = 0, last_call = 0;
  } run({.ranks = 2});
  ASSERT_TRUE(write_trace_db(run, path, {}, nullptr));
  EXPECT_EQ(query("SELECT count(*) FROM op WHERE task IS NULL"), "2");
  EXPECT_EQ(query("SELECT sum(count) FROM losses WHERE kind = 'dangling_reference'"), "4");
  EXPECT_EQ(query("SELECT count(*), count(DISTINCT parent) FROM call WHERE parent IS NOT NULL"), "2|2");
  auto source = open_trace_db(path);
  ASSERT_TRUE(source);
  Trace trace;
  ASSERT_TRUE((*source)->load(0, trace));
  EXPECT_EQ(trace.ops.task[1], run.last_task);
  EXPECT_EQ(trace.ops.task[2], model::kNoRow);
  EXPECT_EQ(trace.calls.parent[0], run.last_call);
  EXPECT_EQ(trace.calls.parent[1], model::kNoRow);
}

// Rows behind a gap would bear their neighbours' numbers: they are left out, and what named them names
// nothing.
TEST_F(TraceDbTest, RowsBehindAGapAreLost) {
  SyntheticRun run({.ranks = 1});
  Trace before;
  ASSERT_TRUE(run.load(0, before));
  merge({.ranks = 1});
  auto database = Database::open(path, Database::Access::kCreate);
  ASSERT_TRUE((*database)->execute("DELETE FROM task WHERE id = 3"));
  auto source = open_trace_db(path);
  ASSERT_TRUE(source);
  Trace trace;
  ASSERT_TRUE((*source)->load(0, trace));
  EXPECT_EQ(trace.tasks.size(), 3u);
  uint64_t missing = 0;
  for (size_t i = 0; i < trace.losses.size(); ++i)
    if (trace.strings[trace.losses.kind[i]] == "damaged_table") missing += trace.losses.count[i];
  EXPECT_EQ(missing, before.tasks.size() - 3);
  ASSERT_EQ(trace.ops.size(), before.ops.size());
  for (size_t op = 0; op < trace.ops.size(); ++op)
    EXPECT_EQ(trace.ops.task[op], before.ops.task[op] < 3 ? before.ops.task[op] : model::kNoRow);
}

TEST_F(TraceDbTest, RpdQueuesAreStreamsElseCommunicators) {
  struct Changed : SyntheticRun {
    using SyntheticRun::SyntheticRun;
    Result<void> load(size_t i, Trace& trace) override {
      LOCKSTEP_TRY(SyntheticRun::load(i, trace));
      for (uint32_t op = 0; op < trace.ops.size(); ++op) {
        trace.ops.stream[op] = op == 0 ? 0x77 : 0;
        trace.ops.comm[op] = op == 2 ? model::kNoRow : 0;
      }
      return {};
    }
  } run({.ranks = 1});
  ASSERT_TRUE(write_trace_db(run, path, {}, nullptr));
  const std::string comm = query("SELECT id FROM comm");
  EXPECT_EQ(query("SELECT queueId FROM rocpd_op ORDER BY id LIMIT 3"), "119\n" + comm + "\n0");
}

TEST_F(TraceDbTest, ReplacesItsOwnFileButNoOther) {
  merge({.ranks = 2});
  merge({.ranks = 3});
  EXPECT_EQ(query("SELECT count(*) FROM process"), "3");
  std::string foreign = folder + "/notes.db";
  std::ofstream(foreign) << "my notes";
  SyntheticRun run({});
  auto result = write_trace_db(run, foreign, {}, nullptr);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kUsage);
  std::string kept;
  std::getline(std::ifstream(foreign), kept);
  EXPECT_EQ(kept, "my notes");
  EXPECT_FALSE(write_trace_db(run, folder, {}, nullptr));
  EXPECT_FALSE(write_trace_db(run, folder + "/absent/trace.db", {}, nullptr));
  EXPECT_EQ(files_in_folder(), 2u);
}

TEST_F(TraceDbTest, FollowsNoLinkThatIsPutUnderItsName) {
  const std::string victim = folder + "/victim";
  std::filesystem::create_symlink(victim, folder + "/link");
  EXPECT_FALSE(Database::open(folder + "/link", Database::Access::kCreate));
  EXPECT_FALSE(std::filesystem::exists(victim));
  // Links that lead to the folder are the user's own.
  std::filesystem::create_directory(folder + "/real");
  std::filesystem::create_directory_symlink(folder + "/real", folder + "/way");
  SyntheticRun run({.ranks = 1});
  EXPECT_TRUE(write_trace_db(run, folder + "/way/trace.db", {}, nullptr));
  EXPECT_TRUE(is_trace_db(folder + "/real/trace.db"));
}

TEST_F(TraceDbTest, WhatIsPutInThePlaceOfThePartialFileIsNotTaken) {
  SyntheticRun run({.ranks = 2});
  const std::string foreign = folder + "/foreign";
  std::ofstream(foreign) << "theirs";
  bool swapped = false;
  auto result = write_trace_db(run, path, {}, [&](double) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (swapped || entry.path().string().find(".partial-") == std::string::npos) continue;
      swapped = true;
      std::filesystem::rename(foreign, std::filesystem::path(entry.path()));
    }
  });
  EXPECT_TRUE(swapped);
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().text.find("another process"), std::string::npos) << result.error().message();
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(TraceDbTest, MayReadAndReplaceTheSameFile) {
  merge();
  auto source = open_trace_db(path);
  ASSERT_TRUE(source);
  std::string before = query("SELECT count(*), sum(bytes) FROM op");
  ASSERT_TRUE(write_trace_db(**source, path, {}, nullptr));
  EXPECT_EQ(query("SELECT count(*), sum(bytes) FROM op"), before);
}

TEST_F(TraceDbTest, FullDiskLeavesNothingBehind) {
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small{256 * 1024, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  SyntheticRun run({.ops = 2000});
  auto result = write_trace_db(run, path, {}, nullptr);
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kIo) << result.error().message();
  EXPECT_EQ(files_in_folder(), 0u);
}

TEST_F(TraceDbTest, RecognisesOnlyItsOwn) {
  EXPECT_FALSE(is_trace_db(path));
  merge({.ranks = 1});
  EXPECT_TRUE(is_trace_db(path));
  std::string other = folder + "/other.db";
  {
    auto database = Database::open(other, Database::Access::kCreate);
    ASSERT_TRUE(database);
    ASSERT_TRUE((*database)->execute("CREATE TABLE rocpd_op(id INTEGER)"));
  }
  EXPECT_FALSE(is_trace_db(other));
  EXPECT_FALSE(open_trace_db(other));
}

TEST_F(TraceDbTest, ANewerSchemaIsRefusedWithOneSentence) {
  merge({.ranks = 1});
  auto database = Database::open(path, Database::Access::kCreate);
  ASSERT_TRUE((*database)->execute("PRAGMA user_version = 999"));
  auto source = open_trace_db(path);
  ASSERT_FALSE(source);
  EXPECT_EQ(source.error().code, ErrorCode::kUnsupported);
}

TEST_F(TraceDbTest, HostileIdsBecomeLosses) {
  merge({.ranks = 1});
  auto database = Database::open(path, Database::Access::kCreate);
  ASSERT_TRUE((*database)->execute(
      "UPDATE op SET task = -5, shape = 99999, kind = 4711 WHERE id = (SELECT min(id) FROM op);UPDATE "
      "process SET host = 123456, world = 2147483647; UPDATE comm SET ranks = 2147483647; DELETE FROM task "
      "WHERE id > 3;UPDATE part SET rows = 4000000000 WHERE name = 'channel';INSERT INTO part VALUES (77, "
      "'op', 0, 5, 0), (0, 'op', -1, 5, 0), (-1, 'op', 1, 5, 0)"));
  auto source = open_trace_db(path);
  ASSERT_TRUE(source);
  Trace trace;
  ASSERT_TRUE((*source)->load(0, trace));
  EXPECT_EQ(trace.ops.task[0], model::kNoRow);
  EXPECT_EQ(trace.ops.shape[0], model::kNoRow);
  EXPECT_EQ(trace.processes.world[0], -1);
  EXPECT_EQ(trace.comms.ranks[0], -1);
  EXPECT_EQ(trace.tasks.size(), 4u);
  for (uint32_t task : trace.ops.all(&model::OpTable::task)) EXPECT_TRUE(task < 4 || task == model::kNoRow);
  uint64_t lost = 0;
  for (size_t i = 0; i < trace.losses.size(); ++i)
    lost += trace.strings[trace.losses.stage[i]] == "read" ? trace.losses.count[i] : 0;
  EXPECT_GT(lost, 4'000'000u);
}

// Views and computed columns run code of whoever wrote the file.
TEST_F(TraceDbTest, TablesThatAreNoneAreRefusedOrCounted) {
  const std::string endless =
      " AS WITH RECURSIVE z(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM z) SELECT x AS id, x AS trace, x "
      "AS name, x AS first, x AS rows, x AS text, x AS process, x AS stage, x AS kind, x AS count, x AS "
      "detail FROM z";
  for (const char* table : {"op", "comm", "process", "part", "string", "shape", "loss"}) {
    merge({.ranks = 1});
    {
      auto database = Database::open(path, Database::Access::kCreate);
      ASSERT_TRUE(
          (*database)->execute("DROP TABLE " + std::string(table) + "; CREATE VIEW " + table + endless));
    }
    auto source = open_trace_db(path);
    if (!source) continue;
    Trace trace;
    if (!(*source)->load(0, trace)) continue;
    EXPECT_GT(lost(trace, "damaged_table"), 0u) << table;
    EXPECT_TRUE(std::string_view(table) == "op" || std::string_view(table) == "comm") << table;
  }
}

TEST_F(TraceDbTest, MoreProcessesThanFitAreRefused) {
  merge({.ranks = 1});
  query(
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000) "
      "INSERT INTO part SELECT i, 'process', i, 1, 0 FROM n");
  const auto source = open_trace_db(path);
  ASSERT_FALSE(source);
  EXPECT_NE(source.error().message().find("more processes"), std::string::npos) << source.error().message();
}

TEST_F(TraceDbTest, NoRowIsReadForTwoProcesses) {
  merge({.ranks = 3});
  {
    auto database = Database::open(path, Database::Access::kCreate);
    ASSERT_TRUE((*database)->execute(
        "UPDATE part SET first = (SELECT first FROM part WHERE trace = 0 AND name = 'op') "
        "WHERE trace = 2 AND name = 'op'"));
  }
  auto source = open_trace_db(path);
  ASSERT_TRUE(source);
  size_t without = 0;
  for (size_t i = 0; i < 3; ++i) {
    Trace trace;
    ASSERT_TRUE((*source)->load(i, trace));
    if (trace.ops.size() > 0) continue;
    ++without;
    EXPECT_EQ(lost(trace, "damaged_table"), 1u);
  }
  EXPECT_EQ(without, 1u);
}

// What is read is what was written, or it is said that it may not be.
TEST_F(TraceDbTest, AChangedValueIsNotProven) {
  const std::pair<const char*, uint64_t> changes[] = {
      {"UPDATE op SET called_ns = called_ns + 1 WHERE id = (SELECT max(id) FROM op WHERE process = 1)", 1},
      {"UPDATE op SET task = NULL WHERE id = (SELECT min(id) FROM op WHERE process = 1)", 1},
      {"UPDATE call SET kind = kind + 128 WHERE id = (SELECT min(id) FROM call WHERE process = 1)", 1},
      {"DELETE FROM op WHERE id = (SELECT max(id) FROM op WHERE process = 1)", 1},
      {"DELETE FROM part WHERE name = 'op' AND trace = 1", 3},
      {"UPDATE part SET rows = rows - 1 WHERE name = 'op' AND trace = 1", 3},
      {"UPDATE string SET text = 'Broadcast' WHERE text = 'AllReduce'", 3},
      {"UPDATE shape SET root = 5", 3}};
  for (const auto& [change, processes] : changes) {
    merge({.ranks = 3});
    {
      auto database = Database::open(path, Database::Access::kCreate);
      ASSERT_TRUE((*database)->execute(change)) << change;
    }
    auto source = open_trace_db(path);
    ASSERT_TRUE(source);
    uint64_t unproven = 0;
    for (size_t i = 0; i < 3; ++i) {
      Trace trace;
      ASSERT_TRUE((*source)->load(i, trace));
      unproven += lost(trace, model::kLossUnproven) > 0;
    }
    EXPECT_EQ(unproven, processes) << change;
  }
}

TEST_F(TraceDbTest, AFileOfAnOlderReleaseIsTakenAsItIs) {
  merge({.ranks = 2});
  {
    auto database = Database::open(path, Database::Access::kCreate);
    ASSERT_TRUE((*database)->execute("ALTER TABLE part DROP COLUMN digest; UPDATE op SET bytes = bytes + 1"));
  }
  auto source = open_trace_db(path);
  ASSERT_TRUE(source);
  Trace trace;
  ASSERT_TRUE((*source)->load(1, trace));
  EXPECT_EQ(lost(trace, model::kLossUnproven), 0u);
}

TEST_F(TraceDbTest, TextThatIsNoUtf8IsMadeOne) {
  merge({.ranks = 1});
  {
    auto database = Database::open(path, Database::Access::kCreate);
    ASSERT_TRUE((*database)->execute("UPDATE string SET text = CAST(x'ff41' AS TEXT) WHERE text = 'node0'"));
  }
  auto source = open_trace_db(path);
  ASSERT_TRUE(source);
  Trace trace;
  ASSERT_TRUE((*source)->load(0, trace));
  EXPECT_EQ(trace.strings[trace.processes.host[0]], "?A");
}

TEST_F(TraceDbTest, TruncatedAndCorruptedFilesNeverCrash) {
  merge({.ranks = 2, .ops = 60});
  std::ifstream in(path, std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(in)), {});
  auto read_all = [&](const std::string& bytes) {
    std::string copy = folder + "/copy.db";
    std::ofstream(copy, std::ios::binary) << bytes;
    auto source = open_trace_db(copy);
    if (!source) return;
    for (size_t i = 0; i < (*source)->processes(); ++i) {
      Trace trace;
      if (!(*source)->load(i, trace)) continue;
      for (uint32_t row : trace.ops.all(&model::OpTable::comm))
        ASSERT_TRUE(row < trace.comms.size() || row == model::kNoRow);
      for (uint32_t row : trace.channels.all(&model::ChannelTable::task))
        ASSERT_TRUE(row < trace.tasks.size() || row == model::kNoRow);
    }
    Trace run;
    (*source)->run_losses(run);
  };
  for (size_t size = 0; size < whole.size(); size += 16384) read_all(whole.substr(0, size));
  uint64_t random = 1;
  for (int round = 0; round < 60; ++round) {
    std::string bytes = whole;
    for (int i = 0; i < 40; ++i) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      bytes[(random >> 20) % bytes.size()] = static_cast<char>(random >> 56);
    }
    std::memcpy(bytes.data(), whole.data(), 100);
    read_all(bytes);
  }
}

std::string content(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

TEST_F(TraceDbTest, AttachedFilesComeBackAsTheyWere) {
  const std::filesystem::path folder = this->folder;
  std::filesystem::create_directories(folder / "out");
  std::string large(3'500'000, 'x');
  for (size_t i = 0; i < large.size(); i += 7) large[i] = static_cast<char>(i >> 8);
  const std::vector<std::pair<std::string, std::string>> files = {
      {"empty", ""}, {"nccl.h.1.log", "a line\n"}, {"large", large}};
  std::vector<std::string> paths;
  for (const auto& [name, text] : files) {
    paths.push_back(folder / name);
    std::ofstream(paths.back(), std::ios::binary) << text;
  }
  SyntheticRun run(SyntheticOptions{});
  auto merged = write_trace_db(run, path, paths, nullptr);
  ASSERT_TRUE(merged) << merged.error().message();
  EXPECT_EQ(merged->attached, paths);
  auto extracted =
      extract_attachments(path, [&]() -> Result<std::string> { return (folder / "out").string(); });
  ASSERT_TRUE(extracted) << extracted.error().message();
  ASSERT_EQ(extracted->size(), files.size());
  for (size_t i = 0; i < files.size(); ++i) {
    EXPECT_EQ((*extracted)[i], folder / "out" / files[i].first);
    EXPECT_TRUE(content((*extracted)[i]) == files[i].second);
  }
  // Larger than they may be; also where the size of the trace.db cannot be determined.
  auto database = Database::open(path, Database::Access::kRead);
  ASSERT_TRUE(database);
  for (const std::string& name : {path, (folder / "gone.db").string()}) {
    auto refused = sqlite::read_attachments(
        **database, name, [&]() -> Result<std::string> { return (folder / "out").string(); },
        {.harmless_bytes = 1 << 20, .most_growth = 1});
    ASSERT_FALSE(refused) << name;
    EXPECT_NE(refused.error().message().find("larger than such files can be"), std::string::npos);
  }
  auto partly = write_trace_db(run, folder / "other.db", {folder / "absent", paths[1]}, nullptr);
  ASSERT_TRUE(partly);
  EXPECT_EQ(partly->attached, std::vector<std::string>{paths[1]});

  // Hostile: names that lead elsewhere, content that is none.
  sqlite3* handle = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &handle), SQLITE_OK);
  sqlite3_exec(handle, "UPDATE attachment SET name = '../../escaped' WHERE id = 1", nullptr, nullptr,
               nullptr);
  sqlite3_close(handle);
  extracted = extract_attachments(path, [&]() -> Result<std::string> { return (folder / "out").string(); });
  ASSERT_TRUE(extracted);
  EXPECT_EQ((*extracted)[1], folder / "out" / ".._.._escaped");
  ASSERT_EQ(sqlite3_open(path.c_str(), &handle), SQLITE_OK);
  sqlite3_exec(handle, "UPDATE attachment SET name = 'rank_5'", nullptr, nullptr, nullptr);
  sqlite3_close(handle);
  extracted = extract_attachments(path, [&]() -> Result<std::string> { return (folder / "out").string(); });
  ASSERT_TRUE(extracted);
  for (size_t i = 0; i < files.size(); ++i) {
    EXPECT_EQ(std::filesystem::path((*extracted)[i]).filename(), "rank_5");
    EXPECT_TRUE(content((*extracted)[i]) == files[i].second) << "file " << i << " of the same name";
  }
  ASSERT_EQ(sqlite3_open(path.c_str(), &handle), SQLITE_OK);
  sqlite3_exec(handle, "UPDATE attachment_piece SET content = x'00112233' WHERE attachment = 2", nullptr,
               nullptr, nullptr);
  sqlite3_close(handle);
  auto damaged =
      extract_attachments(path, [&]() -> Result<std::string> { return (folder / "out").string(); });
  ASSERT_FALSE(damaged);
  EXPECT_NE(damaged.error().message().find("damaged"), std::string::npos);
}

TEST_F(TraceDbTest, AFullFolderIsAnErrorWhereAttachmentsAreExtracted) {
  const std::string log = folder + "/a.log";
  std::ofstream(log) << std::string(500, 'x');
  SyntheticRun run({.ranks = 1});
  ASSERT_TRUE(write_trace_db(run, path, {log}, nullptr));
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small{100, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  const auto extracted = extract_attachments(path, [&]() -> Result<std::string> { return folder + "/out"; });
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(extracted);
  EXPECT_NE(extracted.error().message().find("TMPDIR"), std::string::npos) << extracted.error().message();
}

TEST_F(TraceDbTest, AFileThatGrewSinceIsNotWhole) {
  const std::vector<std::string> paths = {folder + "/a.log", folder + "/b.log"};
  for (const std::string& file : paths) std::ofstream(file) << "a line\n";
  SyntheticRun run({.ranks = 1});
  ASSERT_TRUE(write_trace_db(run, path, paths, nullptr));
  auto database = Database::open(path, Database::Access::kRead);
  ASSERT_TRUE(database);
  auto whole = [&] { return sqlite::whole_attachments(**database, paths); };
  EXPECT_EQ(whole().value(), paths);
  std::ofstream(paths[0], std::ios::app) << "x";
  EXPECT_EQ(whole().value(), std::vector<std::string>{paths[1]}) << "it stays, for it is the only whole one";
  std::ofstream(paths[1]) << "A line\n";
  EXPECT_EQ(whole().value(), std::vector<std::string>()) << "written anew";
  std::filesystem::remove(paths[0]);
  EXPECT_EQ(whole().value(), std::vector<std::string>()) << "rotated away: the merge is none the worse";
  EXPECT_FALSE(sqlite::whole_attachments(**database, {paths[0]})) << "one is missing";
}

}  // namespace
}  // namespace lockstep::store
