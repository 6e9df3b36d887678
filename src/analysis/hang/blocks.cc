// SPDX-License-Identifier: Apache-2.0
// Finds, one communicator at a time, the operations that some ranks are in and that do not go on. It compares
// how many operations each member has called: the member with the lowest count is missing from the operation
// that the others are in. Where all have called the same number, GPU times and open network transfers show
// whether the newest one moves. Records with gaps prove nothing about what they lack, so such members count
// as missing only in an unproven block. A wait counts only if it is longer than the run's own cadence. A
// fixed timeout would call every checkpoint a hang, and would miss a hang in a job with steps of 10 ms.
#include "analysis/hang/blocks.h"

#include <algorithm>
#include <map>

#include "analysis/hang/block_waits.h"

namespace lockstep::analysis::hang {
namespace {

using model::kNoIndex;
using model::kNoRow;
using model::Member;

// Its operations have indexes that mean the same as the other members'. One that called nothing has the index
// 0.
bool comparable(const Member& member) {
  return member.ops == 0 || member.alignment != Member::Alignment::kNone;
}

class CommBlocks {
 public:
  CommBlocks(const JobState& job_state, Cadence& cadence, uint32_t comm,
             const job::match::Difference* difference, std::vector<Block>& out)
      : job_state_(job_state),
        job_(job_state.job()),
        cadence_(cadence),
        comm_(comm),
        difference_(difference),
        out_(out) {}

  void find() {
    // The order is that of proof: a difference that comes before every missing call explains it; what runs
    // and has not ended explains missing calls behind it; only then do counts decide, and last what nobody
    // can see.
    const model::JobComm& row = job_.comms[comm_];
    if (job_state_.is_history(comm_) || row.members.empty()) return;
    for (uint32_t member : row.members) {
      if (member == kNoRow) continue;
      members_.push_back(member);
      const Member& of = job_.members[member];
      if (job_state_.gap(of.process).unproven) continue;
      used_ = used_ || of.ops > 0 || !of.lanes.empty();
      if (!comparable(of)) continue;
      uint32_t next = job_.next_index(of);
      // A record that ends early proves how much was called at least, never how much at most.
      if (next < least_ && !job_state_.cut_short(of.process) && !job_state_.may_lack_newest(of))
        least_ = next;
      most_ = std::max(most_, next);
    }
    for (uint32_t row : members_) unknown_ = unknown_ || is_unknown(row, most_);
    if (members_.empty()) return;
    if (!used_) return find_init();
    // Whoever has come past the difference lags because of it.
    if (difference_ != nullptr && !is_proven(*difference_)) difference_ = nullptr;
    bool differs_first = difference_ != nullptr && (least_ >= most_ || difference_->index < least_);
    if (differs_first) find_mismatch();
    if (!found_ && !unknown_ && unfinished_before(least_)) find_stuck();
    if (!found_ && least_ < most_) find_collective();
    if (!found_ && unknown_) find_unknown();
    if (difference_ != nullptr && !differs_first) find_mismatch();
    find_pairs();
    if (!found_ && !unknown_) find_stuck();
  }

 private:
  // Whether it called the operation before `next` is not known: that part of its record is missing.
  bool is_unknown(uint32_t row, uint32_t next) const {
    const Member& member = job_.members[row];
    if (job_state_.gap(member.process).unproven) return true;
    if (!comparable(member)) return job_state_.gap(member.process).any();
    return (job_state_.torn(member.process) || job_state_.may_lack_newest(member)) &&
           job_.next_index(member) < next;
  }

  Block make(Block::Kind kind, uint32_t index) {
    Block block;
    block.kind = kind;
    block.comm = comm_;
    block.index = index;
    block.patience = cadence_.of_comm(comm_);
    return block;
  }

