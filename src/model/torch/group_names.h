// SPDX-License-Identifier: Apache-2.0
// Names for communicators that have none: PyTorch up to 2.11 tells NCCL no name, but a program can declare
// its process groups beside it (lockstep.torch.watch). A group and a communicator belong together if they
// have the same members in the same order, all of its processes declared that group, and neither has a second
// candidate in the run. Whatever is not certain stays without a name.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "model/torch/comms_id.h"
#include "model/trace.h"

namespace lockstep::model {

class GroupNames {
 public:
  struct Comm {
    uint64_t comm_id = 0;
    int32_t ranks = -1, rank = -1;
    bool is_named = false;
  };
  // Members: a progression, or all of them in `listed`.
  struct Group {
    std::string name;
    int32_t ranks = -1;
    RankProgression progression;
    std::vector<int32_t> listed;
    int32_t global_rank(int32_t rank) const;  // -1 unknown
  };
  // More than any process of a real job has; of a run with one that says so nothing is named.
  static constexpr size_t kMostOfProcess = 256;
  // One process: its rank in the job, what NCCL told, and what the program declared.
  void add(int32_t global_rank, std::vector<Comm> comms, const std::vector<Group>& groups);
  // After the last `add`.
  void finish();
  // Empty: not known.
  std::string_view of(uint64_t comm_id, int32_t ranks) const;

 private:
  using Key = std::pair<uint64_t, int32_t>;
  using GroupKey = std::tuple<std::string, int32_t, int32_t, int32_t, std::vector<int32_t>>;
  struct Process {
    int32_t global_rank;
    std::vector<Comm> comms;
    std::vector<uint32_t> groups;  // of groups_, ascending
  };
  struct Member {
    size_t process;
    int32_t rank;
  };
  struct Members {
    std::vector<Member> list;
    bool is_named = false;
  };
  bool is_of(const Members& members, uint32_t group) const;
  bool is_only_comm_of(uint32_t group, const Members& members, const Key& key) const;

  std::vector<Process> processes_;
  std::vector<Group> groups_;
  std::map<GroupKey, uint32_t> group_ids_;
  std::map<Key, Members> comms_;
  bool is_over_ = false;
  std::map<Key, std::string> names_;
};

// Names the communicators of NCCL's in a trace of process files. One of two ranks needs a collective: PyTorch
// also makes a communicator for a pair that only sends and receives, whatever group it does so in.
void name_unnamed_comms(Trace& trace, const GroupNames& names);

}  // namespace lockstep::model
