// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "analysis/match/match.h"

namespace lockstep::analysis::match {
namespace {

using model::kNoRow;
using model::Member;

bool comparable(const Member& member) {
  return member.ops > 0 && member.alignment != Member::Alignment::kNone;
}

class CommComparer {
 public:
  CommComparer(const model::Job& job, const std::vector<uint32_t>& essence, uint32_t comm)
      : job_(job), essence_(essence), comm_(comm) {}

  void run(std::vector<Difference>& out) {
    std::vector<uint32_t> members;
    for (uint32_t row : job_.comms[comm_].members) {
      if (row != kNoRow && comparable(job_.members[row])) members.push_back(row);
    }
    if (members.size() < 2) return;
    uint32_t first = model::kNoIndex;
    for (uint32_t row : members) first = std::min(first, compare(job_.members[row], first));
    if (first != model::kNoIndex) out.push_back(describe(members, first));
  }

 private:
  struct Known {
    uint32_t index, essence;
  };

  // Adds what nobody before had; returns the first index below `limit` at which the member does something else.
  uint32_t compare(const Member& member, uint32_t limit) {
    const model::JobOps& ops = job_.ops(member);
    std::vector<Known> fresh;
    auto known = known_.begin();
    for (uint32_t i = member.first; i < member.first + member.ops && ops.index[i] < limit; ++i) {
      Known here{ops.index[i], essence_[ops.signature[i]]};
      while (known != known_.end() && known->index < here.index) ++known;
      if (known == known_.end() || known->index != here.index) {
        fresh.push_back(here);
      } else if (known->essence != here.essence) {
        return here.index;
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
    std::map<uint32_t, std::vector<uint32_t>> sides;
    for (uint32_t row : members) {
      auto at = job_.op_at(job_.members[row], index);
      if (at) sides[essence_[job_.ops(job_.members[row]).signature[*at]]].push_back(row);
    }
    auto largest = std::max_element(sides.begin(), sides.end(), [](const auto& a, const auto& b) {
      return a.second.size() < b.second.size();
    });
    Difference difference{.comm = comm_, .index = index, .members = {}, .like = largest->second.front()};
    for (const auto& [essence, rows] : sides) {
      if (essence == largest->first) continue;
      difference.tie = difference.tie || rows.size() == largest->second.size();
      difference.members.insert(difference.members.end(), rows.begin(), rows.end());
    }
    std::sort(difference.members.begin(), difference.members.end());
    return difference;
  }

  const model::Job& job_;
  const std::vector<uint32_t>& essence_;
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
  std::vector<uint32_t> essence = essences(job);
  std::vector<Difference> out;
  for (uint32_t comm = 0; comm < job.comms.size(); ++comm) CommComparer(job, essence, comm).run(out);
  return out;
}

}  // namespace lockstep::analysis::match