  void add_waiting(Block& block, uint32_t member, uint32_t op) const {
    hang::add_waiting(job_state_, member, op, block);
  }
  // It has called the operation, and may stand behind something that it called before.
  void add_waiting_or_behind(Block& block, uint32_t row, uint32_t first, uint32_t op) const {
    if (held_up(row, first, op))
      block.behind.push_back({row, op});
    else
      add_waiting(block, row, op);
  }

  // A short wait stays out, unless a rank that stands behind something else may turn out to wait here longer.
  void keep(Block&& block) {
    finish(job_state_, block);
    const bool is_long = lasts(block);
    found_ = found_ || is_long;
    if (is_long || !block.behind.empty()) out_.push_back(std::move(block));
  }

  void add_missing(Block& block, uint32_t actor, int64_t called_ns) const {
    block.missing.push_back(actor);
    block.missing_ns.push_back(called_ns);
  }

  // A rank whose record has gaps may have been there.
  void find_absent(Block& block) const {
    for (const int32_t rank : job_state_.absent_of(comm_)) {
      if (const uint32_t torn = job_state_.torn_actor(rank); torn != kNoRow)
        add_missing(block, torn, 0);
      else
        block.absent.push_back(rank);
    }
  }

  void find_collective() {
    Block block = make(Block::Kind::kCollective, least_);
    for (uint32_t row : members_) {
      const Member& member = job_.members[row];
      if (is_unknown(row, least_ + 1)) {
        if (!job_state_.may_lack_newest(member)) add_missing(block, job_state_.actor_of(row), 0);
      } else if (!comparable(member)) {
        continue;
      } else if (job_.next_index(member) <= least_) {
        if (!job_state_.cut_short(member.process)) add_missing(block, job_state_.actor_of(row), 0);
      } else {
        // The operation itself may be gone; the oldest behind it that is left is the nearest to it.
        add_waiting_or_behind(block, row, member.first,
                              model::Job::op_from(job_.ops(member), member.first, member.ops, least_));
      }
    }
    keep(std::move(block));
  }

  bool held_up(uint32_t row, uint32_t first, uint32_t op) const {
    const Member& member = job_.members[row];
    const uint32_t begun = first == member.first && member.ops > 0 ? job_state_.begun(member) : 0;
    return queued(job_.ops(member), first, op, begun) &&
           !is_oldest_unfinished(job_state_, job_state_.actor_of(row), op);
  }

  // All whose record is whole have called it. Who called something else since may have left it.
  void find_unknown() {
    if (most_ == 0) return;
    const uint32_t index = unknown_index();
    Block block = make(Block::Kind::kCollective, index);
    block.uncertain = true;
    for (uint32_t row : members_) {
      const Member& member = job_.members[row];
      if (is_unknown(row, index + 1)) {
        add_missing(block, job_state_.actor_of(row), 0);
      } else if (auto op = comparable(member) ? job_.op_at(member, index) : std::nullopt) {
        const Progress::State state = progress(job_state_, member).state;
        // Without GPU times, a rank that called something afterwards may have left this operation long ago.
        const bool may_wait =
            state == Progress::State::kRunning || (state != Progress::State::kDone && is_newest(member, *op));
        if (may_wait) add_waiting_or_behind(block, row, member.first, *op);
      }
    }
    keep(std::move(block));
  }

  // The newest operation; or an older one that runs on somebody's GPU while others are queued behind it, if
  // somebody may be missing from it already.
  uint32_t unknown_index() const {
    uint32_t index = most_ - 1;
    for (uint32_t row : members_) {
      const Member& member = job_.members[row];
      if (!comparable(member) || is_unknown(row, most_)) continue;
      const Progress of = progress(job_state_, member);
      if (of.state != Progress::State::kRunning) continue;
      const uint32_t at = job_.ops(member).index[of.op];
      const bool may_lack_one = at >= job_state_.begun(comm_) &&
                                std::any_of(members_.begin(), members_.end(),
                                            [&](uint32_t other) { return is_unknown(other, at + 1); });
      if (may_lack_one) index = std::min(index, at);
    }
    return index;
  }

