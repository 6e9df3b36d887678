// SPDX-License-Identifier: Apache-2.0
// What NVIDIA Inspector left of a loop of all-reduces on eight H200s: four of the ranks, the first and last
// operations of each.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "analysis/analysis.h"
#include "job/gather/gather.h"
#include "model/names/operation_size.h"
#include "readers/reader.h"
#include "tests/support/places.h"

namespace lockstep::golden {
namespace {

const std::vector<std::string> kFiles = {LOCKSTEP_SOURCE_DIR "/tests/data/inspector/vm-pid1470.log",
                                         LOCKSTEP_SOURCE_DIR "/tests/data/inspector/vm-pid1471.log",
                                         LOCKSTEP_SOURCE_DIR "/tests/data/inspector/vm-pid1472.log",
                                         LOCKSTEP_SOURCE_DIR "/tests/data/inspector/vm-pid1473.log"};

// Every record, read by another parser, is an operation with its number, size and duration; and the bandwidth
// that follows from them is the one that Inspector printed.
TEST(InspectorFiles, EveryRecordIsAnOperation) {
  auto source = readers::open(kFiles);
  ASSERT_TRUE(source) << source.error().message();
  ASSERT_EQ((*source)->processes(), kFiles.size());
  for (size_t i = 0; i < kFiles.size(); ++i) {
    model::Trace trace;
    ASSERT_TRUE((*source)->load(i, trace));
    std::map<uint64_t, nlohmann::json> records;
    std::ifstream file(kFiles[i]);
    for (std::string line; std::getline(file, line);) {
      const auto record = nlohmann::json::parse(line);
      EXPECT_EQ(trace.processes.rank[0], record["header"]["rank"]);
      EXPECT_EQ(trace.processes.pid[0], record["metadata"]["pid"]);
      records[record["coll_perf"]["coll_sn"]] = record["coll_perf"];
    }
    ASSERT_EQ(trace.ops.size(), records.size());
    for (size_t op = 0; op < trace.ops.size(); ++op) {
      ASSERT_TRUE(records.contains(trace.ops.seq[op]));
      const auto& record = records[trace.ops.seq[op]];
      EXPECT_EQ(trace.ops.bytes[op], record["coll_msg_size_bytes"]);
      EXPECT_EQ(trace.ops.index[op], trace.ops.seq[op]) << "one function alone: its number is the place";
      EXPECT_EQ(trace.strings[trace.shapes.func[trace.ops.shape[op]]], record["coll"]);
      if (record["coll_timing_source"] != "kernel_gpu") {
        EXPECT_EQ(trace.ops.gpu_start_ns[op], 0);
        continue;
      }
      const int64_t ns = trace.ops.gpu_end_ns[op] - trace.ops.gpu_start_ns[op];
      EXPECT_EQ(ns, record["coll_exec_time_us"].get<int64_t>() * 1000);
      const double busbw =
          static_cast<double>(model::operation_size("AllReduce", trace.ops.bytes[op], 8, false)) /
          static_cast<double>(ns) * model::bus_factor("AllReduce", 8);
      EXPECT_NEAR(busbw, record["coll_busbw_gbs"], 1e-6);
    }
  }
}

TEST(InspectorFiles, OneIndexIsOneSizeOnAllRanksAndNobodyIsBlamed) {
  auto source = readers::open(kFiles);
  ASSERT_TRUE(source);
  auto job = job::gather::gather(**source, {.threads = 1, .progress = {}});
  ASSERT_TRUE(job);
  const analysis::Diagnosis diagnosis = analysis::diagnose(*job);
  std::map<uint32_t, uint64_t> sizes;
  size_t shared = 0;
  for (const model::Member& member : job->members) {
    EXPECT_EQ(member.alignment, model::Member::Alignment::kBySeq);
    const model::JobOps& ops = job->ops(member);
    for (uint32_t i = member.first; i < member.first + member.ops; ++i) {
      const auto [at, is_new] = sizes.try_emplace(ops.index[i], job->signatures[ops.signature[i]].bytes);
      EXPECT_EQ(at->second, job->signatures[ops.signature[i]].bytes) << ops.index[i];
      shared += is_new ? 0 : 1;
    }
  }
  EXPECT_GT(shared, 20u);
  // Half of the ranks left no file here, and most operations are in none: no reason to blame anybody for not
  // calling them.
  for (const analysis::Finding& finding : diagnosis.findings)
    EXPECT_NE(finding.severity, analysis::Severity::kCritical) << finding.statement;
}

}  // namespace
}  // namespace lockstep::golden
