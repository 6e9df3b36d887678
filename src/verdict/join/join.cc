// SPDX-License-Identifier: Apache-2.0
// Joins the findings of several kinds of evidence into one diagnosis. Findings about the same trouble form a
// cluster, whose statement is the one nearest to the cause. A finding that only asks for evidence is set
// aside first: another kind may name the culprit that it misses, prove that a suspect never called the
// operation, or clear the suspects. What two kinds contradict each other about is reported as a
// contradiction, and neither is silently preferred.
#include "verdict/join/join.h"

#include <algorithm>
#include <optional>
#include <set>

#include "analysis/operation_name.h"
#include "base/text/units.h"
#include "base/text/wording.h"
#include "verdict/join/people.h"

namespace lockstep::verdict::join {
namespace {

using analysis::Callers;
using analysis::Family;
using analysis::FindingClass;
using analysis::FindingId;

constexpr size_t kCitedLines = 3;                    // of a finding that another one takes in
constexpr int64_t kOtherRunNs = 86'400'000'000'000;  // evidence so far apart is of two runs

bool overlap(const std::vector<int32_t>& a, const std::vector<int32_t>& b) {
  return std::any_of(a.begin(), a.end(),
                     [&](int32_t rank) { return std::binary_search(b.begin(), b.end(), rank); });
}

struct Candidate {
  size_t source = 0;
  analysis::Finding finding;
  std::vector<size_t> also = {};  // sources that its evidence names as well

  FindingClass kind() const { return class_of(finding.id); }
  Family family() const { return facts(kind()).family; }
};
// The first is what the finding is about; the others say the same in other words.
using Cluster = std::vector<Candidate>;

class Joiner {
 public:
  explicit Joiner(std::vector<EvidenceSource> sources)
      : sources_(std::move(sources)), links_(link_comms(sources_)), people_(sources_) {}

  Joined join() {
    std::vector<Candidate> doubts;
    for (const EvidenceSource& source : sources_)
      // Known of all sources before the first finding is placed, as is_doubt() asks it of each.
      watchdog_doubts_.push_back(std::any_of(
          source.findings.begin(), source.findings.end(),
          [](const analysis::Finding& f) { return f.id == FindingId::kEvidenceMissingWatchdog; }));
    for (size_t i = 0; i < sources_.size(); ++i) {
      for (analysis::Finding& finding : sources_[i].findings) {
        Candidate candidate{i, std::move(finding), {}};
        if (is_doubt(candidate)) {
          doubts.push_back(std::move(candidate));
        } else {
          place(std::move(candidate));
        }
      }
    }
    // What is certain has been placed by now, so that each doubt meets all of it.
    std::vector<Cluster> open;
    for (Candidate& doubt : doubts) {
      confirm(doubt);
      if (resolve(doubt)) continue;
      if (promote(doubt)) {
        place(std::move(doubt));
        continue;
      }
      dismiss(doubt);
      open.push_back({std::move(doubt)});
    }
    // Only doubts that nothing has resolved are compared with each other.
    narrow(open);
    for (Cluster& cluster : open) doubt_the_reachable(cluster.front());
    std::move(open.begin(), open.end(), std::back_inserter(clusters_));
    note_disagreements();
    note_other_times();
    return {finish(), std::move(links_)};
  }

 private:
  bool single() const { return sources_.size() == 1; }
  bool of_one_time(size_t a, size_t b) const { return same_time(sources_[a].span, sources_[b].span); }
  bool knows(size_t source, const std::vector<int32_t>& ranks) const {
    const auto& known = sources_[source].hosts;
    return std::all_of(ranks.begin(), ranks.end(), [&](int32_t rank) { return known.contains(rank); });
  }
  bool knows_any(size_t source, const std::vector<int32_t>& ranks) const {
    const auto& known = sources_[source].hosts;
    return std::any_of(ranks.begin(), ranks.end(), [&](int32_t rank) { return known.contains(rank); });
  }

