// SPDX-License-Identifier: Apache-2.0
// Turns a job into rows. Rows must be the same at every push, from whatever machine. So numbers of runs,
// processes and communicators are digests of what they are, never positions or times of the push. An
// operation has its first time on the reference host's clock; later ones are distances from it, which pack
// better.
#include "store/clickhouse/run_rows.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "base/hex.h"
#include "store/clickhouse/wire/digest.h"

namespace lockstep::store::clickhouse {
namespace {

using model::Job;
using model::JobOps;
using model::JobProcess;
using model::kNoIndex;
using model::kNoRow;

constexpr uint64_t as_number(int64_t value) { return static_cast<uint64_t>(value); }

// Files without Unix time, and damaged ones, have days of no year: what no Date holds is its first or last.
uint16_t day_of(int64_t ns) {
  constexpr int64_t kDayNs = 86'400'000'000'000;
  return static_cast<uint16_t>(std::clamp<int64_t>(ns / kDayNs, 0, UINT16_MAX));
}

std::string_view name(const Job& job, model::StringId id) {
  return job.text(id).substr(0, RunRows::kMostNameBytes);
}

// PIDs repeat, and files without a start time exist: rank and first record tell those apart.
Digest identity(const Job& job, const JobProcess& process) {
  const model::Process& row = process.row;
  Digest digest;
  digest.add(job.text(row.host))
      .add(job.text(row.boot_id))
      .add(as_number(row.pid))
      .add(as_number(row.start_ns));
  return digest.add(as_number(row.rank)).add(as_number(row.first_ns));
}

// Whose identity stands for that of the run: files that came later, or could not be read, leave it alone.
auto earliest_first(const Job& job, const JobProcess& process) {
  const model::Process& row = process.row;
  const int64_t first_ns = row.first_ns == 0 ? INT64_MAX : row.first_ns;
  return std::tuple(first_ns, row.rank, job.text(row.boot_id), row.pid, row.start_ns, job.text(row.host));
}

// 0: unknown, or further apart than a number can say.
int64_t after(int64_t ns, int64_t begin_ns) {
  int64_t distance = 0;
  return ns == 0 || begin_ns == 0 || __builtin_sub_overflow(ns, begin_ns, &distance) ? 0 : distance;
}

uint64_t rounded(double value) {
  constexpr double kMost = 1e19;  // below 2^64
  return value > 0 ? static_cast<uint64_t>(std::round(std::min(value, kMost))) : 0;
}

// Hosts of a communicator: as NCCL says, else of the members that are there.
int32_t nodes_of(const Job& job, const model::JobComm& comm) {
  if (comm.nodes > 0) return comm.nodes;
  std::set<std::string_view> hosts;
  for (const uint32_t member : comm.members)
    if (member != kNoRow) hosts.insert(job.text(job.processes[job.members[member].process].row.host));
  return static_cast<int32_t>(hosts.size());
}

// Which of a process' operations have the same index on the same communicator.
class Repeats {
 public:
  uint32_t count(uint32_t index) {
    // Indexes ascend, so only what falls back needs the map: nearly every operation costs one comparison.
    if (!next_ || index >= *next_) {
      next_ = uint64_t{index} + 1;
      return 0;
    }
    return ++repeats_[index];
  }

