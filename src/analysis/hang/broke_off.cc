// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "analysis/hang/draft.h"
#include "analysis/hang/verdicts.h"
#include "base/text/wording.h"
#include "model/restarts.h"

namespace lockstep::analysis::hang {
namespace {

using wording::duration;

class BrokenOff {
 public:
  explicit BrokenOff(const Scene& scene) : scene_(scene), job_(scene.job()), draft_(scene) {
    const std::vector<bool> replaced = model::replaced_processes(job_);
    for (uint32_t i = 0; i < scene.actors().size(); ++i) {
      const uint32_t process = scene.actor(i).process;
      if (replaced[process] || !scene.is_captured(process)) continue;
      (job_.processes[process].row.closed != 0 ? closed_ : open_).push_back(i);
    }
  }

  void add(const std::vector<job::match::Difference>& differences, std::vector<Finding>& findings) const {
    if (scene_.is_live()) {
      if (const std::vector<uint32_t> dead = gone(); !dead.empty()) findings.push_back(died(dead));
      return;
    }
    Rhythm waived(job_, true);
    const std::vector<Block> blocks = find_blocks(scene_, waived, differences);
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
  // Whose record is whole: what it does not tell of did not happen.
  std::vector<uint32_t> whole(const std::vector<uint32_t>& actors) const {
    std::vector<uint32_t> whole;
    std::copy_if(actors.begin(), actors.end(), std::back_inserter(whole),
                 [this](uint32_t actor) { return !scene_.gap(scene_.actor(actor).process).any(); });
    return whole;
  }

  // Gone without closing their files, while others run.
  std::vector<uint32_t> gone() const {
    std::vector<uint32_t> gone;
    std::copy_if(open_.begin(), open_.end(), std::back_inserter(gone), [this](uint32_t actor) {
      const uint32_t process = scene_.actor(actor).process;
      return job_.processes[process].liveness == model::Liveness::kGone &&
             !job_.processes[process].members.empty();
    });
    return gone;
  }

  // Where all ended in order a send may have gone out without its receive, and a kernel's end is not always recorded.
  bool ends_in(const Block& block) const {
    const bool some_captured =
        std::any_of(block.waiting.begin(), block.waiting.end(), [this](uint32_t actor) {
          const uint32_t process = scene_.actor(actor).process;
          return scene_.is_captured(process) && !scene_.is_off(process);
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
    Finding finding;
    if (block != nullptr) finding = draft_.make({}, "", *block, {}, 0);
    finding.id = "evidence-missing.broke-off";
    finding.finding_class = FindingClass::kEvidenceMissing;
    finding.severity = Severity::kWarning;
    finding.evidence.clear();
    finding.effect.reset();
    add_ends(finding);
    finding.advice =
        "look for what ended the job: the exit codes and logs of its launcher and scheduler, the ends of the "
        "ranks' own output, and dmesg for the out-of-memory killer";
    finding.settle = "logs of the ranks and of the launcher, or Flight Recorder dumps, named beside this run";
    return finding;
  }

  Finding inside_of(const Block& block) const {
    Finding finding = make(&block);
    finding.statement = "the run broke off inside " + draft_.operation(block);
    if (block.kind == Block::Kind::kStuck) {
      finding.statement +=
          ", which all had called: nothing shows that it ended on " + draft_.list(block.waiting);
      return finding;
    }
    const std::vector<uint32_t> missing = whole(block.missing);
    const bool one = missing.size() == 1;
    finding.statement += ": " + draft_.list(block.waiting) + (block.waiting.size() == 1 ? " was" : " were") +
                         " in it, " + draft_.list(missing) + " had not called " +
                         (block.kind != Block::Kind::kPair ? "it"
                          : one                            ? "its end of it"
                                                           : "their ends of it");
    finding.evidence.insert(finding.evidence.begin(), "the longest of them was in it for " +
                                                          duration(block.waited_ns) +
                                                          ", too short to tell late from stuck");
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
                                       draft_.list(open_) + (one ? " ends" : " end")) +
        " without being closed; what ended the run is not in the files";
    if (silent != nullptr) {
      finding.evidence.push_back("all had called " + draft_.operation(*silent) +
                                 "; nothing tells whether it had ended");
    }
    return finding;
  }

  void add_ends(Finding& finding) const {
    if (open_.empty()) {
      finding.evidence.push_back("all processes closed their files in order");
      return;
    }
    std::string line = "not closed: the files of " + draft_.list(open_);
    if (!closed_.empty()) line += "; closed in order: those of " + draft_.list(closed_);
    finding.evidence.push_back(std::move(line));
    const bool all_gone = std::all_of(open_.begin(), open_.end(), [this](uint32_t actor) {
      return job_.processes[scene_.actor(actor).process].liveness == model::Liveness::kGone;
    });
    finding.evidence.push_back(all_gone
                                   ? "their processes are gone: they were killed, or crashed"
                                   : "killed, crashed, or recorded no longer: the files do not tell which");
    std::vector<uint32_t> early;
    std::copy_if(open_.begin(), open_.end(), std::back_inserter(early),
                 [this](uint32_t actor) { return scene_.actor(actor).early; });
    if (!early.empty())
      finding.evidence.push_back("the recordings of " + draft_.list(early) +
                                 " end clearly before the others'");
  }

  Finding died(const std::vector<uint32_t>& dead) const {
    Finding finding;
    finding.id = "rank-dead";
    finding.finding_class = FindingClass::kRankDead;
    finding.severity = Severity::kWarning;
    draft_.blame(dead, finding);
    finding.statement = draft_.who(dead) + (dead.size() == 1 ? " is" : " are") +
                        " dead: gone without closing files, while others run; nobody has waited for long yet";
    finding.advice =
        "look at the end of that process' own output, at dmesg for the OOM killer and for Xid errors, "
        "and at the launcher's exit codes";
    return finding;
  }

  const Scene& scene_;
  const model::Job& job_;
  Draft draft_;
  std::vector<uint32_t> open_, closed_;  // actors, by what became of their files; ascending
};

}  // namespace

void add_broken_off(const Scene& scene, const std::vector<job::match::Difference>& differences,
                    std::vector<Finding>& findings) {
  BrokenOff(scene).add(differences, findings);
}

}  // namespace lockstep::analysis::hang