  // A rank without a file of one kind is no suspect any more once it left one of another kind.
  bool is_doubt(const Candidate& candidate) const {
    if (candidate.family() == Family::kDoubt) return candidate.finding.severity > analysis::Severity::kNote;
    if (candidate.kind() != FindingClass::kRankUnreachable || candidate.finding.ranks.empty()) return false;
    for (size_t i = 0; i < sources_.size(); ++i) {
      if (i != candidate.source && of_one_time(i, candidate.source) &&
          (knows_any(i, candidate.finding.ranks) || watchdog_doubts_[i]))
        return true;
    }
    return false;
  }

  std::optional<uint32_t> comm_row(const Candidate& candidate) const {
    const model::Job* job = sources_[candidate.source].job;
    if (job == nullptr) return std::nullopt;
    return candidate.finding.comm_row && *candidate.finding.comm_row < job->comms.size()
               ? candidate.finding.comm_row
               : std::nullopt;
  }

  // Whether both are about one communicator; nothing where that cannot be determined.
  std::optional<bool> same_comm(const Candidate& a, const Candidate& b) const {
    if (!of_one_time(a.source, b.source)) return false;
    if (a.finding.comm.empty() || b.finding.comm.empty()) return std::nullopt;
    const bool same_name = a.finding.comm == b.finding.comm;
    const Candidate& x = a.source < b.source ? a : b;
    const Candidate& y = a.source < b.source ? b : a;
    const auto x_comm = comm_row(x), y_comm = comm_row(y);
    if (a.source == b.source) return x_comm && y_comm ? *x_comm == *y_comm : same_name;
    if (!x_comm || !y_comm) return same_name ? std::optional(true) : std::nullopt;
    for (const CommLink& link : links_) {
      if (link.a != x.source || link.b != y.source) continue;
      if (link.a_comm == *x_comm && link.b_comm == *y_comm) return true;
      // Either is known to be another one.
      if (link.a_comm == *x_comm || link.b_comm == *y_comm) return false;
    }
    const model::Job& x_job = *sources_[x.source].job;
    const model::Job& y_job = *sources_[y.source].job;
    if (!may_be_one(x_job, *x_comm, y_job, *y_comm)) return false;
    const bool one_name = is_only(x_job, x.finding.comm) && is_only(y_job, y.finding.comm);
    return same_name && one_name ? std::optional(true) : std::nullopt;
  }
  static bool is_only(const model::Job& job, const std::string& name) {
    size_t named = 0;
    for (uint32_t row = 0; row < job.comms.size(); ++row) named += job.comm_name(row) == name;
    return named == 1;
  }

  bool same_trouble(const Candidate& a, const Candidate& b) const {
    const Family family = a.family();
    if (a.source == b.source || family != b.family() || !of_one_time(a.source, b.source)) return false;
    // Settings are of the whole job, and need no rank or communicator in common.
    if (family == Family::kSetup) return a.finding.id == b.finding.id;
    if (family == Family::kDoubt && a.finding.id != b.finding.id) return false;
    if (family == Family::kSlow && a.kind() != b.kind()) return false;
    // Where it cannot be determined whether communicators are one, the ranks decide.
    if (!overlap(a.finding.ranks, b.finding.ranks) || same_comm(a, b) == false) return false;
    return family != Family::kStall || !contradict(a, b);
  }
  // All have called it, or somebody has not: not both.
  static bool contradict(const Candidate& a, const Candidate& b) {
    const Callers x = facts(a.kind()).callers, y = facts(b.kind()).callers;
    return x != y && x != Callers::kOpen && y != Callers::kOpen;
  }

  void place(Candidate candidate) {
    for (Cluster& cluster : clusters_) {
      if (std::none_of(cluster.begin(), cluster.end(),
                       [&](const Candidate& other) { return same_trouble(candidate, other); }))
        continue;
      cluster.insert(is_cause(candidate, cluster.front()) ? cluster.begin() : cluster.end(),
                     std::move(candidate));
      return;
    }
    clusters_.push_back({std::move(candidate)});
  }

