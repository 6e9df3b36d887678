// SPDX-License-Identifier: Apache-2.0
// When each operation of a process arrived, and how long its rank had been on its own before: since it left
// whatever communication it was in. A rank that comes late because it waited for others was not on its own,
// so blame that is drawn from this does not travel from rank to rank.
//
//   arrival   the GPU began to work on it where that is known, else the host launched it
//   left      the latest end, at or before the arrival, of an operation called earlier on any communicator.
//             An end that is not known is the last arrival of the members whose clocks compare: nobody can be
//             through before.
//   own       arrival - left, cut in two at the host's launch: host until it, GPU from it
//   cadence   the host's own time since its previous call; since the latest end if nothing was outstanding at
//             the call, for then the host may have waited for it. A rank whose queue has run dry exposes its
//             host time, which those ahead of it spend unseen: only a longer cadence makes it to blame.
//
// Times are ns on the reference host's clock; on the host's own where that is not aligned.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/column_memory.h"
#include "model/job.h"

namespace lockstep::analysis::straggler {

// Indexes of a communicator that so many operations are of, gaps included. Of more, the numbers are a damaged
// file's: memory and time are of what a file holds, not of what it says.
inline constexpr uint64_t most_indexes(uint64_t ops) { return 1024 + 16 * ops; }

// Whether the member has operations, and their indexes mean what those of the other members mean.
inline bool is_matched(const model::Member& member) {
  return member.ops != 0 && member.alignment != model::Member::Alignment::kNone;
}

// Columns by position in JobOps.
struct ExclusiveTimes {
  static constexpr float kUnknown = -1;
  Column<int64_t> arrival, host;  // host: the launch
  Column<float> host_own, gpu_own, cadence;
  Column<int64_t>
      busy;  // own time up to its arrival, summed over all operations that came before; empty: no GPU times
  // Time in sends and receives that called before it, summed alike. Empty: no GPU times, or it does not
  // exchange all with all.
  Column<int64_t> exchanged;
  Column<float> error;   // half-width of `arrival` on the reference clock
  Column<uint8_t> idle;  // 1: at the launch, everything called before had ended
  Column<float> least_segments,
      most_segments;  // see compute_segments.h; of collectives: 0 of the others. most: infinite if not known
  Column<float> beside_segments;  // the same; 0 where the collective before is of another communicator
  Column<uint32_t> order, place;  // positions in the order of the calls, and where each stands in it
  uint32_t domain = 0;            // processes of one domain have times that compare
  uint64_t stage = 0;  // see compute_segments.h: equal for ranks that compare; 0: it neither sends nor
                       // receives, and has no segments
  // 1: since the last collective of all ranks, the process has called something before this in which it may
  // have waited for somebody whom nothing shows, see LastArrivals::holds_unseen. Empty: it never does.
  Column<uint8_t> unseen;
  bool peers_unseen = false;  // some of that are sends and receives
  // False: the process drives several ranks of one communicator, whose calls do not tell apart.
  bool comparable = false;
};

// Where an operation is last seen to arrive, by communicator, clock domain and index. What its members
// without GPU times leave by.
class LastArrivals {
 public:
  // Of the indexes from the oldest that a member has kept.
  class Column {
   public:
    // 0: unknown.
    int64_t at(uint32_t index) const { return has(index) ? last_[index - base_] : 0; }
    size_t size() const { return last_.size(); }

   private:
    friend class LastArrivals;
    bool has(uint32_t index) const { return index >= base_ && index - base_ < last_.size(); }
    uint32_t base_ = 0;
    lockstep::Column<int64_t> last_;
  };

  explicit LastArrivals(const model::Job& job);
  // Processes with equal numbers have times that compare: all whose hosts are aligned well enough to tell who
  // was late, and each other host by itself.
  uint32_t domain(const model::JobProcess& process) const { return domains_[process.host]; }
  // `member`: row of Job::members.
  const Column& of(uint32_t member) const { return columns_[column_of_[member]]; }
  // Whether an operation of it without GPU times may hold the process and not all whose times compare with
  // its own: some members' times do not, and some ranks whose times do are no members.
  bool holds_unseen(uint32_t member) const { return holds_[member] == Holds::kUnseen; }
  // Whether all ranks of the run are members.
  bool holds_all(uint32_t member) const { return holds_[member] == Holds::kAll; }

 private:
  void assign_columns(const model::Job& job);
  void find_holds(const model::Job& job);

  std::vector<uint32_t> domains_;    // by host
  std::vector<Column> columns_;      // the first is empty
  std::vector<uint32_t> column_of_;  // by member
  enum class Holds : uint8_t { kSeen, kUnseen, kAll };
  std::vector<Holds> holds_;  // by member
};

// When an operation ended on the GPU; 0 unknown.
inline int64_t end_of(const model::JobOps& ops, const ExclusiveTimes& own, uint32_t op) {
  return !ops.is_placed(op) || ops.gpu_end_ns[op] == 0
             ? 0
             : own.arrival[op] + ops.gpu_end_ns[op] - ops.gpu_start_ns[op];
}

// How long a member was in an operation until the last one arrived, `until_last` after it, or until its own
// end on the GPU, if that was earlier: in a broadcast a rank may be through before others have come.
inline double waited_ns(const model::JobOps& ops, uint32_t op, double until_last) {
  if (!ops.is_placed(op) || ops.gpu_end_ns[op] == 0) return until_last;
  const int64_t begin = ops.gpu_start_ns[op], end = ops.gpu_end_ns[op];
  // Unsigned, as times of a damaged file may be far apart.
  const uint64_t inside = end > begin ? static_cast<uint64_t>(end) - static_cast<uint64_t>(begin) : 0;
  return std::min(until_last, static_cast<double>(inside));
}

// The host's part in an operation: its launch, else its enqueueing, else its call. Of a replay
// (JobOps::is_replay), which nothing launches, its enqueueing.
int64_t host_ns(const model::JobOps& ops, size_t op);
// Positions in JobOps in the order of the calls.
Column<uint32_t> call_order(const model::JobOps& ops);

ExclusiveTimes exclusive_times(const model::Job& job, uint32_t process, const LastArrivals& last);

}  // namespace lockstep::analysis::straggler
