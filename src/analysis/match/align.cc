// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <unordered_map>

#include "analysis/match/match.h"

namespace lockstep::analysis::match {
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
    bool all_whole = true;
    for (uint32_t row : members_) {
      Member& member = job_.members[row];
      member.alignment = whole(member) ? Member::Alignment::kFromStart : Member::Alignment::kNone;
      all_whole = all_whole && member.alignment == Member::Alignment::kFromStart;
      if (reference == nullptr || better(member, *reference)) reference = &member;
    }
    if (all_whole || reference == nullptr || reference->ops == 0) return;
    number_reference(*reference);
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
  // Nothing is missing since the communicator began: every function counts from 0 without a jump. A replayed graph
  // repeats numbers, so only jumps forward tell.
  bool whole(const Member& member) const {
    const model::JobOps& ops = job_.ops(member);
    std::unordered_map<model::StringId, uint32_t> next;
    bool numbered = false;
    for (uint32_t i = member.first; i < member.first + member.ops; ++i) {
      if (ops.seq[i] == kNoIndex) continue;
      numbered = true;
      uint32_t& expected = next[job_.signatures[ops.signature[i]].func];
      if (ops.seq[i] > expected) return false;
      expected = std::max(expected, ops.seq[i] + 1);
    }
    const model::JobProcess& process = job_.processes[member.process];
    return numbered || process.row.retention == kStream || process.lost == 0;
  }

  static bool better(const Member& a, const Member& b) {
    bool a_whole = a.alignment == Member::Alignment::kFromStart;
    bool b_whole = b.alignment == Member::Alignment::kFromStart;
    return a_whole != b_whole ? a_whole : a.ops > b.ops;
  }

  void number_reference(const Member& reference) {
    model::JobOps& ops = job_.processes[reference.process].ops;
    if (reference.alignment == Member::Alignment::kNone) close_gaps(reference, ops);
    for (uint32_t i = reference.first; i < reference.first + reference.ops; ++i) {
      if (ops.seq[i] != kNoIndex)
        known_.try_emplace(call_number(job_.signatures[ops.signature[i]].func, ops.seq[i]), ops.index[i]);
    }
  }

  // The reference has lost operations itself: every jump of a function's number is room for what was lost.
  void close_gaps(const Member& reference, model::JobOps& ops) {
    std::unordered_map<model::StringId, uint32_t> next;
    uint32_t lost = 0;
    for (uint32_t i = reference.first; i < reference.first + reference.ops; ++i) {
      if (ops.seq[i] != kNoIndex) {
        uint32_t& expected = next[job_.signatures[ops.signature[i]].func];
        if (ops.seq[i] > expected) lost += ops.seq[i] - expected;
        expected = std::max(expected, ops.seq[i] + 1);
      }
      ops.index[i] = saturated(ops.index[i], lost);
    }
  }

  static uint32_t saturated(uint32_t index, uint32_t by) {
    return index > kNoIndex - 1 - by ? kNoIndex - 1 : index + by;
  }

  // Operations that the reference knows take its index; those between keep their distance to the one before.
  void follow(Member& member) {
    model::JobOps& ops = job_.processes[member.process].ops;
    uint32_t anchor = kNoRow;  // the first operation with a known place
    uint32_t end = member.first + member.ops;
    std::vector<uint32_t> place(member.ops, kNoIndex);
    for (uint32_t i = member.first; i < end; ++i) {
      if (ops.seq[i] == kNoIndex) continue;
      auto at = known_.find(call_number(job_.signatures[ops.signature[i]].func, ops.seq[i]));
      if (at == known_.end()) continue;
      place[i - member.first] = at->second;
      if (anchor == kNoRow) anchor = i;
    }
    if (anchor == kNoRow) return;
    uint32_t before = anchor - member.first;
    uint32_t first_place = place[before];
    if (first_place < before) return;  // more operations before it than the reference had: not one order
    uint32_t next = first_place - before;
    for (uint32_t i = 0; i < member.ops; ++i) {
      uint32_t at = place[i] != kNoIndex && place[i] >= next ? place[i] : next;
      ops.index[member.first + i] = at;
      next = saturated(at, 1);
    }
    member.alignment = Member::Alignment::kBySeq;
  }

  static constexpr uint8_t kStream = 0;
  model::Job& job_;
  const std::vector<uint32_t>& members_;
  std::unordered_map<uint64_t, uint32_t> known_;  // call number -> index
};

}  // namespace

void align(model::Job& job) {
  for (model::JobComm& comm : job.comms) {
    std::vector<uint32_t> members;
    for (uint32_t member : comm.members) {
      if (member != kNoRow) members.push_back(member);
    }
    CommAligner(job, members).run();
  }
}

}  // namespace lockstep::analysis::match
