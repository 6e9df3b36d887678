// SPDX-License-Identifier: Apache-2.0
// Finds one operation on all ranks of its communicator and loads what each rank recorded of it. The gathered
// job knows which ranks take part, and where the operation lies among a rank's own. Each rank's trace is then
// loaded once more, as the job keeps no events. The search in a trace is a pass over its operations, which
// costs less than reading the trace did.
#include "cli/show/operation.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <map>
#include <utility>

#include "base/ascii.h"
#include "base/parallel.h"
#include "cli/show/foreign_network.h"

namespace lockstep::cli::show {
namespace {

using model::kNoRow;

// `members` has a place for every rank of the communicator, also for those that are not in the run (kNoRow).
std::vector<uint32_t> members_of(const model::JobComm& comm) {
  std::vector<uint32_t> members;
  for (const std::vector<uint32_t>* list : {&comm.members, &comm.unranked})
    std::copy_if(list->begin(), list->end(), std::back_inserter(members),
                 [](uint32_t member) { return member != kNoRow; });
  return members;
}

// Row of the trace's ops; kNoRow: not there. `comm` is a row of the trace, `place` that among the
// communicator's collectives.
uint32_t find_collective(const model::Trace& trace, uint32_t comm, uint32_t place) {
  // It skips what gather leaves out of a member's collectives, and only that: else the places would differ.
  for (uint32_t op = 0; op < trace.ops.size(); ++op) {
    if (trace.ops.comm[op] != comm || trace.ops.peer[op] >= 0 || trace.ops.shape[op] >= trace.shapes.size() ||
        trace.ops.index[op] == model::kNoIndex)
      continue;
    if (place-- == 0) return op;
  }
  return kNoRow;
}
// `index` counts all sends and receives of one rank, so under one number each rank has a transfer of its own.
uint32_t find_p2p(const model::Trace& trace, uint32_t comm, uint32_t index) {
  for (uint32_t op = 0; op < trace.ops.size(); ++op) {
    if (trace.ops.comm[op] == comm && trace.ops.peer[op] >= 0 && trace.ops.index[op] == index &&
        trace.ops.shape[op] < trace.shapes.size())
      return op;
  }
  return kNoRow;
}

bool sends(const model::Trace& trace, uint32_t op) {
  return trace.strings[trace.shapes.func[trace.ops.shape[op]]] == "Send";
}
// The one with this number of those with a peer in one direction.
uint32_t find_transfer(const model::Trace& trace, uint32_t comm, int32_t peer, bool is_send, uint32_t index) {
  for (uint32_t op = 0; op < trace.ops.size(); ++op) {
    if (trace.ops.comm[op] != comm || trace.ops.peer[op] != peer || trace.ops.index[op] == model::kNoIndex ||
        trace.ops.shape[op] >= trace.shapes.size() || sends(trace, op) != is_send)
      continue;
    if (index-- == 0) return op;
  }
  return kNoRow;
}

void take(const model::Trace& trace, uint32_t op, RankOperation& into) {
  const model::OpTable& ops = trace.ops;
  const uint32_t shape = ops.shape[op];
  into.is_there = true;
  into.func = trace.strings[trace.shapes.func[shape]];
  into.datatype = trace.strings[trace.shapes.datatype[shape]];
  into.root = trace.shapes.root[shape];
  into.gpu_source = model::gpu_source_name(ops.gpu_source[op]);
  into.count = ops.count[op];
  into.bytes = ops.bytes[op];
  into.peer = ops.peer[op];
  into.called_ns = ops.called_ns[op];
  into.enqueued_ns = ops.enqueued_ns[op];
  into.launched_ns = ops.launched_ns[op];
  into.gpu_start_ns = ops.gpu_start_ns[op];
  into.gpu_end_ns = ops.gpu_end_ns[op];
  into.gpu_error_ns = ops.gpu_error_ns[op];
}

void load_rank(const model::Job& job, const model::Trace& trace, uint32_t row, const OperationName& name,
               size_t siblings, RankOperation& rank) {
  const model::Member& member = job.members[row];
  const std::vector<uint32_t>& of_process = job.processes[member.process].members;
  // Members of a process stand in the order of its trace's communicators.
  const auto comm =
      static_cast<uint32_t>(std::find(of_process.begin(), of_process.end(), row) - of_process.begin());
  uint32_t op = kNoRow;
  // The sender looks among what goes to the target, the receiver among what comes from the source.
  if (name.pair) {
    op = find_transfer(trace, comm, rank.sends ? name.pair->target : name.pair->source, rank.sends,
                       name.index);
  } else if (name.is_p2p) {
    op = find_p2p(trace, comm, name.index);
  } else if (const std::optional<uint32_t> place = job.op_at(member, name.index)) {
    // The shared number is the job's, after alignment; the trace still has the rank's own. Both agree on the
    // place.
    op = find_collective(trace, comm, *place - member.first);
  }
  if (op == kNoRow) return;
  take(trace, op, rank);
  rank.context = trace.comms.context[comm];
  // A process that drove the network for this one (PXN) knows the task by context and handle only.
  if (trace.ops.task[op] < trace.tasks.size()) rank.handle = trace.tasks.handle[trace.ops.task[op]];
  if (rank.has_tree) rank.events = event_tree(trace, op, siblings);
}

// The numbers of the collectives that some member has.
// Each member's numbers ascend, so merging keeps the union sorted.
std::vector<uint32_t> indexes_of(const model::Job& job, const std::vector<uint32_t>& members) {
  std::vector<uint32_t> all;
  for (uint32_t member : members) {
    const model::Member& at = job.members[member];
    const auto begin = job.ops(at).index.begin() + at.first;
    const size_t known = all.size();
    all.insert(all.end(), begin, begin + at.ops);
    std::inplace_merge(all.begin(), all.begin() + static_cast<ptrdiff_t>(known), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
  }
  return all;
}

// One clock that is not aligned leaves the spread unknown: it would compare two hosts' own clocks.
ListedOperation listed_operation(const model::Job& job, const std::vector<uint32_t>& members, uint32_t comm,
                                 uint32_t index) {
  ListedOperation row{.comm = comm, .index = index};
  int64_t first_ns = INT64_MAX, last_ns = INT64_MIN;
  bool aligned = true;
  for (uint32_t member : members) {
    const model::Member& at = job.members[member];
    const std::optional<uint32_t> op = job.op_at(at, index);
    if (!op) continue;
    const model::JobOps& ops = job.ops(at);
    // Ranks may differ in what they called, which `diagnose` reports; the row shows the last member's.
    row.signature = ops.signature[*op];
    ++row.ranks;
    if (ops.gpu_start_ns[*op] != 0 && ops.gpu_end_ns[*op] != 0)
      row.gpu_ns = std::max(row.gpu_ns, ops.gpu_end_ns[*op] - ops.gpu_start_ns[*op]);
    const int64_t entered_ns = ops.entered_ns(*op);
    if (entered_ns == 0) continue;
    const auto common = job.common_ns(at.process, entered_ns);
    aligned = aligned && common;
    first_ns = std::min(first_ns, common ? common->ns : entered_ns);
    last_ns = std::max(last_ns, common ? common->ns : entered_ns);
  }
  if (first_ns == INT64_MAX) return row;
  row.first_ns = first_ns;
  if (aligned) row.spread_ns = last_ns - first_ns;
  return row;
}

const model::Lane* lane_of(const model::Member& member, int32_t peer, bool is_send) {
  const auto lane = std::find_if(member.lanes.begin(), member.lanes.end(), [&](const model::Lane& other) {
    return other.peer == peer && other.is_send == is_send;
  });
  return lane == member.lanes.end() ? nullptr : &*lane;
}

bool has_operation(const model::Job& job, const model::Member& member, const OperationName& name) {
  if (!name.is_p2p) return job.op_at(member, name.index).has_value();
  if (name.pair) {
    const auto has = [&](int32_t own, int32_t peer, bool is_send) {
      const model::Lane* lane = member.rank == own ? lane_of(member, peer, is_send) : nullptr;
      return lane != nullptr && lane->ops > name.index;
    };
    // One end is enough: that the other end was never called may be the very question.
    return has(name.pair->source, name.pair->target, true) ||
           has(name.pair->target, name.pair->source, false);
  }
  uint64_t p2ps = 0;
  for (const model::Lane& lane : member.lanes) p2ps += lane.ops;
  return p2ps > name.index;
}

// Who takes part: all members, or the two ends of a pair as far as they are in the run.
std::vector<std::pair<uint32_t, RankOperation>> slots_of(const model::Job& job,
                                                         const std::vector<uint32_t>& members,
                                                         const std::optional<OperationName::Pair>& pair) {
  std::vector<std::pair<uint32_t, RankOperation>> slots;
  const auto add = [&](uint32_t member, bool is_sender) {
    RankOperation rank;
    rank.process = job.members[member].process;
    rank.rank = job.members[member].rank;
    rank.job_rank = job.processes[rank.process].row.rank;
    rank.sends = is_sender;
    slots.emplace_back(member, std::move(rank));
  };
  if (!pair) {
    for (const uint32_t member : members) add(member, false);
    return slots;
  }
  // The sender stands first, whatever the order of ranks. A rank that sends to itself takes both places.
  for (const bool is_sender : {true, false}) {
    for (const uint32_t member : members) {
      if (job.members[member].rank == (is_sender ? pair->source : pair->target)) add(member, is_sender);
    }
  }
  return slots;
}

template <class T>
bool take_digits(std::string_view& text, T& number) {
  // take_number would read a minus sign, and no rank or number has one.
  return !text.starts_with('-') && take_number(text, number);
}
bool take_sign(std::string_view& text, char sign) {
  if (!text.starts_with(sign)) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

std::optional<OperationName> parse_operation(const std::string& text) {
  OperationName name;
  std::string_view rest = text;
  if (rest.starts_with("p2p:")) {
    name.is_p2p = true;
    rest.remove_prefix(4);
    if (rest.find('-') != std::string_view::npos) {
      OperationName::Pair pair;
      if (!take_digits(rest, pair.source) || !take_sign(rest, '-') || !take_digits(rest, pair.target) ||
          !take_sign(rest, ':'))
        return std::nullopt;
      name.pair = pair;
    }
  } else if (rest.starts_with("coll:")) {
    rest.remove_prefix(5);
  }
  if (!take_digits(rest, name.index) || !rest.empty()) return std::nullopt;
  return name;
}

std::vector<uint32_t> find_comms(const model::Job& job, const std::string& name) {
  // A name may be hex by chance, such as `abc`: both readings are tried, and every match is returned.
  std::string_view digits = name;
  if (digits.starts_with("0x")) digits.remove_prefix(2);
  uint64_t id = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), id, 16);
  const bool is_id = error == std::errc() && end == digits.data() + digits.size() && id != 0;
  std::vector<uint32_t> found;
  for (uint32_t comm = 0; comm < job.comms.size(); ++comm) {
    if (job.text(job.comms[comm].name) == name || (is_id && job.comms[comm].comm_id == id))
      found.push_back(comm);
  }
  return found;
}

std::vector<uint32_t> comms_with(const model::Job& job, const std::vector<uint32_t>& comms,
                                 const OperationName& name) {
  std::vector<uint32_t> found;
  for (uint32_t comm : comms) {
    const std::vector<uint32_t> members = members_of(job.comms[comm]);
    const bool has = std::any_of(members.begin(), members.end(), [&](uint32_t member) {
      return has_operation(job, job.members[member], name);
    });
    if (has) found.push_back(comm);
  }
  return found;
}

std::vector<FoundOperation> find_comms_id(const model::Job& job, uint64_t id) {
  std::vector<FoundOperation> found;
  // All ranks have the same id for one operation, so each of them finds it again.
  auto add = [&found](uint32_t comm, const OperationName& name) {
    const FoundOperation one{.comm = comm, .name = name};
    if (std::find(found.begin(), found.end(), one) == found.end()) found.push_back(one);
  };
  for (const model::Member& member : job.members) {
    const model::JobOps& ops = job.ops(member);
    for (uint32_t op = member.first; op < member.first + member.ops; ++op) {
      if (ops.comms_id(op) == id) add(member.comm, {.is_p2p = false, .index = ops.index[op]});
    }
    for (const model::Lane& lane : member.lanes) {
      OperationName::Pair pair{.source = member.rank, .target = lane.peer};
      if (!lane.is_send) std::swap(pair.source, pair.target);
      for (uint32_t op = lane.first; op < lane.first + lane.ops; ++op) {
        if (ops.comms_id(op) == id) add(member.comm, {.is_p2p = true, .index = ops.index[op], .pair = pair});
      }
    }
  }
  return found;
}

std::string address(const OperationName& name) {
  std::string index = std::to_string(name.index);
  if (!name.is_p2p) return index;
  if (!name.pair) return "p2p:" + index;
  return "p2p:" + std::to_string(name.pair->source) + "-" + std::to_string(name.pair->target) + ":" + index;
}

Operation load_operation(const model::Job& job, model::TraceSource& source, uint32_t comm,
                         const OperationName& name, const TreeLimits& limits) {
  Operation operation{.comm = comm, .name = name, .ranks = {}};
  const auto slots = slots_of(job, members_of(job.comms[comm]), name.pair);
  // --rank means the rank in the job. If no rank of the job has this number, it means the one in the
  // communicator.
  const bool is_of_job = limits.rank && std::any_of(slots.begin(), slots.end(), [&](const auto& slot) {
                           return slot.second.job_rank == *limits.rank;
                         });
  size_t trees = 0;
  std::map<uint32_t, std::vector<size_t>> by_process;
  for (const auto& [member, slot] : slots) {
    RankOperation& rank = operation.ranks.emplace_back(slot);
    rank.has_tree =
        limits.rank ? (is_of_job ? rank.job_rank : rank.rank) == *limits.rank : trees++ < limits.ranks;
    by_process[rank.process].push_back(operation.ranks.size() - 1);
  }
  const std::vector<std::pair<uint32_t, std::vector<size_t>>> processes(by_process.begin(), by_process.end());
  // Each rank has a place of its own in `operation.ranks`, filled by the thread that loads its process: no
  // lock.
  for_each_parallel(processes.size(), parallel_threads(), [&](size_t i) {
    const auto& [process, ranks] = processes[i];
    model::Trace trace;
    if (!source.load(process, trace)) return;  // gather has counted it
    for (size_t rank : ranks)
      load_rank(job, trace, slots[rank].first, name, limits.siblings, operation.ranks[rank]);
  });
  // Last: it looks for the contexts and handles that the loads above have found.
  add_foreign_network(job, source, limits.siblings, operation.ranks);
  return operation;
}

std::vector<ListedOperation> list_operations(const model::Job& job, const std::vector<uint32_t>& comms,
                                             uint64_t& p2ps) {
  std::vector<ListedOperation> listed;
  p2ps = 0;
  for (uint32_t comm : comms) {
    const std::vector<uint32_t> members = members_of(job.comms[comm]);
    for (uint32_t member : members) {
      for (const model::Lane& lane : job.members[member].lanes) p2ps += lane.ops;
    }
    for (uint32_t index : indexes_of(job, members))
      listed.push_back(listed_operation(job, members, comm, index));
  }
  // A time of 0 is unknown and comes last. In front it would be the zero of all other rows, decades earlier.
  std::stable_sort(listed.begin(), listed.end(), [](const ListedOperation& a, const ListedOperation& b) {
    return std::pair(a.first_ns == 0, a.first_ns) < std::pair(b.first_ns == 0, b.first_ns);
  });
  return listed;
}

}  // namespace lockstep::cli::show
