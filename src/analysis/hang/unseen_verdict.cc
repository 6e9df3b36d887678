// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "analysis/hang/draft.h"
#include "analysis/hang/verdicts.h"
#include "base/text/wording.h"

namespace lockstep::analysis::hang {

Finding unseen_verdict(const Scene& scene, const Block& block, const Root& root) {
  Draft draft(scene);
  Finding finding =
      draft.make(FindingClass::kEvidenceMissing, "evidence-missing.stale", block, root.actors, root.waiting);
  finding.severity = Severity::kWarning;
  const bool plural = root.actors.size() > 1;
  int64_t unseen_ns = 0;
  for (uint32_t actor : root.actors) {
    const Actor& of = scene.actor(actor);
    for (const Actor& other : scene.actors()) {
      const auto later = scene.between(of.process, of.end_ns, other.process, other.end_ns);
      unseen_ns = std::max(unseen_ns, later.value_or(0));
    }
  }
  finding.statement = "what can be seen of " + draft.who(root.actors) + " ends " +
                      wording::duration(unseen_ns) + " before what can be seen of the others: whether " +
                      (plural ? "they have" : "it has") + " called " + draft.operation(block) +
                      " since cannot be told; " + draft.wait(block, root.waiting, plural);
  finding.evidence.push_back(
      "a process that ended without closing its file looks the same as one whose file "
      "reaches this machine late");
  finding.advice = "look on " + (finding.hosts.size() == 1 ? finding.hosts.front() : "those hosts") +
                   " whether the processes run, and ask there: lockstep diagnose, of the same directory";
  finding.settle = "files that are up to date: copied, or read on the host that writes them";
  return finding;
}

}  // namespace lockstep::analysis::hang
