// SPDX-License-Identifier: Apache-2.0
#include "analysis/hang/verdicts.h"

#include <algorithm>
#include <map>
#include <set>

#include "analysis/hang/draft.h"
#include "analysis/hang/file_words.h"
#include "analysis/operation_name.h"
#include "base/text/wording.h"

namespace lockstep::analysis::hang {
namespace {

using wording::duration;

constexpr int64_t kSoonAfter = 5'000'000'000;
constexpr size_t kMostStates = 3;  // ranks whose state is told in the evidence
constexpr double kMoreThanLateness =
    1e18;  // ns, as a finding's weight: ten thousand ranks that wait for a day

class Verdicts {
 public:
  Verdicts(const Scene& scene, const std::vector<Block>& blocks, std::vector<Finding>& out)
      : scene_(scene), job_(scene.job()), blocks_(blocks), draft_(scene), out_(out) {}

  void add(Culprits culprits) {
    drop_followers(scene_, blocks_, culprits);
    if (!culprits.roots.empty() && culprits.roots.front().kind == Root::Kind::kUnknown)
      return out_.push_back(incomplete_verdict(scene_, blocks_, culprits.roots));
    if (too_many(culprits)) return;
    if (auto root = doubtful(scene_, blocks_, culprits)) return add_doubtful(*std::move(root));
    std::map<Fate, Root> gone;
    const Root* absent = nullptr;  // of several, which nothing tells apart
    std::vector<const Root*> ends;
    for (const Root& root : culprits.roots) {
      switch (root.kind) {
        case Root::Kind::kGone:
          join(root, gone);
          break;
        case Root::Kind::kNotHere:
          if (block(root).kind == Block::Kind::kPair)
            ends.push_back(&root);
          else
            add_not_here(root);
          break;
        case Root::Kind::kUnseen:
          out_.push_back(unseen_verdict(scene_, block(root), root));
          break;
        case Root::Kind::kDifferent:
          add_different(root);
          break;
        case Root::Kind::kUnknown:  // alone, or not at all
          break;
        case Root::Kind::kStuck:
          out_.push_back(stuck_verdict(scene_, blocks_[root.block], root));
          break;
        case Root::Kind::kAbsent:
          if (blocks_[root.block].kind == Block::Kind::kInit && scene_.absent().empty())
            add_absent(root);
          else if (absent == nullptr || root.waiting > absent->waiting)
            absent = &root;
          break;
      }
    }
    if (absent != nullptr) add_absent(*absent);
    add_missing_ends(std::move(ends));
    for (const auto& [fate, root] : gone) add_gone(fate, root);
    for (const Cycle& cycle : culprits.cycles) out_.push_back(cycle_verdict(scene_, blocks_, cycle));
    rank_differences();
  }

 private:
  const Block& block(const Root& root) const { return blocks_[root.block]; }

  void add_states(const std::vector<uint32_t>& actors, const Block& block, Finding& finding) const {
    for (size_t i = 0; i < std::min(actors.size(), kMostStates); ++i)
      draft_.add_state(actors[i], block, finding.evidence);
  }

  // Operations that differ are a fault for certain, whatever else seems to wait beside them or was late before.
  void rank_differences() {
    double heaviest = kMoreThanLateness;
    for (const Finding& finding : out_) heaviest = std::max(heaviest, finding.weight);
    for (Finding& finding : out_) {
      if (finding.finding_class == FindingClass::kJoinedOtherOp) finding.weight += heaviest;
    }
  }

  // Whether one of them is in a group with a rank that left no file. A group of all ranks tells nothing.
  bool beside_absent(const std::vector<uint32_t>& actors) const {
    return std::any_of(actors.begin(), actors.end(), [&](uint32_t actor) {
      const auto& members = job_.processes[scene_.actor(actor).process].members;
      return std::any_of(members.begin(), members.end(), [&](uint32_t row) {
        const model::JobComm& comm = job_.comms[job_.members[row].comm];
        auto there = std::count_if(comm.members.begin(), comm.members.end(),
                                   [](uint32_t member) { return member != model::kNoRow; });
        return comm.ranks < static_cast<int64_t>(scene_.ranks()) && there < comm.ranks;
      });
    });
  }

  // Ranks beside them that left no file explain it better, then calls the other way round.
  void add_doubtful(Root root) {
    if (!scene_.absent().empty() && beside_absent(root.actors)) {
      root.kind = Root::Kind::kAbsent;
      add_absent(root);
    } else if (auto swapped = swapped_verdict(scene_, blocks_)) {
      out_.push_back(*std::move(swapped));
    } else {
      out_.push_back(doubt_verdict(scene_, blocks_, root));
    }
  }

