// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "analysis/hang/draft.h"
#include "analysis/hang/swapped_calls.h"
#include "analysis/hang/verdicts.h"
#include "base/text/wording.h"

namespace lockstep::analysis::hang {

std::optional<Finding> swapped_verdict(const Scene& scene, const std::vector<Block>& blocks) {
  std::optional<SwappedCalls> found = find_swapped_calls(scene, blocks);
  if (!found) return std::nullopt;
  SwappedCalls& swapped = *found;
  const model::Job& job = scene.job();
  if (swapped.a.actors.size() < swapped.b.actors.size()) std::swap(swapped.a, swapped.b);
  const SwappedCalls::Side &usual = swapped.a, &odd = swapped.b;
  // The operations by what those say who called them in the usual order.
  auto named = [&](const SwappedCalls::Side& side) {
    Block block = blocks[side.block];
    for (uint32_t row : job.processes[scene.actor(usual.actors.front()).process].members) {
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
  Draft draft(scene);
  Finding finding = draft.make(FindingClass::kCrossCommDeadlock, "cross-comm-deadlock.order", first, blamed,
                               first.waiting.size());
  finding.statement = draft.who(odd.actors) + " called " + draft.operation(second) + " before " +
                      draft.operation(first) + ", " + draft.list(usual.actors) +
                      " the other way round, and nothing has moved since, for " +
                      wording::duration(first.waited_ns);
  finding.evidence.push_back("in nearly all of their newest 1,024 operations they kept one order");
  finding.advice = kOneOrder;
  finding.settle = "GPU times, which show which kernels wait: lockstep trace -m deep";
  return finding;
}

}  // namespace lockstep::analysis::hang
