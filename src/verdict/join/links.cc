// SPDX-License-Identifier: Apache-2.0
// Links the communicators of two kinds of evidence: by NCCL's id, then by name, then by members, then by what
// was called on them. Each way is used only where it leaves one candidate. A wrong link would join findings
// about different communicators, so no link is better than an unsure one.
#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>

#include "verdict/join/join.h"

namespace lockstep::verdict::join {
namespace {

using model::kNoRow;

constexpr uint64_t kCompareMost = 256;             // operations of a communicator
constexpr uint32_t kSharedMost = 4096;             // that tell it from others with its members
constexpr size_t kComparisonsMost = 1 << 15;       // of two jobs' communicators
constexpr double kAlike = 0.9;                     // share of them that agrees where it is one communicator
constexpr int64_t kClocksApart = 600'000'000'000;  // hosts' clocks may differ by so much, in ns

// A communicator as far as others can recognise it.
struct Face {
  uint64_t id = 0;
  std::string name;
  int32_t ranks = -1;
  std::vector<int32_t> members;  // global ranks by rank; -1 unknown
};

// PyTorch hands NCCL "description:name"; its own tools say the same as "description (group name)".
std::string plain_name(std::string_view name) {
  const size_t group = name.find(" (group ");
  if (group != std::string_view::npos && name.back() == ')')
    return std::string(name.substr(0, group)) + ':' +
           std::string(name.substr(group + 8, name.size() - group - 9));
  if (name == "default_pg:0") return "default_pg";
  return std::string(name);
}

Face face_of(const model::Job& job, uint32_t row) {
  const model::JobComm& comm = job.comms[row];
  Face face{comm.comm_id, plain_name(job.text(comm.name)), comm.ranks, {}};
  const bool whole_job = comm.ranks > 0 && comm.ranks == job.expected_ranks;
  for (size_t i = 0; i < comm.members.size(); ++i) {
    const uint32_t member = comm.members[i];
    const int32_t rank = member == kNoRow ? -1 : job.processes[job.members[member].process].row.rank;
    // In the communicator of the whole job a rank is the job's, whether or not its process is there.
    face.members.push_back(rank >= 0 || !whole_job ? rank : static_cast<int32_t>(i));
  }
  return face;
}

enum class Likeness : uint8_t { kOther, kUnknown, kSame };
// Nobody in another place, and somebody in the same.
Likeness likeness(const Face& a, const Face& b) {
  Likeness found = Likeness::kUnknown;
  for (size_t i = 0; i < std::min(a.members.size(), b.members.size()); ++i) {
    if (a.members[i] < 0 || b.members[i] < 0) continue;
    if (a.members[i] != b.members[i]) return Likeness::kOther;
    found = Likeness::kSame;
  }
  return found;
}
bool contradict(const Face& a, const Face& b) {
  return (a.ranks >= 0 && b.ranks >= 0 && a.ranks != b.ranks) || likeness(a, b) == Likeness::kOther;
}
// As many members as well.
bool same_members(const Face& a, const Face& b) {
  return a.ranks >= 0 && a.ranks == b.ranks && likeness(a, b) == Likeness::kSame;
}

struct Agreement {
  uint64_t agreeing = 0, compared = 0;
  double share() const {
    return compared == 0 ? 0 : static_cast<double>(agreeing) / static_cast<double>(compared);
  }
};

// The member that says most: one operation is the n-th on all of them.
const model::Member* fullest(const model::Job& job, uint32_t comm) {
  const model::Member* best = nullptr;
  for (const uint32_t row : job.comms[comm].members) {
    if (row == kNoRow || job.members[row].alignment == model::Member::Alignment::kNone) continue;
    if (best == nullptr || job.members[row].ops > best->ops) best = &job.members[row];
  }
  return best;
}

// Functions of the newest collectives that both have, by their place.
Agreement compare_operations(const model::Job& a, uint32_t a_comm, const model::Job& b, uint32_t b_comm) {
  Agreement seen;
  const model::Member* left = fullest(a, a_comm);
  const model::Member* right = fullest(b, b_comm);
  if (left == nullptr || right == nullptr) return seen;
  // The newest first: rings keep those, and both kinds have most of them.
  const uint32_t end = std::min(a.next_index(*left), b.next_index(*right));
  const uint32_t begin = std::max(a.oldest_index(*left), b.oldest_index(*right));
  for (uint32_t index = end; index > begin && seen.compared < kCompareMost; --index) {
    const auto at_a = a.op_at(*left, index - 1), at_b = b.op_at(*right, index - 1);
    if (!at_a || !at_b) continue;
    ++seen.compared;
    seen.agreeing += a.text(a.signatures[a.ops(*left).signature[*at_a]].func) ==
                     b.text(b.signatures[b.ops(*right).signature[*at_b]].func);
  }
  return seen;
}

// What tells communicators with the same members apart. Those that are equal in it are told apart by nothing.
struct Calls {
  uint32_t oldest = 0, next = 0;
  size_t functions = 0;  // of the newest, in their order
  auto operator<=>(const Calls&) const = default;
};
Calls calls_of(const model::Job& job, uint32_t comm) {
  Calls calls;
  const model::Member* member = fullest(job, comm);
  if (member == nullptr) return calls;
  calls.oldest = job.oldest_index(*member);
  calls.next = job.next_index(*member);
  const uint32_t begin = std::max(calls.oldest, calls.next - std::min(calls.next, kSharedMost));
  for (uint32_t index = begin; index < calls.next; ++index) {
    const auto op = job.op_at(*member, index);
    const std::string_view func =
        op ? job.text(job.signatures[job.ops(*member).signature[*op]].func) : std::string_view();
    // A hash instead of the list: jobs have thousands of communicators. FNV's prime keeps the order in it.
    calls.functions = calls.functions * 1099511628211u + std::hash<std::string_view>()(func);
  }
  return calls;
}

// The communicators of a job by their members.
class Faces {
 public:
  explicit Faces(const model::Job& job) {
    std::map<std::pair<int32_t, std::vector<int32_t>>, uint32_t> groups;
    for (uint32_t row = 0; row < job.comms.size(); ++row) {
      Face face = face_of(job, row);
      const auto [at, is_new] =
          groups.try_emplace({face.ranks, face.members}, static_cast<uint32_t>(groups_.size()));
      if (is_new) groups_.emplace_back();
      groups_[at->second].push_back(row);
      group_of_.push_back(at->second);
      faces_.push_back(std::move(face));
    }
    exact_ = std::move(groups);
    for (uint32_t group = 0; group < groups_.size(); ++group) {
      const std::vector<int32_t>& members = faces_[groups_[group].front()].members;
      const bool whole =
          static_cast<size_t>(std::max(faces_[groups_[group].front()].ranks, 0)) == members.size() &&
          std::find(members.begin(), members.end(), -1) == members.end();
      if (!whole) unsure_.push_back(group);
      is_whole_.push_back(whole);
    }
  }