  // The member's process called nothing after this operation.
  bool is_newest(const Member& member, uint32_t op) const {
    const Column<int64_t>& called = job_.ops(member).called_ns;
    return called[op] == *std::max_element(called.begin(), called.end());
  }

  bool is_proven(const job::match::Difference& difference) const {
    auto unproven = [&](uint32_t row) { return job_state_.gap(job_.members[row].process).unproven; };
    return !unproven(difference.like) &&
           std::none_of(difference.members.begin(), difference.members.end(), unproven);
  }

  bool has_gap(const Member& member) const { return job_state_.gap(member.process).any(); }

  // The first operation of the lane, a row, that the other end has not called. Where the record of either has
  // gaps, counts do not show it: whoever's GPU runs an operation of the lane, or who stands still behind one,
  // may wait in it.
  std::optional<uint32_t> waits_in(const Member& member, const model::Lane& lane, const Member& other,
                                   const model::Lane* there) const {
    if (lane.ops == 0 || job_state_.gap(member.process).unproven) return std::nullopt;
    if (has_gap(member) || has_gap(other)) {
      const Progress of = progress(job_.ops(member), lane.first, lane.ops);
      if (!has_gap(member) && of.state == Progress::State::kRunning) return of.op;
      const uint32_t newest = lane.first + lane.ops - 1;
      return is_newest(member, newest) ? std::optional(newest) : std::nullopt;
    }
    const uint32_t called = there == nullptr ? 0 : job_.next_index(other, *there);
    // A lane's numbers count from the first call on, so they compare only where both ends have all of them.
    const bool compares =
        member.alignment == Member::Alignment::kFromStart && other.alignment == Member::Alignment::kFromStart;
    if (!compares || called >= job_.next_index(member, lane) || job_state_.cut_short(other.process))
      return std::nullopt;
    return model::Job::op_from(job_.ops(member), lane.first, lane.ops, called);
  }

  // The oldest operation of the lane that runs on this end's GPU, where it has not begun on the other's.
  std::optional<uint32_t> runs_alone(const Member& member, const model::Lane& lane, const Member& other,
                                     const model::Lane* there) const {
    const Progress of = progress(job_.ops(member), lane.first, lane.ops);
    if (there == nullptr || of.state != Progress::State::kRunning) return std::nullopt;
    const auto at = job_.op_at(other, *there, job_.ops(member).index[of.op]);
    // The other end has called it, and its stream has not come to it: what runs before it there holds this
    // end.
    const bool holds = at && queued(job_.ops(other), there->first, *at);
    if (!holds || has_gap(member) || has_gap(other) || !job::match::pairs_comparable(job_, member, other))
      return std::nullopt;
    return of.op;
  }

  // The operation of the lane in which the member stands, if the other end left no file: one that runs on its
  // GPU, or the last thing that it called.
  std::optional<uint32_t> stands_in(const Member& member, const model::Lane& lane) const {
    if (lane.ops == 0 || has_gap(member)) return std::nullopt;
    const Progress of = progress(job_.ops(member), lane.first, lane.ops);
    if (of.state == Progress::State::kRunning) return of.op;
    const uint32_t newest = lane.first + lane.ops - 1;
    return of.state == Progress::State::kUnknown && is_newest(member, newest) ? std::optional(newest)
                                                                              : std::nullopt;
  }

