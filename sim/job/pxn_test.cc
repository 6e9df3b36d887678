// SPDX-License-Identifier: Apache-2.0
// Verdicts about networks where each process drives that of its neighbour, as with PXN: what is said has to
// be of the process whose data it was, not of the one whose thread moved it.
#include <gtest/gtest.h>

#include <algorithm>

#include "analysis/analysis.h"
#include "base/temporary_directory.h"
#include "job/assemble/assembled_source.h"
#include "job/gather/gather.h"
#include "job/job.h"
#include "readers/reader.h"
#include "tests/support/sanitizers.h"

namespace lockstep::sim::job {
namespace {

using model::Trace;

constexpr size_t kRanks = 16, kRanksPerHost = 4;

// The neighbour of a process on its host, whose network it drives.
size_t served_by(size_t process) {
  return process / kRanksPerHost * kRanksPerHost + (process + 1) % kRanksPerHost;
}

class PxnRun : public model::TraceSource {
 public:
  explicit PxnRun(model::TraceSource& source) : source_(source) {}
  size_t processes() const override { return source_.processes(); }
  Result<void> load(size_t i, Trace& trace) override {
    Trace other;
    LOCKSTEP_TRY(source_.load(i, trace));
    LOCKSTEP_TRY(source_.load(served_by(i), other));
    model::ProxyOpTable& ops = other.proxy_ops;
    for (size_t op = 0; op < ops.size(); ++op) {
      ops.context[op] = other.comms.context[ops.comm[op]];
      ops.originator_pid[op] = other.processes.pid[0];
      ops.comm[op] = ops.task[op] = model::kNoRow;
      ops.thread[op] = 0;
    }
    trace.proxy_ops = std::move(other.proxy_ops);
    trace.proxy_steps = std::move(other.proxy_steps);
    trace.net_events = std::move(other.net_events);
    return {};
  }
  void run_losses(Trace& trace) override { source_.run_losses(trace); }
  std::string name() const override { return source_.name(); }

 private:
  model::TraceSource& source_;
};

analysis::Diagnosis judged(model::TraceSource& source) {
  auto job = lockstep::job::gather::gather(source, {.threads = 1, .progress = {}});
  EXPECT_TRUE(job);
  for (size_t i = 0; i < job->losses.size(); ++i) EXPECT_NE(job->text(job->losses.kind[i]), "foreign_parent");
  return analysis::diagnose(*job);
}

TEST(PxnJobs, SlowCardsAreNamedAsWithoutIt) {
  for (uint64_t seed = 1; seed <= (test::kSanitized ? 2 : 20); ++seed) {
    const TemporaryDirectory own = std::move(TemporaryDirectory::make().value());
    JobOptions options;
    options.seed = seed;
    options.layout.ranks = kRanks;
    options.layout.tp = 2;
    options.layout.ranks_per_host = kRanksPerHost;
    options.steps = 6;
    options.mode = format::Mode::kDeep;
    options.fault = "slow-nic";
    Job job = std::move(Job::make(options).value());
    ASSERT_TRUE(write_run(job, own.path() + "/run", 1));
    auto files = readers::open({own.path() + "/run"});
    ASSERT_TRUE(files) << files.error().message();
    const auto source = lockstep::job::assemble::assembled(std::move(*files));
    PxnRun pxn(*source);
    const analysis::Diagnosis plain = judged(*source), through = judged(pxn);
    ASSERT_TRUE(plain.verdict && through.verdict) << seed;
    const analysis::Finding& expected = plain.findings[*plain.verdict];
    const analysis::Finding& verdict = through.findings[*through.verdict];
    EXPECT_EQ(class_text(class_of(verdict.id)), "slow-nic") << seed << ": " << verdict.statement;
    EXPECT_EQ(verdict.ranks, job.fault.truth.ranks) << seed << ": " << verdict.statement;
    // Of what one process moves for another, the operation is not known.
    std::string same = expected.statement;
    if (const size_t at = same.find("AllReduce transfers"); at != std::string::npos) same.erase(at, 10);
    EXPECT_EQ(verdict.statement, same) << seed;
  }
}

}  // namespace
}  // namespace lockstep::sim::job
