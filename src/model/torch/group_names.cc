// SPDX-License-Identifier: Apache-2.0
// Candidates are looked for in the processes alone that are members: all of them know both the group and the
// communicator. A communicator whose id is not known could be any of its size, so that nothing of that size
// is certain in its process.
#include "model/torch/group_names.h"

#include <algorithm>

#include "model/event_kind.h"
#include "model/limits.h"

namespace lockstep::model {

int32_t GroupNames::Group::global_rank(int32_t rank) const {
  if (rank < 0 || rank >= ranks) return -1;
  if (!listed.empty()) {
    const auto at = static_cast<size_t>(rank);
    return at < listed.size() ? listed[at] : -1;
  }
  if (progression.start < 0 || progression.stride < 0) return -1;
  const int64_t global = progression.start + int64_t{progression.stride} * rank;
  return global < kMostRanks ? static_cast<int32_t>(global) : -1;
}

void GroupNames::add(int32_t global_rank, std::vector<Comm> comms, const std::vector<Group>& groups) {
  is_over_ = is_over_ || comms.size() > kMostOfProcess || groups.size() > kMostOfProcess;
  if (is_over_) return;
  Process process{.global_rank = global_rank, .comms = std::move(comms), .groups = {}};
  for (const Comm& comm : process.comms) {
    if (comm.comm_id == 0) continue;
    Members& members = comms_[{comm.comm_id, comm.ranks}];
    members.list.push_back({processes_.size(), comm.rank});
    members.is_named = members.is_named || comm.is_named;
  }
  for (const Group& group : groups) {
    const auto [at, is_new] = group_ids_.try_emplace(
        {group.name, group.ranks, group.progression.start, group.progression.stride, group.listed},
        static_cast<uint32_t>(groups_.size()));
    if (is_new) groups_.push_back(group);
    process.groups.push_back(at->second);
  }
  // Threads of one process may each have declared a group.
  std::sort(process.groups.begin(), process.groups.end());
  process.groups.erase(std::unique(process.groups.begin(), process.groups.end()), process.groups.end());
  processes_.push_back(std::move(process));
}

// All of these say that they are members of the group, at that place.
bool GroupNames::is_of(const Members& members, uint32_t group) const {
  return std::all_of(members.list.begin(), members.list.end(), [&](const Member& member) {
    const Process& process = processes_[member.process];
    return process.global_rank >= 0 && groups_[group].global_rank(member.rank) == process.global_rank &&
           std::binary_search(process.groups.begin(), process.groups.end(), group);
  });
}

bool GroupNames::is_only_comm_of(uint32_t group, const Members& members, const Key& key) const {
  std::map<Key, bool> asked;  // its members share them
  return std::all_of(members.list.begin(), members.list.end(), [&](const Member& member) {
    const auto& comms = processes_[member.process].comms;
    return std::none_of(comms.begin(), comms.end(), [&](const Comm& other) {
      const Key its(other.comm_id, other.ranks);
      if (other.ranks != groups_[group].ranks || its == key) return false;
      if (other.comm_id == 0) return true;
      const auto [at, is_new] = asked.try_emplace(its);
      if (is_new) at->second = is_of(comms_.at(its), group);
      return at->second;
    });
  });
}

void GroupNames::finish() {
  if (is_over_) comms_.clear();
  for (const auto& [key, members] : comms_) {
    if (members.is_named || key.second <= 0) continue;
    std::vector<uint32_t> candidates;
    for (const uint32_t group : processes_[members.list.front().process].groups)
      if (groups_[group].ranks == key.second && is_of(members, group)) candidates.push_back(group);
    if (candidates.size() == 1 && is_only_comm_of(candidates[0], members, key))
      names_[key] = groups_[candidates[0]].name;
  }
  processes_.clear();
  groups_.clear();
  group_ids_.clear();
  comms_.clear();
}

std::string_view GroupNames::of(uint64_t comm_id, int32_t ranks) const {
  const auto at = names_.find({comm_id, ranks});
  return at == names_.end() ? std::string_view() : at->second;
}

void name_unnamed_comms(Trace& trace, const GroupNames& names) {
  CommTable& comms = trace.comms;
  std::vector<bool> has_collective(comms.size());
  for (size_t task = 0; task < trace.tasks.size(); ++task) {
    const uint32_t comm = trace.tasks.comm[task];
    if (comm < comms.size() && trace.tasks.kind[task] != number(EventKind::kP2p)) has_collective[comm] = true;
  }
  for (uint32_t comm = 0; comm < comms.size(); ++comm) {
    if (comms.name[comm] != 0 || comms.api_version[comm] == 0) continue;
    const std::string name(names.of(comms.comm_id[comm], comms.ranks[comm]));
    if (!name.empty() && (comms.ranks[comm] > 2 || has_collective[comm]))
      comms.name[comm] = trace.strings.intern(name);
  }
}

}  // namespace lockstep::model
