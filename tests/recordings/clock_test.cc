// SPDX-License-Identifier: Apache-2.0
// The alignment of clocks on a real job: eight ranks that NCCL saw as two hosts, which in truth share one
// clock. The recording is put into the model as it is, at its own times: a replay would move every rank by a
// delay of its own.
#include <gtest/gtest.h>

#include <algorithm>

#include "job/assemble/assembled_source.h"
#include "job/clock/clock.h"
#include "job/gather/gather.h"
#include "job/match/match.h"
#include "model/event_kind.h"
#include "nccl_host/tape.h"
#include "tests/support/places.h"

namespace lockstep {
namespace {

using model::EventKind;
using model::kNoRow;

constexpr int64_t kEpochNs = 1'700'000'000'000'000'000;  // at the recordings' monotonic 0

// Calls, tasks and channels of one tape; what lies below does not bear on the clock.
class TapeRows {
 public:
  TapeRows(const sim::Program& program, model::Trace& trace)
      : program_(program),
        trace_(trace),
        rows_(program.handle_count),
        comms_(program.context_count, kNoRow) {}

  void add(int32_t rank) {
    model::Process process;
    process.host = trace_.strings.intern("machine");
    process.host_id = trace_.strings.intern(rank < 4 ? "host0" : "host1");
    process.boot_id = trace_.strings.intern("boot");
    process.rank = rank;
    process.gpu_clock = static_cast<uint8_t>(model::GpuClock::kNvidiaNs);
    trace_.processes.append(process);
    for (size_t i = 0; i < program_.threads.size(); ++i) trace_.threads.append({});
    for (const sim::Call& call : program_.calls) add(call);
  }

 private:
  struct Row {
    EventKind kind = EventKind::kNone;
    uint32_t row = kNoRow;
  };

  void add(const sim::Call& call) {
    at_ns_ = kEpochNs + static_cast<int64_t>(call.when_ns);
    if (call.kind == sim::CallKind::kInit) {
      const sim::CommInfo& info = program_.comms[call.detail];
      model::Comm comm;
      comm.comm_id = info.id;
      comm.rank = info.rank;
      comm.ranks = info.ranks;
      comm.api_version = 5;
      comms_[call.context] = trace_.comms.append(comm);
    } else if (call.kind == sim::CallKind::kStart) {
      start(call, program_.starts[call.detail]);
    } else if (call.kind == sim::CallKind::kStop) {
      const Row& of = rows_[call.handle];
      if (of.kind == EventKind::kKernelCh)
        trace_.channels.stop_seen_ns[of.row] = at_ns_;
      else if (of.kind != EventKind::kNone && of.kind != EventKind::kColl)
        trace_.calls.end_ns[of.row] = at_ns_;
    } else if (call.kind == sim::CallKind::kState && rows_[call.handle].kind == EventKind::kKernelCh) {
      trace_.channels.gpu_stop[rows_[call.handle].row] = call.value;
    }
  }

  void start(const sim::Call& call, const sim::Start& start) {
    const auto& d = start.descriptor;
    switch (sim::event_index(d.type)) {
      case 0:
        return place(call, EventKind::kGroup, add_call(call, EventKind::kGroup));
      case 9: {
        uint32_t row = add_call(call, EventKind::kCollApi);
        trace_.calls.shape[row] = shape(d.coll_api.func, d.coll_api.datatype, "", d.coll_api.root);
        trace_.calls.count[row] = d.coll_api.count;
        return place(call, EventKind::kCollApi, row);
      }
      case 11:
        return place(call, EventKind::kKernelLaunch, add_call(call, EventKind::kKernelLaunch));
      case 1: {
        model::Task task{};
        task.thread = call.thread;
        task.comm = comms_[call.context];
        task.kind = model::number(EventKind::kColl);
        task.call = row_of(start.parent);
        task.plan = row_of(start.parent_group);
        task.shape = shape(d.coll.func, d.coll.datatype, d.coll.algo, d.coll.root);
        task.seq = d.coll.seq;
        task.count = d.coll.count;
        task.peer = -1;
        task.channels = d.coll.channels;
        task.start_ns = at_ns_;
        return place(call, EventKind::kColl, trace_.tasks.append(task));
      }
      case 6: {
        model::Channel channel{};
        channel.thread = call.thread;
        channel.comm = comms_[call.context];
        channel.task = row_of(start.parent);
        channel.kind = model::number(EventKind::kKernelCh);
        channel.channel = d.kernel_ch.channel;
        channel.gpu_start = d.kernel_ch.ptimer;
        channel.start_seen_ns = at_ns_;
        return place(call, EventKind::kKernelCh, trace_.channels.append(channel));
      }
      default:
        return;
    }
  }