  // Nearer to the cause than what the cluster is about, and of no other ranks: those that print that a peer
  // has died are witnesses.
  static bool is_cause(const Candidate& candidate, const Candidate& front) {
    const bool is_stall = front.family() == Family::kStall;
    if (!is_stall || candidate.finding.severity < front.finding.severity) return false;
    if (analysis::is_of_another(candidate.finding.id)) return false;
    if (analysis::is_of_another(front.finding.id)) return true;
    return candidate.kind() < front.kind() &&
           std::includes(front.finding.ranks.begin(), front.finding.ranks.end(),
                         candidate.finding.ranks.begin(), candidate.finding.ranks.end());
  }
  // What the ranks of a finding without operations report may have happened to others.
  bool may_be_witness(const Candidate& candidate) const {
    const FindingClass c = candidate.kind();
    return sources_[candidate.source].job == nullptr &&
           (c == FindingClass::kRankDead || c == FindingClass::kTransportError ||
            c == FindingClass::kAborted);
  }

  // What one kind of evidence cannot show, another one may have shown.
  bool resolve(Candidate& doubt) {
    Cluster* best = nullptr;
    for (Cluster& cluster : clusters_) {
      const Candidate& first = cluster.front();
      if (first.source == doubt.source || !names_a_culprit(first) || may_be_witness(first) ||
          same_comm(first, doubt) == false)
        continue;
      if (!doubt.finding.ranks.empty() && !overlap(doubt.finding.ranks, first.finding.ranks) &&
          same_comm(first, doubt) != true)
        continue;
      // Of several culprits the costliest is the likeliest to be what the doubt waits for.
      if (best == nullptr || first.finding.weight > best->front().finding.weight) best = &cluster;
    }
    if (best == nullptr) return false;
    best->push_back(std::move(doubt));
    return true;
  }

  static bool names_a_culprit(const Candidate& candidate) {
    return candidate.finding.severity == analysis::Severity::kCritical && !candidate.finding.ranks.empty() &&
           facts(candidate.kind()).names_culprit;
  }

  // "They left no file, and nothing else is wrong" says nothing once they are known from elsewhere.
  void dismiss(Candidate& doubt) const {
    if (doubt.finding.op_index || doubt.finding.ranks.empty() ||
        doubt.finding.id != FindingId::kEvidenceMissingFiles)
      return;
    std::string where;
    for (const int32_t rank : doubt.finding.ranks) {
      const auto known = std::find_if(sources_.begin(), sources_.end(), [&](const EvidenceSource& source) {
        return source.job != nullptr && source.hosts.contains(rank) &&
               same_time(source.span, sources_[doubt.source].span);
      });
      if (known == sources_.end()) return;
      if (where.find(known->source) == std::string::npos)
        where += (where.empty() ? "" : " and ") + known->source;
    }
    doubt.finding.severity = analysis::Severity::kNote;
    doubt.finding.evidence.push_back("known from: " + where);
  }

