// SPDX-License-Identifier: Apache-2.0
// Finds, per communicator, the first index at which ranks called different operations. It merges the members
// one after the other into a list of what is known at each index, and stops at the first that does not fit:
// behind it every rank counts differently. NCCL reports some collectives as bytes, so a data type that only
// NCCL reported is a guess and agrees with any type of the same size.
#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "job/match/match.h"
#include "model/recording_modes.h"

namespace lockstep::job::match {
namespace {

using model::kNoRow;
using model::Member;

bool comparable(const Member& member) {
  return member.ops > 0 && member.alignment != Member::Alignment::kNone;
}

// NCCL moves these as bytes, and says so. What the program asked for is in the record of its call; where that
// is gone, any type of as many bytes may have been meant.
struct Essences {
  explicit Essences(const model::Job& job) : exact(essences(job)) {
    std::map<std::tuple<model::StringId, int32_t, uint64_t>, uint32_t> numbers;
    for (const model::Signature& s : job.signatures) {
      const auto key = std::tuple(s.func, s.root, s.bytes);
      untyped.push_back(numbers.try_emplace(key, static_cast<uint32_t>(numbers.size())).first->second);
      const std::string_view func = job.text(s.func);
      is_bytes.push_back((func == "AllGather" || func == "Broadcast") && job.text(s.datatype) == "ncclInt8");
    }
  }
  std::vector<uint32_t> exact, untyped;  // by row of Job::signatures
  std::vector<bool> is_bytes;
};

class CommComparer {
 public:
  CommComparer(const model::Job& job, const Essences& essences, uint32_t comm)
      : job_(job), essences_(essences), comm_(comm) {}

  void run(std::vector<Difference>& out) {
    std::vector<uint32_t> members;
    for (uint32_t row : job_.comms[comm_].members) {
      if (row != kNoRow && comparable(job_.members[row])) members.push_back(row);
    }
    leave_out_holes(members);
    if (members.size() < 2) return;
    uint32_t first = model::kNoIndex;
    for (uint32_t row : members) first = std::min(first, compare(job_.members[row], first));
    if (first != model::kNoIndex) out.push_back(describe(members, first));
  }

 private:
  struct Known {
    uint32_t index, signature;
    bool is_guess;  // of its type
  };

  // Behind a hole the order of operations is only known from a member that has them all.
  void leave_out_holes(std::vector<uint32_t>& members) const {
    const auto is_whole = [this](uint32_t row) {
      return job_.members[row].alignment == Member::Alignment::kFromStart;
    };
    // A member that has them all shows what belongs behind the hole, and others may be held against it.
    if (std::any_of(members.begin(), members.end(), is_whole)) return;
    std::erase_if(members,
                  [this](uint32_t row) { return job_.processes[job_.members[row].process].holes != 0; });
  }

  Known known_of(const model::JobOps& ops, uint32_t i) const {
    const uint32_t signature = ops.signature[i];
    return {ops.index[i], signature, essences_.is_bytes[signature] && ops.called_ns[i] == 0};
  }
  bool same(const Known& a, const Known& b) const {
    // A guess can only agree or leave it open; it must never make a rank differ.
    return a.is_guess || b.is_guess ? essences_.untyped[a.signature] == essences_.untyped[b.signature]
                                    : essences_.exact[a.signature] == essences_.exact[b.signature];
  }

  // Adds what nobody before had; returns the first index below `limit` at which the member does something
  // else.
  uint32_t compare(const Member& member, uint32_t limit) {
    const model::JobOps& ops = job_.ops(member);
    // Both lists ascend, so one pass merges them: a job of 10,000 members costs its operations and no square.
    std::vector<Known> fresh;
    auto known = known_.begin();
    for (uint32_t i = member.first; i < member.first + member.ops && ops.index[i] < limit; ++i) {
      const Known here = known_of(ops, i);
      while (known != known_.end() && known->index < here.index) ++known;
      if (known == known_.end() || known->index != here.index) {
        fresh.push_back(here);
      } else if (!same(*known, here)) {
        return here.index;
        // What the program itself asked for replaces what NCCL reported.
      } else if (known->is_guess) {
        *known = here;
      }
    }
    if (!fresh.empty()) {
      auto middle = known_.insert(known_.end(), fresh.begin(), fresh.end());
      std::inplace_merge(known_.begin(), middle, known_.end(),
                         [](const Known& a, const Known& b) { return a.index < b.index; });
    }
    return limit;
  }

