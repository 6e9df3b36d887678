// SPDX-License-Identifier: Apache-2.0
#include "verdict/join/join.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "analysis/operation_name.h"
#include "base/text/wording.h"
#include "verdict/join/people.h"

namespace lockstep::verdict::join {
namespace {

constexpr size_t kCitedLines = 3;  // of a finding that another one takes in

// Findings of one family are about the same kind of trouble.
enum class Family : uint8_t { kStall, kSlow, kDoubt, kSetup };

Family family_of(analysis::FindingClass c) {
  switch (c) {
    case analysis::FindingClass::kNeverJoined:
    case analysis::FindingClass::kJoinedOtherOp:
    case analysis::FindingClass::kCrossCommDeadlock:
    case analysis::FindingClass::kStuckInGpu:
    case analysis::FindingClass::kStuckInNetwork:
    case analysis::FindingClass::kRankDead:
    case analysis::FindingClass::kRankUnreachable:
    case analysis::FindingClass::kInitStuck:
    case analysis::FindingClass::kTransportError:
    case analysis::FindingClass::kAborted:
      return Family::kStall;
    case analysis::FindingClass::kHostLate:
    case analysis::FindingClass::kGpuLate:
    case analysis::FindingClass::kSlowLink:
    case analysis::FindingClass::kSlowNic:
    case analysis::FindingClass::kImbalance:
    case analysis::FindingClass::kExposedCommunication:
      return Family::kSlow;
    case analysis::FindingClass::kEvidenceMissing:
    case analysis::FindingClass::kTooManyFailed:
      return Family::kDoubt;
    case analysis::FindingClass::kFallback:
    case analysis::FindingClass::kMisconfigured:
      return Family::kSetup;
  }
  return Family::kSetup;
}

// How near a class is to the cause: a dead rank explains that it never joined, which explains that others wait.
int depth_of(analysis::FindingClass c) {
  constexpr std::array kOrder = {
      analysis::FindingClass::kRankDead,        analysis::FindingClass::kTransportError,
      analysis::FindingClass::kJoinedOtherOp,   analysis::FindingClass::kCrossCommDeadlock,
      analysis::FindingClass::kInitStuck,       analysis::FindingClass::kNeverJoined,
      analysis::FindingClass::kStuckInNetwork,  analysis::FindingClass::kStuckInGpu,
      analysis::FindingClass::kRankUnreachable, analysis::FindingClass::kAborted};
  return static_cast<int>(std::find(kOrder.begin(), kOrder.end(), c) - kOrder.begin());
}

bool overlap(const std::vector<int32_t>& a, const std::vector<int32_t>& b) {
  return std::any_of(a.begin(), a.end(),
                     [&](int32_t rank) { return std::binary_search(b.begin(), b.end(), rank); });
}

// All have called it, or somebody has not: not both.
bool says_absent(analysis::FindingClass c) {
  return c == analysis::FindingClass::kNeverJoined || c == analysis::FindingClass::kInitStuck;
}
bool says_all_called(analysis::FindingClass c) {
  return c == analysis::FindingClass::kStuckInGpu || c == analysis::FindingClass::kStuckInNetwork;
}

struct Piece {
  size_t testimony = 0;
  analysis::Finding finding;
  std::vector<size_t> also = {};  // testimonies that its evidence names as well
};
// The first is what the finding is about; the others say the same in other words.
using Cluster = std::vector<Piece>;

class Joiner {
 public:
  explicit Joiner(std::vector<Testimony> testimonies)
      : testimonies_(std::move(testimonies)), links_(link_comms(testimonies_)), people_(testimonies_) {}

  Joined join() {
    std::vector<Piece> doubts;
    for (const Testimony& testimony : testimonies_)
      watchdog_doubts_.push_back(
          std::any_of(testimony.findings.begin(), testimony.findings.end(),
                      [](const analysis::Finding& f) { return f.id == "evidence-missing.watchdog"; }));
    for (size_t i = 0; i < testimonies_.size(); ++i) {
      for (analysis::Finding& finding : testimonies_[i].findings) {
        Piece piece{i, std::move(finding), {}};
        if (is_doubt(piece)) {
          doubts.push_back(std::move(piece));
        } else {
          place(std::move(piece));
        }
      }
    }
    std::vector<Cluster> open;
    for (Piece& doubt : doubts) {
      confirm(doubt);
      if (settle(doubt)) continue;
      if (convict(doubt)) {
        place(std::move(doubt));
        continue;
      }
      acquit(doubt);
      open.push_back({std::move(doubt)});
    }
    narrow(open);
    for (Cluster& cluster : open) doubt_the_reachable(cluster.front());
    std::move(open.begin(), open.end(), std::back_inserter(clusters_));
    note_disagreements();
    note_other_times();
    return {finish(), std::move(links_)};
  }