  size_t size() const { return faces_.size(); }
  const Face& operator[](uint32_t row) const { return faces_[row]; }
  size_t groups() const { return groups_.size(); }
  uint32_t group_of(uint32_t row) const { return group_of_[row]; }
  const std::vector<uint32_t>& rows(uint32_t group) const { return groups_[group]; }
  bool is_whole(uint32_t row) const { return is_whole_[group_of_[row]]; }
  // The groups whose members may be these.
  std::vector<uint32_t> like(const Face& face, bool is_whole) const {
    std::vector<uint32_t> found;
    const auto consider = [&](uint32_t group) {
      if (same_members(face, faces_[groups_[group].front()])) found.push_back(group);
    };
    if (!is_whole) {
      for (uint32_t group = 0; group < groups_.size(); ++group) consider(group);
      return found;
    }
    // Where all are known, only the same ones are.
    if (const auto same = exact_.find({face.ranks, face.members}); same != exact_.end())
      consider(same->second);
    for (const uint32_t group : unsure_) consider(group);
    return found;
  }

 private:
  std::vector<Face> faces_;  // by row
  std::vector<uint32_t> group_of_;
  std::vector<std::vector<uint32_t>> groups_;
  std::vector<bool> is_whole_;    // by group
  std::vector<uint32_t> unsure_;  // groups of which some members are not known
  std::map<std::pair<int32_t, std::vector<int32_t>>, uint32_t> exact_;
};

class Linker {
 public:
  Linker(const std::vector<EvidenceSource>& sources, size_t a, size_t b, std::vector<CommLink>& links)
      : a_job_(*sources[a].job),
        b_job_(*sources[b].job),
        a_(a),
        b_(b),
        links_(links),
        a_faces_(a_job_),
        b_faces_(b_job_),
        a_taken_(a_faces_.size()),
        b_taken_(b_faces_.size()) {
    for (uint32_t group = 0; group < a_faces_.groups(); ++group) {
      const uint32_t row = a_faces_.rows(group).front();
      const bool whole = a_faces_.is_whole(row);
      like_.push_back(b_faces_.like(a_faces_[row], whole));
      rivals_.push_back(0);
      for (const uint32_t other : a_faces_.like(a_faces_[row], whole))
        rivals_.back() += a_faces_.rows(other).size();
    }
  }

