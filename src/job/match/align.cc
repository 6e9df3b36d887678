// SPDX-License-Identifier: Apache-2.0
// Gives the n-th operation of each member one number. A record that lost nothing is counted from its start.
// Any other is placed by NCCL's own numbers, which count by communicator and function: those of the fullest
// member are the reference, and operations between two known places keep their distance. Records that lack
// nothing but their beginning, as rings leave them, need one place: a rank that calls another function than
// the others gives its later calls other numbers, and by these the calls that differ would never meet. Times
// are not used, since ranks may be seconds apart and hosts' clocks are aligned only later, from this match.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "job/match/match.h"
#include "job/match/windows.h"

namespace lockstep::job::match {
namespace {

using model::kNoIndex;
using model::kNoRow;
using model::Member;

// Numbers of one communicator's functions, packed: NCCL's number is only unique with its function.
uint64_t call_number(model::StringId func, uint32_t seq) { return uint64_t{func} << 32 | seq; }

class CommAligner {
 public:
  CommAligner(model::Job& job, const std::vector<uint32_t>& members) : job_(job), members_(members) {}

  void run() {
    const Member* reference = nullptr;
    bool all_known = true;
    for (uint32_t row : members_) {
      Member& member = job_.members[row];
      member.alignment = whole(member)     ? Member::Alignment::kFromStart
                         : member.numbered ? Member::Alignment::kBySeq
                                           : Member::Alignment::kNone;
      all_known = all_known && member.alignment != Member::Alignment::kNone;
      if (reference == nullptr || better(member, *reference)) reference = &member;
    }
    // Members that are counted from the start need no numbers: their places compare as they are.
    if (all_known || reference == nullptr || reference->ops == 0) return;
    number_reference(*reference);
    is_reference_unbroken_ = is_unbroken(*reference);
    // Nothing of the reference has a number that names it alone, as in a job of replayed graphs: members keep
    // the alignment that they have.
    if (known_.empty()) return;
    for (uint32_t row : members_) {
      Member& member = job_.members[row];
      if (&member == reference) {
        if (member.alignment == Member::Alignment::kNone) member.alignment = Member::Alignment::kBySeq;
      } else if (member.alignment == Member::Alignment::kNone) {
        follow(member);
      }
    }
  }

 private:
  // Nothing is missing since the communicator began. A function whose numbers jump forward says otherwise,
  // whatever was counted; a replayed graph repeats numbers.
  bool whole(const Member& member) const {
    return has_all(job_, job_.processes[member.process]) && !skipped_number(job_, member);
  }

  // Nothing is missing between its first operation here and its last.
  bool is_unbroken(const Member& member) const {
    if (job_.processes[member.process].holes != 0) return false;
    const model::JobOps& ops = job_.ops(member);
    std::unordered_set<model::StringId> seen;
    bool jumps = false;
    visit_numbered(member, [&](uint32_t i, uint64_t, uint32_t missing) {
      jumps = jumps || (!seen.insert(func(ops, i)).second && missing != 0);
    });
    return !jumps;
  }

  static bool better(const Member& a, const Member& b) {
    bool a_whole = a.alignment == Member::Alignment::kFromStart;
    bool b_whole = b.alignment == Member::Alignment::kFromStart;
    return a_whole != b_whole ? a_whole : a.ops > b.ops;
  }

  model::StringId func(const model::JobOps& ops, uint32_t i) const {
    return job_.signatures[ops.signature[i]].func;
  }

  // Calls visit(position, number, room) for every operation whose number names it alone, in order: `room`
  // operations of its function are missing before it; those that are there without a number have taken one as
  // well. The numbers of a graph's replays name several operations; so do those of a function that go back
  // without saying why (API 1 to 4).
  template <class Visit>
  void visit_numbered(const Member& member, Visit&& visit) const {
    const model::JobOps& ops = job_.ops(member);
    // Two passes: whether a function's numbers ever go back decides about all of them, so it has to be known
    // first.
    auto numbered = [&](uint32_t i) {
      return ops.seq[i] != kNoIndex && (ops.flags[i] & model::kFlagGraphCaptured) == 0;
    };
    struct Function {
      uint32_t next = 0, unnumbered = 0;
      bool repeats = false;
    };
    std::unordered_map<model::StringId, Function> functions;
    uint32_t end = member.first + member.ops;
    for (uint32_t i = member.first; i < end; ++i) {
      if (!numbered(i)) continue;
      Function& f = functions[func(ops, i)];
      f.repeats = f.repeats || ops.seq[i] < f.next;
      f.next = ops.seq[i] + 1;
    }
    for (auto& [name, f] : functions) f.next = 0;
    for (uint32_t i = member.first; i < end; ++i) {
      if (!numbered(i) && ops.seq[i] != kNoIndex) continue;
      Function& f = functions[func(ops, i)];
      if (!numbered(i)) {
        ++f.unnumbered;
      } else if (!f.repeats) {
        // Modulo 2^32, which a number below `next` cannot reach: a function whose numbers go back was left
        // out above.
        const uint32_t before = ops.seq[i] - f.next;
        visit(i, call_number(func(ops, i), ops.seq[i]), before - std::min(before, f.unnumbered));
        f.next = ops.seq[i] + 1;
        f.unnumbered = 0;
      }
    }
  }

