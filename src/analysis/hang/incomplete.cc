// SPDX-License-Identifier: Apache-2.0
// Answers "cannot tell" when the ranks that may hold up an operation have files with gaps. The files are
// named, and what is missing in each, so that they can be copied again. A rank is not blamed for a call that
// its damaged file may have held.
//
// So it does for a rank whose record is too old to say whether it came. On a shared file system the file of
// another host may lag behind by many seconds. The reader is told on which host to look, instead of being
// told that the rank is late.
#include <algorithm>
#include <set>

#include "analysis/hang/finding_builder.h"
#include "analysis/hang/verdicts.h"
#include "base/text/wording.h"

namespace lockstep::analysis::hang {
namespace {

// Whose files leave it open: those that may hold the others up, or else all that have gaps.
std::vector<uint32_t> incomplete(const JobState& job_state, const std::vector<Root>& roots) {
  std::set<uint32_t> of_roots, all;
  for (uint32_t actor = 0; actor < job_state.actors().size(); ++actor) {
    if (job_state.gap(job_state.actor(actor).process).any()) all.insert(actor);
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

Finding incomplete_verdict(const JobState& job_state, const std::vector<Block>& blocks,
                           const std::vector<Root>& roots) {
  // Of several ends of the walk, the one that most ranks wait for says what is at stake.
  const Root& worst = *std::max_element(roots.begin(), roots.end(),
                                        [](const Root& a, const Root& b) { return a.waiting < b.waiting; });
  const Block& block = blocks[worst.block];
  const std::vector<uint32_t> actors = incomplete(job_state, roots);
  FindingBuilder builder(job_state);
  Finding finding = builder.make(FindingId::kEvidenceMissingIncomplete, block, actors, worst.waiting);
  std::vector<std::string> names;
  for (uint32_t actor : actors) {
    const uint32_t process = job_state.actor(actor).process;
    names.push_back(job_state.job().process_name(process));
    finding.evidence.push_back(names.back() + "'s file: " + job_state.gap(process).text);
  }
  finding.severity = Severity::kWarning;
  finding.statement =
      wording::incomplete(names, job_state.gap(job_state.actor(actors.front()).process).text) +
      "; Lockstep cannot tell who holds up " + builder.operation(block) + ", in which " +
      wording::count(worst.waiting, "rank") + (worst.waiting == 1 ? " has" : " have") + " waited for " +
      wording::duration(block.waited_ns);
  finding.advice = wording::kCopyAgain;
  finding.needed_evidence = wording::kWholeFiles;
  return finding;
}

Finding unseen_verdict(const JobState& job_state, const Block& block, const Root& root) {
  FindingBuilder builder(job_state);
  Finding finding = builder.make(FindingId::kEvidenceMissingStale, block, root.actors, root.waiting);
  finding.severity = Severity::kWarning;
  const bool plural = root.actors.size() > 1;
  int64_t unseen_ns = 0;
  for (uint32_t actor : root.actors) {
    const Actor& of = job_state.actor(actor);
    for (const Actor& other : job_state.actors()) {
      const auto later = job_state.between(of.process, of.end_ns, other.process, other.end_ns);
      unseen_ns = std::max(unseen_ns, later.value_or(0));
    }
  }
  finding.statement = "the record of " + builder.who(root.actors) + " ends " + wording::duration(unseen_ns) +
                      " before the others': Lockstep cannot tell whether " +
                      (plural ? "they have" : "it has") + " called " + builder.operation(block) + " since; " +
                      builder.wait(block, root.waiting, plural);
  finding.evidence.push_back(
      "a process that ended without closing its file looks the same as one whose file "
      "reaches this machine late");
  finding.advice = "Check on " + (finding.hosts.size() == 1 ? finding.hosts.front() : "those hosts") +
                   " whether the processes run, and run `lockstep diagnose` there on the same directory.";
  finding.needed_evidence = "files that are up to date: copied, or read on the host that writes them";
  return finding;
}

}  // namespace lockstep::analysis::hang
