// SPDX-License-Identifier: Apache-2.0
// Counts how many operations were found on all ranks, and why the others were not. The reasons exclude each
// other, so that the counts add up to the number of operations. Also holds the rules about what an operation
// proves: which ones end for nobody before all have come, and for which a stamp of the GPU means that all
// data has moved.
#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "job/match/match.h"
#include "job/match/windows.h"
#include "model/recording_modes.h"

namespace lockstep::job::match {
namespace {

using model::kNoRow;
using model::Member;

class Counter {
 public:
  Counter(const model::Job& job, const model::JobComm& comm) : job_(job), comm_(comm) {
    for (uint32_t row : comm.members) {
      if (row != kNoRow) members_.push_back(&job.members[row]);
    }
    absent_ = comm.ranks < 0 || members_.size() < static_cast<size_t>(comm.ranks);
  }

  CommMatch count() {
    for (const Member* member : members_) {
      newest_shared_ = std::min(newest_shared_, job_.next_index(*member));
      oldest_shared_ = std::max(oldest_shared_, job_.oldest_index(*member));
      aligned_ = aligned_ && member->alignment != Member::Alignment::kNone;
    }
    // Without gaps the shared operations are a range and need no counting: that is nearly every job.
    if (std::any_of(members_.begin(), members_.end(), [this](const Member* m) { return has_gaps(*m); }))
      shared_ = count_shared();
    for (const Member* member : members_) {
      count_collectives(*member);
      for (const model::Lane& lane : member->lanes) count_lane(*member, lane);
    }
    for (uint32_t row : comm_.unranked) {
      const Member& member = job_.members[row];
      uint64_t ops = member.ops;
      for (const model::Lane& lane : member.lanes) ops += lane.ops;
      // A member whose rank is impossible, or taken by another, belongs to no place of the communicator.
      add(comm_.comm_id == 0 ? Reason::kCommUnknown : Reason::kNotAligned, ops);
    }
    return match_;
  }

 private:
  void add(Reason reason, uint64_t ops) { match_.unmatched[static_cast<size_t>(reason)] += ops; }

  bool has_gaps(const Member& member) const {
    return member.ops > 0 && job_.next_index(member) - job_.oldest_index(member) != member.ops;
  }

  // Indexes that every member has.
  uint64_t count_shared() const {
    std::vector<uint32_t> shared, both;
    for (const Member* member : members_) {
      auto begin = job_.ops(*member).index.begin() + member->first, end = begin + member->ops;
      both.clear();
      if (member == members_.front())
        both.assign(begin, end);
      else
        std::set_intersection(shared.begin(), shared.end(), begin, end, std::back_inserter(both));
      shared.swap(both);
    }
    return shared.size();
  }

  void count_collectives(const Member& member) {
    if (comm_.comm_id == 0 && !comm_.declared) return add(Reason::kCommUnknown, member.ops);
    if (absent_) return add(Reason::kRankAbsent, member.ops);
    if (!aligned_) return add(Reason::kNotAligned, member.ops);
    const Column<uint32_t>& index = job_.ops(member).index;
    auto begin = index.begin() + member.first, end = begin + member.ops;
    // Below it somebody has forgotten, from `fresh` on somebody has not called; between them all have it,
    // less the gaps.
    auto old = std::lower_bound(begin, end, oldest_shared_);
    auto fresh = std::lower_bound(old, end, newest_shared_);
    uint64_t shared = std::min<uint64_t>(static_cast<uint64_t>(fresh - old), shared_);
    match_.matched += shared;
    add(Reason::kForgotten, static_cast<uint64_t>(fresh - begin) - shared);
    add(Reason::kNotCalled, static_cast<uint64_t>(end - fresh));
  }

  void count_lane(const Member& member, const model::Lane& lane) {
    const Member* other = nullptr;
    const model::Lane* there = counterpart(job_, member, lane, &other);
    if (other == nullptr) return add(Reason::kRankAbsent, lane.ops);
    if (!pairs_comparable(job_, member, *other)) return add(Reason::kNotAligned, lane.ops);
    uint32_t both = there == nullptr ? 0 : std::min(lane.ops, there->ops);
    match_.matched += both;
    add(Reason::kNotCalled, lane.ops - both);
  }

  const model::Job& job_;
  const model::JobComm& comm_;
  std::vector<const Member*> members_;
  bool absent_ = false, aligned_ = true;
  uint64_t shared_ = UINT64_MAX;  // operations that all have, where that is not simply a range
  uint32_t newest_shared_ = model::kNoIndex, oldest_shared_ = 0;
  CommMatch match_;
};

}  // namespace

std::string_view reason_text(Reason reason) {
  constexpr std::string_view kTexts[kReasons] = {"rank absent", "not called by another rank",
                                                 "forgotten by another rank", "order unknown",
                                                 "communicator unknown"};
  return kTexts[static_cast<size_t>(reason)];
}

std::vector<CommMatch> count_matches(const model::Job& job) {
  std::vector<CommMatch> counts;
  for (const model::JobComm& comm : job.comms) counts.push_back(Counter(job, comm).count());
  return counts;
}

bool waits_for_all(const model::Job& job, const model::Signature& signature) {
  if (signature.kind != model::number(model::EventKind::kColl)) return false;
  const std::string_view func = job.text(signature.func);
  return func == "AllReduce" || func == "AllGather" || func == "ReduceScatter" || func == "AlltoAll";
}

// KernelCh is stamped by the first thread of a channel's block. In a ring that thread waits for the last
// data; in a tree, in NVLS and CollNet, and in batches of sends and receives it may only have sent its own.
bool ends_with_data(const model::Job& job, const model::Signature& signature) {
  return job.text(signature.algo) == "RING";
}

bool has_all(const model::Job& job, const model::JobProcess& process) {
  return process.lost == 0 && !model::was_off(job.text(process.row.modes));
}

const model::Lane* counterpart(const model::Job& job, const Member& member, const model::Lane& lane,
                               const Member** other) {
  *other = nullptr;
  const model::JobComm& comm = job.comms[member.comm];
  if (lane.peer < 0 || static_cast<size_t>(lane.peer) >= comm.members.size()) return nullptr;
  uint32_t row = comm.members[static_cast<size_t>(lane.peer)];
  if (row == kNoRow) return nullptr;
  *other = &job.members[row];
  // Lanes are sorted by peer and direction, so the other end is found without a table.
  auto key = [](const model::Lane& l) { return std::pair(l.peer, l.is_send); };
  const std::vector<model::Lane>& lanes = (*other)->lanes;
  auto wanted = std::pair(member.rank, !lane.is_send);
  auto there = std::lower_bound(lanes.begin(), lanes.end(), wanted,
                                [&](const model::Lane& l, const auto& k) { return key(l) < k; });
  return there != lanes.end() && key(*there) == wanted ? &*there : nullptr;
}

bool pairs_comparable(const model::Job& job, const Member& a, const Member& b) {
  const model::JobProcess &here = job.processes[a.process], &there = job.processes[b.process];
  return has_all(job, here) && has_all(job, there) && windows_begin_alike(here, there);
}

}  // namespace lockstep::job::match
