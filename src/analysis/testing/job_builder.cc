// SPDX-License-Identifier: Apache-2.0
#include "analysis/testing/job_builder.h"

#include <algorithm>

#include "job/match/match.h"

namespace lockstep::analysis::testing {
namespace {

int64_t ns_or_none(double ms) { return ms < 0 ? 0 : at_ms(ms); }

}  // namespace

JobBuilder::JobBuilder(uint32_t ranks, uint32_t per_host)
    : per_host_(per_host == 0 ? ranks : per_host),
      processes_(ranks),
      absent_(ranks),
      last_ms_(ranks),
      buckets_(ranks) {
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    model::Process& row = processes_[rank].row;
    row.rank = static_cast<int32_t>(rank);
    row.world = static_cast<int32_t>(ranks);
    row.local_rank = static_cast<int32_t>(rank % per_host_);
    row.gpu = row.rank;
    row.device = row.local_rank;
    row.pid = 1000 + rank;
    row.host = text("node" + std::to_string(rank / per_host_));
    row.closed = 1;
    row.retention = 1;  // as capture of our own
    row.start_ns = row.first_ns = kStart;
  }
}

uint32_t JobBuilder::comm(const std::string& name, const std::vector<uint32_t>& ranks) {
  uint32_t number = static_cast<uint32_t>(comms_.size());
  comms_.push_back({name, ranks});
  for (uint32_t rank : ranks) members_.emplace(std::pair(number, rank), 0);
  return number;
}

uint32_t JobBuilder::world(const std::string& name) {
  std::vector<uint32_t> ranks(processes_.size());
  for (uint32_t rank = 0; rank < ranks.size(); ++rank) ranks[rank] = rank;
  return comm(name, ranks);
}

void JobBuilder::leave_out(uint32_t comm, uint32_t rank) { members_.erase({comm, rank}); }

void JobBuilder::call(uint32_t rank, uint32_t comm, const Call& call) {
  buckets_[rank][{comm, call.peer, call.peer >= 0 && call.func == "Send"}].calls.push_back(call);
  last_ms_[rank] = std::max({last_ms_[rank], call.called_ms, call.replayed_ms, call.gpu_end_ms});
  if (call.replayed_ms >= 0) processes_[rank].graphs = true;
}

void JobBuilder::steps(uint32_t comm, uint32_t count, double first_ms, double every_ms, double gpu_ms) {
  for (uint32_t rank : comms_[comm].ranks) {
    for (uint32_t i = 0; i < count; ++i) {
      Call step{.called_ms = first_ms + every_ms * i};
      if (gpu_ms > 0) {
        step.gpu_start_ms = step.called_ms + 0.01;
        step.gpu_end_ms = step.gpu_start_ms + gpu_ms;
      }
      call(rank, comm, step);
    }
  }
}

void JobBuilder::heartbeat(uint32_t rank, double ms) { processes_[rank].row.heartbeat_ns = at_ms(ms); }
void JobBuilder::killed(uint32_t rank) { processes_[rank].row.closed = 0; }
void JobBuilder::all_killed_at(double ms) {
  for (uint32_t rank = 0; rank < processes_.size(); ++rank) {
    heartbeat(rank, ms);
    killed(rank);
  }
}
void JobBuilder::finalized(uint32_t comm, uint32_t rank, double ms) { finalized_[{comm, rank}] = ms; }

void JobBuilder::without(uint32_t rank) {
  absent_[rank] = true;
  for (uint32_t comm = 0; comm < comms_.size(); ++comm) leave_out(comm, rank);
}

uint32_t JobBuilder::signature(model::Job& job, const Call& call) {
  model::Signature wanted{
      .func = job.strings.intern(call.func),
      .datatype = job.strings.intern(call.datatype),
      .algo = job.strings.intern(call.algo),
      .proto = job.strings.intern(call.proto),
      .root = call.root,
      .kind = model::number(call.peer < 0 ? model::EventKind::kColl : model::EventKind::kP2p),
      .channels = 1,
      .count = call.bytes / 4,
      .bytes = call.bytes};
  auto at = std::find(job.signatures.begin(), job.signatures.end(), wanted);
  if (at == job.signatures.end()) at = job.signatures.insert(at, wanted);
  return static_cast<uint32_t>(at - job.signatures.begin());
}

