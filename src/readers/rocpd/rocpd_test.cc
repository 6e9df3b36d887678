// SPDX-License-Identifier: Apache-2.0
// From the files of RPD, rocm-trace-lite and rocprofiler-sdk to the model: whose GPU did what.
#include "readers/rocpd/rocpd.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <filesystem>
#include <set>

#include "readers/testing/format_test.h"

namespace lockstep::readers::rocpd {
namespace {

constexpr int64_t kUs = 1'000;
constexpr int64_t kBoot = 1'000'000'000'000;

class Rocpd : public testing::FormatTest {
 protected:
  Rocpd() : FormatTest(kFormat) {}

  static constexpr const char* kClassicTables =
      "CREATE TABLE rocpd_string(id INTEGER PRIMARY KEY, string TEXT);CREATE TABLE rocpd_op(id INTEGER "
      "PRIMARY KEY, gpuId INTEGER, queueId INTEGER, sequenceId INTEGER, start INTEGER, end INTEGER, "
      "description_id INTEGER, opType_id INTEGER);CREATE TABLE rocpd_metadata(id INTEGER PRIMARY KEY, tag "
      "TEXT, value TEXT);CREATE TABLE rocpd_api(id INTEGER PRIMARY KEY, pid INTEGER, tid INTEGER);INSERT "
      "INTO rocpd_string "
      "VALUES(1,'gemm'),(2,'ncclDevKernel_Generic_1'),(3,'KernelExecution'),(4,'UserMarker'),(5,'forward'),(6,'CopyDeviceToDevice'),(7,'Barrier'),(8,''),(9,'ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)');";
  // Times are us after the boot.
  static std::string op(int64_t id, int gpu, int64_t start, int64_t end, int name, int type = 3) {
    return "INSERT INTO rocpd_op VALUES(" + std::to_string(id) + "," + std::to_string(gpu) + ",7,0," +
           std::to_string(kBoot + start * kUs) + "," + std::to_string(kBoot + end * kUs) + "," +
           std::to_string(name) + "," + std::to_string(type) + ");";
  }
  static std::string pid(int pid) {
    return "INSERT INTO rocpd_metadata(tag, value) VALUES('pid','" + std::to_string(pid) + "');";
  }
  std::string write(const std::string& name, const std::string& sql) {
    const std::string path = add(name);
    sqlite3* handle = nullptr;
    EXPECT_EQ(sqlite3_open(path.c_str(), &handle), SQLITE_OK);
    char* why = nullptr;
    const std::string quick = "PRAGMA synchronous=OFF; PRAGMA journal_mode=OFF; BEGIN;" + sql + "COMMIT;";
    EXPECT_EQ(sqlite3_exec(handle, quick.c_str(), nullptr, nullptr, &why), SQLITE_OK) << why;
    sqlite3_free(why);
    sqlite3_close(handle);
    return path;
  }
  static std::set<int32_t> gpus(const model::Trace& trace) {
    const auto column = trace.kernels.all(&model::KernelTable::gpu);
    return {column.begin(), column.end()};
  }
};

TEST_F(Rocpd, KernelsCopiesMarkersAndRcclsKernels) {
  write("a.db", std::string(kClassicTables) + pid(4711) + op(1, 0, 20, 30, 2) + op(2, 0, 10, 18, 1) +
                    op(3, 0, 40, 45, 6, 6) + op(4, -1, 5, 50, 5, 4) + op(5, 0, 50, 51, 7, 7) +
                    op(6, 0, 60, 80, 9));
  auto source = open();
  ASSERT_EQ(source->processes(), 1u);
  const model::Trace trace = load(*source, 0);
  EXPECT_EQ(trace.processes.pid[0], 4711);
  EXPECT_EQ(trace.processes.first_ns[0], kBoot + 10 * kUs) << "a marker has a clock of its own";
  ASSERT_EQ(trace.kernels.size(), 4u) << "in the order of time, without the barrier";
  EXPECT_EQ(trace.strings[trace.kernels.name[0]], "gemm");
  EXPECT_EQ(trace.kernels.start_ns[0], kBoot + 10 * kUs);
  EXPECT_EQ(trace.kernels.end_ns[0], kBoot + 18 * kUs);
  EXPECT_EQ(trace.kernels.stream[0], 7u);
  const auto kind = [&](size_t row) { return static_cast<model::KernelKind>(trace.kernels.kind[row]); };
  EXPECT_EQ(kind(0), model::KernelKind::kCompute);
  EXPECT_EQ(kind(1), model::KernelKind::kCommunication);
  EXPECT_EQ(kind(2), model::KernelKind::kCopy);
  ASSERT_EQ(trace.ops.size(), 2u);
  EXPECT_EQ(trace.kernels.op[1], 0u);
  EXPECT_EQ(trace.kernels.op[3], 1u);
  EXPECT_EQ(trace.kernels.op[0], model::kNoRow);
  EXPECT_EQ(trace.strings[trace.shapes.func[trace.ops.shape[0]]], "Generic")
      << "RCCL's kernel proves no more";
  EXPECT_EQ(trace.strings[trace.shapes.func[trace.ops.shape[1]]], "AllReduce");
  EXPECT_EQ(trace.ops.gpu_end_ns[1] - trace.ops.gpu_start_ns[1], 20 * kUs);
  EXPECT_EQ(trace.ops.gpu_source[1], static_cast<uint8_t>(model::GpuTimeSource::kHsa));
  ASSERT_EQ(trace.marks.size(), 1u);
  EXPECT_EQ(trace.strings[trace.marks.name[0]], "forward");
  EXPECT_EQ(lost(*source, "other_work"), 1u);
}

TEST_F(Rocpd, EachRanksDeviceZeroIsADeviceOfItsOwn) {
  for (const int rank : {0, 1, 2})
    write(std::to_string(rank) + ".db",
          std::string(kClassicTables) + pid(100 + rank) + op(1, 0, 10 + rank, 20, 1));
  auto source = open();
  ASSERT_EQ(source->processes(), 3u);
  std::set<int32_t> all;
  std::set<std::string> clocks;
  for (size_t i = 0; i < 3; ++i) {
    const model::Trace trace = load(*source, i);
    EXPECT_EQ(trace.processes.device[0], 0);
    EXPECT_EQ(gpus(trace), std::set<int32_t>{trace.processes.gpu[0]});
    all.merge(gpus(trace));
    clocks.emplace(trace.strings[trace.processes.boot_id[0]]);
  }
  EXPECT_EQ(all.size(), 3u);
  EXPECT_EQ(clocks.size(), 1u) << "their times overlap: one host since its boot";
  EXPECT_EQ(lost(*source, "guessed_clock"), 2u);
}

TEST_F(Rocpd, AnotherHostsBootIsAnotherClock) {
  write("a.db", std::string(kClassicTables) + op(1, 0, 10, 20, 1));
  write("b.db", std::string(kClassicTables) + op(1, 0, 9'000'000, 9'000'010, 1));
  auto source = open();
  const model::Trace first = load(*source, 0), second = load(*source, 1);
  EXPECT_NE(first.strings[first.processes.boot_id[0]], second.strings[second.processes.boot_id[0]]);
}

TEST_F(Rocpd, AMergedFileIsTakenApartWhereTimeJumpsBack) {
  std::string sql = std::string(kClassicTables) + pid(100) + pid(101) + pid(102);
  for (int rank = 0; rank < 3; ++rank) {
    for (int i = 0; i < 50; ++i)  // two queues: ends are only almost in order
      sql += op(rank * 50 + i + 1, 0, 100 * i + rank, 100 * i + 60 - (i % 2) * 30, 1);
  }
  write("merged.db", sql);
  auto source = open();
  ASSERT_EQ(source->processes(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    const model::Trace trace = load(*source, i);
    EXPECT_EQ(trace.processes.pid[0], 100 + static_cast<int>(i));
    EXPECT_EQ(trace.kernels.size(), 50u);
    EXPECT_EQ(trace.kernels.start_ns[0], kBoot + static_cast<int64_t>(i) * kUs);
  }
  EXPECT_EQ(lost(*source, "guessed_process"), 3u);
}

TEST_F(Rocpd, AMergedFileWithoutClearJumpsStaysOne) {
  std::string sql = std::string(kClassicTables) + pid(100) + pid(101);
  for (int i = 0; i < 50; ++i) sql += op(i + 1, 0, (i * 37 % 50) * 100'000, (i * 37 % 50) * 100'000 + 60, 1);
  write("merged.db", sql);
  auto source = open();
  EXPECT_EQ(source->processes(), 1u);
  EXPECT_EQ(lost(*source, "merged_processes"), 2u);
}

TEST_F(Rocpd, RpdsSessionsAreProcesses) {
  const int64_t second = int64_t{1} << 32;
  write("rpd.rpd",
        std::string(kClassicTables) +
            "INSERT INTO rocpd_metadata(tag, value) VALUES('gpu_stride','1000'),('pid_stride','10000000');" +
            "INSERT INTO rocpd_api VALUES(1,20000555,1),(" + std::to_string(second + 1) + ",20000777,1);" +
            op(1, 2001, 10, 20, 1) + op(2, 2001, 30, 40, 8) + op(second + 1, 2003, 12, 22, 1));
  auto source = open();
  ASSERT_EQ(source->processes(), 2u);
  const model::Trace first = load(*source, 0), other = load(*source, 1);
  EXPECT_EQ(first.processes.pid[0], 555);
  EXPECT_EQ(first.processes.device[0], 1) << "of node 2";
  EXPECT_EQ(first.kernels.size(), 2u);
  EXPECT_EQ(first.strings[first.kernels.name[1]], "KernelExecution") << "it has no description";
  EXPECT_EQ(other.processes.pid[0], 777);
  EXPECT_EQ(other.kernels.size(), 1u);
}

TEST_F(Rocpd, NamesThatProcessesShareAreReadOnce) {
  const int64_t second = int64_t{1} << 32;
  write("rpd.rpd", std::string(kClassicTables) + op(1, 0, 10, 20, 1) + op(second + 1, 0, 12, 22, 1) +
                       op(second + 2, 0, 30, 40, 5));
  auto source = open();
  ASSERT_EQ(source->processes(), 2u);
  const model::Trace first = load(*source, 0);
  for (model::StringId id = 0; id < first.strings.size(); ++id)
    EXPECT_NE(first.strings[id], "forward") << "of the file's names it takes those that its rows have";
  write("rpd.rpd", "UPDATE rocpd_string SET string = 'read again';");
  const model::Trace trace = load(*source, 1);
  EXPECT_EQ(trace.strings[trace.kernels.name[0]], "gemm");
  EXPECT_EQ(trace.strings[trace.kernels.name[1]], "forward");
}

TEST_F(Rocpd, RpdsFirstVersionNamesKernelsElsewhere) {
  write("v1.rpd", std::string(kClassicTables) +
                      "CREATE TABLE rocpd_kernelop(op_ptr_id INTEGER PRIMARY KEY, kernelName_id INTEGER);"
                      "INSERT INTO rocpd_kernelop VALUES(1, 1);" +
                      op(1, 0, 10, 20, 8));
  const model::Trace trace = load(*open(), 0);
  EXPECT_EQ(trace.strings[trace.kernels.name[0]], "gemm");
}

std::string sdk(const std::string& suffix, int process, int agent, int absolute,
                const std::string& machine = "m", const std::string& uuid = "NULL") {
  const auto table = [&](const std::string& name) { return "\"" + name + suffix + "\""; };
  const std::string id = std::to_string(process);
  return "CREATE TABLE " + table("rocpd_info_node") +
         "(id INTEGER PRIMARY KEY, guid TEXT DEFAULT \"x\", machine_id, hostname);" + "CREATE TABLE " +
         table("rocpd_info_process") + "(id INTEGER PRIMARY KEY, nid, pid, command);" + "CREATE TABLE " +
         table("rocpd_info_agent") +
         "(id INTEGER PRIMARY KEY, pid, type, absolute_index, logical_index, product_name, uuid);" +
         "CREATE TABLE " + table("rocpd_info_kernel_symbol") +
         "(id INTEGER PRIMARY KEY, kernel_name, display_name);" + "CREATE TABLE " +
         table("rocpd_kernel_dispatch") +
         "(id INTEGER PRIMARY KEY, pid, agent_id, kernel_id, queue_id, start, end);" + "CREATE TABLE " +
         table("rocpd_string") + "(id INTEGER PRIMARY KEY, string);" + "CREATE TABLE " +
         table("rocpd_memory_copy") +
         "(id INTEGER PRIMARY KEY, pid, start, end, name_id, dst_agent_id, src_agent_id, queue_id);" +
         "CREATE VIEW IF NOT EXISTS rocpd_kernel_dispatch AS SELECT * FROM " +
         table("rocpd_kernel_dispatch") + ";" + "INSERT INTO " + table("rocpd_info_node") +
         "(id, machine_id, hostname) VALUES(1,'" + machine + "','node0');" + "INSERT INTO " +
         table("rocpd_info_process") + " VALUES(" + id + ",1," + id + ",'python train.py');" +
         "INSERT INTO " + table("rocpd_info_agent") + " VALUES(" + std::to_string(agent) + "," + id +
         ",'GPU'," + std::to_string(absolute) + ",0,'MI300X'," + uuid + "),(1," + id +
         ",'CPU',0,NULL,'EPYC',NULL);" + "INSERT INTO " + table("rocpd_info_kernel_symbol") +
         " VALUES(1,'_Z4gemmv','gemm()'),(2,'ncclDevKernel_SendRecv',NULL);" + "INSERT INTO " +
         table("rocpd_string") + " VALUES(1,'MEMORY_COPY_DEVICE_TO_HOST');" + "INSERT INTO " +
         table("rocpd_kernel_dispatch") + " VALUES(1," + id + "," + std::to_string(agent) +
         ",1,4,1000,1500),(2," + id + "," + std::to_string(agent) + ",2,5,1200,1900);" + "INSERT INTO " +
         table("rocpd_memory_copy") + " VALUES(1," + id + ",900,950,1,1," + std::to_string(agent) + ",4);";
}

TEST_F(Rocpd, TheSdksTablesEndInTheirWritersIdentity) {
  write("merged.db", sdk("_aaa", 77, 3, 5) + sdk("_bbb", 78, 4, 6));
  auto source = open();
  ASSERT_EQ(source->processes(), 2u);
  const model::Trace trace = load(*source, 0);
  EXPECT_EQ(trace.processes.pid[0], 77);
  EXPECT_EQ(trace.strings[trace.processes.host[0]], "node0");
  EXPECT_EQ(trace.strings[trace.processes.argv[0]], "python train.py");
  EXPECT_EQ(trace.strings[trace.processes.gpu_model[0]], "MI300X");
  ASSERT_EQ(trace.kernels.size(), 3u);
  EXPECT_EQ(static_cast<model::KernelKind>(trace.kernels.kind[0]), model::KernelKind::kCopy);
  EXPECT_EQ(gpus(trace).size(), 1u) << "the copy counts for the GPU that it is from";
  EXPECT_EQ(trace.strings[trace.kernels.name[1]], "gemm()");
  EXPECT_EQ(trace.strings[trace.kernels.name[2]], "ncclDevKernel_SendRecv");
  EXPECT_EQ(trace.strings[trace.shapes.func[trace.ops.shape[0]]], "SendRecv");
  EXPECT_NE(gpus(trace), gpus(load(*source, 1)));
}

TEST_F(Rocpd, OneDeviceOfAHostIsOneForAllItsProcesses) {
  write("a.db", sdk("_aaa", 77, 3, 5));
  write("b.db", sdk("_bbb", 78, 9, 5));
  auto source = open();
  EXPECT_EQ(gpus(load(*source, 0)), gpus(load(*source, 1)));
}

TEST_F(Rocpd, HostsThatAreCalledAlikeStayApart) {
  write("a.db", sdk("_aaa", 1, 3, 5));
  write("b.db", sdk("_bbb", 1, 3, 5, "another"));
  auto source = open();
  ASSERT_EQ(source->processes(), 2u);
  const model::Trace first = load(*source, 0), second = load(*source, 1);
  EXPECT_NE(gpus(first), gpus(second));
  EXPECT_NE(first.strings[first.processes.boot_id[0]], second.strings[second.processes.boot_id[0]]);
  EXPECT_EQ(lost(*source, "equal_names"), 1u);
}

TEST_F(Rocpd, AGpusUuidIsItsIdentity) {
  write("a.db", sdk("_aaa", 77, 3, 5, "m", "'first'"));
  write("b.db", sdk("_bbb", 78, 3, 5, "m", "'second'"));
  write("c.db", sdk("_ccc", 79, 4, 6, "m", "'first'"));
  auto source = open();
  EXPECT_NE(gpus(load(*source, 0)), gpus(load(*source, 1))) << "each sees its own alone, as number 5";
  EXPECT_EQ(gpus(load(*source, 0)), gpus(load(*source, 2)));
  EXPECT_EQ(lost(*source, "equal_names"), 0u);
}

TEST_F(Rocpd, ViewsAndNewerSchemasAreRefused) {
  const std::string view =
      write("view.db",
            "CREATE VIEW rocpd_op AS WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) "
            "SELECT n AS id, 0 AS gpuId, 0 AS queueId, 1 AS start, 2 AS end, 1 AS description_id, 1 AS "
            "opType_id FROM r;");
  auto refused = kFormat.open({view});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().text.find("views are not read"), std::string::npos);
  const std::string newer =
      write("newer.db",
            "CREATE TABLE rocpd_kernel_dispatch_x(id INTEGER PRIMARY KEY, track_id, start_id, end_id);");
  EXPECT_FALSE(kFormat.open({newer}));
  write("good.db", std::string(kClassicTables) + op(1, 0, 10, 20, 1));
  EXPECT_EQ(lost(*open(), "unreadable_file"), 2u);
}

TEST_F(Rocpd, KeepsWhatIsGoodOfADamagedFile) {
  std::string sql = kClassicTables;
  for (int i = 0; i < 5000; ++i) sql += op(i + 1, 0, 10 * i, 10 * i + 5, 1);
  sql += op(9000, 0, -kBoot, 20, 1) + op(9001, 0, 20, 10, 1) + op(9002, -1, 10, 20, 1);
  const std::string path = write("a.db", sql);
  EXPECT_EQ(lost(*open(), "bad_record"), 3u);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2 / 4096 * 4096);
  auto source = open();
  const model::Trace trace = load(*source, 0);
  EXPECT_GT(trace.kernels.size(), 1000u);
  EXPECT_LT(trace.kernels.size(), 4000u);
  EXPECT_GE(lost(*source, "cut_file"), 1u);
}

TEST_F(Rocpd, SaysWhenTheJournalHoldsMore) {
  const std::string path = write("a.db", std::string(kClassicTables) + op(1, 0, 10, 20, 1));
  sqlite3* writer = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &writer), SQLITE_OK);
  sqlite3_exec(writer,
               ("PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0;" + op(2, 0, 30, 40, 1)).c_str(),
               nullptr, nullptr, nullptr);
  EXPECT_EQ(lost(*open(), "unread_journal"), 1u);
  sqlite3_close(writer);
}

