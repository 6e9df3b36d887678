// SPDX-License-Identifier: Apache-2.0
// Looks for two communicators whose operations some ranks call in the other order. It compares how far each
// rank was on one communicator when it called each operation of the other. In a deadlock the ranks agree
// nearly everywhere and differ at the end. Ranks that differ at more than two places call in no fixed order,
// and then a difference proves nothing.
#include "analysis/hang/calls/swapped_calls.h"

#include <algorithm>
#include <map>

namespace lockstep::analysis::hang {
namespace {

using model::kNoIndex;
using model::Member;

constexpr uint32_t kNewestOps = 1024;  // operations of a communicator that are looked at
constexpr size_t kMostDifferent = 2;   // places at which a deadlock makes ranks differ
constexpr size_t kMostComms = 16;      // of a rank, the newest used: a deadlock is at the end of what it did

// A rank that calls operations of two communicators.
struct Caller {
  uint32_t actor;
  const Member *a, *b;
};

// How far the rank was on b when it called the newest operations of a.
class Progressions {
 public:
  Progressions(const model::Job& job, const Caller& caller) {
    const Member &a = *caller.a, &b = *caller.b;
    const model::JobOps& ops = job.ops(a);
    uint32_t end = a.first + a.ops, first = end - std::min(a.ops, kNewestOps);
    first_ = ops.index[first];
    // Where the walk through b begins, by bisection: both columns ascend in time.
    uint32_t next = b.first;
    for (uint32_t after = b.first + b.ops; next < after;) {
      uint32_t middle = next + (after - next) / 2;
      if (ops.entered_ns(middle) < ops.entered_ns(first))
        next = middle + 1;
      else
        after = middle;
    }
    for (uint32_t i = first; i < end; ++i) {
      // Behind a gap an index no longer says which operation the others were in.
      if (ops.index[i] != first_ + (i - first)) break;  // some between them were lost
      while (next < b.first + b.ops && ops.entered_ns(next) < ops.entered_ns(i)) ++next;
      next_.push_back(next == b.first ? ops.index[b.first] : ops.index[next - 1] + 1);
    }
  }
  // Index of the operation of b that came next; kNoIndex: nothing known of this operation of a.
  uint32_t next(uint32_t index) const {
    return index >= first_ && index - first_ < next_.size() ? next_[index - first_] : kNoIndex;
  }
  uint32_t first() const { return first_; }
  uint32_t end() const { return first_ + static_cast<uint32_t>(next_.size()); }

 private:
  uint32_t first_;
  std::vector<uint32_t> next_;
};

std::optional<SwappedCalls> compare(const model::Job& job, const std::vector<Caller>& callers) {
  std::vector<Progressions> all;
  uint32_t from = kNoIndex, to = 0;
  for (const Caller& caller : callers) {
    all.emplace_back(job, caller);
    from = std::min(from, all.back().first());
    to = std::max(to, all.back().end());
  }
  from = std::max(from, to - std::min(to, kNewestOps));
  std::optional<SwappedCalls> newest;
  size_t different = 0;
  for (uint32_t index = to; index-- > from;) {
    uint32_t low = kNoIndex, high = 0;
    for (const Progressions& of : all) {
      if (of.next(index) == kNoIndex) continue;
      low = std::min(low, of.next(index));
      high = std::max(high, of.next(index));
    }
    if (low >= high) continue;
    // Ranks that are more than one call apart follow no common order.
    if (high - low > 1 || ++different > kMostDifferent) return std::nullopt;
    if (newest) continue;
    newest.emplace();
    newest->a.index = index;
    newest->b.index = low;
    for (size_t i = 0; i < callers.size(); ++i) {
      uint32_t next = all[i].next(index);
      if (next != kNoIndex) (next == low ? newest->a : newest->b).actors.push_back(callers[i].actor);
    }
  }
  return newest;
}

}  // namespace

std::optional<SwappedCalls> find_swapped_calls(const JobState& job_state, const std::vector<Block>& blocks) {
  const model::Job& job = job_state.job();
  std::map<uint32_t, uint32_t> still;  // communicator -> block
  for (uint32_t b = 0; b < blocks.size(); ++b) {
    // Only communicators that stand still: an order that differs and did no harm is the program's business.
    bool is = blocks[b].kind == Block::Kind::kSilent || blocks[b].kind == Block::Kind::kCollective;
    if (is && blocks[b].certain()) still[blocks[b].comm] = b;
  }
  std::map<std::pair<uint32_t, uint32_t>, std::vector<Caller>> pairs;  // by communicators
  for (uint32_t actor = 0; actor < job_state.actors().size(); ++actor) {
    std::vector<const Member*> own;
    for (uint32_t row : job.processes[job_state.actor(actor).process].members) {
      const Member& member = job.members[row];
      bool comparable = member.ops > 0 && member.alignment != Member::Alignment::kNone;
      if (comparable && still.contains(member.comm) && job_state.actor_of(row) == actor)
        own.push_back(&member);
    }
    auto newest_ns = [&](const Member* member) {
      return job.ops(*member).entered_ns(member->first + member->ops - 1);
    };
    if (own.size() > kMostComms) {
      std::partial_sort(own.begin(), own.begin() + kMostComms, own.end(),
                        [&](const Member* a, const Member* b) {
                          return std::pair(-newest_ns(a), a->comm) < std::pair(-newest_ns(b), b->comm);
                        });
      own.resize(kMostComms);
    }
    std::sort(own.begin(), own.end(), [](const Member* a, const Member* b) { return a->comm < b->comm; });
    for (size_t i = 0; i < own.size(); ++i) {
      for (size_t j = i + 1; j < own.size(); ++j)
        pairs[{own[i]->comm, own[j]->comm}].push_back({actor, own[i], own[j]});
    }
  }
  for (const auto& [comms, callers] : pairs) {
    if (callers.size() < 2) continue;
    if (auto swapped = compare(job, callers)) {
      swapped->a.block = still[comms.first];
      swapped->b.block = still[comms.second];
      return swapped;
    }
  }
  return std::nullopt;
}

}  // namespace lockstep::analysis::hang