  // Sends and receives: one block for each rank that does not come, however many wait for it; one for each
  // whose kernel does not begin; and one for each that left no file.
  void find_pairs() {
    std::map<uint32_t, Block> not_called, not_begun;  // by the actor that is missing
    std::map<int32_t, Block> unseen;                  // by rank of the communicator
    for (uint32_t row : members_) {
      const Member& member = job_.members[row];
      for (const model::Lane& lane : member.lanes) {
        const Member* other = nullptr;
        const model::Lane* there = job::match::counterpart(job_, member, lane, &other);
        if (other == nullptr) {
          const auto at = lane.peer >= 0 ? stands_in(member, lane) : std::nullopt;
          if (at && !held_up(row, lane.first, *at)) add_end(absent_block(unseen, lane.peer), row, *at);
          continue;
        }
        const uint32_t missing = job_state_.actor_of(static_cast<uint32_t>(other - job_.members.data()));
        if (const auto at = waits_in(member, lane, *other, there)) {
          Block& block = pair_block(not_called, Block::Kind::kPair, missing, 0);
          block.uncertain = block.uncertain || has_gap(member) || has_gap(*other);
          if (held_up(row, lane.first, *at))
            block.behind.push_back({row, *at});
          else
            add_end(block, row, *at);
        } else if (const auto runs = runs_alone(member, lane, *other, there)) {
          const auto end = job_.op_at(*other, *there, job_.ops(member).index[*runs]);
          add_end(pair_block(not_begun, Block::Kind::kStuck, missing, job_.ops(*other).entered_ns(*end)), row,
                  *runs);
        }
      }
    }
    for (auto& [missing, block] : not_called) keep(std::move(block));
    for (auto& [missing, block] : not_begun) keep(std::move(block));
    for (auto& [rank, block] : unseen) keep(std::move(block));
  }

  Block& absent_block(std::map<int32_t, Block>& blocks, int32_t rank) {
    const auto [at, is_new] = blocks.try_emplace(rank);
    if (is_new) at->second = make(Block::Kind::kPair, 0);
    at->second.pair = true;
    if (is_new) at->second.absent.push_back(job_state_.global_rank(comm_, rank));
    return at->second;
  }

  Block& pair_block(std::map<uint32_t, Block>& blocks, Block::Kind kind, uint32_t missing,
                    int64_t called_ns) {
    const auto [at, is_new] = blocks.try_emplace(missing);
    if (is_new) at->second = make(kind, 0);
    at->second.pair = true;
    add_missing(at->second, missing, called_ns);
    return at->second;
  }

  void add_end(Block& block, uint32_t row, uint32_t op) {
    const int64_t before = block.waited_ns;
    add_waiting(block, row, op);
    if (block.waited_ns > before) block.index = job_.ops(job_.members[row]).index[op];
  }

  // Those who came wait inside the creation of the communicator, which never gave them an operation to call.
  void find_init() {
    const model::JobComm& row = job_.comms[comm_];
    if (row.declared || row.ranks <= static_cast<int32_t>(members_.size())) return;
    Block block = make(Block::Kind::kInit, 0);
    for (uint32_t member : members_) {
      const Actor& actor = job_state_.actor_at(member);
      int64_t waited = actor.end_ns - job_.members[member].init_ns;
      // It left the communicator, or went on to call operations: creation is behind it.
      if (job_.members[member].end_ns != 0 || called_after(member)) continue;
      block.waiting.push_back(job_state_.actor_of(member));
      block.waiting_ns.push_back(job_.members[member].init_ns);
      if (waited <= block.waited_ns) continue;
      block.waited_ns = waited;
      block.process = actor.process;
      block.since_ns = job_.members[member].init_ns;
    }
    find_absent(block);
    std::map<int32_t, uint32_t> actors;
    for (uint32_t i = 0; i < job_state_.actors().size(); ++i) actors[job_state_.actor(i).rank] = i;
    // A rank that is absent here may be in the run: it left a file and never joined this communicator. Then
    // it can be asked what it did instead.
    std::erase_if(block.absent, [&](int32_t rank) {
      auto at = rank < 0 ? actors.end() : actors.find(rank);
      if (at == actors.end()) return false;
      add_missing(block, at->second, 0);
      return true;
    });
    keep(std::move(block));
  }