 private:
  bool single() const { return testimonies_.size() == 1; }
  bool tells_of(size_t testimony, const std::vector<int32_t>& ranks) const {
    const auto& known = testimonies_[testimony].hosts;
    return std::all_of(ranks.begin(), ranks.end(), [&](int32_t rank) { return known.contains(rank); });
  }
  bool tells_of_any(size_t testimony, const std::vector<int32_t>& ranks) const {
    const auto& known = testimonies_[testimony].hosts;
    return std::any_of(ranks.begin(), ranks.end(), [&](int32_t rank) { return known.contains(rank); });
  }

  // A rank without a file of one kind is no suspect any more once it left one of another kind.
  bool is_doubt(const Piece& piece) const {
    if (family_of(piece.finding.finding_class) == Family::kDoubt)
      return piece.finding.severity > analysis::Severity::kNote;
    if (piece.finding.finding_class != analysis::FindingClass::kRankUnreachable ||
        piece.finding.ranks.empty())
      return false;
    for (size_t i = 0; i < testimonies_.size(); ++i) {
      if (i != piece.testimony && (tells_of_any(i, piece.finding.ranks) || watchdog_doubts_[i])) return true;
    }
    return false;
  }

  std::optional<uint32_t> comm_row(const Piece& piece) const {
    const model::Job* job = testimonies_[piece.testimony].job;
    if (job == nullptr) return std::nullopt;
    return piece.finding.comm_row && *piece.finding.comm_row < job->comms.size() ? piece.finding.comm_row
                                                                                 : std::nullopt;
  }

  // Whether both are about one communicator; nothing where that cannot be told.
  std::optional<bool> same_comm(const Piece& a, const Piece& b) const {
    if (!same_time(testimonies_[a.testimony], testimonies_[b.testimony])) return false;
    if (a.finding.comm.empty() || b.finding.comm.empty()) return std::nullopt;
    const bool same_name = a.finding.comm == b.finding.comm;
    const Piece& x = a.testimony < b.testimony ? a : b;
    const Piece& y = a.testimony < b.testimony ? b : a;
    const auto x_comm = comm_row(x), y_comm = comm_row(y);
    if (a.testimony == b.testimony) return x_comm && y_comm ? *x_comm == *y_comm : same_name;
    if (!x_comm || !y_comm) return same_name ? std::optional(true) : std::nullopt;
    for (const CommLink& link : links_) {
      if (link.a != x.testimony || link.b != y.testimony) continue;
      if (link.a_comm == *x_comm && link.b_comm == *y_comm) return true;
      if (link.a_comm == *x_comm || link.b_comm == *y_comm) return false;
    }
    const model::Job& x_job = *testimonies_[x.testimony].job;
    const model::Job& y_job = *testimonies_[y.testimony].job;
    if (!may_be_one(x_job, *x_comm, y_job, *y_comm)) return false;
    const bool one_name = is_only(x_job, x.finding.comm) && is_only(y_job, y.finding.comm);
    return same_name && one_name ? std::optional(true) : std::nullopt;
  }
  static bool is_only(const model::Job& job, const std::string& name) {
    size_t named = 0;
    for (uint32_t row = 0; row < job.comms.size(); ++row) named += job.comm_name(row) == name;
    return named == 1;
  }