  void link() {
    link_by_id();
    link_by_name();
    for (uint32_t row = 0; row < a_faces_.size(); ++row) {
      if (!a_taken_[row]) link_by_members(row);
    }
  }

 private:
  using Name = std::pair<std::string, int32_t>;  // and ranks

  void link_by_id() {
    std::unordered_map<uint64_t, uint32_t> rows;
    for (uint32_t y = 0; y < b_faces_.size(); ++y) rows.try_emplace(b_faces_[y].id, y);
    for (uint32_t x = 0; x < a_faces_.size(); ++x) {
      const auto y = rows.find(a_faces_[x].id);
      if (a_faces_[x].id == 0 || y == rows.end() || b_taken_[y->second]) continue;
      add(CommLink::By::kId, x, y->second, compare_operations(a_job_, x, b_job_, y->second));
    }
  }

  // One name may be of several, as that of a dimension is: then their members have to say which is which.
  void link_by_name() {
    std::map<Name, std::vector<uint32_t>> a_rows, b_rows;
    for (uint32_t x = 0; x < a_faces_.size(); ++x) add_name(a_faces_[x], a_taken_[x], x, a_rows);
    for (uint32_t y = 0; y < b_faces_.size(); ++y) add_name(b_faces_[y], b_taken_[y], y, b_rows);
    for (const auto& [name, xs] : a_rows) {
      const auto ys = b_rows.find(name);
      if (ys == b_rows.end()) continue;
      if (xs.size() == 1 && ys->second.size() == 1) {
        link_alike(xs.front(), ys->second.front());
        continue;
      }
      link_of_one_name(xs, ys->second);
    }
  }
  static void add_name(const Face& face, bool taken, uint32_t row,
                       std::map<Name, std::vector<uint32_t>>& rows) {
    if (!taken && !face.name.empty()) rows[{face.name, face.ranks}].push_back(row);
  }
  void link_alike(uint32_t x, uint32_t y) {
    if (contradict(a_faces_[x], b_faces_[y])) return;
    add(CommLink::By::kName, x, y, compare_operations(a_job_, x, b_job_, y));
  }
  void link_of_one_name(const std::vector<uint32_t>& xs, const std::vector<uint32_t>& ys) {
    std::map<uint32_t, std::vector<uint32_t>> x_of, y_of;  // by group
    for (const uint32_t x : xs) x_of[a_faces_.group_of(x)].push_back(x);
    for (const uint32_t y : ys) y_of[b_faces_.group_of(y)].push_back(y);
    // Two groups of one kind that may both be a third one of the other leave it open.
    std::map<uint32_t, uint64_t> claims;  // on groups of b
    for (const auto& [group, rows] : x_of) {
      for (const uint32_t other : like_[group]) claims[other] += rows.size();
    }
    for (const auto& [group, rows] : x_of) {
      std::vector<uint32_t> found;
      for (const uint32_t other : like_[group]) {
        if (const auto at = y_of.find(other); at != y_of.end()) found.push_back(other);
      }
      if (rows.size() == 1 && found.size() == 1 && claims[found.front()] == 1 &&
          y_of[found.front()].size() == 1)
        link_alike(rows.front(), y_of[found.front()].front());
    }
  }

