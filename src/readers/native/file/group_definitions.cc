// SPDX-License-Identifier: Apache-2.0
// A list of ranks that is a progression is kept as one: thousands of processes list the whole job each.
#include "readers/native/file/group_definitions.h"

#include <algorithm>
#include <iterator>

namespace lockstep::readers::native {

void GroupsOfFile::take(const Definition& definition) {
  const uint32_t id = definition.head().id;
  switch (static_cast<format::Def>(definition.head().kind)) {
    case format::Def::kComm: {
      const auto def = definition.as<format::CommDef>();
      const std::string name = field_text(def.name);
      if (def.api_version != 0)
        comms_[id] = {
            .comm_id = def.comm_id, .ranks = def.ranks, .rank = def.rank, .is_named = !name.empty()};
      else if (!name.empty())
        groups_[id] = {.name = name, .ranks = def.ranks, .progression = {}, .listed = {}};
      return;
    }
    case format::Def::kCommIdentity: {
      const auto def = definition.as<format::CommIdentityDef>();
      const auto comm = comms_.find(id);
      if (comm == comms_.end()) return;
      if (def.comm_id != 0) comm->second.comm_id = def.comm_id;
      comm->second.is_named = comm->second.is_named || !field_text(def.name).empty();
      return;
    }
    case format::Def::kGroupRanks: {
      const auto def = definition.as<format::GroupRanksDef>();
      const auto group = groups_.find(id);
      if (group == groups_.end()) return;
      const uint32_t most = static_cast<uint32_t>(std::size(def.ranks));
      std::vector<int32_t>& listed = group->second.listed;
      listed.insert(listed.end(), def.ranks, def.ranks + std::min(def.n, most));
      return;
    }
    default:
      return;
  }
}

void GroupsOfFile::give(std::vector<model::GroupNames::Comm>& comms,
                        std::vector<model::GroupNames::Group>& groups) {
  for (const auto& [id, comm] : comms_) comms.push_back(comm);
  for (auto& [id, group] : groups_) {
    // Of some of its members nobody knows which others there are.
    if (group.ranks <= 0 || group.listed.size() != static_cast<size_t>(group.ranks)) continue;
    group.progression = model::progression_of(group.listed);
    if (group.progression.stride >= 0) group.listed = {};
    groups.push_back(std::move(group));
  }
}

}  // namespace lockstep::readers::native