  // So much is gone that the wait says nothing of the cause.
  bool too_many(const Culprits& culprits) {
    const Root* worst = nullptr;
    for (const Root& root : culprits.roots) {
      bool is_gone =
          root.kind == Root::Kind::kGone && scene_.actor(root.actors.front()).fate != Fate::kStopped;
      if (is_gone && (worst == nullptr || root.waiting > worst->waiting)) worst = &root;
    }
    if (worst == nullptr) return false;
    // Those that followed soon died of the same, even if they were waiting already.
    const Actor& first = scene_.actor(worst->actors.front());
    std::vector<uint32_t> dead;
    for (uint32_t i = 0; i < scene_.actors().size(); ++i) {
      const Actor& actor = scene_.actor(i);
      bool gone = actor.fate == Fate::kDead || actor.fate == Fate::kUnreachable;
      auto after = scene_.between(first.process, first.end_ns, actor.process, actor.end_ns);
      if (gone || (actor.early && after && *after <= kSoonAfter)) dead.push_back(i);
    }
    size_t lost = dead.size() + scene_.absent().size();
    if (lost * 2 <= scene_.ranks()) return false;
    Finding finding =
        draft_.make(FindingClass::kTooManyFailed, "too-many-failed", block(*worst), dead, worst->waiting);
    finding.ranks.insert(finding.ranks.end(), scene_.absent().begin(), scene_.absent().end());
    std::sort(finding.ranks.begin(), finding.ranks.end());
    finding.statement = std::to_string(lost) + " of " + wording::count(scene_.ranks(), "rank") +
                        " are gone: too many to name one cause";
    finding.evidence.push_back(wording::count(dead.size(), "process") + " ended without closing its files; " +
                               wording::count(scene_.absent().size(), "rank") + " left no file");
    finding.advice =
        "look at what the lost ranks share: a switch, a power feed, a file system, the scheduler's own log";
    finding.settle = "the launcher's and the scheduler's log of which process ended first";
    out_.push_back(std::move(finding));
    return true;
  }

  void join(const Root& root, std::map<Fate, Root>& gone) const {
    for (uint32_t actor : root.actors) {
      auto [at, is_new] = gone.try_emplace(scene_.actor(actor).fate, root);
      Root& joined = at->second;
      if (is_new) joined.actors.clear();
      if (root.waiting > joined.waiting) {
        joined.block = root.block;
        joined.waiting = root.waiting;
      }
      joined.actors.push_back(actor);
    }
  }

  void add_gone(Fate fate, Root root) {
    std::sort(root.actors.begin(), root.actors.end());
    const Block& at = block(root);
    std::string who = draft_.who(root.actors);
    bool plural = root.actors.size() > 1;
    if (fate == Fate::kStopped) {
      Finding finding =
          draft_.make(FindingClass::kNeverJoined, "never-joined.stopped", at, root.actors, root.waiting);
      finding.statement = who + (plural ? " are" : " is") + " stopped by a signal or a debugger; in " +
                          draft_.operation(at) + " " + draft_.wait(at, root.waiting, plural);
      finding.advice = "continue the process, or detach the debugger";
      add_states(root.actors, at, finding);
      out_.push_back(std::move(finding));
      return;
    }
    bool dead = fate == Fate::kDead;
    Finding finding =
        draft_.make(dead ? FindingClass::kRankDead : FindingClass::kRankUnreachable,
                    dead ? "rank-dead" : "rank-unreachable.host", at, root.actors, root.waiting);
    finding.statement = who + (plural ? " are" : " is") +
                        (dead ? " dead; in " : " out of reach with the whole host; in ") +
                        draft_.operation(at) + " " + draft_.wait(at, root.waiting, plural);
    for (size_t i = 0; i < std::min(root.actors.size(), kMostStates); ++i) add_end(root.actors[i], finding);
    add_states(root.actors, at, finding);
    finding.advice = dead ? "look at the end of that process' own output, at dmesg for the OOM killer and "
                            "for Xid errors, and at the "
                            "launcher's exit codes"
                          : "look whether the host is up and its file system mounted";
    out_.push_back(std::move(finding));
  }

