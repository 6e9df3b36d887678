// SPDX-License-Identifier: Apache-2.0
// An export of two ranks (tests/data/nsys) as Parquet files, and the same tables in a SQLite file.
#include "readers/nsys/nsys.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <filesystem>

#include "readers/nsys/parquet.h"
#include "readers/testing/format_test.h"
#include "tests/support/places.h"

namespace lockstep::readers::nsys {
namespace {

class Nsys : public testing::FormatTest {
 protected:
  Nsys() : FormatTest(kFormat) {}

  static std::vector<std::string> parquet_files() {
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(LOCKSTEP_SOURCE_DIR "/tests/data/nsys"))
      files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    return files;
  }

  void sql(const std::string& statement) const {
    char* why = nullptr;
    EXPECT_EQ(sqlite3_exec(handle_, statement.c_str(), nullptr, nullptr, &why), SQLITE_OK)
        << why << ": " << statement;
    sqlite3_free(why);
  }
  static std::string quoted(const Cell& cell) {
    if (cell.kind == Cell::Kind::kNone) return "NULL";
    if (cell.kind == Cell::Kind::kInteger) return std::to_string(cell.integer);
    std::string hex;
    for (const unsigned char c : cell.bytes) {
      constexpr char kHex[] = "0123456789abcdef";
      hex += {kHex[c >> 4], kHex[c & 15]};
    }
    return "CAST(X'" + hex + "' AS TEXT)";
  }
  // The tables of the Parquet files; the columns of binary data as what they are.
  void copy(const std::string& left_out = "") {
    ASSERT_EQ(sqlite3_open(add("export.sqlite").c_str(), &handle_), SQLITE_OK);
    sql("BEGIN");
    for (const std::string& path : parquet_files()) {
      const std::string table = std::filesystem::path(path).stem();
      if (table == left_out) continue;
      const auto file = ParquetFile::open(path);
      ASSERT_TRUE(file);
      std::vector<std::string_view> columns;
      std::string names;
      for (const ParquetColumn& column : file->columns()) {
        columns.push_back(column.name);
        names += (names.empty() ? "\"" : ", \"") + column.name + "\"";
      }
      sql("CREATE TABLE " + table + "(" + names + ")");
      ASSERT_TRUE(file->read(columns, [&](std::span<const Cell> row) {
        std::string values;
        for (const Cell& cell : row) values += (values.empty() ? "" : ", ") + quoted(cell);
        sql("INSERT INTO " + table + " VALUES(" + values + ")");
      }));
    }
    sql("COMMIT");
  }
  void close() {
    sqlite3_close(handle_);
    handle_ = nullptr;
  }
  ~Nsys() override { close(); }

  sqlite3* handle_ = nullptr;
};

constexpr int64_t kEpoch = 1'795'203'349'000'000'000;

void expect_two_ranks(model::TraceSource& source) {
  ASSERT_EQ(source.processes(), 2u);
  for (size_t rank = 0; rank < 2; ++rank) {
    model::Trace trace;
    ASSERT_TRUE(source.load(rank, trace));
    EXPECT_EQ(trace.processes.pid[0], 100 + static_cast<int64_t>(rank));
    EXPECT_EQ(trace.processes.rank[0], static_cast<int32_t>(rank));
    EXPECT_EQ(trace.processes.world[0], 2);
    EXPECT_EQ(trace.strings[trace.processes.host[0]], "node1");
    EXPECT_EQ(trace.strings[trace.processes.gpu_model[0]], "NVIDIA H100 80GB HBM3");
    EXPECT_EQ(trace.processes.window[0], static_cast<uint8_t>(model::Window::kNumbered))
        << "the communicator began in it";
    ASSERT_EQ(trace.comms.size(), 1u);
    EXPECT_EQ(trace.comms.comm_id[0], 0xabcu);
    EXPECT_EQ(trace.comms.ranks[0], 2);
    ASSERT_EQ(trace.ops.size(), 40u);
    ASSERT_EQ(trace.kernels.size(), 40u);
    for (uint32_t i = 0; i < 40; ++i) {
      const int64_t called = 1'001'000 + int64_t{i} * 10'000 + (rank == 1 && i >= 20 ? 3'000 : 0);
      EXPECT_EQ(trace.ops.index[i], i);
      EXPECT_EQ(trace.ops.bytes[i], 4096u);
      EXPECT_EQ(trace.strings[trace.shapes.func[trace.ops.shape[i]]], "AllReduce");
      EXPECT_EQ(trace.ops.called_ns[i], kEpoch + called);
      EXPECT_EQ(trace.ops.launched_ns[i], kEpoch + called + 100);
      EXPECT_EQ(trace.ops.gpu_start_ns[i], kEpoch + called + 500);
      EXPECT_EQ(trace.kernels.op[i], i);
    }
  }
  const model::Trace first = [&] {
    model::Trace trace;
    EXPECT_TRUE(source.load(0, trace));
    return trace;
  }();
  model::Trace second;
  ASSERT_TRUE(source.load(1, second));
  EXPECT_NE(first.processes.gpu[0], second.processes.gpu[0]) << "both call their device 0";
  EXPECT_EQ(first.strings[first.processes.boot_id[0]], second.strings[second.processes.boot_id[0]]);
}