  // Communicators with the same members are told apart by what was called on them.
  void link_by_members(uint32_t x) {
    const uint32_t group = a_faces_.group_of(x);
    std::optional<uint32_t> best;
    Agreement best_agreement;
    size_t candidates = 0;
    bool tie = false;
    for (const uint32_t other : like_[group]) {
      for (const auto& [calls, rows] : classes_of(other)) {
        const auto is_free = [this](uint32_t y) { return !b_taken_[y]; };
        const auto first = std::find_if(rows.begin(), rows.end(), is_free);
        if (first == rows.end()) continue;
        const bool several = std::find_if(std::next(first), rows.end(), is_free) != rows.end();
        candidates += several ? 2 : 1;
        const Agreement* agreement = compared(x, other, calls, *first);
        // Without all comparisons the best one is not known.
        if (agreement == nullptr) return;
        const auto key = [](const Agreement& g) { return std::pair(g.share(), g.compared); };
        if (best && key(*agreement) < key(best_agreement)) continue;
        tie = several || (best && key(*agreement) == key(best_agreement));
        best = *first;
        best_agreement = *agreement;
      }
    }
    const bool alone = candidates == 1 && rivals_[group] == 1;
    if (!best || (alone ? best_agreement.compared > 0 && best_agreement.share() < kAlike
                        : tie || best_agreement.share() < kAlike))
      return;
    add(alone ? CommLink::By::kMembers : CommLink::By::kOperations, x, *best, best_agreement);
  }

  using Classes = std::map<Calls, std::vector<uint32_t>>;  // rows of b
  const Classes& classes_of(uint32_t group) {
    const auto [at, is_new] = classes_.try_emplace(group);
    if (is_new) {
      for (const uint32_t y : b_faces_.rows(group)) at->second[calls_of(b_job_, y)].push_back(y);
    }
    return at->second;
  }
  const Calls& calls_of_a(uint32_t x) {
    const auto [at, is_new] = a_calls_.try_emplace(x);
    if (is_new) at->second = calls_of(a_job_, x);
    return at->second;
  }
  // Of all that are called alike, once. nullptr: there are too many to compare.
  const Agreement* compared(uint32_t x, uint32_t group, const Calls& calls, uint32_t y) {
    const auto [at, is_new] = agreements_.try_emplace({calls_of_a(x), group, calls});
    if (is_new && agreements_.size() > kComparisonsMost) {
      agreements_.erase(at);
      return nullptr;
    }
    if (is_new) at->second = compare_operations(a_job_, x, b_job_, y);
    return &at->second;
  }

  void add(CommLink::By by, uint32_t x, uint32_t y, const Agreement& agreement) {
    links_.push_back({by, a_, b_, x, y, agreement.agreeing, agreement.compared});
    a_taken_[x] = true;
    b_taken_[y] = true;
  }

  const model::Job& a_job_;
  const model::Job& b_job_;
  const size_t a_, b_;
  std::vector<CommLink>& links_;
  const Faces a_faces_, b_faces_;
  std::vector<bool> a_taken_, b_taken_;
  std::vector<std::vector<uint32_t>> like_;  // by group of a: groups of b
  std::vector<size_t> rivals_;           // by group of a: communicators of a that may have the same members
  std::map<uint32_t, Classes> classes_;  // by group of b
  std::unordered_map<uint32_t, Calls> a_calls_;
  std::map<std::tuple<Calls, uint32_t, Calls>, Agreement> agreements_;
};

}  // namespace

int64_t gap_ns(const TimeSpan& a, const TimeSpan& b) {
  if (a.first_ns == 0 || b.first_ns == 0) return 0;
  const int64_t gap = std::max(a.first_ns - b.last_ns, b.first_ns - a.last_ns);
  return std::max<int64_t>(gap - kClocksApart - a.zone_ns - b.zone_ns, 0);
}

bool may_be_one(const model::Job& a, uint32_t a_comm, const model::Job& b, uint32_t b_comm) {
  return !contradict(face_of(a, a_comm), face_of(b, b_comm));
}

std::string_view text(CommLink::By by) {
  constexpr std::string_view kTexts[] = {"id", "name", "members", "operations"};
  return kTexts[static_cast<size_t>(by)];
}

std::vector<CommLink> link_comms(const std::vector<EvidenceSource>& sources) {
  std::vector<CommLink> links;
  for (size_t a = 0; a < sources.size(); ++a) {
    for (size_t b = a + 1; b < sources.size(); ++b) {
      if (sources[a].job != nullptr && sources[b].job != nullptr &&
          same_time(sources[a].span, sources[b].span))
        Linker(sources, a, b, links).link();
    }
  }
  return links;
}

}  // namespace lockstep::verdict::join
