// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

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
    for (size_t i = 1; i < members.size(); ++i)
      first = std::min(first, first_difference(job_.members[members[0]], job_.members[members[i]], first));
    if (first != model::kNoIndex) out.push_back(describe(members, first));
  }

 private:
  uint32_t first_difference(const Member& a, const Member& b, uint32_t limit) const {
    const model::JobOps& a_ops = job_.ops(a);
    const model::JobOps& b_ops = job_.ops(b);
    uint32_t i = a.first, j = b.first;
    while (i < a.first + a.ops && j < b.first + b.ops) {
      uint32_t a_index = a_ops.index[i], b_index = b_ops.index[j];
      if (std::max(a_index, b_index) >= limit) break;
      if (a_index < b_index) {
        ++i;
      } else if (b_index < a_index) {
        ++j;
      } else {
        if (essence_[a_ops.signature[i]] != essence_[b_ops.signature[j]]) return a_index;
        ++i, ++j;
      }
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
};

}  // namespace

std::vector<uint32_t> essences(const model::Job& job) {
  std::map<std::tuple<model::StringId, model::StringId, int32_t, uint64_t>, uint32_t> numbers;
  std::vector<uint32_t> essence;
  essence.reserve(job.signatures.size());
  for (const model::Signature& s : job.signatures) {
    // Declared operations may carry a size of each rank's own.
    bool declared = s.kind == model::number(model::EventKind::kApiOp);
    auto key = std::tuple(s.func, s.datatype, s.root, declared ? 0 : s.bytes);
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
