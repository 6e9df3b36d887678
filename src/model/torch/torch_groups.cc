// SPDX-License-Identifier: Apache-2.0
// Counting is only right while nothing is missing and every group is counted as PyTorch does. So each
// communicator carries two permissions to count, for collectives and for sends and receives, and every doubt
// takes one away for good: a gap in our index or in NCCL's own numbers, a group of NCCL's that mixes
// communicators, losses of capture, two communicators of one name that lived at once. Going on from a guess
// would give all later operations a wrong id that still looks like one; no id only means that two files are
// not joined by it.
#include "model/torch/torch_groups.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/event_kind.h"
#include "model/limits.h"
#include "model/torch/process_group.h"

namespace lockstep::model {
namespace {

// A group of all ranks of the job needs no word from the others.
std::optional<RankProgression> whole_job(const Trace& trace, uint32_t comm) {
  if (trace.processes.size() != 1 || trace.processes.world[0] != trace.comms.ranks[comm]) return {};
  const int32_t rank = trace.processes.rank[0];
  if (rank < 0) return {};
  return trace.comms.ranks[comm] == 1 ? RankProgression{rank, 0} : RankProgression{0, 1};
}

std::optional<RankProgression> listed(const Trace& trace, uint32_t comm) {
  const std::string_view text = trace.strings[trace.comms.members[comm]];
  if (text.empty()) return {};
  const std::vector<int32_t> ranks = parse_ranks(text);
  if (members_text(ranks) != text || ranks.size() != static_cast<size_t>(trace.comms.ranks[comm])) return {};
  return progression_of(ranks);
}

// Losses of capture after which operations may be missing that no number shows: sends and receives have none.
bool may_lack_operations(const Trace& trace) {
  static constexpr std::string_view kGone[] = {"no_chunk", "disk_full",  "size_cap", "overwritten",
                                               "no_log",   "after_fork", "closed"};
  for (size_t i = 0; i < trace.losses.size(); ++i) {
    const std::string_view kind = trace.strings[trace.losses.kind[i]];
    const bool is_read = trace.strings[trace.losses.stage[i]] == "read";
    if (is_read || std::find(std::begin(kGone), std::end(kGone), kind) != std::end(kGone)) return true;
  }
  return trace.processes.size() == 1 &&
         trace.strings[trace.processes.modes[0]].find("off") != std::string_view::npos;
}

CommsTuple tuple_of(const Trace& trace, uint32_t comm, int64_t seq, bool is_p2p) {
  return {.pg_name = trace.strings[trace.comms.group_name[comm]],
          .seq = seq,
          .is_p2p = is_p2p,
          .start = trace.comms.rank_start[comm],
          .stride = trace.comms.rank_stride[comm],
          .world = trace.comms.ranks[comm]};
}

class Counter {
 public:
  explicit Counter(Trace& trace) : trace_(trace), comms_(trace.comms.size()) {}

  void run() {
    bool any = false;
    for (uint32_t comm = 0; comm < comms_.size(); ++comm) {
      if (trace_.comms.group_name[comm] == 0) continue;
      any = true;
      comms_[comm].counts_collectives = comms_[comm].counts_p2p = true;
    }
    if (!any) return;
    // Before counting: only the end of a group shows that it mixes communicators.
    look_at_groups();
    separate_namesakes();
    if (may_lack_operations(trace_)) {
      for (Comm& comm : comms_) comm.counts_p2p = false;
    }
    for (uint32_t op = 0; op < trace_.ops.size(); ++op) {
      const uint32_t comm = trace_.ops.comm[op];
      if (comm >= comms_.size() || trace_.comms.group_name[comm] == 0) continue;
      if (trace_.ops.kind[op] == number(EventKind::kApiOp))
        take_declared(op);
      else
        count(op);
    }
  }

