// SPDX-License-Identifier: Apache-2.0
// A job to push, for tests.
#pragma once
#include <string_view>

#include "store/fleet.h"

namespace lockstep::store::clickhouse {

// Two ranks on one communicator, with collectives and a send; names that would break out of any quotes.
class FleetJob {
 public:
  static constexpr int64_t kDayNs = 86'400'000'000'000, kStart = 19'000 * kDayNs + 500;
  static constexpr std::string_view kHost{"node'1`; DROP TABLE x\0\xff\"\\", 25};

  // Times lie on two days, so that operations and rollups go to two partitions. The job outlives its run.
  FleetJob() {
    const model::StringId host = job.strings.intern(kHost);
    job.hosts.resize(1);
    job.hosts[0].clock = model::HostClock::same();
    const auto all_reduce = job.strings.intern("AllReduce"), send = job.strings.intern("Send");
    job.signatures = {{.func = all_reduce, .kind = 2, .count = 4, .bytes = 16},
                      {.func = send, .kind = 3, .bytes = 8}};
    model::JobComm& comm = job.comms.emplace_back();
    comm.comm_id = 0xabc;
    comm.name = job.strings.intern("dp");
    comm.ranks = 2;
    for (int32_t rank : {0, 1}) {
      model::JobProcess& process = job.processes.emplace_back();
      process.row.host = host;
      process.row.rank = rank;
      process.row.pid = 100 + rank;
      process.row.first_ns = kStart;
      process.row.last_ns = kStart + kDayNs;
      process.members = {static_cast<uint32_t>(rank)};
      comm.members.push_back(static_cast<uint32_t>(rank));
      model::Member& member = job.members.emplace_back();
      member.process = static_cast<uint32_t>(rank);
      member.rank = rank;
      member.ops = 3;
      for (uint32_t i = 0; i < 3; ++i) op(process, 0, i, kStart + i * kDayNs / 2);
      member.lanes = {{.peer = 1 - rank, .is_send = false, .first = 3, .ops = 1},
                      {.peer = 1 - rank, .is_send = true, .first = 4, .ops = 1}};
      for (int i = 0; i < 2; ++i) op(process, 1, 0, kStart + 7);
    }
    job.losses.append({0, job.strings.intern("read"), job.strings.intern("cut"), 5, 0});
    FleetFinding finding;
    finding.id = "host-late";
    finding.is_verdict = true;
    finding.statement = "rank 1 is late";
    finding.ranks = {1};
    finding.hosts = {"a", ""};
    finding.comm = 0;
    run.findings = {finding, {}};
    for (const int64_t day : {19'000, 19'001}) {
      model::Rollup& rollup = run.rollups.emplace_back();
      rollup.minute = day * 24 * 60 + 7;
      rollup.process = 1;
      rollup.func = all_reduce;
      rollup.size_bits = 5;
      rollup.ops = rollup.compared = rollup.late_ops = 3;
      rollup.bytes = 48;
      rollup.blamed_ns = 1e9 + 0.4;
      for (const double late : {0.0, 1e6, 1e6}) rollup.late_ns.add(late);
    }
    run.job = &job;
    run.name = "run'; --";
  }
  // All times but the call's are 10 ns after it: what is compared is where they land, not what they are.
  void op(model::JobProcess& process, uint32_t signature, uint32_t index, int64_t called_ns) {
    model::JobOps& ops = process.ops;
    ops.signature.push_back(signature);
    ops.index.push_back(index);
    ops.seq.push_back(index);
    ops.called_ns.push_back(called_ns);
    for (auto* column : {&ops.enqueued_ns, &ops.launched_ns, &ops.gpu_start_ns, &ops.gpu_end_ns})
      column->push_back(called_ns + 10);
    ops.gpu_error_ns.push_back(3);
    ops.flags.push_back(0);
    ops.gpu_source.push_back(1);
  }
  model::Job job;
  FleetRun run;
};

}  // namespace lockstep::store::clickhouse
