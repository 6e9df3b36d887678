// SPDX-License-Identifier: Apache-2.0
#include "analysis/hang/blocks.h"

#include <algorithm>
#include <map>

namespace lockstep::analysis::hang {
namespace {

using model::kNoIndex;
using model::kNoRow;
using model::Member;

bool comparable(const Member& member) {
  return member.ops == 0 || member.alignment != Member::Alignment::kNone;
}

bool gone(Fate fate) { return fate != Fate::kPresent && fate != Fate::kClosed; }

class CommBlocks {
 public:
  CommBlocks(const Scene& scene, Rhythm& rhythm, uint32_t comm, const job::match::Difference* difference,
             std::vector<Block>& out)
      : scene_(scene), job_(scene.job()), rhythm_(rhythm), comm_(comm), difference_(difference), out_(out) {}

  void find() {
    const model::JobComm& row = job_.comms[comm_];
    if (scene_.is_history(comm_) || row.members.empty()) return;
    for (uint32_t member : row.members) {
      if (member == kNoRow) continue;
      members_.push_back(member);
      const Member& of = job_.members[member];
      if (scene_.gap(of.process).unproven) continue;
      used_ = used_ || of.ops > 0 || !of.lanes.empty();
      if (!comparable(of)) continue;
      uint32_t next = job_.next_index(of);
      if (next < least_ && !scene_.cut_short(of.process)) least_ = next;
      most_ = std::max(most_, next);
    }
    for (uint32_t row : members_) untold_ = untold_ || is_untold(row, most_);
    if (members_.empty()) return;
    if (!used_) return find_init();
    // Whoever has come past the difference lags because of it.
    if (difference_ != nullptr && !is_proven(*difference_)) difference_ = nullptr;
    bool differs_first = difference_ != nullptr && (least_ >= most_ || difference_->index < least_);
    if (differs_first) find_mismatch();
    if (!found_ && !untold_ && unfinished_before(least_)) find_stuck();
    if (!found_ && least_ < most_) find_collective();
    if (!found_ && untold_) find_untold();
    if (difference_ != nullptr && !differs_first) find_mismatch();
    find_pairs();
    if (!found_ && !untold_) find_stuck();
  }

 private:
  // Whether it called the operation before `next` is not known: that part of its record is missing.
  bool is_untold(uint32_t row, uint32_t next) const {
    const Member& member = job_.members[row];
    if (scene_.gap(member.process).unproven) return true;
    if (!comparable(member)) return scene_.gap(member.process).any();
    return scene_.torn(member.process) && job_.next_index(member) < next;
  }

  Block make(Block::Kind kind, uint32_t index) {
    Block block;
    block.kind = kind;
    block.comm = comm_;
    block.index = index;
    block.patience = rhythm_.of_comm(comm_);
    return block;
  }

  // The member is in operation `op` of its process.
  void add_waiting(Block& block, uint32_t member, uint32_t op) {
    const Actor& actor = scene_.actor_at(member);
    // What became of it since its recording was switched off is not known.
    if (block.kind != Block::Kind::kMismatch && scene_.is_off(actor.process)) return;
    int64_t entered = job_.ops(job_.members[member]).entered_ns(op);
    block.waiting.push_back(scene_.actor_of(member));
    block.waiting_ns.push_back(entered);
    if (entered == 0) return;
    int64_t waited = actor.end_ns - entered;
    if (block.process != kNoRow && waited <= block.waited_ns) return;
    block.process = actor.process;
    block.op = op;
    block.since_ns = entered;
    block.waited_ns = waited;
  }

  // One that was still watched after those who wait had ended lets them wait until then.
  void extend(Block& block) const {
    if (block.process == kNoRow) return;
    for (uint32_t actor : block.missing) {
      auto later = scene_.between(block.process, block.since_ns, scene_.actor(actor).process,
                                  scene_.actor(actor).end_ns);
      if (later) block.waited_ns = std::max(block.waited_ns, *later);
    }
  }