  // Ranks that left no file of one kind are suspects; files of another kind may say of each whether it
  // called the operation that the others are in. True if some are found that have not.
  bool promote(Candidate& doubt) const {
    analysis::Finding& finding = doubt.finding;
    // Sends and receives are counted by pair.
    if (!blames_absent(doubt) || finding.ranks.empty() || finding.func == "Send" || finding.func == "Recv")
      return false;
    std::vector<int32_t> guilty, unknown, cleared;
    std::vector<std::string> proof;
    for (const int32_t rank : finding.ranks) {
      bool seen = false;
      for (size_t i = 0; i < sources_.size() && !seen; ++i) {
        const auto calls = i == doubt.source ? std::nullopt : calls_of(rank, doubt, i);
        if (!calls) continue;
        seen = true;
        // `op_index` counts from 0: who has called it has called one more.
        (*calls > *finding.op_index ? cleared : guilty).push_back(rank);
        add(i, doubt.also);
        proof.push_back(sources_[i].source + ": rank " + std::to_string(rank) + " has called " +
                        wording::count(*calls, "operation") + " of it");
      }
      if (!seen) unknown.push_back(rank);
    }
    if (proof.empty()) return false;
    if (guilty.empty()) {
      clear_suspects(doubt, cleared, unknown, proof);
      return false;
    }
    finding.evidence.insert(finding.evidence.begin(),
                            sources_[doubt.source].source + ": " + finding.statement);
    finding.evidence.insert(finding.evidence.end(), proof.begin(), proof.end());
    finding.statement =
        wording::ranks(guilty) + " never called " + operation(finding) + ", in which others wait";
    finding.ranks = std::move(guilty);
    finding.hosts.clear();
    finding.id = FindingId::kNeverJoined;
    finding.severity = analysis::Severity::kCritical;
    finding.advice = "Find out what the host code of " + wording::ranks(finding.ranks) +
                     " was doing: see its own log, or stacks taken while it hangs.";
    finding.needed_evidence.clear();
    return true;
  }
  // Some of the suspects have called it.
  void clear_suspects(Candidate& doubt, const std::vector<int32_t>& cleared,
                      const std::vector<int32_t>& unknown, const std::vector<std::string>& proof) const {
    analysis::Finding& finding = doubt.finding;
    finding.evidence.insert(finding.evidence.begin(),
                            sources_[doubt.source].source + ": " + finding.statement);
    finding.evidence.insert(finding.evidence.end(), proof.begin(), proof.end());
    finding.hosts.clear();
    finding.ranks = unknown;
    if (!unknown.empty()) {
      finding.statement = wording::ranks(unknown) +
                          " left no file that shows what they called; others wait in " + operation(finding) +
                          ", which " + wording::ranks(cleared) + " called";
      return;
    }
    finding.id = FindingId::kEvidenceMissingFiles;
    finding.severity = analysis::Severity::kWarning;
    finding.statement = "all ranks that left any file have called " + operation(finding) +
                        ", in which some wait; Lockstep cannot tell what they wait for";
    finding.needed_evidence = "files of one kind from all ranks";
  }
  static void add(size_t source, std::vector<size_t>& list) {
    if (std::find(list.begin(), list.end(), source) == list.end()) list.push_back(source);
  }

  static std::string operation(const analysis::Finding& finding) {
    if (!finding.operation.empty()) return finding.operation;
    analysis::OperationName name{.func = wording::name(finding.func), .index = *finding.op_index};
    name.comm = finding.comm.empty() ? "a communicator without a name" : wording::name(finding.comm);
    return name.text();
  }

  // How many collectives the rank has called on the communicator of the doubt, according to another source
  // that counts them alike.
  std::optional<uint32_t> calls_of(int32_t rank, const Candidate& doubt, size_t source) const {
    const auto comm = comm_row(doubt);
    if (!comm || sources_[source].job == nullptr) return std::nullopt;
    for (const CommLink& link : links_) {
      const bool forward = link.a == doubt.source && link.b == source && link.a_comm == *comm;
      const bool backward = link.b == doubt.source && link.a == source && link.b_comm == *comm;
      // Counts of two kinds compare only if all operations at one place are the same; one that differs means
      // that they count from different starts.
      if ((!forward && !backward) || link.compared == 0 || link.agreeing != link.compared) continue;
      const model::Job& job = *sources_[source].job;
      std::optional<uint32_t> calls;
      uint32_t most = 0;
      size_t others = 0;
      for (const uint32_t row : job.comms[forward ? link.b_comm : link.a_comm].members) {
        if (row == model::kNoRow || job.members[row].alignment == model::Member::Alignment::kNone) continue;
        const model::Member& member = job.members[row];
        most = std::max(most, job.next_index(member));
        const bool is_suspect = job.processes[member.process].row.rank == rank;
        if (is_suspect) calls = job.next_index(member);
        others += !is_suspect && knows(doubt.source, {job.processes[member.process].row.rank});
      }
      // Ranks that wait according to the doubt have not come so far here: this was taken before.
      if (others > 0 && most <= *doubt.finding.op_index) return std::nullopt;
      return calls;
    }
    return std::nullopt;
  }

