// SPDX-License-Identifier: Apache-2.0
// Makes one finding of each end that the wait-for graph leads to. The order matters: records with gaps are
// asked for first, since they may hide everything else; then a loss of more than half of the ranks ends the
// search for one cause; then doubt about GPU times; then the single causes. Ranks that are missing in the
// same way share a finding, so that a dead host of eight ranks is one line.
#include "analysis/hang/verdicts.h"

#include <algorithm>
#include <map>
#include <set>

#include "analysis/hang/file_words.h"
#include "analysis/hang/finding_builder.h"
#include "analysis/operation_name.h"
#include "base/text/wording.h"

namespace lockstep::analysis::hang {
namespace {

using wording::duration;

constexpr int64_t kSoonAfter = 5'000'000'000;
constexpr size_t kMostStates = 3;  // ranks whose state is in the evidence
constexpr double kMoreThanLateness =
    1e18;  // ns, as a finding's weight: ten thousand ranks that wait for a day

class Verdicts {
 public:
  Verdicts(const JobState& job_state, const std::vector<Block>& blocks, std::vector<Finding>& out)
      : job_state_(job_state), job_(job_state.job()), blocks_(blocks), builder_(job_state), out_(out) {}

  void add(Culprits culprits) {
    drop_followers(job_state_, blocks_, culprits);
    drop_starved(job_state_, blocks_, culprits);
    if (!culprits.roots.empty() && culprits.roots.front().kind == Root::Kind::kUnknown)
      return out_.push_back(incomplete_verdict(job_state_, blocks_, culprits.roots));
    if (too_many(culprits)) return;
    if (auto root = doubtful(job_state_, blocks_, culprits)) return add_doubtful(*std::move(root));
    std::map<Fate, Root> gone;
    const Root* absent = nullptr;  // of several, which nothing tells apart
    std::vector<const Root*> ends;
    for (const Root& root : culprits.roots) {
      switch (root.kind) {
        case Root::Kind::kGone:
          join(root, gone);
          break;
        case Root::Kind::kNotHere:
          if (may_follow(root, culprits.cycles)) break;
          if (block(root).kind == Block::Kind::kPair)
            ends.push_back(&root);
          else
            add_not_here(root);
          break;
        case Root::Kind::kUnseen:
          out_.push_back(unseen_verdict(job_state_, block(root), root));
          break;
        case Root::Kind::kDifferent:
          add_different(root);
          break;
        case Root::Kind::kUnknown:  // alone, or not at all
          break;
        case Root::Kind::kStuck:
          out_.push_back(stuck_verdict(job_state_, blocks_, root));
          break;
        case Root::Kind::kAbsent:
          if (blocks_[root.block].kind == Block::Kind::kInit && job_state_.absent().empty())
            add_absent(root);
          else if (absent == nullptr || root.waiting > absent->waiting)
            absent = &root;
          break;
      }
    }
    if (absent != nullptr) add_absent(*absent);
    add_missing_ends(std::move(ends));
    for (const auto& [fate, root] : gone) add_gone(fate, root);
    for (const Cycle& cycle : culprits.cycles) out_.push_back(cycle_verdict(job_state_, blocks_, cycle));
    rank_differences();
  }

 private:
  const Block& block(const Root& root) const { return blocks_[root.block]; }

  void add_states(const std::vector<uint32_t>& actors, const Block& block, Finding& finding) const {
    for (size_t i = 0; i < std::min(actors.size(), kMostStates); ++i)
      builder_.add_state(actors[i], block, finding.evidence);
  }

  // Operations that differ are a fault for certain, whatever else seems to wait beside them or was late
  // before.
  void rank_differences() {
    double heaviest = kMoreThanLateness;
    for (const Finding& finding : out_) heaviest = std::max(heaviest, finding.weight);
    for (Finding& finding : out_) {
      if (class_of(finding.id) != FindingClass::kJoinedOtherOp &&
          finding.id != FindingId::kEvidenceMissingMajority)
        continue;
      finding.weight += heaviest;
    }
  }

