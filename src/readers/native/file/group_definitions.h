// SPDX-License-Identifier: Apache-2.0
// What a file's definitions tell of communicators and declared groups, for the names of those that have none.
#pragma once
#include <map>
#include <vector>

#include "model/torch/group_names.h"
#include "readers/native/file/definitions.h"

namespace lockstep::readers::native {

class GroupsOfFile {
 public:
  // Every definition of the file, in order.
  void take(const Definition& definition);
  // Appends them.
  void give(std::vector<model::GroupNames::Comm>& comms, std::vector<model::GroupNames::Group>& groups);

 private:
  std::map<uint32_t, model::GroupNames::Comm> comms_;    // by number in the file
  std::map<uint32_t, model::GroupNames::Group> groups_;  // likewise
};

}  // namespace lockstep::readers::native