  // Watchdogs that do not know how many ranks there are name those alone whom they miss: others that they do
  // not mention may be it as well. Of a part of the ranks, whose lines may be of other groups, they clear
  // nobody.
  bool may_be_suspect(const Candidate& candidate, int32_t rank, bool is_world) const {
    const std::vector<int32_t>& ranks = candidate.finding.ranks;
    return std::binary_search(ranks.begin(), ranks.end(), rank) ||
           (is_of_watchdogs(candidate) && !(is_world && knows_any(candidate.source, {rank})));
  }
  std::vector<int32_t> common_suspects(const Candidate& a, const Candidate& b) const {
    std::vector<int32_t> all, both;
    const bool is_world = is_of_world(a) || is_of_world(b);
    std::set_union(a.finding.ranks.begin(), a.finding.ranks.end(), b.finding.ranks.begin(),
                   b.finding.ranks.end(), std::back_inserter(all));
    std::copy_if(all.begin(), all.end(), std::back_inserter(both), [&](int32_t rank) {
      return may_be_suspect(a, rank, is_world) && may_be_suspect(b, rank, is_world);
    });
    return both;
  }
  bool is_of_world(const Candidate& candidate) const {
    const auto row = comm_row(candidate);
    const model::Job* job = sources_[candidate.source].job;
    return row && job->expected_ranks > 0 && job->comms[*row].ranks == job->expected_ranks;
  }
  static bool is_of_watchdogs(const Candidate& candidate) {
    return candidate.finding.id == FindingId::kEvidenceMissingWatchdog;
  }

  // Who may be to blame according to each is to blame according to all: a rank that left neither a file of
  // one kind nor one of another.
  void narrow(std::vector<Cluster>& open) const {
    for (size_t i = 0; i < open.size(); ++i) {
      for (size_t j = i + 1; j < open.size();) {
        analysis::Finding& finding = open[i].front().finding;
        const Candidate& other = open[j].front();
        const std::vector<int32_t> both = common_suspects(open[i].front(), other);
        if (both.empty() || !same_wait(open[i].front(), other)) {
          ++j;
          continue;
        }
        finding.evidence.insert(finding.evidence.begin(), finding.statement);
        finding.ranks = both;
        finding.hosts.clear();
        finding.id = FindingId::kRankUnreachable;
        finding.severity = analysis::Severity::kCritical;
        finding.statement = wording::ranks(both) + " left neither " + left_by(open[i].front()) + " nor " +
                            left_by(other) + "; others wait in " + operation(finding);
        open[i].push_back(std::move(open[j].front()));
        open.erase(open.begin() + static_cast<std::ptrdiff_t>(j));
      }
    }
  }
  std::string left_by(const Candidate& candidate) const {
    return is_of_watchdogs(candidate) ? "lines of a watchdog" : sources_[candidate.source].source;
  }
  // Who left something of another kind can be reached, and may have called it or not.
  void doubt_the_reachable(Candidate& candidate) const {
    analysis::Finding& finding = candidate.finding;
    if (class_of(finding.id) != FindingClass::kRankUnreachable) return;
    std::vector<int32_t> known;
    for (const int32_t rank : finding.ranks) {
      for (const EvidenceSource& source : sources_) {
        if (!source.hosts.contains(rank) || !same_time(source.span, sources_[candidate.source].span))
          continue;
        known.push_back(rank);
        break;
      }
    }
    if (known.empty()) return;
    finding.id = FindingId::kEvidenceMissingFiles;
    finding.evidence.push_back("the other evidence on " + wording::ranks(known) +
                               " does not show whether it was called there");
    finding.needed_evidence = sources_[candidate.source].source + " of these ranks";
  }

  bool same_wait(const Candidate& a, const Candidate& b) const {
    return a.source != b.source && blames_absent(a) && blames_absent(b) && same_comm(a, b) == true &&
           a.finding.func == b.finding.func && a.finding.op_index == b.finding.op_index;
  }
  static bool blames_absent(const Candidate& candidate) {
    return candidate.finding.op_index &&
           (candidate.finding.id == FindingId::kEvidenceMissingFiles || is_of_watchdogs(candidate) ||
            candidate.kind() == FindingClass::kRankUnreachable);
  }

