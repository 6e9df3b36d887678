// SPDX-License-Identifier: Apache-2.0
// Turns two swapped calls into a finding. The smaller side is blamed; two equal sides are both named, because
// nothing shows which order the program meant.
#include <algorithm>

#include "analysis/hang/calls/swapped_calls.h"
#include "analysis/hang/finding_builder.h"
#include "analysis/hang/verdicts.h"
#include "base/text/wording.h"

namespace lockstep::analysis::hang {

std::optional<Finding> swapped_verdict(const JobState& job_state, const std::vector<Block>& blocks) {
  std::optional<SwappedCalls> found = find_swapped_calls(job_state, blocks);
  if (!found) return std::nullopt;
  SwappedCalls& swapped = *found;
  const model::Job& job = job_state.job();
  if (swapped.a.actors.size() < swapped.b.actors.size()) std::swap(swapped.a, swapped.b);
  const SwappedCalls::Side &usual = swapped.a, &odd = swapped.b;
  // The operations by what those say who called them in the usual order.
  // A block names what waits longest; the finding has to name the two calls that crossed.
  auto named = [&](const SwappedCalls::Side& side) {
    Block block = blocks[side.block];
    for (uint32_t row : job.processes[job_state.actor(usual.actors.front()).process].members) {
      const model::Member& member = job.members[row];
      if (member.comm != block.comm) continue;
      if (auto op = job.op_at(member, side.index)) {
        block.process = member.process;
        block.op = *op;
        block.index = side.index;
        block.since_ns = job.ops(member).entered_ns(*op);
      }
    }
    return block;
  };
  Block first = named(usual), second = named(odd);
  std::vector<uint32_t> blamed = odd.actors;
  if (odd.actors.size() == usual.actors.size()) {
    blamed.insert(blamed.end(), usual.actors.begin(), usual.actors.end());
    std::sort(blamed.begin(), blamed.end());
  }
  FindingBuilder builder(job_state);
  Finding finding = builder.make(FindingId::kCrossCommDeadlockOrder, first, blamed, first.waiting.size());
  finding.statement = builder.who(odd.actors) + " called " + builder.operation(second) + " before " +
                      builder.operation(first) + ", " + builder.list(usual.actors) +
                      " in the opposite order; no progress for " + wording::duration(first.waited_ns) +
                      " since";
  finding.evidence.push_back("nearly all of their newest 1,024 operations were in one order");
  finding.advice = kOneOrder;
  finding.needed_evidence = "GPU times, which show which kernels wait: lockstep trace -m deep";
  return finding;
}

}  // namespace lockstep::analysis::hang