TEST_F(Rocpd, IsRecognisedByItsContentAndATraceDbIsNot) {
  const auto sniffed = [](const std::string& path) {
    std::vector<char> bytes(kSniffBytes);
    std::FILE* file = std::fopen(path.c_str(), "rb");
    const size_t got = std::fread(bytes.data(), 1, bytes.size(), file);
    std::fclose(file);
    return kFormat.sniff(std::as_bytes(std::span(bytes.data(), got)));
  };
  EXPECT_TRUE(sniffed(write("a.db", kClassicTables)));
  EXPECT_TRUE(sniffed(write("b.db", sdk("_aaa", 77, 3, 5))));
  EXPECT_FALSE(sniffed(write("own.db", std::string(kClassicTables) + "PRAGMA application_id=0x4c4b5354;")));
  EXPECT_FALSE(sniffed(write("other.db", "CREATE TABLE t(id);")));
  EXPECT_FALSE(kFormat.sniff({}));

  // What its first bytes do not show.
  const std::string large =
      write("large.db", std::string("COMMIT; PRAGMA page_size=65536; VACUUM; BEGIN;") + kClassicTables);
  EXPECT_FALSE(sniffed(large));
  EXPECT_TRUE(kFormat.sniff_file(large));
  std::string many = "PRAGMA application_id=77;";
  for (int i = 0; i < 200; ++i)
    many += "CREATE TABLE a_long_name_of_another_table_" + std::to_string(i) + "(id);";
  const std::string long_list = write("many.db", many + kClassicTables);
  EXPECT_FALSE(sniffed(long_list));
  EXPECT_TRUE(kFormat.sniff_file(long_list));
  EXPECT_FALSE(kFormat.sniff_file(write("foreign.db", many)));
  EXPECT_FALSE(kFormat.sniff_file(folder_ / "absent.db"));
}

