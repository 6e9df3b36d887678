// SPDX-License-Identifier: Apache-2.0
#include "job/gather/reported_starts.h"

#include <gtest/gtest.h>

#include "job/gather/gather.h"
#include "model/event_kind.h"
#include "model/job.h"

namespace lockstep::job::gather {
namespace {

using model::JobOps;

// Operations of one process, entered at 100, 200, ... on one communicator unless said otherwise.
class Reports {
 public:
  // Its begin was reported, by KernelCh.
  Reports& begun(uint32_t comm = 0) { return add(comm, true, model::GpuTimeSource::kKernelCh); }
  // CUPTI reported it, once it was over.
  Reports& ended(uint32_t comm = 0) { return add(comm, false, model::GpuTimeSource::kCupti); }
  // Both did.
  Reports& begun_and_ended() { return add(0, true, model::GpuTimeSource::kCupti); }
  Reports& nothing(uint32_t comm = 0) { return add(comm, false, model::GpuTimeSource::kNone); }
  int64_t from(std::string_view modes) const { return starts_reported_from(trace_, modes, buckets_, 2); }

 private:
  Reports& add(uint32_t comm, bool is_begun, model::GpuTimeSource source) {
    model::Op op;
    op.comm = comm;
    op.task = trace_.tasks.append({});
    op.called_ns = static_cast<int64_t>(100 * (trace_.ops.size() + 1));
    op.gpu_source = static_cast<uint8_t>(source);
    trace_.ops.append(op);
    buckets_.push_back(comm);
    if (is_begun) {
      model::Channel channel;
      channel.task = op.task;
      channel.kind = model::number(model::EventKind::kKernelCh);
      trace_.channels.append(channel);
    }
    return *this;
  }

  model::Trace trace_;
  std::vector<uint32_t> buckets_;
};

TEST(ReportedStarts, OfADeepRunAreThoseFromTheFirstOn) {
  Reports reports;
  reports.nothing().begun().begun().nothing();
  EXPECT_EQ(reports.from("deep 50"), 200);
  EXPECT_EQ(reports.from(""), 200);
  EXPECT_EQ(reports.begun_and_ended().from("default 10, deep 450"), 500);
}

TEST(ReportedStarts, ASampleHasNone) {
  EXPECT_EQ(Reports().begun().nothing().nothing().from("sample=1/200 50"), JobOps::kNeverReported);
  EXPECT_EQ(Reports().nothing().begun().from("deep 50, sample=1/2 60"), JobOps::kNeverReported);
}

TEST(ReportedStarts, AWindowThatIsOverHasNone) {
  EXPECT_EQ(Reports().begun().begun().nothing().from("default 10, deep 50, default 250"),
            JobOps::kNeverReported);
}

TEST(ReportedStarts, OneBeforeTheLastChangeOfModeIsNotTold) {
  EXPECT_EQ(Reports().begun().nothing().begun().from("deep 50, default 150, deep 250"), 300);
  EXPECT_EQ(Reports().begun().nothing().nothing().from("deep 50, default 150, deep 250"),
            JobOps::kNeverReported);
}

// Below a size, deep events are not asked for either; the text of modes does not say so.
TEST(ReportedStarts, OneThatWentWithoutAmongOthersShowsThatTheyAreChosen) {
  EXPECT_EQ(Reports().begun().nothing().begun().from("deep 50"), JobOps::kNeverReported);
  EXPECT_EQ(Reports().begun().ended().from("deep 50"), JobOps::kNeverReported);
  EXPECT_EQ(Reports().begun_and_ended().ended(1).from("deep 50"), JobOps::kNeverReported)
      << "another communicator";
  EXPECT_EQ(Reports().ended().begun_and_ended().from("deep 50"), 200) << "lost before the first";
  EXPECT_EQ(Reports().begun().nothing(1).begun().from("deep 50"), 100)
      << "the other communicator did not end";
}

TEST(ReportedStarts, WithoutKernelChTheyAreToldUnlessCuptiTellsThem) {
  EXPECT_EQ(Reports().ended().nothing().from(""), JobOps::kNeverReported);
  EXPECT_EQ(Reports().nothing().nothing().from("default 50"), 0);
}

// As a whole process is read.
TEST(ReportedStarts, AreGathered) {
  class OneProcess : public model::TraceSource {
   public:
    size_t processes() const override { return 1; }
    Result<void> load(size_t, model::Trace& trace) override {
      model::Process process;
      process.modes = trace.strings.intern("sample=1/200 50");
      trace.processes.append(process);
      trace.comms.append({});
      model::Op op;
      op.comm = 0;
      op.kind = model::number(model::EventKind::kColl);
      op.shape = trace.intern_shape({trace.strings.intern("AllReduce"), 0, 0, 0, 0});
      for (int i = 0; i < 3; ++i) {
        op.task = trace.tasks.append({});
        op.called_ns = 100 + i;
        op.peer = -1;
        op.gpu_start_ns = i == 0 ? 110 : 0;
        op.gpu_end_ns = i == 0 ? 120 : 0;
        trace.ops.append(op);
      }
      model::Channel channel;
      channel.task = 0;
      channel.kind = model::number(model::EventKind::kKernelCh);
      trace.channels.append(channel);
      return {};
    }
    void run_losses(model::Trace&) override {}
    std::string name() const override { return "one"; }
  } source;
  auto job = gather(source, {.threads = 1, .progress = {}});
  ASSERT_TRUE(job) << job.error().message();
  const JobOps& ops = job->processes[0].ops;
  ASSERT_EQ(ops.size(), 3u);
  EXPECT_FALSE(ops.is_start_reported(1));
  EXPECT_FALSE(ops.is_start_reported(2));
}

}  // namespace
}  // namespace lockstep::job::gather