  Difference describe(const std::vector<uint32_t>& members, uint32_t index) const {
    struct Side {
      Known known;
      std::vector<uint32_t> rows;
    };
    std::vector<Side> sides;
    // Those whose type is known come first: the others take the side of one that they may be.
    for (const bool guesses : {false, true}) {
      for (uint32_t row : members) {
        auto at = job_.op_at(job_.members[row], index);
        if (!at) continue;
        const Known known = known_of(job_.ops(job_.members[row]), *at);
        if (known.is_guess != guesses) continue;
        auto side =
            std::find_if(sides.begin(), sides.end(), [&](const Side& s) { return same(s.known, known); });
        if (side == sides.end()) side = sides.insert(side, {known, {}});
        side->rows.push_back(row);
      }
    }
    auto largest = std::max_element(sides.begin(), sides.end(), [](const Side& a, const Side& b) {
      return a.rows.size() < b.rows.size();
    });
    Difference difference{.comm = comm_, .index = index, .members = {}, .like = largest->rows.front()};
    difference.unknown = unknown_at(index);
    for (const Side& side : sides) {
      if (&side == &*largest) continue;
      difference.tie = difference.tie || side.rows.size() == largest->rows.size();
      // Ranks of which nothing is known may all stand on the smaller side: then there is no majority to blame
      // it by.
      const bool may_be_as_many = side.rows.size() + difference.unknown >= largest->rows.size();
      difference.open = difference.open || (difference.unknown != 0 && may_be_as_many);
      difference.members.insert(difference.members.end(), side.rows.begin(), side.rows.end());
    }
    std::sort(difference.members.begin(), difference.members.end());
    return difference;
  }

  // Ranks that may have called it, as far as is known: they left no file, or that part of it is lost.
  size_t unknown_at(uint32_t index) const {
    const model::JobComm& comm = job_.comms[comm_];
    const auto ranks = std::max(comm.members.size(), static_cast<size_t>(std::max(comm.ranks, 0)));
    return ranks -
           static_cast<size_t>(std::count_if(comm.members.begin(), comm.members.end(), [&](uint32_t row) {
             return row != kNoRow && is_known_at(job_.members[row], index);
           }));
  }
  bool is_known_at(const Member& member, uint32_t index) const {
    const model::JobProcess& process = job_.processes[member.process];
    const bool is_placed = member.ops == 0 || member.alignment != Member::Alignment::kNone;
    if (is_placed && job_.op_at(member, index)) return true;
    // It has not come so far, and nothing of its record is missing: it did not call it.
    return is_placed && process.holes == 0 && !model::was_off(job_.text(process.row.modes)) &&
           index >= job_.next_index(member);
  }

  const model::Job& job_;
  const Essences& essences_;
  uint32_t comm_;
  std::vector<Known> known_;  // of the members so far, by index
};

}  // namespace

std::vector<uint32_t> essences(const model::Job& job) {
  std::map<std::tuple<model::StringId, model::StringId, int32_t, uint64_t>, uint32_t> numbers;
  std::vector<uint32_t> essence;
  essence.reserve(job.signatures.size());
  for (const model::Signature& s : job.signatures) {
    // Declared operations, and gathers of unequal parts, carry a size of each rank's own.
    bool own_size = s.kind == model::number(model::EventKind::kApiOp) || job.text(s.func) == "AllGatherV";
    auto key = std::tuple(s.func, s.datatype, s.root, own_size ? 0 : s.bytes);
    essence.push_back(numbers.try_emplace(key, static_cast<uint32_t>(numbers.size())).first->second);
  }
  return essence;
}

std::vector<Difference> differences(const model::Job& job) {
  const Essences essences(job);
  std::vector<Difference> out;
  for (uint32_t comm = 0; comm < job.comms.size(); ++comm) CommComparer(job, essences, comm).run(out);
  return out;
}

}  // namespace lockstep::job::match