// As rocprofv3 writes it (--output-format json). Times are us after the boot.
std::string json_of(int pid, const std::string& kernels, const std::string& copies = "") {
  return R"({"metadata":{"node":{"id":1,"machine_id":"m1","hostname":"node7"},"pid":)" + std::to_string(pid) +
         R"j(,"init_time":5,"command":["python","train.py"]},"agents":[
{"id":{"handle":10},"type":1,"name":"EPYC"},{"id":{"handle":20},"type":2,"name":"gfx942","product_name":"MI300X","node_id":4}],
"strings":{"buffer_records":[{"kind":"KERNEL_DISPATCH","operations":["NONE"]}]},"kernel_symbols":[
{"kernel_id":1,"kernel_name":"_Z4gemmv.kd","formatted_kernel_name":"gemm(int)"},
{"kernel_id":2,"kernel_name":"ncclDevKernel_Generic_1","formatted_kernel_name":""}],
"callback_records":{"code_objects":[{"kernel_id":9}]},"buffer_records":{"hip_api":[{"start_timestamp":1}],"kernel_dispatch":[)j" +
         kernels + R"(],"memory_copy":[)" + copies + "]}}";
}
std::string json_times(int64_t start, int64_t end) {
  return R"("start_timestamp":)" + std::to_string(kBoot + start * kUs) + R"(,"end_timestamp":)" +
         std::to_string(kBoot + end * kUs);
}
std::string json_kernel(int id, int64_t start, int64_t end) {
  return R"({"kind":11,"correlation_id":{"internal":1,"external":0},)" + json_times(start, end) +
         R"(,"dispatch_info":{"agent_id":{"handle":20},"queue_id":{"handle":3},"kernel_id":)" +
         std::to_string(id) + R"(,"grid_size":{"x":1,"y":1,"z":1}}})";
}
std::string json_copy(int from, int to, int64_t start, int64_t end) {
  return "{" + json_times(start, end) + R"(,"dst_agent_id":{"handle":)" + std::to_string(to) +
         R"(},"src_agent_id":{"handle":)" + std::to_string(from) + "}}";
}
std::string json_file(const std::string& sessions) {
  return R"({"rocprofiler-sdk-tool":[)" + sessions + "]}\n";
}