 private:
  struct Comm {
    bool counts_collectives = false, counts_p2p = false;
    bool has_collectives = false;
    int64_t collectives = 0, p2ps = 0;
    uint32_t next_index[2] = {0, 0};                  // of collectives, of sends and receives
    std::unordered_map<StringId, uint64_t> nccl_seq;  // NCCL's next number, by function
    uint32_t last_group = kNoRow;
  };
  // What lies in one group of NCCL.
  struct GroupUse {
    uint32_t comm = kNoRow;
    uint32_t collectives = 0, p2ps = 0;
    bool has_self = false, is_mixed = false;
  };

  void look_at_groups() {
    const OpTable& ops = trace_.ops;
    groups_.resize(trace_.calls.size());
    for (uint32_t op = 0; op < ops.size(); ++op) {
      const uint32_t comm = ops.comm[op];
      const bool is_p2p = ops.peer[op] >= 0;
      if (comm < comms_.size() && !is_p2p) comms_[comm].has_collectives = true;
      if (ops.group[op] >= groups_.size() || ops.index[op] == kNoIndex) continue;
      GroupUse& use = groups_[ops.group[op]];
      use.is_mixed = use.is_mixed || (use.comm != kNoRow && use.comm != comm);
      use.comm = comm;
      ++(is_p2p ? use.p2ps : use.collectives);
      use.has_self =
          use.has_self || (is_p2p && comm < comms_.size() && ops.peer[op] == trace_.comms.rank[comm]);
    }
  }

  // PyTorch counts for a group, which may have had several communicators: one for each pair that sends to
  // each other, and again one after it was made anew, with new counters.
  void separate_namesakes() {
    const CommTable& comms = trace_.comms;
    std::map<StringId, std::vector<uint32_t>> namesakes;
    for (uint32_t comm = 0; comm < comms_.size(); ++comm) {
      if (comms.group_name[comm] != 0 && comms.api_version[comm] != 0)
        namesakes[comms.group_name[comm]].push_back(comm);
    }
    for (const auto& [name, members] : namesakes) {
      // A pair's own communicator looks like a group of two.
      if (members.size() == 1) {
        Comm& only = comms_[members[0]];
        only.counts_p2p = comms.ranks[members[0]] > 2 || only.has_collectives;
        continue;
      }
      uint32_t last = kNoRow;
      bool overlap = false;
      for (const uint32_t comm : members) {
        comms_[comm].counts_p2p = false;
        if (!comms_[comm].has_collectives) continue;
        overlap = overlap ||
                  (last != kNoRow && (comms.end_ns[last] == 0 || comms.end_ns[last] > comms.init_ns[comm]));
        last = comm;
      }
      for (const uint32_t comm : members) comms_[comm].counts_collectives = !overlap;
    }
  }

  void set(uint32_t op, int64_t seq, bool is_p2p) {
    trace_.ops.torch_seq[op] = seq;
    trace_.ops.torch_comms_id[op] = comms_id(tuple_of(trace_, trace_.ops.comm[op], seq, is_p2p));
  }

  // The number was said, or counted by capture; it is one less than PyTorch's, kNoSeq for one that is 0.
  void take_declared(uint32_t op) {
    const int64_t seq = static_cast<int64_t>(trace_.ops.seq[op] + 1);
    if (seq >= 0) set(op, seq, (trace_.ops.flags[op] & kFlagP2p) != 0);
  }

  void stop(Comm& comm) { comm.counts_collectives = comm.counts_p2p = false; }

  // What is missing shows in the numbers.
  bool is_next(uint32_t op, Comm& comm, bool is_p2p) {
    const OpTable& ops = trace_.ops;
    if (ops.index[op] != comm.next_index[is_p2p]) return false;
    ++comm.next_index[is_p2p];
    if (is_p2p || ops.shape[op] >= trace_.shapes.size()) return true;
    uint64_t& next = comm.nccl_seq[trace_.shapes.func[ops.shape[op]]];
    if (ops.seq[op] == kNoSeq) {
      ++next;
      return true;
    }
    // A number beyond the next one of its function: calls between are missing.
    const bool fits = ops.seq[op] <= next;
    next = ops.seq[op] + 1;
    return fits;
  }