  bool same_trouble(const Piece& a, const Piece& b) const {
    const Family family = family_of(a.finding.finding_class);
    if (a.testimony == b.testimony || family != family_of(b.finding.finding_class)) return false;
    if (family == Family::kSetup) return a.finding.id == b.finding.id;
    if (family == Family::kDoubt && a.finding.id != b.finding.id) return false;
    if (family == Family::kSlow && a.finding.finding_class != b.finding.finding_class) return false;
    if (!overlap(a.finding.ranks, b.finding.ranks) || same_comm(a, b) == false) return false;
    return family != Family::kStall || !contradict(a.finding.finding_class, b.finding.finding_class);
  }
  static bool contradict(analysis::FindingClass a, analysis::FindingClass b) {
    return (says_absent(a) && says_all_called(b)) || (says_absent(b) && says_all_called(a));
  }

  void place(Piece piece) {
    for (Cluster& cluster : clusters_) {
      if (std::none_of(cluster.begin(), cluster.end(),
                       [&](const Piece& other) { return same_trouble(piece, other); }))
        continue;
      cluster.insert(is_cause(piece, cluster.front()) ? cluster.begin() : cluster.end(), std::move(piece));
      return;
    }
    clusters_.push_back({std::move(piece)});
  }

  // Nearer to the cause than what the cluster is about, and of no other ranks: those that print that a peer has died are
  // witnesses.
  static bool is_cause(const Piece& piece, const Piece& front) {
    return family_of(front.finding.finding_class) == Family::kStall &&
           piece.finding.severity >= front.finding.severity &&
           depth_of(piece.finding.finding_class) < depth_of(front.finding.finding_class) &&
           std::includes(front.finding.ranks.begin(), front.finding.ranks.end(), piece.finding.ranks.begin(),
                         piece.finding.ranks.end());
  }
  // What the ranks of a finding without operations tell of may have happened to others.
  bool may_be_witness(const Piece& piece) const {
    const analysis::FindingClass c = piece.finding.finding_class;
    return testimonies_[piece.testimony].job == nullptr &&
           (c == analysis::FindingClass::kRankDead || c == analysis::FindingClass::kTransportError ||
            c == analysis::FindingClass::kAborted);
  }

  // What one kind of evidence cannot tell, another one may have told.
  bool settle(Piece& doubt) {
    Cluster* best = nullptr;
    for (Cluster& cluster : clusters_) {
      const Piece& first = cluster.front();
      if (first.testimony == doubt.testimony || !names_a_culprit(first) || may_be_witness(first) ||
          same_comm(first, doubt) == false)
        continue;
      if (!doubt.finding.ranks.empty() && !overlap(doubt.finding.ranks, first.finding.ranks) &&
          same_comm(first, doubt) != true)
        continue;
      if (best == nullptr || first.finding.weight > best->front().finding.weight) best = &cluster;
    }
    if (best == nullptr) return false;
    best->push_back(std::move(doubt));
    return true;
  }

  static bool names_a_culprit(const Piece& piece) {
    if (piece.finding.severity < analysis::Severity::kCritical || piece.finding.ranks.empty()) return false;
    switch (piece.finding.finding_class) {
      case analysis::FindingClass::kNeverJoined:
      case analysis::FindingClass::kJoinedOtherOp:
      case analysis::FindingClass::kCrossCommDeadlock:
      case analysis::FindingClass::kRankDead:
      case analysis::FindingClass::kStuckInNetwork:
      case analysis::FindingClass::kStuckInGpu:
        return true;
      default:
        return false;
    }
  }

  // "They left no file, and nothing else is wrong" says nothing once they are known from elsewhere.
  void acquit(Piece& doubt) const {
    if (doubt.finding.op_index || doubt.finding.ranks.empty() || doubt.finding.id != "evidence-missing.files")
      return;
    std::string where;
    for (const int32_t rank : doubt.finding.ranks) {
      const auto known =
          std::find_if(testimonies_.begin(), testimonies_.end(), [&](const Testimony& testimony) {
            return testimony.job != nullptr && testimony.hosts.contains(rank) &&
                   same_time(testimony, testimonies_[doubt.testimony]);
          });
      if (known == testimonies_.end()) return;
      if (where.find(known->source) == std::string::npos)
        where += (where.empty() ? "" : " and ") + known->source;
    }
    doubt.finding.severity = analysis::Severity::kNote;
    doubt.finding.evidence.push_back("known from: " + where);
  }