TEST_F(Nsys, ReadsADirectoryOfParquetFiles) {
  paths_ = parquet_files();
  expect_two_ranks(*open());
}

TEST_F(Nsys, ReadsTheSameOfASqliteFile) {
  copy();
  close();
  auto source = open();
  expect_two_ranks(*source);
  for (const char* kind : {"bad_record", "unknown_payload", "cut_file", "no_date"})
    EXPECT_EQ(lost(run(*source), kind), 0u) << kind;
}

// Not work at the session's begin.
TEST_F(Nsys, CountsRowsWithoutTimes) {
  copy();
  sql("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = NULL, end = NULL WHERE correlationId = 2");
  sql("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = 1.5 WHERE correlationId = 3");
  close();
  auto source = open();
  EXPECT_EQ(load(*source, 0).kernels.size() + load(*source, 1).kernels.size(), 76u);
  EXPECT_EQ(lost(run(*source), "bad_record"), 4u) << "of both ranks";
}

// NCCL before 2.25, or a recording without payloads: nothing is made up.
TEST_F(Nsys, CountsRangesThatDoNotSayTheirCommunicator) {
  copy();
  sql("UPDATE NVTX_EVENTS SET binaryData = NULL");
  close();
  auto source = open();
  const model::Trace trace = load(*source, 0);
  EXPECT_EQ(trace.ops.size(), 0u);
  EXPECT_EQ(trace.kernels.size(), 40u);
  EXPECT_EQ(lost(trace, "no_communicator"), 40u);
  EXPECT_EQ(trace.processes.rank[0], -1);
}

TEST_F(Nsys, CountsPayloadsThatTheExportDoesNotDescribe) {
  copy("NVTX_PAYLOAD_SCHEMA_ENTRIES");
  close();
  EXPECT_EQ(lost(run(*open()), "unknown_payload"), 82u);
}

TEST_F(Nsys, OnlyKernelsAreKernelsAlone) {
  copy("NVTX_EVENTS");
  close();
  EXPECT_EQ(lost(load(*open(), 0), "kernels_alone"), 40u);
}

TEST_F(Nsys, APartOfAJobCountsFromItsBegin) {
  copy();
  sql("DELETE FROM NVTX_EVENTS WHERE textId = 1");
  close();
  const model::Trace trace = load(*open(), 0);
  EXPECT_EQ(trace.ops.size(), 40u);
  EXPECT_EQ(trace.processes.window[0], static_cast<uint8_t>(model::Window::kCounted));
  EXPECT_EQ(trace.comms.rank[0], -1);
}

// What the user did is not the reason where the layout is.
TEST_F(Nsys, ANewerLayoutIsCalledSo) {
  copy();
  sql("ALTER TABLE NVTX_EVENTS RENAME COLUMN globalTid TO threadRef");
  close();
  const auto opened = kFormat.open(paths_);
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().message().find(
                "NVTX_EVENTS has other columns than this reader knows (its schema is 3.20.2)"),
            std::string::npos)
      << opened.error().message();
}

TEST_F(Nsys, IsRecognisedByItsContent) {
  copy();
  close();
  EXPECT_TRUE(kFormat.sniff_file(paths_.front()));
  auto sniffed = [](std::string_view text) { return kFormat.sniff(std::as_bytes(std::span(text))); };
  EXPECT_TRUE(sniffed("PAR1\x15"));
  EXPECT_FALSE(sniffed("PAR"));
  EXPECT_FALSE(sniffed("SQLite format 3"));
}

}  // namespace
}  // namespace lockstep::readers::nsys
