// SPDX-License-Identifier: Apache-2.0
// One rank's process files, from its timeline: what the capture library would have left behind, on the clocks
// of its host and GPU. Any thread; one writer per rank.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "job/job.h"
#include "job/links.h"
#include "job/timeline.h"
#include "readers/native/file_builder.h"

namespace lockstep::sim::job {

class ProcessWriter {
 public:
  ProcessWriter(const Job& job, const Links& links, const Timeline& timeline, int rank);

  struct Written {
    uint64_t ops = 0, files = 0, bytes = 0;
  };
  Result<Written> write(const std::string& directory);

 private:
  using FileBuilder = readers::native::FileBuilder;
  using Log = FileBuilder::Log;
  using ShapeKey = std::tuple<Func, DataType, bool, bool, int>;
  struct UnitRow {
    uint32_t row;
    int step;
    const Unit* unit;
    uint32_t first_handle;  // in handles_
  };

  uint64_t ticks(int64_t true_ns) const { return clock_.ticks(true_ns); }
  uint32_t ticks_between(int64_t from, int64_t until) const;
  format::RecordHead head(int64_t from, int64_t until) const;
  void fill_header(FileBuilder& file, format::Source source) const;
  void define_comms(FileBuilder& file);
  void define_anchors(FileBuilder& file) const;
  void write_calls(Log& log);
  void write_unit(Log& log, const UnitRow& row, uint32_t comm);
  uint64_t write_coll(Log& log, const Task& task, const format::RecordHead& times, uint32_t comm,
                      uint64_t call, uint64_t plan, Dim dim);
  uint64_t write_p2p(Log& log, const Task& task, const format::RecordHead& times, uint32_t comm,
                     uint64_t call, uint64_t plan);
  void write_marks(Log& log) const;
  uint16_t alltoall_shape(Log& log, DataType type);
  uint16_t shape(Log& log, Func func, DataType type, bool call, bool small, int root);
  Result<void> save(const FileBuilder& file, const std::string& directory, const char* source,
                    Written* out) const;

  const Job& job_;
  const Links& links_;
  const RankTimeline& timeline_;
  const int rank_;
  const HostClock& clock_;
  int64_t capture_began_, end_;
  bool closed_;
  std::map<ShapeKey, uint16_t> shapes_;
  uint16_t alltoall_ = 0;  // shape
  std::map<Dim, uint16_t> streams_;
  std::map<std::pair<Dim, Func>, uint64_t> sequence_;
  std::vector<UnitRow> units_;
  std::vector<uint64_t> handles_;  // of tasks, for what happens below them
};

}  // namespace lockstep::sim::job