  // Ranks that left no file of one kind are suspects; files of another kind may tell of each whether it called the
  // operation that the others are in. True if some are found that have not.
  bool convict(Piece& doubt) const {
    analysis::Finding& finding = doubt.finding;
    // Sends and receives are counted by pair.
    if (!blames_absent(doubt) || finding.ranks.empty() || finding.func == "Send" || finding.func == "Recv")
      return false;
    std::vector<int32_t> guilty, unknown, cleared;
    std::vector<std::string> proof;
    for (const int32_t rank : finding.ranks) {
      bool seen = false;
      for (size_t i = 0; i < testimonies_.size() && !seen; ++i) {
        const auto calls = i == doubt.testimony ? std::nullopt : calls_of(rank, doubt, i);
        if (!calls) continue;
        seen = true;
        (*calls > *finding.op_index ? cleared : guilty).push_back(rank);
        add(i, doubt.also);
        proof.push_back(testimonies_[i].source + ": rank " + std::to_string(rank) + " has called " +
                        wording::count(*calls, "operation") + " of it");
      }
      if (!seen) unknown.push_back(rank);
    }
    if (proof.empty()) return false;
    if (guilty.empty()) {
      clear(doubt, cleared, unknown, proof);
      return false;
    }
    finding.evidence.insert(finding.evidence.begin(),
                            testimonies_[doubt.testimony].source + ": " + finding.statement);
    finding.evidence.insert(finding.evidence.end(), proof.begin(), proof.end());
    finding.statement =
        wording::ranks(guilty) + " never called " + operation(finding) + ", in which others wait";
    finding.ranks = std::move(guilty);
    finding.hosts.clear();
    finding.finding_class = analysis::FindingClass::kNeverJoined;
    finding.id = "never-joined";
    finding.severity = analysis::Severity::kCritical;
    finding.advice = "find out what the host code of " + wording::ranks(finding.ranks) +
                     " was doing: its own log, or stacks taken while it hangs";
    finding.settle.clear();
    return true;
  }
  // Some of the suspects have called it.
  void clear(Piece& doubt, const std::vector<int32_t>& cleared, const std::vector<int32_t>& unknown,
             const std::vector<std::string>& proof) const {
    analysis::Finding& finding = doubt.finding;
    finding.evidence.insert(finding.evidence.begin(),
                            testimonies_[doubt.testimony].source + ": " + finding.statement);
    finding.evidence.insert(finding.evidence.end(), proof.begin(), proof.end());
    finding.hosts.clear();
    finding.ranks = unknown;
    if (!unknown.empty()) {
      finding.statement = wording::ranks(unknown) + " left no file that tells; others wait in " +
                          operation(finding) + ", which " + wording::ranks(cleared) + " called";
      return;
    }
    finding.id = "evidence-missing.files";
    finding.finding_class = analysis::FindingClass::kEvidenceMissing;
    finding.severity = analysis::Severity::kWarning;
    finding.statement = "all ranks that left any file have called " + operation(finding) +
                        ", in which some wait; what they wait for cannot be told";
    finding.settle = "files of one kind from all ranks";
  }
  static void add(size_t testimony, std::vector<size_t>& list) {
    if (std::find(list.begin(), list.end(), testimony) == list.end()) list.push_back(testimony);
  }

  static std::string operation(const analysis::Finding& finding) {
    if (!finding.operation.empty()) return finding.operation;
    analysis::OperationName name{.func = wording::name(finding.func), .index = *finding.op_index};
    name.comm = finding.comm.empty() ? "a communicator without a name" : wording::name(finding.comm);
    return name.text();
  }

  // How many collectives the rank has called on the communicator of the doubt, according to another testimony that
  // counts them alike.
  std::optional<uint32_t> calls_of(int32_t rank, const Piece& doubt, size_t testimony) const {
    const auto comm = comm_row(doubt);
    if (!comm || testimonies_[testimony].job == nullptr) return std::nullopt;
    for (const CommLink& link : links_) {
      const bool forward = link.a == doubt.testimony && link.b == testimony && link.a_comm == *comm;
      const bool backward = link.b == doubt.testimony && link.a == testimony && link.b_comm == *comm;
      if ((!forward && !backward) || link.compared == 0 || link.agreeing != link.compared) continue;
      const model::Job& job = *testimonies_[testimony].job;
      std::optional<uint32_t> calls;
      uint32_t most = 0;
      size_t others = 0;
      for (const uint32_t row : job.comms[forward ? link.b_comm : link.a_comm].members) {
        if (row == model::kNoRow || job.members[row].alignment == model::Member::Alignment::kNone) continue;
        const model::Member& member = job.members[row];
        most = std::max(most, job.next_index(member));
        const bool is_suspect = job.processes[member.process].row.rank == rank;
        if (is_suspect) calls = job.next_index(member);
        others += !is_suspect && tells_of(doubt.testimony, {job.processes[member.process].row.rank});
      }
      // Ranks that wait according to the doubt have not come so far here: this was taken before.
      if (others > 0 && most <= *doubt.finding.op_index) return std::nullopt;
      return calls;
    }
    return std::nullopt;
  }

