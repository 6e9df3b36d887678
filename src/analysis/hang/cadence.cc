// SPDX-License-Identifier: Apache-2.0
// Measures the largest gap between two operations that followed each other on a communicator. That gap is
// what the job has shown to survive, with its checkpoints, evaluations and compilations in it. Ranks whose
// records have gaps are left out, since a lost record looks like a long pause. A communicator with fewer than
// four gaps borrows the largest of the job: too few samples say little of what is normal there.
#include "analysis/hang/cadence.h"

namespace lockstep::analysis::hang {
namespace {

constexpr uint32_t kLeastGaps = 4;  // fewer prove nothing

void add_gaps(const model::JobOps& ops, uint32_t first, uint32_t count, int64_t& largest, uint32_t& gaps) {
  int64_t before = 0;
  uint32_t seen = 0;
  for (uint32_t i = first; i < first + count; ++i) {
    int64_t entered = ops.entered_ns(i);
    if (entered <= 0) continue;  // below it only in damaged files
    // Others lie between, of which nothing is known but their number.
    if (i > first && ops.index[i] != ops.index[i - 1] + 1) before = 0;
    if (before != 0) {
      largest = std::max(largest, entered - before);
      ++seen;
    }
    before = entered;
  }
  // The members of a communicator see the same gaps: counting them all would make four of a single one.
  gaps = std::max(gaps, seen);
}

}  // namespace

const Patience& Cadence::measure(uint32_t comm) {
  std::optional<Patience>& patience = comms_[comm];
  if (patience) return *patience;
  int64_t largest = 0;
  uint32_t gaps = 0;
  for (uint32_t row : job_.comms[comm].members) {
    if (row == model::kNoRow) continue;
    const model::Member& member = job_.members[row];
    if (gaps_[member.process].any()) continue;
    add_gaps(job_.ops(member), member.first, member.ops, largest, gaps);
    for (const model::Lane& lane : member.lanes)
      add_gaps(job_.ops(member), lane.first, lane.ops, largest, gaps);
  }
  // Made in any case, so that a communicator without gaps is measured once.
  patience.emplace();
  if (gaps >= kLeastGaps) *patience = {.normal_ns = largest, .measured = true};
  return *patience;
}

Patience Cadence::of_comm(uint32_t comm) {
  const Patience& own = measure(comm);
  Patience patience = own.measured ? own : of_job();
  patience.waived = waived_;
  return patience;
}

Patience Cadence::of_job() {
  if (whole_) return *whole_;
  Patience whole;
  for (uint32_t comm = 0; comm < job_.comms.size(); ++comm) {
    const Patience& of = measure(comm);
    if (!of.measured) continue;
    whole.normal_ns = whole.measured ? std::max(whole.normal_ns, of.normal_ns) : of.normal_ns;
    whole.measured = true;
  }
  return *(whole_ = whole);
}

}  // namespace lockstep::analysis::hang
