// SPDX-License-Identifier: Apache-2.0
// Aligns recordings that began in the middle of a run, such as profiler windows. The steps that the program
// marked decide. Without marks, the recordings are shifted against each other by up to 64 operations until
// all that they share agree, and at least half of the shorter one must be shared. Anything weaker would align
// two windows of a repeating program by chance.
#include "job/match/windows.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

namespace lockstep::job::match {
namespace {

using model::Member;

// How far apart the first operations of two windows are looked for.
constexpr int64_t kReach = 64;
// Operations that are compared.
constexpr int64_t kCompared = 4096;

bool is_counted(const model::JobProcess& process) {
  return process.row.window == static_cast<uint8_t>(model::Window::kCounted);
}

class Windows {
 public:
  Windows(model::Job& job, const std::vector<uint32_t>& members, const std::vector<uint32_t>& essence)
      : job_(job), essence_(essence) {
    for (const uint32_t row : members) {
      const Member& member = job.members[row];
      if (is_counted(job.processes[member.process]) && member.ops > 0 &&
          member.alignment != Member::Alignment::kNone)
        members_.push_back(row);
    }
  }

  void align() {
    if (members_.size() < 2) return;
    // The longest recording shares most with the others.
    const Member& reference =
        job_.members[*std::max_element(members_.begin(), members_.end(), [this](uint32_t a, uint32_t b) {
          return job_.members[a].ops < job_.members[b].ops;
        })];
    // Shifts may be negative; the least of them becomes zero, since places are unsigned.
    std::vector<std::optional<int64_t>> shifts;
    int64_t least = 0;
    for (const uint32_t row : members_) {
      shifts.push_back(shift_of(job_.members[row], reference));
      least = std::min(least, shifts.back().value_or(0));
    }
    for (size_t i = 0; i < members_.size(); ++i) {
      Member& member = job_.members[members_[i]];
      if (!shifts[i]) {
        // It cannot be placed. Left as it was, it would be compared at places that mean nothing.
        member.alignment = Member::Alignment::kNone;
        continue;
      }
      Column<uint32_t>& index = job_.processes[member.process].ops.index;
      for (uint32_t op = 0; op < member.ops; ++op)
        index[member.first + op] = static_cast<uint32_t>(op + *shifts[i] - least);
    }
  }

 private:
  // By how much the place of the member's operations lies behind that of the reference's; nothing: they share
  // no step.
  std::optional<int64_t> shift_of(const Member& member, const Member& reference) const {
    if (&member == &reference) return 0;
    if (!job_.processes[member.process].marks.empty() && !job_.processes[reference.process].marks.empty())
      return shift_by_steps(member, reference);
    // Nearest first: of two shifts that both agree, the smaller one wins.
    for (int64_t distance = 0; distance <= kReach; ++distance) {
      for (const int64_t shift : {distance, -distance}) {
        if (agrees(member, reference, shift)) return shift;
      }
    }
    return std::nullopt;
  }

  // Position of the first operation behind the begin of a step.
  int64_t position(const Member& member, int64_t ns) const {
    const model::JobOps& ops = job_.ops(member);
    // By bisection; operations of a member ascend in time.
    uint32_t first = 0, end = member.ops;
    while (first < end) {
      const uint32_t middle = first + (end - first) / 2;
      if (ops.entered_ns(member.first + middle) < ns)
        first = middle + 1;
      else
        end = middle;
    }
    return first;
  }

  std::optional<int64_t> shift_by_steps(const Member& member, const Member& reference) const {
    const std::vector<model::Mark>& marks = job_.processes[member.process].marks;
    const std::vector<model::Mark>& others = job_.processes[reference.process].marks;
    for (const model::Mark& mark : marks) {
      const auto same = std::find_if(others.begin(), others.end(),
                                     [&](const model::Mark& other) { return other.value == mark.value; });
      if (same != others.end()) return position(reference, same->time_ns) - position(member, mark.time_ns);
    }
    return std::nullopt;
  }

  // All operations that both have there are the same, and these are half of the shorter's at least.
  bool agrees(const Member& member, const Member& reference, int64_t shift) const {
    const model::JobOps &ops = job_.ops(member), &others = job_.ops(reference);
    const int64_t first = std::max<int64_t>(0, -shift);
    const int64_t end = std::min<int64_t>(member.ops, int64_t{reference.ops} - shift);
    if (end - first < int64_t{std::min(member.ops, reference.ops) + 1} / 2) return false;
    for (int64_t i = first; i < std::min(end, first + kCompared); ++i) {
      // Algorithm and protocol are not compared: each rank chooses its own.
      const auto here = static_cast<uint32_t>(member.first + i),
                 there = static_cast<uint32_t>(reference.first + i + shift);
      if (essence_[ops.signature[here]] != essence_[others.signature[there]]) return false;
    }
    return true;
  }

  model::Job& job_;
  const std::vector<uint32_t>& essence_;
  std::vector<uint32_t> members_;
};

}  // namespace

void align_windows(model::Job& job, const std::vector<uint32_t>& members,
                   const std::vector<uint32_t>& essence) {
  Windows(job, members, essence).align();
}

bool windows_begin_alike(const model::JobProcess& a, const model::JobProcess& b) {
  if (a.row.window == 0 || b.row.window == 0 || a.marks.empty() || b.marks.empty()) return true;
  return a.marks.front().value == b.marks.front().value;
}

}  // namespace lockstep::job::match
