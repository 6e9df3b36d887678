// SPDX-License-Identifier: Apache-2.0
// Names an operation the same way everywhere, by its place among its communicator's operations from 0, which
// is equal on all ranks. NCCL's number of the function is added where it names this operation alone: people
// look for it in other tools.
#include "analysis/operation_name.h"

#include <algorithm>
#include <set>

#include "base/text/wording.h"

namespace lockstep::analysis {
namespace {

using model::Job;

// Where an operation of a process belongs.
struct Place {
  const model::Member* member = nullptr;
  const model::Lane* lane = nullptr;  // of a send or receive
};

Place place_of(const Job& job, uint32_t process, uint32_t op) {
  const auto holds = [op](const auto& range) { return op >= range.first && op - range.first < range.ops; };
  for (const uint32_t row : job.processes[process].members) {
    const model::Member& member = job.members[row];
    if (holds(member)) return {&member, nullptr};
    const auto lane = std::find_if(member.lanes.begin(), member.lanes.end(), holds);
    if (lane != member.lanes.end()) return {&member, &*lane};
  }
  return {};
}

std::optional<uint64_t> number_of_func(const Job& job, const model::Member& member, uint32_t op) {
  const model::JobProcess& process = job.processes[member.process];
  if (process.graphs) return std::nullopt;  // replays repeat the number
  const model::JobOps& ops = process.ops;
  // Without NCCL's number it is counted, which needs every operation since the first.
  if (ops.seq[op] != model::kNoIndex) return ops.seq[op];
  if (member.alignment != model::Member::Alignment::kFromStart || ops.index[op] != op - member.first)
    return std::nullopt;
  const auto func = [&](uint32_t i) { return job.signatures[ops.signature[i]].func; };
  uint64_t before = 0;
  for (uint32_t i = member.first; i < op; ++i) before += func(i) == func(op);
  return before;
}

// Whether it spans all ranks that the job has, as far as anything shows.
bool is_world(const Job& job, uint32_t comm) {
  const int32_t ranks = job.comms[comm].ranks;
  // A launcher's count, a larger communicator or more processes each show a rank outside it.
  const auto is_larger = [ranks](const model::JobComm& other) { return other.ranks > ranks; };
  if (ranks < 1 || ranks < job.expected_ranks || std::any_of(job.comms.begin(), job.comms.end(), is_larger))
    return false;
  std::set<int32_t> known;
  size_t unknown = 0;
  for (const model::JobProcess& process : job.processes) {
    if (process.row.rank >= 0)
      known.insert(process.row.rank);
    else
      ++unknown;
  }
  return known.size() + unknown <= static_cast<size_t>(ranks);
}

std::string rank_name(const Job& job, uint32_t comm, int32_t rank) {
  const std::vector<uint32_t>& members = job.comms[comm].members;
  const uint32_t row = rank >= 0 && static_cast<size_t>(rank) < members.size()
                           ? members[static_cast<size_t>(rank)]
                           : model::kNoRow;
  if (row != model::kNoRow) return job.process_name(job.members[row].process);
  if (rank < 0) return "an unknown rank";
  // A communicator's rank is the job's only where it holds all of them.
  return (is_world(job, comm) ? "rank " : "member ") + std::to_string(rank);
}

}  // namespace

std::string OperationName::text() const {
  std::string text = source.empty() ? "operation " + std::to_string(index) + " of " + comm
                                    : "transfer " + std::to_string(index) + " from " + source + " to " +
                                          target + " on " + comm;
  if (func.empty()) return text;
  return text + " (" + (of_func ? "its " + wording::ordinal(*of_func + 1) + " " : "") + func + ")";
}

OperationName operation_name(const Job& job, uint32_t process, uint32_t op) {
  const model::JobOps& ops = job.processes[process].ops;
  OperationName name;
  name.func = wording::name(job.text(job.signatures[ops.signature[op]].func));
  name.index = ops.index[op];
  const Place place = place_of(job, process, op);
  if (place.member == nullptr) return name;
  name.comm = comm_text(job, place.member->comm);
  if (place.lane == nullptr) {
    name.of_func = number_of_func(job, *place.member, op);
    return name;
  }
  // Both ends are named from this process's record, so one of them need not be in the run.
  name.source = job.process_name(process);
  name.target = rank_name(job, place.member->comm, place.lane->peer);
  if (!place.lane->is_send) std::swap(name.source, name.target);
  return name;
}

std::string comm_text(const Job& job, uint32_t comm) {
  const model::JobComm& row = job.comms[comm];
  std::string name = wording::name(job.comm_name(comm));
  if (row.name != 0) return name;
  if (is_world(job, comm)) return row.comm_id == 0 ? "world" : "world " + name;
  const std::string size =
      row.ranks > 0 ? " of " + wording::count(static_cast<uint64_t>(row.ranks), "rank") : std::string();
  return (row.comm_id == 0 ? "a communicator without a name" : name) + size;
}

void name_operation(const Job& job, uint32_t process, uint32_t op, Finding& finding) {
  const model::JobOps& ops = job.processes[process].ops;
  const Place place = place_of(job, process, op);
  if (place.member == nullptr) return;
  finding.comm = job.comm_name(place.member->comm);
  finding.comm_row = place.member->comm;
  finding.func = job.text(job.signatures[ops.signature[op]].func);
  finding.op_index = ops.index[op];
  finding.operation = operation_name(job, process, op).text();
  finding.op_address = std::to_string(ops.index[op]);
  if (const uint64_t id = ops.comms_id(op); id != 0) finding.comms_id = id;
  if (place.lane == nullptr) return;
  const std::string own = std::to_string(place.member->rank), peer = std::to_string(place.lane->peer);
  const std::string pair = place.lane->is_send ? own + "-" + peer : peer + "-" + own;
  finding.op_address = "p2p:" + pair + ":" + finding.op_address;
}

}  // namespace lockstep::analysis
