// SPDX-License-Identifier: Apache-2.0
#include "job/assemble/copy_join.h"

#include <gtest/gtest.h>

#include "job/assemble/assemble.h"
#include "model/event_kind.h"

namespace lockstep::job::assemble {
namespace {

using model::EventKind;
using model::kNoRow;
using model::number;
using model::Trace;

struct Job {
  Trace trace;
  Job() {
    trace.processes.append({});
    model::Comm comm{};
    comm.gpu = 3;
    trace.comms.append(comm);
  }
  // A collective of one batch.
  uint32_t collective(int64_t start, int32_t copies, uint64_t bytes) {
    model::Task task{};
    task.kind = number(EventKind::kCeColl);
    task.call = task.plan = kNoRow;
    task.peer = -1;
    task.shape = trace.intern_shape({trace.strings.intern("AllGather"), 0, 0, 0, 0});
    task.start_ns = start;
    const uint32_t row = trace.tasks.append(task);
    model::Call batch{};
    batch.kind = number(EventKind::kCeBatch);
    batch.parent = row;
    batch.shape = kNoRow;
    batch.depth = copies;
    batch.count = bytes;
    batch.start_ns = start + 10;
    batch.end_ns = start + 20;
    trace.calls.append(batch);
    return row;
  }
  void copy(int64_t start, uint64_t bytes, uint32_t correlation, int32_t gpu = 3) {
    model::Kernel row{};
    row.op = row.launch = kNoRow;
    row.name = trace.strings.intern("Memcpy PtoP (Device -> Device)");
    row.kind = static_cast<uint8_t>(model::KernelKind::kCopy);
    row.gpu = gpu;
    row.stream = 9;
    row.start_ns = start;
    row.end_ns = start + 50;
    row.correlation = correlation;
    row.bytes = bytes;
    trace.kernels.append(row);
  }
  uint64_t loss(std::string_view kind) const {
    uint64_t count = 0;
    for (size_t i = 0; i < trace.losses.size(); ++i)
      count += trace.strings[trace.losses.kind[i]] == kind ? trace.losses.count[i] : 0;
    return count;
  }
};

TEST(CopyJoin, BatchesOfOneCallAndOfSeveral) {
  for (const bool one_call : {true, false}) {
    Job job;
    job.copy(500, 64, 1);  // something else's
    job.collective(1'000, 3, 300);
    job.collective(2'000, 3, 300);
    uint32_t correlation = 10;
    for (const int64_t start : {1'100, 1'200, 1'300, 2'100, 2'200, 2'300}) {
      if (start == 2'100 || !one_call) ++correlation;
      job.copy(start, 100, correlation);
    }
    job.copy(2'500, 100, 90, 4);  // on another device
    ASSERT_TRUE(assemble(job.trace));
    ASSERT_EQ(job.trace.ops.size(), 2u);
    EXPECT_EQ(job.trace.ops.gpu_start_ns[0], 1'100);
    EXPECT_EQ(job.trace.ops.gpu_end_ns[0], 1'350);
    EXPECT_EQ(job.trace.ops.gpu_start_ns[1], 2'100);
    EXPECT_EQ(job.trace.ops.gpu_source[1], static_cast<uint8_t>(model::GpuTimeSource::kCupti));
    EXPECT_EQ(job.trace.kernels.op[1], 0u);
    EXPECT_EQ(job.trace.kernels.op[6], 1u);
    EXPECT_EQ(job.trace.kernels.op[0], kNoRow);
    EXPECT_EQ(job.loss("copy_joined_by_order"), 6u);
    EXPECT_EQ(job.loss("ce_batch_without_copies"), 0u);
  }
}

TEST(CopyJoin, RefusesWhatOrderAndSizeDoNotTell) {
  Job more, early;
  more.collective(1'000, 2, 200);
  for (const uint32_t correlation : {1u, 1u, 2u, 2u}) more.copy(1'100 + correlation, 100, correlation);
  ASSERT_TRUE(assemble(more.trace));
  EXPECT_EQ(more.trace.ops.gpu_start_ns[0], 0);
  EXPECT_EQ(more.loss("ce_batch_without_copies"), 1u) << "two calls made copies that look like the batch";
  early.collective(1'000, 2, 200);
  early.copy(900, 100, 1);
  early.copy(1'200, 100, 1);
  ASSERT_TRUE(assemble(early.trace));
  EXPECT_EQ(early.loss("ce_batch_without_copies"), 1u) << "a copy before its batch";
}

}  // namespace
}  // namespace lockstep::job::assemble