  // Whether one of them is in a group with a rank that left no file. A group of all ranks proves nothing.
  bool beside_absent(const std::vector<uint32_t>& actors) const {
    return std::any_of(actors.begin(), actors.end(), [&](uint32_t actor) {
      const auto& members = job_.processes[job_state_.actor(actor).process].members;
      return std::any_of(members.begin(), members.end(), [&](uint32_t row) {
        const model::JobComm& comm = job_.comms[job_.members[row].comm];
        auto there = std::count_if(comm.members.begin(), comm.members.end(),
                                   [](uint32_t member) { return member != model::kNoRow; });
        return comm.ranks < static_cast<int64_t>(job_state_.ranks()) && there < comm.ranks;
      });
    });
  }

  // Ranks beside them that left no file explain it better, then calls the other way round.
  void add_doubtful(Root root) {
    if (!job_state_.absent().empty() && beside_absent(root.actors)) {
      root.kind = Root::Kind::kAbsent;
      add_absent(root);
    } else if (auto swapped = swapped_verdict(job_state_, blocks_)) {
      out_.push_back(*std::move(swapped));
    } else {
      out_.push_back(doubt_verdict(job_state_, blocks_, root));
    }
  }

  // So much is gone that the wait says nothing of the cause.
  bool too_many(const Culprits& culprits) {
    const Root* worst = nullptr;
    for (const Root& root : culprits.roots) {
      bool is_gone =
          root.kind == Root::Kind::kGone && job_state_.actor(root.actors.front()).fate != Fate::kStopped;
      if (is_gone && (worst == nullptr || root.waiting > worst->waiting)) worst = &root;
    }
    if (worst == nullptr) return false;
    // Those that followed soon died of the same, even if they were waiting already.
    const Actor& first = job_state_.actor(worst->actors.front());
    std::vector<uint32_t> dead;
    for (uint32_t i = 0; i < job_state_.actors().size(); ++i) {
      const Actor& actor = job_state_.actor(i);
      bool gone = actor.fate == Fate::kDead || actor.fate == Fate::kUnreachable;
      auto after = job_state_.between(first.process, first.end_ns, actor.process, actor.end_ns);
      if (gone || (actor.early && after && *after <= kSoonAfter)) dead.push_back(i);
    }
    size_t lost = dead.size() + job_state_.absent().size();
    if (lost * 2 <= job_state_.ranks()) return false;
    Finding finding = builder_.make(FindingId::kTooManyFailed, block(*worst), dead, worst->waiting);
    finding.ranks.insert(finding.ranks.end(), job_state_.absent().begin(), job_state_.absent().end());
    std::sort(finding.ranks.begin(), finding.ranks.end());
    finding.statement = std::to_string(lost) + " of " + wording::count(job_state_.ranks(), "rank") +
                        " are gone: too many to name one cause";
    finding.evidence.push_back(wording::count(dead.size(), "process") + " ended without closing " +
                               (dead.size() == 1 ? "its file" : "their files"));
    if (!job_state_.absent().empty())
      finding.evidence.push_back(wording::count(job_state_.absent().size(), "rank") + " left no file");
    finding.advice =
        "Look for what the lost ranks share: a switch, a power feed, a file system. The scheduler's log may say.";
    finding.needed_evidence = "the launcher's and the scheduler's log of which process ended first";
    out_.push_back(std::move(finding));
    return true;
  }