TEST_F(Rocpd, JsonOfRocprofv3) {
  write_text("a_results.json",
             json_file(json_of(4711, json_kernel(2, 20, 30) + "," + json_kernel(1, 10, 18),
                               json_copy(10, 20, 40, 45) + "," + json_copy(20, 10, 50, 55)) +
                       "," + json_of(4712, json_kernel(1, 15, 16))));
  auto source = open();
  ASSERT_EQ(source->processes(), 2u);
  const model::Trace trace = load(*source, 0);
  EXPECT_EQ(trace.processes.pid[0], 4711);
  EXPECT_EQ(trace.strings[trace.processes.host[0]], "node7");
  EXPECT_EQ(trace.strings[trace.processes.argv[0]], "python train.py");
  EXPECT_EQ(trace.strings[trace.processes.gpu_model[0]], "MI300X");
  ASSERT_EQ(trace.kernels.size(), 4u);
  EXPECT_EQ(trace.strings[trace.kernels.name[0]], "gemm(int)");
  EXPECT_EQ(trace.kernels.start_ns[0], kBoot + 10 * kUs);
  EXPECT_EQ(trace.kernels.end_ns[0], kBoot + 18 * kUs);
  EXPECT_EQ(trace.kernels.stream[0], 3u);
  EXPECT_EQ(trace.strings[trace.kernels.name[2]], "MEMORY_COPY_HOST_TO_DEVICE");
  EXPECT_EQ(trace.strings[trace.kernels.name[3]], "MEMORY_COPY_DEVICE_TO_HOST");
  EXPECT_EQ(gpus(trace).size(), 1u) << "also the copy to the host is on the GPU that it is from";
  ASSERT_EQ(trace.ops.size(), 1u);
  EXPECT_EQ(trace.kernels.op[1], 0u);
  const model::Trace second = load(*source, 1);
  EXPECT_EQ(second.processes.pid[0], 4712);
  EXPECT_EQ(gpus(second), gpus(trace)) << "one device of one host";
}