  // Watchdogs that do not know how many ranks there are name those alone whom they miss: others that they do not tell of may be
  // it as well. Of a part of the ranks, whose lines may be of other groups, they clear nobody.
  bool may_be_suspect(const Piece& piece, int32_t rank, bool is_world) const {
    const std::vector<int32_t>& ranks = piece.finding.ranks;
    return std::binary_search(ranks.begin(), ranks.end(), rank) ||
           (is_of_watchdogs(piece) && !(is_world && tells_of_any(piece.testimony, {rank})));
  }
  std::vector<int32_t> common_suspects(const Piece& a, const Piece& b) const {
    std::vector<int32_t> all, both;
    const bool is_world = is_of_world(a) || is_of_world(b);
    std::set_union(a.finding.ranks.begin(), a.finding.ranks.end(), b.finding.ranks.begin(),
                   b.finding.ranks.end(), std::back_inserter(all));
    std::copy_if(all.begin(), all.end(), std::back_inserter(both), [&](int32_t rank) {
      return may_be_suspect(a, rank, is_world) && may_be_suspect(b, rank, is_world);
    });
    return both;
  }
  bool is_of_world(const Piece& piece) const {
    const auto row = comm_row(piece);
    const model::Job* job = testimonies_[piece.testimony].job;
    return row && job->expected_ranks > 0 && job->comms[*row].ranks == job->expected_ranks;
  }
  static bool is_of_watchdogs(const Piece& piece) { return piece.finding.id == "evidence-missing.watchdog"; }

  // Who may be to blame according to each is to blame according to all: a rank that left neither a file of one kind nor
  // one of another.
  void narrow(std::vector<Cluster>& open) const {
    for (size_t i = 0; i < open.size(); ++i) {
      for (size_t j = i + 1; j < open.size();) {
        analysis::Finding& finding = open[i].front().finding;
        const Piece& other = open[j].front();
        const std::vector<int32_t> both = common_suspects(open[i].front(), other);
        if (both.empty() || !same_wait(open[i].front(), other)) {
          ++j;
          continue;
        }
        finding.evidence.insert(finding.evidence.begin(), finding.statement);
        finding.ranks = both;
        finding.hosts.clear();
        finding.finding_class = analysis::FindingClass::kRankUnreachable;
        finding.id = "rank-unreachable";
        finding.severity = analysis::Severity::kCritical;
        finding.statement = wording::ranks(both) + " left neither " + left_by(open[i].front()) + " nor " +
                            left_by(other) + "; others wait in " + operation(finding);
        open[i].push_back(std::move(open[j].front()));
        open.erase(open.begin() + static_cast<std::ptrdiff_t>(j));
      }
    }
  }
  std::string left_by(const Piece& piece) const {
    return is_of_watchdogs(piece) ? "lines of a watchdog" : testimonies_[piece.testimony].source;
  }
  // Who left something of another kind can be reached, and may have called it or not.
  void doubt_the_reachable(Piece& piece) const {
    analysis::Finding& finding = piece.finding;
    if (finding.finding_class != analysis::FindingClass::kRankUnreachable) return;
    std::vector<int32_t> known;
    for (const int32_t rank : finding.ranks) {
      for (const Testimony& testimony : testimonies_) {
        if (!testimony.hosts.contains(rank)) continue;
        known.push_back(rank);
        break;
      }
    }
    if (known.empty()) return;
    finding.id = "evidence-missing.files";
    finding.finding_class = analysis::FindingClass::kEvidenceMissing;
    finding.evidence.push_back("what else there is of " + wording::ranks(known) +
                               " does not tell whether it was called there");
    finding.settle = testimonies_[piece.testimony].source + " of these ranks";
  }

