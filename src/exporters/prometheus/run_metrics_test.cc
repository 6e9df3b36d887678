// SPDX-License-Identifier: Apache-2.0
// A run whose files grow, disappear, come back and begin again, as the exporter reports it.
#include "exporters/prometheus/run_metrics.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "exporters/prometheus/exposition.h"
#include "readers/native/file_builder.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::exporters::metrics {
namespace {

using format::Kind;
using readers::native::FileBuilder;

// A process of two-rank jobs; its file is written whenever it is told to.
struct Rank {
  Rank(const std::string& run, int32_t rank, int64_t pid, std::string_view name = "world",
       std::string_view job = "", uint64_t comm_id = 0xabc)
      : path(run + "/node1." + std::to_string(pid) + ".5000.nccl.lks") {
    file.header().rank = rank;
    file.header().world = 2;
    file.header().pid = static_cast<int32_t>(pid);
    std::copy(job.begin(), job.end(), file.header().job_id);
    comm = file.comm(comm_id, rank, 2, name);
    log = &file.log(11);
  }
  void coll(uint64_t seq, uint64_t start, std::string_view func = "AllReduce") {
    format::CollRecord record{};
    record.head = {start, 50, Kind::kNone, format::kFlagStopped, 0};
    record.count = 256;
    record.seq = seq;
    record.comm = comm;
    uint16_t& shape = shapes[std::string(func)];
    if (shape == 0) shape = log->shape(func, "ncclFloat32");
    record.shape = shape;
    log->add(Kind::kColl, record);
  }
  void write() const { file.write(path); }

  FileBuilder file;
  std::string path;
  uint32_t comm = 0;
  FileBuilder::Log* log = nullptr;
  std::map<std::string, uint16_t> shapes;
};

class RunMetricsTest : public ::testing::Test {
 protected:
  RunMetricsTest() {
    live = std::make_unique<live::LiveRun>(std::vector<std::string>{run}, live::LiveRun::Depth::kAll);
  }

  // Looks, and checks that no counter has gone back.
  void look() {
    auto seen = live->look();
    if (seen)
      metrics.look(*seen, watch.look(*seen));
    else
      metrics.look_in_vain();
    const auto all = families(metrics, {}, {});
    std::map<std::string, double> now;
    for (const auto& family : all) {
      for (const auto& metric : family.metric) {
        std::string name = family.name;
        for (const auto& label : metric.label) name += '|' + label.name + '=' + label.value;
        if (family.type == prometheus::MetricType::Counter) now[name] = metric.counter.value;
        if (family.type == prometheus::MetricType::Histogram)
          now[name] = static_cast<double>(metric.histogram.sample_count);
        values[name] = family.type == prometheus::MetricType::Gauge ? metric.gauge.value : now[name];
      }
    }
    for (const auto& [name, before] : counters) {
      EXPECT_TRUE(now.contains(name)) << name;
      EXPECT_GE(now[name], before) << name;
    }
    counters = std::move(now);
  }
  double value(const std::string& name) const {
    auto known = values.find(name);
    return known == values.end() ? -1 : known->second;
  }
  static std::string ops(const std::string& rank, const std::string& comm = "world",
                         const std::string& job = "", const std::string& func = "AllReduce") {
    return "lockstep_operations_total|rank=" + rank + "|job_id=" + job + "|comm=" + comm + "|func=" + func;
  }

