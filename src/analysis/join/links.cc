// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <set>

#include "analysis/join/join.h"

namespace lockstep::analysis::join {
namespace {

using model::kNoRow;

constexpr uint64_t kCompareMost = 256;             // operations of a communicator
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
    face.members.push_back(rank >= 0 || !whole_job ? rank : static_cast<int32_t>(i));
  }
  return face;
}

// As many members, nobody in another place, and somebody in the same.
bool same_members(const Face& a, const Face& b) {
  if (a.ranks < 0 || a.ranks != b.ranks) return false;
  bool any = false;
  for (size_t i = 0; i < std::min(a.members.size(), b.members.size()); ++i) {
    if (a.members[i] < 0 || b.members[i] < 0) continue;
    if (a.members[i] != b.members[i]) return false;
    any = true;
  }
  return any;
}

struct Agreement {
  uint64_t agreeing = 0, compared = 0;
  double share() const {
    return compared == 0 ? 0 : static_cast<double>(agreeing) / static_cast<double>(compared);
  }
};

// The member that tells most: one operation is the n-th on all of them.
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

class Linker {
 public:
  Linker(const std::vector<Testimony>& testimonies, size_t a, size_t b, std::vector<CommLink>& links)
      : a_job_(*testimonies[a].job), b_job_(*testimonies[b].job), a_(a), b_(b), links_(links) {
    for (uint32_t row = 0; row < a_job_.comms.size(); ++row) a_faces_.push_back(face_of(a_job_, row));
    for (uint32_t row = 0; row < b_job_.comms.size(); ++row) b_faces_.push_back(face_of(b_job_, row));
  }

  void link() {
    link_by(CommLink::By::kId, [](const Face& x, const Face& y) { return x.id != 0 && x.id == y.id; });
    link_by(CommLink::By::kName, [](const Face& x, const Face& y) {
      return !x.name.empty() && x.name == y.name && x.ranks == y.ranks;
    });
    for (uint32_t row = 0; row < a_faces_.size(); ++row) {
      if (!a_taken_.contains(row)) link_by_members(row);
    }
  }

 private:
  template <class Same>
  void link_by(CommLink::By by, const Same& same) {
    for (uint32_t x = 0; x < a_faces_.size(); ++x) {
      if (a_taken_.contains(x)) continue;
      for (uint32_t y = 0; y < b_faces_.size(); ++y) {
        if (b_taken_.contains(y) || !same(a_faces_[x], b_faces_[y])) continue;
        add(by, x, y, compare_operations(a_job_, x, b_job_, y));
        break;
      }
    }
  }

  // Communicators with the same members are told apart by what was called on them.
  void link_by_members(uint32_t x) {
    std::optional<uint32_t> best;
    Agreement best_agreement;
    size_t candidates = 0;
    bool tie = false;
    for (uint32_t y = 0; y < b_faces_.size(); ++y) {
      if (b_taken_.contains(y) || !same_members(a_faces_[x], b_faces_[y])) continue;
      ++candidates;
      const Agreement agreement = compare_operations(a_job_, x, b_job_, y);
      const auto key = [](const Agreement& g) { return std::pair(g.share(), g.compared); };
      tie = best && key(agreement) == key(best_agreement);
      if (!best || key(agreement) > key(best_agreement)) {
        best = y;
        best_agreement = agreement;
      }
    }
    const auto rivals =
        static_cast<size_t>(std::count_if(a_faces_.begin(), a_faces_.end(), [&](const Face& other) {
          return same_members(a_faces_[x], other);
        }));
    const bool alone = candidates == 1 && rivals == 1;
    if (!best || (alone ? best_agreement.compared > 0 && best_agreement.share() < kAlike
                        : tie || best_agreement.share() < kAlike))
      return;
    add(alone ? CommLink::By::kMembers : CommLink::By::kOperations, x, *best, best_agreement);
  }

  void add(CommLink::By by, uint32_t x, uint32_t y, const Agreement& agreement) {
    links_.push_back({by, a_, b_, x, y, agreement.agreeing, agreement.compared});
    a_taken_.insert(x);
    b_taken_.insert(y);
  }

  const model::Job& a_job_;
  const model::Job& b_job_;
  const size_t a_, b_;
  std::vector<CommLink>& links_;
  std::vector<Face> a_faces_, b_faces_;
  std::set<uint32_t> a_taken_, b_taken_;
};

}  // namespace

bool same_time(const Testimony& a, const Testimony& b) {
  if (a.first_ns == 0 || b.first_ns == 0) return true;
  return a.first_ns <= b.last_ns + kClocksApart && b.first_ns <= a.last_ns + kClocksApart;
}

std::string_view text(CommLink::By by) {
  constexpr std::string_view kTexts[] = {"id", "name", "members", "operations"};
  return kTexts[static_cast<size_t>(by)];
}

std::vector<CommLink> link_comms(const std::vector<Testimony>& testimonies) {
  std::vector<CommLink> links;
  for (size_t a = 0; a < testimonies.size(); ++a) {
    for (size_t b = a + 1; b < testimonies.size(); ++b) {
      if (testimonies[a].job != nullptr && testimonies[b].job != nullptr)
        Linker(testimonies, a, b, links).link();
    }
  }
  return links;
}

}  // namespace lockstep::analysis::join