 private:
  std::optional<uint64_t> next_;
  std::map<uint32_t, uint32_t> repeats_;
};

struct Place {
  uint32_t member = 0;
  int32_t peer = -1;
  bool is_send = false;
};

}  // namespace

RunRows::RunRows(const FleetRun& run) : run_(run), job_(*run.job) {
  std::map<uint64_t, uint64_t> seen;
  const JobProcess* earliest = nullptr;
  for (const JobProcess& process : job_.processes) {
    Digest digest = identity(job_, process);
    const uint64_t number = digest.value();
    // Two files of one process, or damaged ones, may have one identity; their rows must not replace each
    // other.
    processes_.push_back(seen[number]++ == 0 ? number : digest.add(seen[number]).value());
    if (earliest == nullptr || earliest_first(job_, process) < earliest_first(job_, *earliest))
      earliest = &process;
    const model::Process& row = process.row;
    if (row.first_ns != 0)
      started_ns_ = started_ns_ == 0 ? row.first_ns : std::min(started_ns_, row.first_ns);
    ended_ns_ = std::max(ended_ns_, row.last_ns);
  }
  // push() has refused a run without a process.
  LOCKSTEP_CHECK(earliest != nullptr);
  run_number_ = identity(job_, *earliest).add("run").value();
  day_ = day_of(started_ns_);
  for (uint32_t i = 0; i < job_.comms.size(); ++i) {
    const model::JobComm& comm = job_.comms[i];
    Digest digest;
    digest.add(comm.comm_id).add(as_number(comm.ranks));
    // Without an id there is nothing that is equal in other runs: it gets a number of this run alone.
    if (comm.comm_id == 0) digest.add(run_number_).add(i);
    comms_.push_back(digest.value());
  }
}

Result<void> RunRows::send(Batches& batches, const std::function<void(double)>& progress) const {
  LOCKSTEP_TRY(send_processes(batches));
  LOCKSTEP_TRY(send_comms(batches));
  LOCKSTEP_TRY(send_ops(batches, progress));
  LOCKSTEP_TRY(send_rollups(batches));
  LOCKSTEP_TRY(send_findings(batches));
  LOCKSTEP_TRY(send_losses(batches));
  // Last, so that who finds a run in `runs` finds all of it.
  return send_run(batches);
}

Result<void> RunRows::send_processes(Batches& batches) const {
  for (size_t i = 0; i < job_.processes.size(); ++i) {
    const JobProcess& process = job_.processes[i];
    const model::Process& row = process.row;
    LOCKSTEP_ASSIGN(BlockWriter * block, batches.row(TableId::kProcesses, day_));
    block->number(day_).number(run_number_).number(processes_[i]).number(as_number(row.rank));
    block->text(job_.text(row.host)).text(job_.text(row.boot_id)).number(as_number(row.pid));
    block->text(job_.text(row.gpu_model)).text(job_.text(row.uuid)).text(job_.text(row.pci));
    block->number(as_number(row.nccl_version)).number(as_number(row.first_ns)).number(as_number(row.last_ns));
    block->number(row.closed).number(process.ops.size()).number(process.lost);
  }
  return batches.finish(TableId::kProcesses);
}

Result<void> RunRows::send_comms(Batches& batches) const {
  for (uint32_t i = 0; i < job_.comms.size(); ++i) {
    const model::JobComm& comm = job_.comms[i];
    std::vector<int32_t> members;
    const auto rank_of = [&](uint32_t member) {
      return member == kNoRow ? -1 : job_.processes[job_.members[member].process].row.rank;
    };
    for (const uint32_t member : comm.members) members.push_back(rank_of(member));
    for (const uint32_t member : comm.unranked) members.push_back(rank_of(member));
    LOCKSTEP_ASSIGN(BlockWriter * block, batches.row(TableId::kComms, day_));
    block->number(day_).number(run_number_).number(comms_[i]);
    block->text(comm.comm_id == 0 ? std::string() : hex16(comm.comm_id)).text(job_.text(comm.name));
    block->number(as_number(comm.ranks)).number(as_number(comm.nodes)).numbers(members);
  }
  return batches.finish(TableId::kComms);
}

Result<void> RunRows::send_ops(Batches& batches, const std::function<void(double)>& progress) const {
  uint64_t all = 0, made = 0;
  for (const JobProcess& process : job_.processes) all += process.ops.size();
  for (uint32_t i = 0; i < job_.processes.size(); ++i) {
    LOCKSTEP_TRY(send_ops_of(i, batches));
    made += job_.processes[i].ops.size();
    if (progress && all > 0) progress(static_cast<double>(made) / static_cast<double>(all));
  }
  return batches.finish(TableId::kOps);
}

Result<void> RunRows::send_ops_of(uint32_t process, Batches& batches) const {
  const JobProcess& of = job_.processes[process];
  const JobOps& ops = of.ops;
  std::map<std::tuple<uint32_t, int32_t, bool>, Repeats> repeats;
  const auto send = [&](size_t i, const Place& place, Repeats& repeated) -> Result<void> {
    const model::Signature& signature = job_.signatures[ops.signature[i]];
    const uint32_t comm = job_.members[place.member].comm;
    int64_t entered_ns = ops.entered_ns(i), clock_error_ns = -1;
    // Recordings of the GPU alone have no host times.
    if (entered_ns == 0) entered_ns = ops.gpu_start_ns[i] != 0 ? ops.gpu_start_ns[i] : ops.gpu_end_ns[i];
    int64_t common_ns = entered_ns;
    // A host that is not aligned keeps its own time, with an error of -1: unknown.
    if (const auto common = entered_ns == 0 ? std::nullopt : job_.common_ns(process, entered_ns)) {
      common_ns = common->ns;
      clock_error_ns = common->half_width_ns;
    }
    // On the common clock, so that one operation is in one partition for all of its ranks.
    const uint16_t day = day_of(common_ns);
    LOCKSTEP_ASSIGN(BlockWriter * block, batches.row(TableId::kOps, day));
    block->number(day).number(run_number_).number(comms_[comm]).number(signature.kind);
    block->number(ops.index[i]).number(as_number(of.row.rank)).number(processes_[process]);
    block->number(as_number(place.peer)).number(2 * repeated.count(ops.index[i]) + (place.is_send ? 1 : 0));
    block->text(name(job_, of.row.host))
        .text(name(job_, signature.func))
        .text(name(job_, signature.datatype));
    block->text(name(job_, signature.algo))
        .text(name(job_, signature.proto))
        .number(as_number(signature.root));
    block->number(signature.channels).number(ops.seq[i] == kNoIndex ? as_number(-1) : ops.seq[i]);
    block->number(signature.count).number(signature.bytes).number(ops.comms_id(i));
    block->number(as_number(common_ns)).number(as_number(clock_error_ns));
    block->number(as_number(after(ops.enqueued_ns[i], entered_ns)));
    block->number(as_number(after(ops.launched_ns[i], entered_ns)));
    block->number(as_number(after(ops.gpu_start_ns[i], entered_ns)));
    block->number(as_number(after(ops.gpu_end_ns[i], ops.gpu_start_ns[i])));
    block->number(ops.gpu_source[i]).number(as_number(ops.gpu_error_ns[i]));
    return {};
  };
  for (const uint32_t row : of.members) {
    const model::Member& member = job_.members[row];
    const auto repeats_of = [&](const Place& place) -> Repeats& {
      return repeats[{member.comm, place.peer, place.is_send}];
    };
    const Place place{.member = row};
    for (uint32_t i = member.first; i < member.first + member.ops; ++i)
      LOCKSTEP_TRY(send(i, place, repeats_of(place)));
    for (const model::Lane& lane : member.lanes) {
      const Place of_lane{row, lane.peer, lane.is_send};
      for (uint32_t i = lane.first; i < lane.first + lane.ops; ++i)
        LOCKSTEP_TRY(send(i, of_lane, repeats_of(of_lane)));
    }
  }
  return {};
}

Result<void> RunRows::send_rollups(Batches& batches) const {
  std::vector<int32_t> nodes;
  for (const model::JobComm& comm : job_.comms) nodes.push_back(nodes_of(job_, comm));
  for (const model::Rollup& from : run_.rollups) {
    const JobProcess& process = job_.processes[from.process];
    const model::JobComm& comm = job_.comms[from.comm];
    // DateTime is seconds in 32 bits.
    const int64_t minute = std::clamp<int64_t>(from.minute, 0, UINT32_MAX / 60);
    const auto day = static_cast<uint16_t>(minute / (24 * 60));
    LOCKSTEP_ASSIGN(BlockWriter * block, batches.row(TableId::kRollups, day));
    block->number(day).number(run_number_).number(as_number(minute * 60)).number(processes_[from.process]);
    block->number(comms_[from.comm]).number(from.kind).text(job_.text(from.func)).text(job_.text(from.algo));
    block->text(job_.text(from.proto)).number(from.size_bits).number(as_number(process.row.rank));
    block->text(name(job_, process.row.host)).text(name(job_, process.row.gpu_model));
    block->number(as_number(process.row.nccl_version));
    block->number(comm.ranks > 0 ? as_number(comm.ranks) : comm.members.size());
    block->number(as_number(nodes[from.comm])).number(from.ops).number(from.bytes).number(from.timed);
    block->number(as_number(from.gpu_ns)).number(from.compared).number(rounded(from.waited_ns));
    block->number(from.late_ops).number(rounded(from.blamed_ns)).number(from.moved_ops);
    block->number(rounded(from.bus_bytes)).number(rounded(from.moving_ns));
    for (const model::Bins* bins : {&from.late_ns, &from.busbw_mbps}) {
      std::vector<int32_t> numbers, counts;
      for (const auto& [bin, count] : bins->counts()) {
        numbers.push_back(bin);
        // Arrays are Int32 in all tables.
        counts.push_back(static_cast<int32_t>(std::min<uint32_t>(count, INT32_MAX)));
      }
      block->numbers(numbers).numbers(counts);
    }
  }
  return batches.finish(TableId::kRollups);
}

Result<void> RunRows::send_findings(Batches& batches) const {
  for (size_t i = 0; i < run_.findings.size(); ++i) {
    const FleetFinding& finding = run_.findings[i];
    LOCKSTEP_ASSIGN(BlockWriter * block, batches.row(TableId::kFindings, day_));
    block->number(day_).number(run_number_).number(i).text(finding.id).text(finding.finding_class);
    block->text(finding.severity).number(finding.is_verdict).text(finding.statement).numbers(finding.ranks);
    block->texts(finding.hosts).number(finding.comm ? comms_[*finding.comm] : 0).text(finding.comm_name);
    block->text(finding.func).number(finding.op_index ? *finding.op_index : as_number(-1));
    block->number(finding.comms_id).number(as_number(finding.since_ns)).real(finding.effect);
    block->real(finding.effect_low)
        .real(finding.effect_high)
        .text(finding.effect_unit)
        .texts(finding.evidence);
    block->text(finding.advice).text(finding.needed_evidence);
  }
  return batches.finish(TableId::kFindings);
}

Result<void> RunRows::send_losses(Batches& batches) const {
  for (size_t i = 0; i < job_.losses.size(); ++i) {
    const model::Loss loss = job_.losses.row(i);
    LOCKSTEP_ASSIGN(BlockWriter * block, batches.row(TableId::kLosses, day_));
    block->number(day_).number(run_number_).number(i);
    block->number(loss.process < processes_.size() ? processes_[loss.process] : 0);
    block->text(job_.text(loss.stage))
        .text(job_.text(loss.kind))
        .number(loss.count)
        .text(job_.text(loss.detail));
  }
  return batches.finish(TableId::kLosses);
}

Result<void> RunRows::send_run(Batches& batches) const {
  std::set<std::string> hosts, models;
  std::set<int32_t> versions;
  std::string_view job_id;
  uint64_t ops = 0, lost = 0;
  for (const JobProcess& process : job_.processes) {
    const model::Process& row = process.row;
    hosts.emplace(job_.text(row.host));
    if (const std::string_view model = job_.text(row.gpu_model); !model.empty()) models.emplace(model);
    if (row.nccl_version != 0) versions.insert(row.nccl_version);
    if (job_id.empty()) job_id = job_.text(row.job);
    ops += process.ops.size();
    lost += process.lost;
  }
  const auto verdict = std::find_if(run_.findings.begin(), run_.findings.end(),
                                    [](const FleetFinding& finding) { return finding.is_verdict; });
  // A healthy run has empty texts as its verdict.
  const FleetFinding none{}, &found = verdict == run_.findings.end() ? none : *verdict;
  const auto texts = [](const std::set<std::string>& all) {
    return std::vector<std::string>(all.begin(), all.end());
  };
  LOCKSTEP_ASSIGN(BlockWriter * block, batches.row(TableId::kRuns, day_));
  block->number(day_).number(run_number_).text(run_.name).text(job_id);
  block->number(as_number(started_ns_)).number(as_number(ended_ns_)).number(job_.processes.size());
  block->number(as_number(job_.expected_ranks)).texts(texts(hosts)).texts(texts(models));
  block->numbers(std::vector<int32_t>(versions.begin(), versions.end())).number(ops).number(lost);
  block->text(found.id).text(found.finding_class).text(found.statement).text(run_.lockstep_version);
  block->number(kSchema);
  return batches.finish(TableId::kRuns);
}

}  // namespace lockstep::store::clickhouse