  // Who calls operations is not inside the creation of a communicator.
  bool called_after(uint32_t row) const {
    const model::JobProcess& process = job_.processes[job_.members[row].process];
    auto newest = [&](uint32_t first, uint32_t count) {
      return count == 0 ? 0 : process.ops.entered_ns(first + count - 1);
    };
    for (uint32_t other : process.members) {
      const Member& member = job_.members[other];
      int64_t last = newest(member.first, member.ops);
      for (const model::Lane& lane : member.lanes) last = std::max(last, newest(lane.first, lane.ops));
      if (last > job_.members[row].init_ns) return true;
    }
    return false;
  }

  // From the difference on nothing that the communicator does can be trusted to end.
  void find_mismatch() {
    Block block = make(Block::Kind::kMismatch, difference_->index);
    block.difference = difference_;
    // Of each member three things are asked: whether it differs, whether its count begins at the first call,
    // and how long it has stood still since its newest.
    bool all_done = true, is_counted = true;
    int64_t shortest = INT64_MAX;
    for (uint32_t row : members_) {
      const Member& member = job_.members[row];
      auto op = job_.op_at(member, difference_->index);
      if (!op) continue;
      is_counted = is_counted && member.alignment == Member::Alignment::kFromStart &&
                   job_state_.is_captured(member.process);
      bool differs = std::binary_search(difference_->members.begin(), difference_->members.end(), row);
      if (differs) add_missing(block, job_state_.actor_of(row), job_.ops(member).entered_ns(*op));
      // Others may have called more since; who stands still stands in its newest.
      uint32_t newest = member.first + member.ops - 1;
      Progress of = progress(job_state_, member);
      all_done = all_done && of.state == Progress::State::kDone;
      int64_t entered = job_.ops(member).entered_ns(newest);
      if (entered != 0) shortest = std::min(shortest, job_state_.actor_at(row).end_ns - entered);
      if (!differs) add_waiting(block, row, *op);
    }
    // All that differ have ended, and places may be wrong by as many calls as the record lacks: no difference
    // is shown.
    if ((all_done && !is_counted) || shortest == INT64_MAX) return;
    if (!found_) block.waited_ns = std::min(block.waited_ns, shortest);
    // Calls that were counted from the first on differ, however long anybody waits.
    if (is_counted) block.is_fact = true;
    if (is_counted || found_ || shortest > block.patience.suspicious_ns()) keep(std::move(block));
  }

  struct Standing {
    uint32_t row = 0;
    Progress progress;
  };

  // An operation that all have called runs somewhere and has ended nowhere: what was called after it waits
  // for it.
  bool unfinished_before(uint32_t index) const {
    uint32_t oldest = kNoIndex;
    for (uint32_t row : members_) {
      const Member& member = job_.members[row];
      Progress of = progress(job_state_, member);
      if (of.state == Progress::State::kRunning) oldest = std::min(oldest, job_.ops(member).index[of.op]);
    }
    // Nobody leaves a collective before all have entered: an end on any member shows that it is not what
    // holds them.
    if (oldest >= index) return false;
    return std::none_of(members_.begin(), members_.end(), [&](uint32_t row) {
      auto op = job_.op_at(job_.members[row], oldest);
      return op && job_.ops(job_.members[row]).gpu_end_ns[*op] != 0;
    });
  }