  void join(const Root& root, std::map<Fate, Root>& gone) const {
    for (uint32_t actor : root.actors) {
      auto [at, is_new] = gone.try_emplace(job_state_.actor(actor).fate, root);
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
    std::string who = builder_.who(root.actors);
    bool plural = root.actors.size() > 1;
    if (fate == Fate::kStopped) {
      Finding finding = builder_.make(FindingId::kNeverJoinedStopped, at, root.actors, root.waiting);
      finding.statement = who + (plural ? " are" : " is") + " stopped by a signal or a debugger; " +
                          builder_.wait(at, root.waiting, plural) + " in " + builder_.operation(at);
      finding.advice = "Continue the process, or detach the debugger.";
      add_states(root.actors, at, finding);
      out_.push_back(std::move(finding));
      return;
    }
    bool dead = fate == Fate::kDead;
    Finding finding = builder_.make(dead ? FindingId::kRankDead : FindingId::kRankUnreachableHost, at,
                                    root.actors, root.waiting);
    finding.statement = who + (plural ? " are" : " is") +
                        (dead ? " dead; " : " unreachable, with the whole host; ") +
                        builder_.wait(at, root.waiting, plural) + " in " + builder_.operation(at);
    for (size_t i = 0; i < std::min(root.actors.size(), kMostStates); ++i) add_end(root.actors[i], finding);
    add_states(root.actors, at, finding);
    finding.advice =
        dead ? builder_.look_at_the_dead() : "Check that the host is up and its file system mounted.";
    out_.push_back(std::move(finding));
  }

  void add_end(uint32_t actor, Finding& finding) const {
    const Actor& of = job_state_.actor(actor);
    int64_t later = 0;
    for (const Actor& other : job_state_.actors())
      later =
          std::max(later, job_state_.between(of.process, of.end_ns, other.process, other.end_ns).value_or(0));
    bool gone = job_.processes[of.process].liveness == model::Liveness::kGone;
    finding.evidence.push_back(job_.process_name(of.process) +
                               (gone ? ": the process is gone" : ": its file was not closed") +
                               "; the others recorded for " + duration(later) + " longer");
  }

  void add_not_here(const Root& root) {
    const Block& at = block(root);
    bool init = at.kind == Block::Kind::kInit;
    bool plural = root.actors.size() > 1;
    bool left = std::any_of(root.actors.begin(), root.actors.end(),
                            [&](uint32_t a) { return has_left(job_state_, a, at); });
    Finding finding = builder_.make(init   ? FindingId::kInitStuck
                                    : left ? FindingId::kNeverJoinedFinished
                                           : FindingId::kNeverJoined,
                                    at, root.actors, root.waiting);
    finding.statement = builder_.who(root.actors);
    if (init)
      finding.statement += " never joined ";
    else
      finding.statement += left                                    ? " ended without calling "
                           : at.certain() && !job_state_.is_live() ? " never called "
                           : plural                                ? " have not called "
                                                                   : " has not called ";
    if (at.kind == Block::Kind::kPair) finding.statement += "its end of ";
    finding.statement += builder_.operation(at) + "; " + builder_.wait(at, root.waiting, plural);
    add_states(root.actors, at, finding);
    builder_.add_followers(root.followers, finding.evidence);
    note_unknown_completion(root.actors, finding);
    bool runs = std::any_of(root.actors.begin(), root.actors.end(), [this](uint32_t a) {
      return job_.processes[job_state_.actor(a).process].liveness == model::Liveness::kRunning;
    });
    finding.advice =
        left ? "Give all ranks the same number of steps, or let them agree on the end."
             : "Find out what the host code of " + builder_.list(root.actors) + (runs ? " is" : " was") +
                   " doing: it never reached the operation. Take its stack while the job hangs, or read "
                   "its log afterwards.";
    out_.push_back(std::move(finding));
  }

  // Ranks that wait for each other hold up others, too. Who has not come to the operation that one of them
  // waits in may wait for them inside another, where nothing shows that it has ended; and if it came, they
  // would wait on.
  bool may_follow(const Root& root, const std::vector<Cycle>& cycles) const {
    const bool waits_there = std::any_of(cycles.begin(), cycles.end(), [&](const Cycle& cycle) {
      return std::find(cycle.blocks.begin(), cycle.blocks.end(), root.block) != cycle.blocks.end();
    });
    return waits_there && std::all_of(root.actors.begin(), root.actors.end(),
                                      [this](uint32_t actor) { return unended(actor) != nullptr; });
  }

  // An operation that all have joined, and of which no record shows whether it has ended on this rank.
  const Block* unended(uint32_t actor) const {
    for (const Block& other : blocks_) {
      if (other.kind == Block::Kind::kSilent &&
          std::binary_search(other.waiting.begin(), other.waiting.end(), actor))
        return &other;
    }
    return nullptr;
  }

  // Ranks whose ends of sends and receives are missing have one cause as a rule: one finding, about the one
  // that most wait for.
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
    out_.back().evidence.push_back(builder_.list(others) +
                                   " did not call the other end of a send or receive either");
  }

  // Without GPU times it may as well be inside an operation that all have joined.
  void note_unknown_completion(const std::vector<uint32_t>& actors, Finding& finding) const {
    for (uint32_t actor : actors) {
      const Block* at = unended(actor);
      if (at == nullptr) continue;
      finding.evidence.push_back("no record shows whether " + builder_.operation(*at) +
                                 ", which all ranks have joined, has ended there");
      return;
    }
  }