  void keep(Block&& block) {
    extend(block);
    if (!block.is_fact && block.waited_ns <= block.patience.suspicious_ns()) return;
    sort_by_actor(block.waiting, block.waiting_ns);
    sort_by_actor(block.missing, block.missing_ns);
    found_ = true;
    out_.push_back(std::move(block));
  }

  // Each once; of one that is there in several ways, the oldest.
  static void sort_by_actor(std::vector<uint32_t>& actors, std::vector<int64_t>& times) {
    std::vector<std::pair<uint32_t, int64_t>> all;
    for (size_t i = 0; i < actors.size(); ++i) all.emplace_back(actors[i], times[i]);
    std::sort(all.begin(), all.end());
    actors.clear();
    times.clear();
    for (const auto& [actor, time] : all) {
      if (!actors.empty() && actors.back() == actor) continue;
      actors.push_back(actor);
      times.push_back(time);
    }
  }

  void add_missing(Block& block, uint32_t actor, int64_t called_ns) const {
    block.missing.push_back(actor);
    block.missing_ns.push_back(called_ns);
  }

  // A rank whose record has gaps may have been there.
  void find_absent(Block& block) const {
    for (const int32_t rank : scene_.absent_of(comm_)) {
      if (const uint32_t torn = scene_.torn_actor(rank); torn != kNoRow)
        add_missing(block, torn, 0);
      else
        block.absent.push_back(rank);
    }
  }

  void find_collective() {
    Block block = make(Block::Kind::kCollective, least_);
    for (uint32_t row : members_) {
      const Member& member = job_.members[row];
      if (is_untold(row, least_ + 1)) {
        add_missing(block, scene_.actor_of(row), 0);
      } else if (!comparable(member)) {
        continue;
      } else if (job_.next_index(member) <= least_) {
        if (!scene_.cut_short(member.process)) add_missing(block, scene_.actor_of(row), 0);
      } else if (auto op = job_.op_at(member, std::max(least_, job_.oldest_index(member)))) {
        if (!held_up(row, member.first, *op)) add_waiting(block, row, *op);
      }
    }
    keep(std::move(block));
  }

  // It has called the operation, and stands behind something that it called before.
  bool held_up(uint32_t row, uint32_t first, uint32_t op) const {
    return queued(job_.ops(job_.members[row]), first, op) &&
           !is_oldest_unfinished(scene_, scene_.actor_of(row), op);
  }

  // All whose record is whole have called it. Who called something else since may have left it.
  void find_untold() {
    if (most_ == 0) return;
    Block block = make(Block::Kind::kCollective, most_ - 1);
    for (uint32_t row : members_) {
      const Member& member = job_.members[row];
      if (is_untold(row, most_)) {
        add_missing(block, scene_.actor_of(row), 0);
      } else if (auto op = comparable(member) ? job_.op_at(member, most_ - 1) : std::nullopt) {
        const Progress::State state = progress(job_.ops(member), member.first, member.ops).state;
        const bool may_wait =
            state == Progress::State::kRunning || (state != Progress::State::kDone && is_newest(member, *op));
        if (may_wait && !held_up(row, member.first, *op)) add_waiting(block, row, *op);
      }
    }
    keep(std::move(block));
  }

  // The member's process called nothing after this operation.
  bool is_newest(const Member& member, uint32_t op) const {
    const Column<int64_t>& called = job_.ops(member).called_ns;
    return called[op] == *std::max_element(called.begin(), called.end());
  }

  bool is_proven(const job::match::Difference& difference) const {
    auto unproven = [&](uint32_t row) { return scene_.gap(job_.members[row].process).unproven; };
    return !unproven(difference.like) &&
           std::none_of(difference.members.begin(), difference.members.end(), unproven);
  }

  bool has_gap(const Member& member) const { return scene_.gap(member.process).any(); }

