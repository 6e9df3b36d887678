// SPDX-License-Identifier: Apache-2.0
// Decides what to say of a run that nobody is in any more, and in which no wait lasted long enough to blame
// anybody. The files were either closed in order or they stop. Where they stop inside an operation that some
// ranks never called, that operation is named, but no rank is blamed: whoever ended the job also ended the
// wait, and a second more might have brought the missing call. A process that is gone while others still run
// is the one case with a culprit.
#include <algorithm>

#include "analysis/hang/finding_builder.h"
#include "analysis/hang/verdicts.h"
#include "base/text/wording.h"
#include "model/restarts.h"

namespace lockstep::analysis::hang {
namespace {

using wording::duration;

class BrokenOff {
 public:
  explicit BrokenOff(const JobState& job_state)
      : job_state_(job_state), job_(job_state.job()), builder_(job_state) {
    const std::vector<bool> replaced = model::replaced_processes(job_);
    for (uint32_t i = 0; i < job_state.actors().size(); ++i) {
      const uint32_t process = job_state.actor(i).process;
      if (replaced[process] || !job_state.is_captured(process)) continue;
      (job_.processes[process].row.closed != 0 ? closed_ : open_).push_back(i);
    }
  }

  void add(const std::vector<job::match::Difference>& differences, std::vector<Finding>& findings) const {
    if (job_state_.is_live()) {
      if (const std::vector<uint32_t> dead = gone(); !dead.empty()) findings.push_back(died(dead));
      return;
    }
    Cadence waived(job_, true);
    const std::vector<Block> blocks = find_blocks(job_state_, waived, differences);
    const Block* inside = nullptr;
    for (const Block& block : blocks) {
      if (ends_in(block) && (inside == nullptr || block.waiting.size() > inside->waiting.size()))
        inside = &block;
    }
    if (inside != nullptr)
      findings.push_back(inside_of(*inside));
    else if (!open_.empty())
      findings.push_back(between(blocks));
  }

 private:
  // Whose record is whole: what it does not mention did not happen.
  std::vector<uint32_t> whole(const std::vector<uint32_t>& actors) const {
    std::vector<uint32_t> whole;
    std::copy_if(actors.begin(), actors.end(), std::back_inserter(whole),
                 [this](uint32_t actor) { return !job_state_.gap(job_state_.actor(actor).process).any(); });
    return whole;
  }

  // Gone without closing their files, while others run.
  std::vector<uint32_t> gone() const {
    std::vector<uint32_t> gone;
    std::copy_if(open_.begin(), open_.end(), std::back_inserter(gone), [this](uint32_t actor) {
      const uint32_t process = job_state_.actor(actor).process;
      return job_.processes[process].liveness == model::Liveness::kGone &&
             !job_.processes[process].members.empty();
    });
    return gone;
  }

  // Where all ended in order a send may have gone out without its receive, and a kernel's end is not always
  // recorded.
  bool ends_in(const Block& block) const {
    const bool some_captured =
        std::any_of(block.waiting.begin(), block.waiting.end(), [this](uint32_t actor) {
          const uint32_t process = job_state_.actor(actor).process;
          return job_state_.is_captured(process) && !job_state_.is_off(process);
        });
    if (!some_captured || block.waiting.empty()) return false;
    const bool missing_some = !whole(block.missing).empty();
    switch (block.kind) {
      case Block::Kind::kCollective:
        return missing_some;
      case Block::Kind::kPair:
        return missing_some && !open_.empty();
      case Block::Kind::kStuck:
        return !open_.empty();
      default:
        return false;
    }
  }

  Finding make(const Block* block) const {
    Finding finding(FindingId::kEvidenceMissingBrokeOff);
    if (block != nullptr) finding = builder_.make(finding.id, *block, {}, 0);
    finding.severity = Severity::kWarning;
    finding.evidence.clear();
    finding.effect.reset();
    add_ends(finding);
    finding.advice =
        "Find out what ended the job: check exit codes and logs of the launcher and the scheduler, the last "
        "output of each rank, and dmesg for the out-of-memory killer.";
    finding.needed_evidence =
        "logs of the ranks and of the launcher, or Flight Recorder dumps, named beside this run";
    return finding;
  }