  void add_end(uint32_t actor, Finding& finding) const {
    const Actor& of = scene_.actor(actor);
    int64_t later = 0;
    for (const Actor& other : scene_.actors())
      later = std::max(later, scene_.between(of.process, of.end_ns, other.process, other.end_ns).value_or(0));
    bool gone = job_.processes[of.process].liveness == model::Liveness::kGone;
    finding.evidence.push_back(job_.process_name(of.process) +
                               (gone ? ": the process is gone" : ": its file was not closed") +
                               "; others were recorded " + duration(later) + " longer");
  }

  void add_not_here(const Root& root) {
    const Block& at = block(root);
    bool init = at.kind == Block::Kind::kInit;
    bool plural = root.actors.size() > 1;
    bool left = std::any_of(root.actors.begin(), root.actors.end(),
                            [&](uint32_t a) { return has_left(scene_, a, at); });
    Finding finding = draft_.make(init ? FindingClass::kInitStuck : FindingClass::kNeverJoined,
                                  init   ? "init-stuck"
                                  : left ? "never-joined.finished"
                                         : "never-joined",
                                  at, root.actors, root.waiting);
    finding.statement = draft_.who(root.actors);
    if (init)
      finding.statement += " never came to ";
    else
      finding.statement += left                                ? " ended without calling "
                           : at.certain() && !scene_.is_live() ? " never called "
                           : plural                            ? " have not called "
                                                               : " has not called ";
    if (at.kind == Block::Kind::kPair) finding.statement += "its end of ";
    finding.statement += draft_.operation(at) + "; " + draft_.wait(at, root.waiting, plural);
    add_states(root.actors, at, finding);
    note_unknown_completion(root.actors, finding);
    bool runs = std::any_of(root.actors.begin(), root.actors.end(), [this](uint32_t a) {
      return job_.processes[scene_.actor(a).process].liveness == model::Liveness::kRunning;
    });
    finding.advice =
        "find out what the host code of " + draft_.list(root.actors) + (runs ? " is" : " was") +
        " doing: it never reached the operation. Look at its stack while it hangs, at its log afterwards";
    out_.push_back(std::move(finding));
  }

  // Ranks whose ends of sends and receives are missing have one cause as a rule: one finding, about the one that most
  // wait for.
  void add_missing_ends(std::vector<const Root*> roots) {
    if (roots.empty()) return;
    std::stable_sort(roots.begin(), roots.end(),
                     [](const Root* a, const Root* b) { return a->waiting > b->waiting; });
    add_not_here(*roots.front());
    if (roots.size() == 1) return;
    std::vector<uint32_t> others;
    for (size_t i = 1; i < roots.size(); ++i)
      others.insert(others.end(), roots[i]->actors.begin(), roots[i]->actors.end());
    std::sort(others.begin(), others.end());
    others.erase(std::unique(others.begin(), others.end()), others.end());
    out_.back().evidence.push_back(draft_.list(others) +
                                   " did not call the other end of a send or receive either");
  }

  // Without GPU times it may as well be inside an operation that all have joined.
  void note_unknown_completion(const std::vector<uint32_t>& actors, Finding& finding) const {
    for (const Block& other : blocks_) {
      if (other.kind != Block::Kind::kSilent) continue;
      for (uint32_t actor : actors) {
        if (!std::binary_search(other.waiting.begin(), other.waiting.end(), actor)) continue;
        finding.evidence.push_back("nothing tells whether " + draft_.operation(other) +
                                   ", which all have joined, has ended there");
        return;
      }
    }
  }

  void add_different(const Root& root) {
    const Block& at = block(root);
    const job::match::Difference& difference = *at.difference;
    std::vector<uint32_t> blamed = root.actors;
    // Without a majority either side may be the wrong one.
    if (difference.tie) {
      blamed.insert(blamed.end(), at.waiting.begin(), at.waiting.end());
      std::sort(blamed.begin(), blamed.end());
    }
    const model::Signature& wanted = signature_at(difference.like, difference.index);
    const model::Signature& called = signature_at(difference.members.front(), difference.index);
    Finding finding = draft_.make(FindingClass::kJoinedOtherOp, "joined-other-op", at, blamed, root.waiting);
    const model::Member& like = job_.members[difference.like];
    analysis::name_operation(job_, like.process, *job_.op_at(like, difference.index), finding);
    finding.statement = draft_.who(root.actors) + " called " + draft_.signature(called, wanted) +
                        " as operation " + std::to_string(difference.index) + " of " + draft_.comm(at.comm) +
                        ", where " + draft_.list(at.waiting) + " called " + draft_.signature(wanted, called);
    finding.evidence.push_back("differs in " + differing_parts(difference, called, wanted));
    if (difference.tie)
      finding.evidence.push_back("as many ranks called the one as the other: either side may be wrong");
    add_states(root.actors, at, finding);
    finding.settle.clear();  // however long they waited
    finding.advice = "compare what the code does on " + wording::ranks(finding.ranks) +
                     " before this call: a branch that depends on the rank, or data of different sizes";
    out_.push_back(std::move(finding));
  }