  // What one moment shows of a rank is made certain by another kind in which others wait, and which does not
  // mention that rank, or says that it may be the one.
  void confirm(const Candidate& doubt) {
    if (!is_of_watchdogs(doubt) && doubt.kind() != FindingClass::kRankUnreachable) return;
    for (Cluster& cluster : clusters_) {
      const Candidate& suspect = cluster.front();
      const std::vector<int32_t>& ranks = suspect.finding.ranks;
      const bool is_moment = suspect.finding.id == FindingId::kNeverJoinedSnapshot ||
                             suspect.finding.id == FindingId::kNeverJoinedStacks;
      if (!is_moment || ranks.empty() || suspect.source == doubt.source || same_comm(suspect, doubt) == false)
        continue;
      const std::vector<int32_t>& open = doubt.finding.ranks;
      const bool may_be = std::includes(open.begin(), open.end(), ranks.begin(), ranks.end());
      if (!may_be && (!open.empty() || knows_any(doubt.source, ranks))) continue;
      cluster.front().finding.severity = analysis::Severity::kCritical;
      cluster.front().finding.needed_evidence.clear();
    }
  }

  // Two kinds that both mention the ranks that the other one blames, and blame different ones for one wait.
  void note_disagreements() {
    // Disagreements are added to the list that is looked through.
    const size_t count = clusters_.size();
    for (size_t i = 0; i < count; ++i) {
      for (size_t j = i + 1; j < count; ++j) {
        if (disagree(clusters_[i], clusters_[j])) {
          const analysis::Finding disagreement = describe(clusters_[i].front(), clusters_[j].front());
          clusters_.push_back(
              {Candidate{clusters_[i].front().source, disagreement, {clusters_[j].front().source}}});
        }
      }
    }
  }
  bool disagree(const Cluster& x, const Cluster& y) const {
    const Candidate& a = x.front();
    const Candidate& b = y.front();
    if (a.source == b.source || a.finding.severity < analysis::Severity::kCritical ||
        b.finding.severity < analysis::Severity::kCritical || a.finding.ranks.empty() ||
        b.finding.ranks.empty() || a.family() != Family::kStall || b.family() != Family::kStall ||
        may_be_witness(a) || may_be_witness(b) || same_comm(a, b) == false)
      return false;
    const auto from = [](const Cluster& cluster, size_t source) {
      return std::any_of(cluster.begin(), cluster.end(),
                         [&](const Candidate& p) { return p.source == source; });
    };
    // Evidence that already supports the other finding does not contradict it.
    if (from(x, b.source) || from(y, a.source)) return false;
    // A kind that does not see the ranks of the other could not have blamed them.
    if (!knows(a.source, b.finding.ranks) || !knows(b.source, a.finding.ranks)) return false;
    return !overlap(a.finding.ranks, b.finding.ranks) || contradict(a, b);
  }
  analysis::Finding describe(const Candidate& a, const Candidate& b) const {
    analysis::Finding finding(FindingId::kEvidenceMissingDisagreement);
    finding.comm = a.finding.comm;
    finding.statement = "the " + sources_[a.source].source + " and the " + sources_[b.source].source +
                        " disagree about what the job waits for";
    finding.evidence = {sources_[a.source].source + ": " + a.finding.statement,
                        sources_[b.source].source + ": " + b.finding.statement};
    finding.advice = "Check that both come from the same run and the same moment; the " +
                     sources_[a.source].source + " are trusted more.";
    return finding;
  }

  // Kinds that cannot be of one run are not joined, which must be said.
  void note_other_times() {
    for (size_t i = 0; i < sources_.size(); ++i) {
      for (size_t j = i + 1; j < sources_.size(); ++j) {
        const int64_t gap = gap_ns(sources_[i].span, sources_[j].span);
        if (gap == 0) continue;
        analysis::Finding finding(FindingId::kEvidenceMissingOtherTime);
        finding.statement = "the " + sources_[i].source + " and the " + sources_[j].source + " are " +
                            (gap < kOtherRunNs ? "from different times"
                                               : "more than a day apart, so probably of different runs") +
                            ": each was judged by itself";
        for (const size_t of : {i, j})
          finding.evidence.push_back(sources_[of].source + ": newest record of " + newest(sources_[of].span));
        finding.advice = "Give the files of one run.";
        clusters_.push_back({Candidate{i, std::move(finding), {j}}});
      }
    }
  }