  Finding inside_of(const Block& block) const {
    Finding finding = make(&block);
    finding.statement = "the run broke off inside " + builder_.operation(block);
    if (block.kind == Block::Kind::kStuck) {
      finding.statement +=
          ", which all had called: nothing shows that it ended on " + builder_.list(block.waiting);
      return finding;
    }
    const std::vector<uint32_t> missing = whole(block.missing);
    const bool one = missing.size() == 1;
    finding.statement += ": " + builder_.list(block.waiting) +
                         (block.waiting.size() == 1 ? " was" : " were") + " in it, " +
                         builder_.list(missing) + " had not called " +
                         (block.kind != Block::Kind::kPair ? "it"
                          : one                            ? "its end of it"
                                                           : "their ends of it");
    finding.evidence.insert(finding.evidence.begin(), "the longest wait was " + duration(block.waited_ns) +
                                                          ": too short to tell late from stuck");
    return finding;
  }

  Finding between(const std::vector<Block>& blocks) const {
    const Block* silent = nullptr;
    for (const Block& block : blocks) {
      if (block.kind == Block::Kind::kSilent &&
          (silent == nullptr || block.waiting.size() > silent->waiting.size()))
        silent = &block;
    }
    Finding finding = make(silent);
    const bool one = open_.size() == 1;
    finding.statement =
        (closed_.empty() && !one ? "the recordings of all " + wording::count(open_.size(), "rank") + " end"
                                 : "the recording" + std::string(one ? "" : "s") + " of " +
                                       builder_.list(open_) + (one ? " ends" : " end")) +
        " without being closed; what ended the run is not in the files";
    if (silent != nullptr) {
      finding.evidence.push_back("all had called " + builder_.operation(*silent) +
                                 "; no record shows whether it had ended");
    }
    return finding;
  }

  void add_ends(Finding& finding) const {
    if (open_.empty()) {
      finding.evidence.push_back("all processes closed their files normally");
      return;
    }
    std::string line = "not closed: the files of " + builder_.list(open_);
    if (!closed_.empty()) line += "; closed normally: those of " + builder_.list(closed_);
    finding.evidence.push_back(std::move(line));
    const bool all_gone = std::all_of(open_.begin(), open_.end(), [this](uint32_t actor) {
      return job_.processes[job_state_.actor(actor).process].liveness == model::Liveness::kGone;
    });
    finding.evidence.push_back(all_gone
                                   ? "their processes are gone: they were killed, or crashed"
                                   : "killed, crashed, or no longer recorded: the files do not show which");
    std::vector<uint32_t> early;
    std::copy_if(open_.begin(), open_.end(), std::back_inserter(early),
                 [this](uint32_t actor) { return job_state_.actor(actor).early; });
    if (!early.empty())
      finding.evidence.push_back("the recordings of " + builder_.list(early) +
                                 " end clearly before the others'");
  }

  Finding died(const std::vector<uint32_t>& dead) const {
    Finding finding(FindingId::kRankDead);
    finding.severity = Severity::kWarning;
    builder_.blame(dead, finding);
    finding.statement = builder_.who(dead) + (dead.size() == 1 ? " is" : " are") +
                        " dead: gone without closing files while others run; nobody has waited long yet";
    finding.advice = builder_.look_at_the_dead();
    return finding;
  }

  const JobState& job_state_;
  const model::Job& job_;
  FindingBuilder builder_;
  std::vector<uint32_t> open_, closed_;  // actors, by what became of their files; ascending
};

}  // namespace

void add_broken_off(const JobState& job_state, const std::vector<job::match::Difference>& differences,
                    std::vector<Finding>& findings) {
  BrokenOff(job_state).add(differences, findings);
}

}  // namespace lockstep::analysis::hang