  const model::Signature& signature_at(uint32_t member, uint32_t index) const {
    const model::JobOps& ops = job_.ops(job_.members[member]);
    return job_.signatures[ops.signature[*job_.op_at(job_.members[member], index)]];
  }

  std::string differing_parts(const job::match::Difference& difference, const model::Signature& called,
                              const model::Signature& wanted) const {
    auto same = [](const model::Signature& a, const model::Signature& b) {
      return a.func == b.func && a.datatype == b.datatype && a.bytes == b.bytes && a.root == b.root;
    };
    auto has_next = [&](uint32_t member) {
      return job_.op_at(job_.members[member], difference.index + 1).has_value();
    };
    uint32_t odd = difference.members.front();
    bool skipped =
        has_next(difference.like) && same(signature_at(difference.like, difference.index + 1), called);
    // Where the others' call repeats, the next one shows nothing.
    bool repeats =
        has_next(difference.like) && same(signature_at(difference.like, difference.index + 1), wanted);
    bool added = !repeats && has_next(odd) && same(signature_at(odd, difference.index + 1), wanted);
    if (skipped && added) return "order: the two operations are swapped";
    if (skipped) return "order: it is what the others call next, so one call was left out";
    std::string parts;
    auto add = [&](bool differs, const char* name) {
      if (differs) parts += (parts.empty() ? "" : ", ") + std::string(name);
    };
    add(called.func != wanted.func, "function");
    add(called.datatype != wanted.datatype, "data type");
    add(called.bytes != wanted.bytes, "size");
    add(called.root != wanted.root, "root");
    return added ? parts + "; the others' operation comes next, so this call is one too many" : parts;
  }

  void add_absent(const Root& root) {
    const Block& at = block(root);
    std::set<int32_t> known(at.absent.begin(), at.absent.end());
    known.insert(scene_.absent().begin(), scene_.absent().end());
    known.erase(-1);
    std::vector<int32_t> ranks(known.begin(), known.end());
    const bool unreadable = scene_.unreadable_files() != 0;
    bool most = unreadable || scene_.absent().size() * 2 > scene_.ranks();
    bool init = at.kind == Block::Kind::kInit && scene_.absent().empty();
    Finding finding = draft_.make(most   ? FindingClass::kEvidenceMissing
                                  : init ? FindingClass::kInitStuck
                                         : FindingClass::kRankUnreachable,
                                  most   ? "evidence-missing.files"
                                  : init ? "init-stuck"
                                         : "rank-unreachable",
                                  at, {}, root.waiting);
    finding.ranks = most ? scene_.absent() : ranks;
    std::string who = ranks.empty() ? wording::count(at.absent.size(), "rank") : wording::ranks(ranks);
    finding.statement = who +
                        (init         ? " never came to "
                         : unreadable ? " left no file that can be read; in "
                                      : " left no file; in ") +
                        draft_.operation(at) + (init ? "; " : " ") +
                        draft_.wait(at, root.waiting, std::max(ranks.size(), at.absent.size()) > 1);
    finding.evidence.push_back(wording::count(scene_.absent().size(), "rank") + " of " +
                               std::to_string(scene_.ranks()) + " left no file");
    if (unreadable)
      finding.evidence.push_back("nothing can be read of " +
                                 wording::count(scene_.unreadable_files(), "file"));
    const FileWords files = file_words(job_, scene_.ranks());
    finding.advice = unreadable ? std::string(wording::kCopyAgain) : files.look;
    finding.settle = init ? "" : files.bring;
    out_.push_back(std::move(finding));
  }

  const Scene& scene_;
  const model::Job& job_;
  const std::vector<Block>& blocks_;
  Draft draft_;
  std::vector<Finding>& out_;
};

}  // namespace

void add_verdicts(const Scene& scene, const std::vector<Block>& blocks, const Culprits& culprits,
                  std::vector<Finding>& findings) {
  Verdicts(scene, blocks, findings).add(culprits);
}

}  // namespace lockstep::analysis::hang