  bool same_wait(const Piece& a, const Piece& b) const {
    return a.testimony != b.testimony && blames_absent(a) && blames_absent(b) && same_comm(a, b) == true &&
           a.finding.func == b.finding.func && a.finding.op_index == b.finding.op_index;
  }
  static bool blames_absent(const Piece& piece) {
    return piece.finding.op_index &&
           (piece.finding.id == "evidence-missing.files" || is_of_watchdogs(piece) ||
            piece.finding.finding_class == analysis::FindingClass::kRankUnreachable);
  }

  // What one moment shows of a rank is made certain by another kind in which others wait, and which does not tell of that rank,
  // or tells that it may be the one.
  void confirm(const Piece& doubt) {
    if (!is_of_watchdogs(doubt) && doubt.finding.finding_class != analysis::FindingClass::kRankUnreachable)
      return;
    for (Cluster& cluster : clusters_) {
      const Piece& suspect = cluster.front();
      const std::vector<int32_t>& ranks = suspect.finding.ranks;
      const bool is_moment =
          suspect.finding.id == "never-joined.snapshot" || suspect.finding.id == "never-joined.stacks";
      if (!is_moment || ranks.empty() || suspect.testimony == doubt.testimony ||
          same_comm(suspect, doubt) == false)
        continue;
      const std::vector<int32_t>& open = doubt.finding.ranks;
      const bool may_be = std::includes(open.begin(), open.end(), ranks.begin(), ranks.end());
      if (!may_be && (!open.empty() || tells_of_any(doubt.testimony, ranks))) continue;
      cluster.front().finding.severity = analysis::Severity::kCritical;
      cluster.front().finding.settle.clear();
    }
  }

  // Two kinds that both tell of the ranks that the other one blames, and blame different ones for one wait.
  void note_disagreements() {
    const size_t count = clusters_.size();
    for (size_t i = 0; i < count; ++i) {
      for (size_t j = i + 1; j < count; ++j) {
        if (disagree(clusters_[i], clusters_[j])) {
          const analysis::Finding disagreement = describe(clusters_[i].front(), clusters_[j].front());
          clusters_.push_back(
              {Piece{clusters_[i].front().testimony, disagreement, {clusters_[j].front().testimony}}});
        }
      }
    }
  }
  bool disagree(const Cluster& x, const Cluster& y) const {
    const Piece& a = x.front();
    const Piece& b = y.front();
    if (a.testimony == b.testimony || a.finding.severity < analysis::Severity::kCritical ||
        b.finding.severity < analysis::Severity::kCritical || a.finding.ranks.empty() ||
        b.finding.ranks.empty() || family_of(a.finding.finding_class) != Family::kStall ||
        family_of(b.finding.finding_class) != Family::kStall || may_be_witness(a) || may_be_witness(b) ||
        same_comm(a, b) == false)
      return false;
    const auto from = [](const Cluster& cluster, size_t testimony) {
      return std::any_of(cluster.begin(), cluster.end(),
                         [&](const Piece& p) { return p.testimony == testimony; });
    };
    if (from(x, b.testimony) || from(y, a.testimony)) return false;
    if (!tells_of(a.testimony, b.finding.ranks) || !tells_of(b.testimony, a.finding.ranks)) return false;
    return !overlap(a.finding.ranks, b.finding.ranks) ||
           contradict(a.finding.finding_class, b.finding.finding_class);
  }
  analysis::Finding describe(const Piece& a, const Piece& b) const {
    analysis::Finding finding;
    finding.id = "evidence-missing.disagreement";
    finding.finding_class = analysis::FindingClass::kEvidenceMissing;
    finding.severity = analysis::Severity::kWarning;
    finding.comm = a.finding.comm;
    finding.statement = "the " + testimonies_[a.testimony].source + " and the " +
                        testimonies_[b.testimony].source +
                        " contradict each other about what the job waits for";
    finding.evidence = {testimonies_[a.testimony].source + ": " + a.finding.statement,
                        testimonies_[b.testimony].source + ": " + b.finding.statement};
    finding.advice = "see whether both are of the same run and the same moment; the " +
                     testimonies_[a.testimony].source + " are the ones that are trusted more";
    return finding;
  }