  // A local time is told as its host tells it, so it bears no zone.
  static std::string newest(const TimeSpan& span) {
    const std::string time = format_time(span.last_ns);
    return span.zone_ns == 0 ? time : time.substr(0, time.rfind(' ')) + " (local time)";
  }

  analysis::Diagnosis finish() {
    std::vector<analysis::Finding> findings;
    for (size_t i = 0; i < clusters_.size(); ++i) findings.push_back(merge(i));
    return analysis::in_order(std::move(findings));
  }

  analysis::Finding merge(size_t at) {
    Cluster& cluster = clusters_[at];
    analysis::Finding finding = std::move(cluster.front().finding);
    const std::string& own = sources_[cluster.front().source].source;
    finding.sources = {own};
    for (const size_t other : cluster.front().also) add_source(sources_[other].source, finding);
    if (cluster.size() > 1) {
      for (std::string& line : finding.evidence) line = named(line, own);
    }
    for (size_t i = 1; i < cluster.size(); ++i) {
      finding.severity = std::max(finding.severity, counted_severity(cluster[i]));
      finding.weight = std::max(finding.weight, cluster[i].finding.weight);
      cite(cluster[i], finding);
    }
    if (!single()) people_.add_hosts(cluster.front().source, finding);
    if (finding.op_index && finding.operation.empty()) finding.operation = operation(finding);
    // Whoever reads `ranks` takes them for those to blame.
    if (analysis::is_of_another(finding.id)) finding.ranks.clear();
    people_.name(cluster.front().source, finding);
    return finding;
  }
  // A doubt that is resolved makes nothing worse.
  static analysis::Severity counted_severity(const Candidate& candidate) {
    return candidate.family() == Family::kDoubt ? analysis::Severity::kNote : candidate.finding.severity;
  }
  // With who says it, where it does not say so already.
  std::string named(const std::string& line, const std::string& own) const {
    for (const EvidenceSource& source : sources_) {
      if (line.compare(0, source.source.size() + 2, source.source + ": ") == 0) return line;
    }
    return own + ": " + line;
  }
  static void add_source(const std::string& source, analysis::Finding& finding) {
    if (std::find(finding.sources.begin(), finding.sources.end(), source) == finding.sources.end())
      finding.sources.push_back(source);
  }
  void cite(const Candidate& candidate, analysis::Finding& finding) const {
    const std::string& source = sources_[candidate.source].source;
    add_source(source, finding);
    finding.evidence.push_back(source + ": " + candidate.finding.statement);
    for (size_t i = 0; i < std::min(candidate.finding.evidence.size(), kCitedLines); ++i)
      finding.evidence.push_back(named(candidate.finding.evidence[i], source));
    if (!finding.since_ns) finding.since_ns = candidate.finding.since_ns;
    if (!finding.op_index && same_class(candidate.finding, finding)) {
      finding.func = candidate.finding.func;
      finding.op_index = candidate.finding.op_index;
      finding.operation = candidate.finding.operation;
      if (finding.comm.empty()) finding.comm = candidate.finding.comm;
    }
    if (!finding.effect) finding.effect = candidate.finding.effect;
  }
  static bool same_class(const analysis::Finding& a, const analysis::Finding& b) {
    return class_of(a.id) == class_of(b.id);
  }

  std::vector<EvidenceSource> sources_;
  std::vector<CommLink> links_;
  People people_;
  std::vector<Cluster> clusters_;
  std::vector<bool> watchdog_doubts_;  // by source: watchdogs that cannot tell
};

}  // namespace

Joined join(std::vector<EvidenceSource> sources) { return Joiner(std::move(sources)).join(); }

}  // namespace lockstep::verdict::join