  void number_reference(const Member& reference) {
    model::JobOps& ops = job_.processes[reference.process].ops;
    if (reference.alignment == Member::Alignment::kNone) close_gaps(reference, ops);
    visit_numbered(reference,
                   [&](uint32_t i, uint64_t number, uint32_t) { known_.try_emplace(number, ops.index[i]); });
  }

  // The reference has lost operations itself: every jump of a function's number is room for what was lost,
  // and what is missing before a function is first seen was lost before all that is left.
  void close_gaps(const Member& reference, model::JobOps& ops) {
    std::vector<uint32_t> room(reference.ops, 0);
    std::unordered_set<model::StringId> seen;
    uint32_t lost = 0;
    visit_numbered(reference, [&](uint32_t i, uint64_t, uint32_t missing) {
      if (seen.insert(func(ops, i)).second)
        // Where among the lost operations the first of a function stood is unknown. Put in front of
        // everything, it moves all places alike, so that distances stay right.
        lost = saturated(lost, missing);
      else
        room[i - reference.first] = missing;
    });
    for (uint32_t i = 0; i < reference.ops; ++i) {
      lost = saturated(lost, room[i]);
      ops.index[reference.first + i] = saturated(i, lost);
    }
  }

  // A damaged file may hold any number: places stop below kNoIndex, which means "none".
  static uint32_t saturated(uint32_t index, uint32_t by) {
    return index > kNoIndex - 1 - by ? kNoIndex - 1 : index + by;
  }

  // Operations that the reference knows take its index; those between keep their distance to the one before.
  void follow(Member& member) {
    model::JobOps& ops = job_.processes[member.process].ops;
    std::vector<uint32_t> place(member.ops, kNoIndex);
    uint32_t anchor = kNoRow;  // the first operation with a known place
    visit_numbered(member, [&](uint32_t i, uint64_t number, uint32_t) {
      auto at = known_.find(number);
      if (at == known_.end()) return;
      place[i - member.first] = at->second;
      if (anchor == kNoRow) anchor = i - member.first;
    });
    if (anchor == kNoRow) return;
    if (place[anchor] < anchor) return;  // more operations before it than the reference had: not one order
    uint32_t next = place[anchor] - anchor;
    if (is_reference_unbroken_ && is_unbroken(member))
      std::fill(place.begin() + anchor + 1, place.end(), kNoIndex);
    for (uint32_t i = 0; i < member.ops; ++i) {
      // A known place that lies behind the running count is not taken: places of one member must ascend, as
      // binary searches rely on it.
      uint32_t at = place[i] != kNoIndex && place[i] >= next ? place[i] : next;
      ops.index[member.first + i] = at;
      next = saturated(at, 1);
    }
    member.alignment = Member::Alignment::kBySeq;
  }

  model::Job& job_;
  const std::vector<uint32_t>& members_;
  std::unordered_map<uint64_t, uint32_t> known_;  // call number -> index
  bool is_reference_unbroken_ = false;
};

}  // namespace

std::optional<SkippedNumber> skipped_number(const model::JobOps& ops,
                                            const std::vector<model::Signature>& signatures,
                                            const Member& member) {
  // By function, as NCCL counts. A number that repeats or falls proves nothing: replays of a graph do that.
  std::unordered_map<model::StringId, uint32_t> next;
  bool is_known = true;  // numbers begin at 0; behind operations that were counted alone, with what is there
  for (uint32_t op = member.first; op < member.first + member.ops; ++op) {
    if (member.counted &&
        (op == member.first ? ops.index[op] != 0 : ops.index[op] != ops.index[op - 1] + 1)) {
      next.clear();
      is_known = false;
    }
    if (ops.seq[op] == kNoIndex) continue;
    const auto [at, is_first] = next.try_emplace(signatures[ops.signature[op]].func, 0);
    uint32_t& expected = at->second;
    if (is_first && !is_known) expected = ops.seq[op];
    if (ops.seq[op] > expected) return SkippedNumber{op, expected};
    expected = std::max(expected, ops.seq[op] + 1);
  }
  return std::nullopt;
}

void align(model::Job& job) {
  const bool has_windows =
      std::any_of(job.processes.begin(), job.processes.end(),
                  [](const model::JobProcess& process) { return process.row.window != 0; });
  const std::vector<uint32_t> essence = has_windows ? essences(job) : std::vector<uint32_t>();
  for (model::JobComm& comm : job.comms) {
    std::vector<uint32_t> members;
    for (uint32_t member : comm.members) {
      if (member != kNoRow) members.push_back(member);
    }
    CommAligner(job, members).run();
    if (has_windows) align_windows(job, members, essence);
  }
}

}  // namespace lockstep::job::match