  const test::TemporaryFolder folder;
  const std::string run = folder.path();
  std::unique_ptr<live::LiveRun> live;
  live::RankWatch watch;
  RunMetrics metrics{Limits{.ranks = 4, .comms = 3}};
  std::map<std::string, double> counters, values;
};

TEST_F(RunMetricsTest, CountersGrowWithTheRun) {
  Rank first(run, 0, 100), second(run, 1, 101);
  first.write();
  look();
  EXPECT_EQ(value("lockstep_run_present"), 1);
  for (uint64_t i = 0; i < 10; ++i) first.coll(i, 1'000'000 * (i + 1));
  for (uint64_t i = 0; i < 9; ++i) second.coll(i, 1'000'000 * (i + 1) + 250'000);
  first.write();
  second.write();
  look();
  EXPECT_EQ(value(ops("0")), 10);
  EXPECT_EQ(value(ops("1")), 9);
  EXPECT_EQ(value("lockstep_operation_bytes_total|rank=1|job_id=|comm=world|func=AllReduce"), 9 * 1024);
  EXPECT_EQ(value("lockstep_matched_operations_total|comm=world"), 9);
  EXPECT_NEAR(value("lockstep_late_seconds_total|rank=1|job_id=|comm=world"), 9 * 250e-6, 1e-9);
  EXPECT_NEAR(value("lockstep_wait_seconds_total|rank=0|job_id=|comm=world"), 9 * 250e-6, 1e-9);
  EXPECT_EQ(value("lockstep_behind_operations|rank=1|job_id="), 1);
  look();
  EXPECT_EQ(value(ops("0")), 10) << "nothing is counted twice";
}

TEST_F(RunMetricsTest, HistogramsAddTheirBucketsUpAndEmptyOnesAreAbsent) {
  Rank first(run, 0, 100);
  first.write();
  look();
  for (uint64_t i = 0; i < 10; ++i) first.coll(i, 1'000'000 * (i + 1));
  first.write();
  look();
  int histograms = 0;
  for (const auto& family : families(metrics, {}, {})) {
    if (family.type != prometheus::MetricType::Histogram) continue;
    for (const auto& metric : family.metric) {
      ++histograms;
      const auto& of = metric.histogram;
      EXPECT_GT(of.sample_count, 0u) << family.name;
      EXPECT_GT(of.sample_sum, 0) << family.name;
      ASSERT_GE(of.bucket.size(), 3u) << family.name;
      for (size_t i = 1; i < of.bucket.size(); ++i) {
        EXPECT_GT(of.bucket[i].upper_bound, of.bucket[i - 1].upper_bound);
        EXPECT_GE(of.bucket[i].cumulative_count, of.bucket[i - 1].cumulative_count);
      }
      EXPECT_EQ(of.bucket.back().cumulative_count, of.sample_count) << "all of these are short";
    }
  }
  EXPECT_EQ(value("lockstep_exporter_read_lag_seconds"), 0) << "all is read";
  RecordProperty("histograms", histograms);
}

TEST_F(RunMetricsTest, CountersStayWhenFilesGoAndComeBack) {
  Rank first(run, 0, 100), second(run, 1, 101);
  for (uint64_t i = 0; i < 5; ++i) first.coll(i, 1000 * (i + 1));
  for (uint64_t i = 0; i < 5; ++i) second.coll(i, 1000 * (i + 1));
  first.write();
  second.write();
  look();
  std::filesystem::remove(first.path);
  look();
  EXPECT_EQ(value(ops("0")), 5);
  std::filesystem::remove(second.path);
  look();
  EXPECT_EQ(value("lockstep_run_present"), 0);
  EXPECT_EQ(value(ops("1")), 5);
  first.coll(5, 9000);
  first.write();
  look();
  EXPECT_EQ(value(ops("0")), 6) << "what it had counted of this file before is not counted again";
}

TEST_F(RunMetricsTest, ARestartedJobAddsToItsRanks) {
  Rank first(run, 0, 100);
  for (uint64_t i = 0; i < 5; ++i) first.coll(i, 1000 * (i + 1));
  first.file.header().heartbeat_ticks = 2'000'000'000;
  first.write();
  look();
  EXPECT_EQ(value("lockstep_processes|state=silent"), 1);
  Rank again(run, 0, 200, "world", "", 0xdef);
  again.file.header().heartbeat_ticks = 4'000'000'000;
  again.file.header().start_realtime_ns = FileBuilder::kEpochNs + 3'000'000'000;
  again.file.header().state = static_cast<uint32_t>(format::FileState::kClosed);
  for (uint64_t i = 0; i < 3; ++i) again.coll(i, 100'000 * (i + 1));
  again.write();
  look();
  EXPECT_EQ(value(ops("0")), 8);
  EXPECT_EQ(value("lockstep_processes|state=replaced"), 1);
  EXPECT_EQ(value("lockstep_processes|state=ended"), 1);
  EXPECT_EQ(value("lockstep_processes|state=silent"), 0);
}

// Its processes come in the order of their pids, which is not that of their starts.
TEST_F(RunMetricsTest, ARankWhoseLastProcessIsGoneIsDown) {
  live::SeenProcess process;
  process.rank = 0;
  for (const bool is_gone_first : {false, true}) {
    live::RankRows rows;
    rows.rows.resize(2);
    rows.rows[is_gone_first].health = live::Health::kEnded;
    rows.rows[is_gone_first].host = "a";
    rows.rows[!is_gone_first].health = live::Health::kGone;
    rows.rows[!is_gone_first].host = "b";
    metrics.look({process, process}, rows);
    ASSERT_EQ(metrics.rank_states().size(), 1u);
    EXPECT_FALSE(metrics.rank_states().begin()->second.up) << is_gone_first;
    EXPECT_EQ(metrics.rank_states().begin()->second.host, "b");
  }
}

TEST_F(RunMetricsTest, AFunctionThatTakesAPlaceCountsFromNothing) {
  Rank first(run, 0, 100);
  for (uint64_t func = 0; func < RunMetrics::kMostFunctions; ++func)
    for (uint64_t i = 0; i < 5; ++i) first.coll(i, 1000 + 100 * func + i, "Func" + std::to_string(func));
  first.write();
  look();
  std::filesystem::remove(first.path);
  Rank second(run, 0, 200, "world", "", 0xdef);
  second.coll(0, 5000, "Late");
  second.write();
  counters.clear();  // the series of the function that lost its place ends
  look();
  EXPECT_EQ(value(ops("0", "world", "", "Late")), 1);
}

TEST_F(RunMetricsTest, JobsInOneDirectoryAreKeptApart) {
  Rank a(run, 0, 100, "world", "job-a", 1), b(run, 0, 101, "world", "job-b", 2);
  a.coll(0, 1000);
  b.coll(0, 1000);
  b.coll(1, 2000);
  a.write();
  b.write();
  look();
  EXPECT_EQ(value(ops("0", "world", "job-a")), 1);
  EXPECT_EQ(value(ops("0", "world", "job-b")), 2);
}

TEST_F(RunMetricsTest, LabelsAreBoundedAndTheRestIsOther) {
  std::vector<std::unique_ptr<Rank>> all;
  for (int32_t i = 0; i < 9; ++i) {
    all.push_back(std::make_unique<Rank>(run, i, 100 + i, "comm" + std::to_string(i), "",
                                         static_cast<uint64_t>(i + 1)));
    for (int func = 0; func < 30; ++func)
      all.back()->coll(0, 1000 + static_cast<uint64_t>(func), "Func" + std::to_string(func));
    all.back()->write();
  }
  look();
  std::set<std::string> ranks, comms, functions;
  double sum = 0;
  for (const auto& [key, counts] : metrics.operations()) {
    ranks.insert(metrics.rank_labels(key.rank).first);
    comms.insert(metrics.comms().text(key.comm));
    functions.insert(metrics.functions().text(key.func));
    sum += counts.ops;
  }
  EXPECT_EQ(ranks.size(), 5u);
  EXPECT_EQ(comms.size(), 4u);
  EXPECT_EQ(functions.size(), RunMetrics::kMostFunctions + 1);
  EXPECT_TRUE(ranks.contains("other") && comms.contains("other") && functions.contains("other"));
  EXPECT_EQ(sum, 9 * 30) << "nothing is left out";
  EXPECT_EQ(value("lockstep_exporter_folded|label=rank"), 5);
  EXPECT_EQ(value("lockstep_exporter_folded|label=comm"), 6);
}

TEST_F(RunMetricsTest, HostileNamesAreEscapedClippedAndRepaired) {
  Rank rank(run, 0, 100, "a\"b\\c\nd\xff} 1\nlockstep_fake 1");
  rank.coll(0, 1000, "e\"\n\xfe");
  rank.write();
  look();
  const std::string text = text_of(families(metrics, {}, {}));
  EXPECT_NE(text.find(R"(comm="a\"b\\c?d?} 1?lockstep_fake 1",func="e\"??"} 1)"), std::string::npos) << text;
  EXPECT_EQ(text.find("\nlockstep_fake"), std::string::npos);
}

TEST_F(RunMetricsTest, LossesAreCountedByCause) {
  Rank rank(run, 0, 100);
  rank.coll(0, 1000);
  rank.log->losses()[0] = 5;
  rank.file.header().losses[4] = 2;
  rank.write();
  look();
  EXPECT_EQ(value("lockstep_losses_total|rank=0|job_id=|kind=no_chunk"), 5);
  EXPECT_EQ(value("lockstep_losses_total|rank=0|job_id=|kind=no_log"), 2);
  rank.log->losses()[0] = 9;
  rank.write();
  look();
  EXPECT_EQ(value("lockstep_losses_total|rank=0|job_id=|kind=no_chunk"), 9);
}

}  // namespace
}  // namespace lockstep::exporters::metrics