TEST_F(Rocpd, JsonThatIsCutIsReadUntilThere) {
  const std::string whole = json_file(json_of(1, json_kernel(1, 10, 18) + "," + json_kernel(2, 20, 30)));
  size_t before = 0;
  for (size_t at = 1; at < whole.size() - 1; at += at + 8 < whole.size() ? 7 : 1) {
    paths_.clear();
    write_text("cut.json", whole.substr(0, at));
    auto cut = kFormat.open(paths_);
    const size_t kernels = cut ? load(**cut, 0).kernels.size() : 0;
    EXPECT_TRUE(kernels == before || kernels == before + 1) << at;
    EXPECT_TRUE(!cut || lost(**cut, "cut_file") == 1) << at;
    before = kernels;
  }
  EXPECT_EQ(before, 2u);
  paths_.clear();
  write_text("cut.json", whole.substr(0, whole.rfind("queue_id") + 3));
  EXPECT_EQ(load(*open(), 0).kernels.size(), 1u) << "in the middle of a text";
}

TEST_F(Rocpd, JsonOfOddValuesIsNoTrouble) {
  write_text("odd.json",
             json_file(json_of(1, json_kernel(1, 10, 18) +
                                      R"(,{"start_timestamp":-5,"end_timestamp":"x","dispatch_info":[]})" +
                                      R"(,{"start_timestamp":1e300,"end_timestamp":null},7,null)") +
                       R"(,5,{"metadata":[],"agents":{},"buffer_records":{"kernel_dispatch":{}}})"));
  auto source = open();
  ASSERT_EQ(source->processes(), 1u);
  const model::Trace trace = load(*source, 0);
  EXPECT_EQ(trace.kernels.size(), 1u);
}

}  // namespace
}  // namespace lockstep::readers::rocpd