  // Kinds that cannot be of one run are not joined, which must be said.
  void note_other_times() {
    for (size_t i = 0; i < testimonies_.size(); ++i) {
      for (size_t j = i + 1; j < testimonies_.size(); ++j) {
        if (same_time(testimonies_[i], testimonies_[j])) continue;
        analysis::Finding finding;
        finding.id = "evidence-missing.other-time";
        finding.finding_class = analysis::FindingClass::kEvidenceMissing;
        finding.severity = analysis::Severity::kWarning;
        finding.statement = "the " + testimonies_[i].source + " and the " + testimonies_[j].source +
                            " are not of the same time: each was judged by itself";
        finding.advice = "give the files of one run";
        clusters_.push_back({Piece{i, std::move(finding), {j}}});
      }
    }
  }

  analysis::Diagnosis finish() {
    std::vector<analysis::Finding> findings;
    for (size_t i = 0; i < clusters_.size(); ++i) findings.push_back(merge(i));
    return analysis::in_order(std::move(findings));
  }

  analysis::Finding merge(size_t at) {
    Cluster& cluster = clusters_[at];
    analysis::Finding finding = std::move(cluster.front().finding);
    const std::string& own = testimonies_[cluster.front().testimony].source;
    finding.sources = {own};
    for (const size_t other : cluster.front().also) add_source(testimonies_[other].source, finding);
    if (cluster.size() > 1) {
      for (std::string& line : finding.evidence) line = named(line, own);
    }
    for (size_t i = 1; i < cluster.size(); ++i) {
      finding.severity = std::max(finding.severity, counted_severity(cluster[i]));
      finding.weight = std::max(finding.weight, cluster[i].finding.weight);
      cite(cluster[i], finding);
    }
    if (!single()) people_.add_hosts(finding);
    if (finding.op_index && finding.operation.empty()) finding.operation = operation(finding);
    people_.name(cluster.front().testimony, finding);
    return finding;
  }
  // A doubt that is settled makes nothing worse.
  static analysis::Severity counted_severity(const Piece& piece) {
    return family_of(piece.finding.finding_class) == Family::kDoubt ? analysis::Severity::kNote
                                                                    : piece.finding.severity;
  }
  // With who says it, where it does not say so already.
  std::string named(const std::string& line, const std::string& own) const {
    for (const Testimony& testimony : testimonies_) {
      if (line.compare(0, testimony.source.size() + 2, testimony.source + ": ") == 0) return line;
    }
    return own + ": " + line;
  }
  static void add_source(const std::string& source, analysis::Finding& finding) {
    if (std::find(finding.sources.begin(), finding.sources.end(), source) == finding.sources.end())
      finding.sources.push_back(source);
  }
  void cite(const Piece& piece, analysis::Finding& finding) const {
    const std::string& source = testimonies_[piece.testimony].source;
    add_source(source, finding);
    finding.evidence.push_back(source + ": " + piece.finding.statement);
    for (size_t i = 0; i < std::min(piece.finding.evidence.size(), kCitedLines); ++i)
      finding.evidence.push_back(named(piece.finding.evidence[i], source));
    if (!finding.since_ns) finding.since_ns = piece.finding.since_ns;
    if (!finding.op_index && same_class(piece.finding, finding)) {
      finding.func = piece.finding.func;
      finding.op_index = piece.finding.op_index;
      finding.operation = piece.finding.operation;
      if (finding.comm.empty()) finding.comm = piece.finding.comm;
    }
    if (!finding.effect) finding.effect = piece.finding.effect;
  }
  static bool same_class(const analysis::Finding& a, const analysis::Finding& b) {
    return a.finding_class == b.finding_class;
  }

  std::vector<Testimony> testimonies_;
  std::vector<CommLink> links_;
  People people_;
  std::vector<Cluster> clusters_;
  std::vector<bool> watchdog_doubts_;  // by testimony: watchdogs that cannot tell
};

}  // namespace

Joined join(std::vector<Testimony> testimonies) { return Joiner(std::move(testimonies)).join(); }

}  // namespace lockstep::verdict::join