  // All members have called it. What the GPU and the network show of it, and for how long already.
  void find_stuck() {
    const std::vector<StuckStep> steps = stuck_steps(job_state_, cadence_.of_comm(comm_), comm_);
    std::vector<Standing> standing;
    bool running = false, queued = false;
    for (uint32_t row : members_) {
      Standing of{row, newest_progress(job_.members[row], !steps.empty())};
      running = running || of.progress.state == Progress::State::kRunning;
      queued = queued || of.progress.state == Progress::State::kQueued;
      standing.push_back(of);
    }
    Block block = make(running ? Block::Kind::kStuck : Block::Kind::kSilent, most_ == 0 ? 0 : most_ - 1);
    // Buffers are posted before a kernel begins: what has begun nowhere is behind something else.
    if (!steps.empty() && !queued) block.kind = Block::Kind::kStuck;
    int64_t shortest = INT64_MAX;
    for (const Standing& of : standing) {
      const Progress::State state = of.progress.state;
      // Who is gone cannot end it; who has not begun it keeps those waiting that have.
      bool holds =
          is_gone(job_state_.actor_at(of.row).fate) || (running && state == Progress::State::kQueued);
      const model::JobOps& ops = job_.ops(job_.members[of.row]);
      bool has_op = of.progress.op < ops.size();
      if (holds) add_missing(block, job_state_.actor_of(of.row), has_op ? ops.entered_ns(of.progress.op) : 0);
      if (holds || state == Progress::State::kDone || !has_op) continue;
      if (block.kind == Block::Kind::kStuck && state == Progress::State::kUnknown && steps.empty()) continue;
      add_waiting(block, of.row, of.progress.op);
      const int64_t since = waits_since(job_state_, of.row, of.progress.op);
      const Actor& actor = job_state_.actor_at(of.row);
      // A rank that still does other things may have lost the end of this one.
      if (since != 0) shortest = std::min({shortest, actor.end_ns - since, actor.quiet_ns});
    }
    find_absent(block);
    if (shortest == INT64_MAX) return;
    // Who came last began the operation.
    block.waited_ns = std::min(block.waited_ns, shortest);
    // The index to name is that of the one who waits longest: others may have called more behind it.
    if (block.process != kNoRow) block.index = job_.processes[block.process].ops.index[block.op];
    keep(std::move(block));
  }

  // Of the newest collectives; of the newest sends and receives where there are none. `has_steps`: those of
  // transfers show what moves, whoever has called what.
  Progress newest_progress(const Member& member, bool has_steps) const {
    const model::JobOps& ops = job_.ops(member);
    Progress newest = progress(job_state_, member);
    if (newest.state == Progress::State::kUnknown && member.ops > 0)
      newest.op = member.first + member.ops - 1;
    if (newest.state == Progress::State::kRunning) return newest;
    // Where older ones are gone, the other end of one that runs may not have been called.
    if (member.alignment != Member::Alignment::kFromStart) return newest;
    for (const model::Lane& lane : member.lanes) {
      const Member* other = nullptr;
      job::match::counterpart(job_, member, lane, &other);
      if (!has_steps && other != nullptr && !job::match::pairs_comparable(job_, member, *other)) continue;
      Progress of = progress(ops, lane.first, lane.ops);
      if (of.state == Progress::State::kUnknown) of.op = lane.first + lane.ops - 1;
      bool first = member.ops == 0 && &lane == member.lanes.data();
      if (first || of.state > newest.state) newest = of;
    }
    return newest;
  }

  const JobState& job_state_;
  const model::Job& job_;
  Cadence& cadence_;
  uint32_t comm_;
  const job::match::Difference* difference_;
  std::vector<Block>& out_;
  std::vector<uint32_t> members_;
  uint32_t least_ = kNoIndex, most_ = 0;
  bool used_ = false, found_ = false;
  bool unknown_ = false;  // the newest operation may be one that a torn record does not mention
};

}  // namespace

std::vector<Block> find_blocks(const JobState& job_state, Cadence& cadence,
                               const std::vector<job::match::Difference>& differences) {
  std::map<uint32_t, const job::match::Difference*> of_comm;
  for (const job::match::Difference& difference : differences) of_comm[difference.comm] = &difference;
  std::vector<Block> blocks;
  for (uint32_t comm = 0; comm < job_state.job().comms.size(); ++comm) {
    auto at = of_comm.find(comm);
    CommBlocks(job_state, cadence, comm, at == of_comm.end() ? nullptr : at->second, blocks).find();
  }
  join_those_behind(job_state, blocks);
  return blocks;
}

}  // namespace lockstep::analysis::hang