  // The first operation of the lane that the other end has not called. Where the record of either has gaps, counts do not
  // tell: whoever stands still behind an operation of the lane may wait in it.
  std::optional<uint32_t> waits_in(const Member& member, const model::Lane& lane, const Member& other,
                                   const model::Lane* there) const {
    if (lane.ops == 0 || scene_.gap(member.process).unproven) return std::nullopt;
    if (has_gap(member) || has_gap(other))
      return is_newest(member, lane.first + lane.ops - 1) ? std::optional(lane.ops - 1) : std::nullopt;
    const uint32_t called = there == nullptr ? 0 : there->ops;
    const bool compares =
        member.alignment == Member::Alignment::kFromStart && other.alignment == Member::Alignment::kFromStart;
    if (!compares || called >= lane.ops || scene_.cut_short(other.process)) return std::nullopt;
    return called;
  }

  // The oldest operation of the lane that runs on this end's GPU, where it has not begun on the other's.
  std::optional<uint32_t> runs_alone(const Member& member, const model::Lane& lane, const Member& other,
                                     const model::Lane* there) const {
    const Progress of = progress(job_.ops(member), lane.first, lane.ops);
    if (there == nullptr || of.state != Progress::State::kRunning) return std::nullopt;
    const uint32_t at = of.op - lane.first;
    const bool holds = at < there->ops && queued(job_.ops(other), there->first, there->first + at);
    if (!holds || has_gap(member) || has_gap(other) || !job::match::pairs_comparable(job_, member, other))
      return std::nullopt;
    return at;
  }

  // Sends and receives: one block for each rank that does not come, however many wait for it; and one for each whose
  // kernel does not begin.
  void find_pairs() {
    std::map<uint32_t, Block> not_called, not_begun;  // by the actor that is missing
    for (uint32_t row : members_) {
      const Member& member = job_.members[row];
      for (const model::Lane& lane : member.lanes) {
        const Member* other = nullptr;
        const model::Lane* there = job::match::counterpart(job_, member, lane, &other);
        if (other == nullptr) continue;
        const uint32_t missing = scene_.actor_of(static_cast<uint32_t>(other - job_.members.data()));
        if (const auto at = waits_in(member, lane, *other, there)) {
          Block& block = pair_block(not_called, Block::Kind::kPair, missing, *at, 0);
          block.uncertain = block.uncertain || has_gap(member) || has_gap(*other);
          if (!held_up(row, lane.first, lane.first + *at)) add_end(block, row, lane, *at);
        } else if (const auto runs = runs_alone(member, lane, *other, there)) {
          const int64_t called_ns = job_.ops(*other).entered_ns(there->first + *runs);
          add_end(pair_block(not_begun, Block::Kind::kStuck, missing, *runs, called_ns), row, lane, *runs);
        }
      }
    }
    for (auto& [missing, block] : not_called) keep(std::move(block));
    for (auto& [missing, block] : not_begun) keep(std::move(block));
  }

  Block& pair_block(std::map<uint32_t, Block>& blocks, Block::Kind kind, uint32_t missing, uint32_t index,
                    int64_t called_ns) {
    const auto [at, is_new] = blocks.try_emplace(missing);
    if (is_new) at->second = make(kind, index);
    at->second.pair = true;
    add_missing(at->second, missing, called_ns);
    return at->second;
  }

  void add_end(Block& block, uint32_t row, const model::Lane& lane, uint32_t index) {
    const int64_t before = block.waited_ns;
    add_waiting(block, row, lane.first + index);
    if (block.waited_ns > before) block.index = index;
  }