void JobBuilder::append(model::Job& job, model::JobOps& ops, const Call& call, uint32_t index, uint32_t seq) {
  bool timed = call.gpu_start_ms >= 0;
  ops.signature.push_back(signature(job, call));
  ops.index.push_back(index);
  ops.seq.push_back(seq);
  ops.called_ns.push_back(ns_or_none(call.called_ms));
  const bool replay = call.replayed_ms >= 0;
  ops.enqueued_ns.push_back(ns_or_none(replay ? call.replayed_ms : call.called_ms));
  const double launched_ms = call.launched_ms < 0 ? call.called_ms + 0.005 : call.launched_ms;
  ops.launched_ns.push_back(replay ? 0 : ns_or_none(launched_ms));
  ops.gpu_start_ns.push_back(ns_or_none(call.gpu_start_ms));
  ops.gpu_end_ns.push_back(ns_or_none(call.gpu_end_ms));
  ops.gpu_error_ns.push_back(timed ? 1000 : -1);
  ops.flags.push_back(replay ? model::kFlagGraphCaptured : 0);
  ops.gpu_source.push_back(
      static_cast<uint8_t>(timed ? model::GpuTimeSource::kCupti : model::GpuTimeSource::kNone));
}

void JobBuilder::lay_out(model::Job& job, uint32_t rank, uint32_t process) {
  model::JobProcess& of = job.processes[process];
  for (uint32_t comm = 0; comm < comms_.size(); ++comm) {
    auto at = members_.find({comm, rank});
    if (at == members_.end()) continue;
    model::Member& member = job.members[at->second];
    of.members.push_back(at->second);
    member.process = process;
    member.first = static_cast<uint32_t>(of.ops.size());
    for (const auto& [key, bucket] : buckets_[rank]) {
      auto [bucket_comm, peer, is_send] = key;
      if (bucket_comm != comm) continue;
      uint32_t first = static_cast<uint32_t>(of.ops.size()), index = 0;
      std::map<std::string, uint32_t> next;
      for (const Call& call : bucket.calls) {
        uint32_t seq = peer >= 0                     ? model::kNoIndex
                       : call.seq != model::kNoIndex ? call.seq
                                                     : next[call.func]++;
        append(job, of.ops, call, index++, seq);
      }
      if (peer < 0) {
        member.first = first;
        member.ops = index;
      } else {
        member.lanes.push_back({.peer = peer, .is_send = is_send, .first = first, .ops = index});
      }
    }
  }
}

model::Job JobBuilder::build(bool one_clock) {
  model::Job job;
  job.strings = std::move(strings_);
  job.expected_ranks = static_cast<int32_t>(processes_.size());
  for (uint32_t comm = 0; comm < comms_.size(); ++comm) {
    model::JobComm row;
    row.comm_id = 0x1000 + comm;
    row.name = job.strings.intern(comms_[comm].name);
    row.ranks = static_cast<int32_t>(comms_[comm].ranks.size());
    row.members.resize(comms_[comm].ranks.size(), model::kNoRow);
    for (uint32_t i = 0; i < comms_[comm].ranks.size(); ++i) {
      auto at = members_.find({comm, comms_[comm].ranks[i]});
      if (at == members_.end()) continue;
      row.members[i] = at->second = static_cast<uint32_t>(job.members.size());
      model::Member& member = job.members.emplace_back();
      member.comm = comm;
      member.rank = static_cast<int32_t>(i);
      member.init_ns = kStart;
      auto end = finalized_.find(at->first);
      if (end != finalized_.end()) member.end_ns = at_ms(end->second);
    }
    job.comms.push_back(std::move(row));
  }
  for (uint32_t rank = 0; rank < processes_.size(); ++rank) {
    if (absent_[rank]) continue;
    model::JobProcess& process = job.processes.emplace_back(std::move(processes_[rank]));
    uint32_t host = rank / per_host_;
    process.row.boot_id = job.strings.intern("boot" + std::to_string(one_clock ? 0 : host));
    process.row.last_ns = at_ms(last_ms_[rank]);
    if (process.row.heartbeat_ns == 0) process.row.heartbeat_ns = at_ms(last_ms_[rank] + 500);
    while (job.hosts.size() <= host) {
      model::StringId boot = job.strings.intern("boot" + std::to_string(one_clock ? 0 : job.hosts.size()));
      job.hosts.push_back({.name = job.strings.intern("node" + std::to_string(job.hosts.size())),
                           .boot_id = boot,
                           .clock = {},
                           .contradictions = 0});
      if (boot == job.hosts.front().boot_id) job.hosts.back().clock = model::HostClock::same();
    }
    process.host = host;
    lay_out(job, rank, static_cast<uint32_t>(job.processes.size() - 1));
  }
  job::match::align(job);
  return job;
}

}  // namespace lockstep::analysis::testing
