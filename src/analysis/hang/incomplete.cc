// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "analysis/hang/draft.h"
#include "analysis/hang/verdicts.h"
#include "base/text/wording.h"

namespace lockstep::analysis::hang {
namespace {

// Whose files leave it open: those that may hold the others up, or else all that have gaps.
std::vector<uint32_t> incomplete(const Scene& scene, const std::vector<Root>& roots) {
  std::set<uint32_t> of_roots, all;
  for (uint32_t actor = 0; actor < scene.actors().size(); ++actor) {
    if (scene.gap(scene.actor(actor).process).any()) all.insert(actor);
  }
  for (const Root& root : roots) {
    for (uint32_t actor : root.actors) {
      if (all.contains(actor)) of_roots.insert(actor);
    }
  }
  const std::set<uint32_t>& named = of_roots.empty() ? all : of_roots;
  return {named.begin(), named.end()};
}

}  // namespace

Finding incomplete_verdict(const Scene& scene, const std::vector<Block>& blocks,
                           const std::vector<Root>& roots) {
  const Root& worst = *std::max_element(roots.begin(), roots.end(),
                                        [](const Root& a, const Root& b) { return a.waiting < b.waiting; });
  const Block& block = blocks[worst.block];
  const std::vector<uint32_t> actors = incomplete(scene, roots);
  Draft draft(scene);
  Finding finding =
      draft.make(FindingClass::kEvidenceMissing, "evidence-missing.incomplete", block, actors, worst.waiting);
  std::vector<std::string> names;
  for (uint32_t actor : actors) {
    const uint32_t process = scene.actor(actor).process;
    names.push_back(scene.job().process_name(process));
    finding.evidence.push_back(names.back() + "'s file: " + scene.gap(process).text);
  }
  finding.severity = Severity::kWarning;
  finding.statement = wording::incomplete(names, scene.gap(scene.actor(actors.front()).process).text) +
                      "; so it cannot be told who holds up " + draft.operation(block) + ", in which " +
                      wording::count(worst.waiting, "rank") + (worst.waiting == 1 ? " has" : " have") +
                      " waited for " + wording::duration(block.waited_ns);
  finding.advice = wording::kCopyAgain;
  finding.settle = wording::kWholeFiles;
  return finding;
}

}  // namespace lockstep::analysis::hang