  void add_different(const Root& root) {
    const Block& at = block(root);
    const job::match::Difference& difference = *at.difference;
    // Without a majority either side may be the wrong one.
    const bool is_open = difference.tie || difference.open;
    std::vector<uint32_t> both = at.missing;
    both.insert(both.end(), at.waiting.begin(), at.waiting.end());
    std::sort(both.begin(), both.end());
    const model::Signature& wanted = signature_at(difference.like, difference.index);
    const model::Signature& called = signature_at(difference.members.front(), difference.index);
    Finding finding =
        builder_.make(difference.open ? FindingId::kEvidenceMissingMajority : FindingId::kJoinedOtherOp, at,
                      is_open ? both : root.actors, root.waiting);
    const model::Member& like = job_.members[difference.like];
    analysis::name_operation(job_, like.process, *job_.op_at(like, difference.index), finding);
    const std::string where =
        " as operation " + std::to_string(difference.index) + " of " + builder_.comm(at.comm);
    const std::string usual = builder_.signature(wanted, called), other = builder_.signature(called, wanted);
    finding.statement = is_open ? builder_.list(both) + " called different operations" + where + ": " +
                                      builder_.list(at.missing) + " " + other + ", " +
                                      builder_.list(at.waiting) + " " + usual
                                : builder_.who(root.actors) + " called " + other + where + ", where " +
                                      builder_.list(at.waiting) + " called " + usual;
    finding.evidence.push_back("they differ in " + differing_parts(difference, called, wanted));
    if (difference.open)
      finding.statement += "; to tell which is wrong, Lockstep needs what " +
                           wording::count(difference.unknown, "other rank") + " called";
    else if (difference.tie)
      finding.evidence.push_back("as many ranks called one as the other: either side may be wrong");
    add_states(root.actors, at, finding);
    finding.needed_evidence.clear();  // however long they waited
    if (difference.open) finding.needed_evidence = "whole files of the other ranks";
    finding.advice = "Compare what the code does on " + wording::ranks(finding.ranks) +
                     " before this call: a branch that depends on the rank, or data of different sizes.";
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
    known.insert(job_state_.absent().begin(), job_state_.absent().end());
    known.erase(-1);
    std::vector<int32_t> ranks(known.begin(), known.end());
    const bool unreadable = job_state_.unreadable_files() != 0;
    bool most = unreadable || job_state_.absent().size() * 2 > job_state_.ranks();
    bool init = at.kind == Block::Kind::kInit && job_state_.absent().empty();
    Finding finding = builder_.make(most   ? FindingId::kEvidenceMissingFiles
                                    : init ? FindingId::kInitStuck
                                           : FindingId::kRankUnreachable,
                                    at, {}, root.waiting);
    finding.ranks = most ? job_state_.absent() : ranks;
    std::string who = ranks.empty() ? wording::count(at.absent.size(), "rank") : wording::ranks(ranks);
    finding.statement = who +
                        (init         ? " never joined " + builder_.operation(at)
                         : unreadable ? " left no file that can be read"
                                      : " left no file") +
                        "; " + builder_.wait(at, root.waiting, std::max(ranks.size(), at.absent.size()) > 1) +
                        (init ? "" : " in " + builder_.operation(at));
    finding.evidence.push_back(wording::count(job_state_.absent().size(), "rank") + " of " +
                               std::to_string(job_state_.ranks()) + " left no file");
    if (unreadable)
      finding.evidence.push_back("nothing can be read of " +
                                 wording::count(job_state_.unreadable_files(), "file"));
    const FileWords files = file_words(job_, job_state_.ranks());
    finding.advice = unreadable ? std::string(wording::kCopyAgain) : files.look;
    finding.needed_evidence = init ? "" : files.bring;
    out_.push_back(std::move(finding));
  }

  const JobState& job_state_;
  const model::Job& job_;
  const std::vector<Block>& blocks_;
  FindingBuilder builder_;
  std::vector<Finding>& out_;
};

}  // namespace

void add_verdicts(const JobState& job_state, const std::vector<Block>& blocks, const Culprits& culprits,
                  std::vector<Finding>& findings) {
  Verdicts(job_state, blocks, findings).add(culprits);
}

}  // namespace lockstep::analysis::hang