  // Those who came wait inside the creation of the communicator, which never gave them an operation to call.
  void find_init() {
    const model::JobComm& row = job_.comms[comm_];
    if (row.declared || row.ranks <= static_cast<int32_t>(members_.size())) return;
    Block block = make(Block::Kind::kInit, 0);
    for (uint32_t member : members_) {
      const Actor& actor = scene_.actor_at(member);
      int64_t waited = actor.end_ns - job_.members[member].init_ns;
      if (job_.members[member].end_ns != 0 || called_after(member)) continue;
      block.waiting.push_back(scene_.actor_of(member));
      block.waiting_ns.push_back(job_.members[member].init_ns);
      if (waited <= block.waited_ns) continue;
      block.waited_ns = waited;
      block.process = actor.process;
      block.since_ns = job_.members[member].init_ns;
    }
    find_absent(block);
    std::map<int32_t, uint32_t> actors;
    for (uint32_t i = 0; i < scene_.actors().size(); ++i) actors[scene_.actor(i).rank] = i;
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
    bool all_done = true, is_counted = true;
    int64_t shortest = INT64_MAX;
    for (uint32_t row : members_) {
      const Member& member = job_.members[row];
      auto op = job_.op_at(member, difference_->index);
      if (!op) continue;
      is_counted = is_counted && member.alignment == Member::Alignment::kFromStart &&
                   scene_.is_captured(member.process);
      bool differs = std::binary_search(difference_->members.begin(), difference_->members.end(), row);
      if (differs) add_missing(block, scene_.actor_of(row), job_.ops(member).entered_ns(*op));
      // Others may have called more since; who stands still stands in its newest.
      uint32_t newest = member.first + member.ops - 1;
      Progress of = progress(job_.ops(member), member.first, member.ops);
      all_done = all_done && of.state == Progress::State::kDone;
      int64_t entered = job_.ops(member).entered_ns(newest);
      if (entered != 0) shortest = std::min(shortest, scene_.actor_at(row).end_ns - entered);
      if (!differs) add_waiting(block, row, *op);
    }
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

  // An operation that all have called runs somewhere and has ended nowhere: what was called after it waits for it.
  bool unfinished_before(uint32_t index) const {
    uint32_t oldest = kNoIndex;
    for (uint32_t row : members_) {
      const Member& member = job_.members[row];
      Progress of = progress(job_.ops(member), member.first, member.ops);
      if (of.state == Progress::State::kRunning) oldest = std::min(oldest, job_.ops(member).index[of.op]);
    }
    if (oldest >= index) return false;
    return std::none_of(members_.begin(), members_.end(), [&](uint32_t row) {
      auto op = job_.op_at(job_.members[row], oldest);
      return op && job_.ops(job_.members[row]).gpu_end_ns[*op] != 0;
    });
  }

  // All members have called it. What the GPU and the network show of it, and for how long already.
  void find_stuck() {
    std::vector<Standing> standing;
    bool running = false, queued = false;
    for (uint32_t row : members_) {
      Standing of{row, newest_progress(job_.members[row])};
      running = running || of.progress.state == Progress::State::kRunning;
      queued = queued || of.progress.state == Progress::State::kQueued;
      standing.push_back(of);
    }
    Block block = make(running ? Block::Kind::kStuck : Block::Kind::kSilent, most_ == 0 ? 0 : most_ - 1);
    std::vector<StuckStep> steps = stuck_steps(scene_, block.patience, comm_);
    // Buffers are posted before a kernel begins: what has begun nowhere is behind something else.
    if (!steps.empty() && !queued) block.kind = Block::Kind::kStuck;
    int64_t shortest = INT64_MAX;
    for (const Standing& of : standing) {
      Progress::State state = of.progress.state;
      bool is_gone = gone(scene_.actor_at(of.row).fate);
      bool holds = is_gone || (running && state == Progress::State::kQueued);
      const model::JobOps& ops = job_.ops(job_.members[of.row]);
      bool has_op = of.progress.op < ops.size();
      if (holds) add_missing(block, scene_.actor_of(of.row), has_op ? ops.entered_ns(of.progress.op) : 0);
      if (holds || state == Progress::State::kDone) continue;
      if (block.kind == Block::Kind::kStuck && state == Progress::State::kUnknown && steps.empty()) continue;
      if (!has_op) continue;
      add_waiting(block, of.row, of.progress.op);
      int64_t entered = ops.entered_ns(of.progress.op);
      const Actor& actor = scene_.actor_at(of.row);
      // A rank that still does other things may have lost the end of this one.
      if (entered != 0) shortest = std::min({shortest, actor.end_ns - entered, actor.quiet_ns});
    }
    find_absent(block);
    if (shortest == INT64_MAX) return;
    // Who came last began the operation.
    block.waited_ns = std::min(block.waited_ns, shortest);
    if (block.process != kNoRow) block.index = job_.processes[block.process].ops.index[block.op];
    keep(std::move(block));
  }

  // Of the newest collectives; of the newest sends and receives where there are none.
  Progress newest_progress(const Member& member) const {
    const model::JobOps& ops = job_.ops(member);
    Progress newest = progress(ops, member.first, member.ops);
    if (newest.state == Progress::State::kUnknown && member.ops > 0)
      newest.op = member.first + member.ops - 1;
    if (newest.state == Progress::State::kRunning) return newest;
    // Where older ones are gone, the other end of one that runs may not have been called.
    if (member.alignment != Member::Alignment::kFromStart) return newest;
    for (const model::Lane& lane : member.lanes) {
      Progress of = progress(ops, lane.first, lane.ops);
      if (of.state == Progress::State::kUnknown) of.op = lane.first + lane.ops - 1;
      bool first = member.ops == 0 && &lane == member.lanes.data();
      if (first || of.state > newest.state) newest = of;
    }
    return newest;
  }

  const Scene& scene_;
  const model::Job& job_;
  Rhythm& rhythm_;
  uint32_t comm_;
  const job::match::Difference* difference_;
  std::vector<Block>& out_;
  std::vector<uint32_t> members_;
  uint32_t least_ = kNoIndex, most_ = 0;
  bool used_ = false, found_ = false;
  bool untold_ = false;  // the newest operation may be one that a torn record does not tell of
};

}  // namespace

namespace {

// A step whose end was lost is much older than what its lane has done since; steps that overlap are not.
bool overtaken(const model::JobProcess& process, const model::OpenStep& step, int64_t patience_ns) {
  return std::any_of(process.net_pairs.begin(), process.net_pairs.end(), [&](const model::NetPair& pair) {
    return pair.member == step.member && pair.peer == step.peer && pair.channel == step.channel &&
           pair.is_send == step.is_send && pair.last_ns - step.since_ns > patience_ns;
  });
}

}  // namespace

std::vector<StuckStep> stuck_steps(const Scene& scene, const Patience& patience, uint32_t comm) {
  std::vector<StuckStep> stuck;
  const model::Job& job = scene.job();
  for (uint32_t row : job.comms[comm].members) {
    if (row == kNoRow || gone(scene.actor_at(row).fate) || scene.is_off(job.members[row].process)) continue;
    const model::JobProcess& process = job.processes[job.members[row].process];
    for (const model::OpenStep& step : process.open_steps) {
      int64_t waited = scene.actor_at(row).end_ns - step.since_ns;
      if (step.member == row && waited > patience.suspicious_ns() &&
          !overtaken(process, step, patience.suspicious_ns()))
        stuck.push_back({row, &step, waited});
    }
  }
  return stuck;
}

std::vector<Block> find_blocks(const Scene& scene, Rhythm& rhythm,
                               const std::vector<job::match::Difference>& differences) {
  std::map<uint32_t, const job::match::Difference*> of_comm;
  for (const job::match::Difference& difference : differences) of_comm[difference.comm] = &difference;
  std::vector<Block> blocks;
  for (uint32_t comm = 0; comm < scene.job().comms.size(); ++comm) {
    auto at = of_comm.find(comm);
    CommBlocks(scene, rhythm, comm, at == of_comm.end() ? nullptr : at->second, blocks).find();
  }
  return blocks;
}

}  // namespace lockstep::analysis::hang