  uint32_t add_call(const sim::Call& call, EventKind kind) {
    model::Call row{};
    row.thread = call.thread;
    row.comm = comms_[call.context];
    row.kind = model::number(kind);
    row.parent = row.shape = kNoRow;
    row.start_ns = at_ns_;
    return trace_.calls.append(row);
  }
  void place(const sim::Call& call, EventKind kind, uint32_t row) {
    if (call.handle != sim::kNone) rows_[call.handle] = {kind, row};
  }
  uint32_t row_of(uint32_t handle) const { return handle == sim::kNone ? kNoRow : rows_[handle].row; }
  uint32_t shape(const char* func, const char* datatype, const char* algo, int32_t root) {
    return trace_.intern_shape(
        {trace_.strings.intern(func), trace_.strings.intern(datatype), trace_.strings.intern(algo), 0, root});
  }

  const sim::Program& program_;
  model::Trace& trace_;
  std::vector<Row> rows_;        // by handle
  std::vector<uint32_t> comms_;  // by context
  int64_t at_ns_ = 0;
};

class TapeRun : public model::TraceSource {
 public:
  size_t processes() const override { return 8; }
  Result<void> load(size_t i, model::Trace& trace) override {
    LOCKSTEP_ASSIGN(sim::Program program,
                    sim::read_tape(std::string(LOCKSTEP_SOURCE_DIR "/examples/recordings/train2h/rank") +
                                   std::to_string(i) + ".jsonl.gz"));
    TapeRows(program, trace).add(static_cast<int32_t>(i));
    return {};
  }
  void run_losses(model::Trace&) override {}
  std::string name() const override { return "train2h"; }
};

TEST(RecordedClock, TwoHostsThatShareAClockAreProvenToAgree) {
  auto source = job::assemble::assembled(std::make_unique<TapeRun>());
  auto job = job::gather::gather(*source, {});
  ASSERT_TRUE(job) << job.error().message();
  job::match::align(*job);
  uint64_t matched = 0;
  for (const auto& counts : job::match::count_matches(*job)) matched += counts.matched;
  EXPECT_EQ(matched, 664u);
  EXPECT_TRUE(job::match::differences(*job).empty());

  std::vector<analysis::Finding> findings;
  job::clock::align(*job, findings);
  EXPECT_TRUE(findings.empty());
  ASSERT_EQ(job->hosts.size(), 2u);
  EXPECT_TRUE(job->hosts[1].clock.is_same());
  const model::HostClock& measured = job->hosts[1].measured;
  ASSERT_TRUE(measured.known());
  int64_t best = INT64_MAX, worst = 0;
  for (const model::HostClock::Knot& knot : measured.knots()) {
    EXPECT_LE(knot.low, 0);
    EXPECT_GE(knot.high, 0);
    best = std::min(best, (knot.high - knot.low) / 2);
    worst = std::max(worst, (knot.high - knot.low) / 2);
  }
  RecordProperty("best_half_width_us", static_cast<int>(best / 1000));
  RecordProperty("worst_half_width_us", static_cast<int>(worst / 1000));
  EXPECT_LT(best, 1'000'000);
}

}  // namespace
}  // namespace lockstep