  void count(uint32_t op) {
    const OpTable& ops = trace_.ops;
    if (ops.index[op] == kNoIndex) return;  // a later replay
    Comm& comm = comms_[ops.comm[op]];
    if (!comm.counts_collectives && !comm.counts_p2p) return;
    const bool is_p2p = ops.peer[op] >= 0;
    if (!is_next(op, comm, is_p2p)) return stop(comm);
    const bool is_grouped = ops.group[op] < groups_.size();
    const GroupUse use = is_grouped ? groups_[ops.group[op]]
                                    : GroupUse{.comm = ops.comm[op], .collectives = !is_p2p, .p2ps = is_p2p};
    if (use.is_mixed || (is_p2p && !is_grouped)) return stop(comm);
    const bool is_first = !is_grouped || comm.last_group != ops.group[op];
    comm.last_group = ops.group[op];
    if (use.collectives + use.p2ps == 1) {
      if (is_p2p)
        ++comm.p2ps;
      else
        ++comm.collectives;
      if (is_p2p ? comm.counts_p2p : comm.counts_collectives)
        set(op, is_p2p ? comm.p2ps : comm.collectives, is_p2p);
      return;
    }
    if (use.p2ps == 0 || (use.collectives == 0 && use.has_self)) {
      comm.collectives += is_first;
    } else {
      stop(comm);
    }
  }

  Trace& trace_;
  std::vector<Comm> comms_;       // by row
  std::vector<GroupUse> groups_;  // by row of calls
};

}  // namespace

void set_torch_number(const Trace& trace, Op& op, int64_t seq, bool is_p2p) {
  if (seq < 0) return;
  op.torch_seq = seq;
  if (op.comm < trace.comms.size() && trace.comms.group_name[op.comm] != 0)
    op.torch_comms_id = comms_id(tuple_of(trace, op.comm, seq, is_p2p));
}

void RunMembers::add(uint64_t comm_id, int32_t ranks, int32_t rank, int32_t global_rank) {
  if (comm_id == 0 || ranks <= 0 || ranks > kMostRanks || rank < 0 || rank >= ranks || global_rank < 0)
    return;
  Reported& reported = reported_[{comm_id, ranks}];
  const auto [at, is_new] = reported.global.try_emplace(rank, global_rank);
  reported.is_contradicted = reported.is_contradicted || (!is_new && at->second != global_rank);
}

void RunMembers::finish() {
  for (const auto& [key, reported] : reported_) {
    if (reported.is_contradicted || reported.global.size() != static_cast<size_t>(key.second)) continue;
    std::vector<int32_t> ranks;
    ranks.reserve(reported.global.size());
    for (const auto& [rank, global] : reported.global) ranks.push_back(global);
    known_[key] = progression_of(ranks);
  }
  reported_.clear();
}

std::optional<RankProgression> RunMembers::of(uint64_t comm_id, int32_t ranks) const {
  const auto at = known_.find({comm_id, ranks});
  if (at == known_.end()) return {};
  return at->second;
}

void name_torch_groups(Trace& trace, const RunMembers& members) {
  CommTable& comms = trace.comms;
  for (uint32_t comm = 0; comm < comms.size(); ++comm) {
    if (comms.group_name[comm] != 0 || comms.ranks[comm] <= 0) continue;
    const std::string_view name = trace.strings[comms.name[comm]];
    const bool is_declared = comms.api_version[comm] == 0;
    const ParsedGroup declared =
        is_declared || !torch_group_name(name).empty() ? parse_group(name) : ParsedGroup{};
    if (declared.name.empty()) continue;
    std::optional<RankProgression> ranks = listed(trace, comm);
    if (!ranks) ranks = whole_job(trace, comm);
    if (!ranks) ranks = members.of(comms.comm_id[comm], comms.ranks[comm]);
    if (!ranks) continue;
    const std::string group(declared.name), description(declared.description);
    comms.group_name[comm] = trace.strings.intern(group);
    comms.group_description[comm] = trace.strings.intern(description);
    comms.rank_start[comm] = ranks->start;
    comms.rank_stride[comm] = ranks->stride;
  }
}

void number_torch_operations(Trace& trace) { Counter(trace).run(); }

}  // namespace lockstep::model
