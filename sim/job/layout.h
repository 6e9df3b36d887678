// SPDX-License-Identifier: Apache-2.0
// Who is where: the ranks of a job on their hosts, and the parallel groups they form. Each group is one
// communicator. Rank = tensor + tp * (data + dp * stage); an expert group is `ep` neighbours of a data group.
// Read-only once made.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "job/random.h"

namespace lockstep::sim::job {

enum class Dim : uint8_t { kWorld, kTensor, kData, kPipeline, kExpert };
inline constexpr int kDims = 5;

struct LayoutSizes {
  int ranks = 8, dp = 0, tp = 1, pp = 1, ep = 1;  // dp 0: what is left
  int ranks_per_host = 8;
};

struct Group {
  Dim dim = Dim::kWorld;
  uint64_t comm_id = 0;
  std::string name;        // as PyTorch names it: description:number
  std::vector<int> ranks;  // global, by rank in the group
  int nodes = 1;
  int rails = 0;  // members on the host that has fewest; 0: one host
  int size() const { return static_cast<int>(ranks.size()); }
};

// An edge of a group's ring between two hosts; ranks in the group.
struct Edge {
  int from = -1, to = -1;
};

class Layout {
 public:
  static Result<Layout> make(LayoutSizes sizes, const Random& random);

  const LayoutSizes& sizes() const { return sizes_; }
  int ranks() const { return sizes_.ranks; }
  int hosts() const { return (sizes_.ranks + sizes_.ranks_per_host - 1) / sizes_.ranks_per_host; }
  int host_of(int rank) const { return rank / sizes_.ranks_per_host; }
  int local_of(int rank) const { return rank % sizes_.ranks_per_host; }
  int stage_of(int rank) const { return rank / (sizes_.tp * sizes_.dp); }
  std::vector<int> ranks_of_host(int host) const;

  const std::vector<Group>& groups() const { return groups_; }
  const Group& group(int index) const { return groups_[static_cast<size_t>(index)]; }
  // -1: the rank has no group of more than itself along that dimension.
  int group_of(int rank, Dim dim) const { return place(rank, dim).group; }
  int rank_in(int rank, Dim dim) const { return place(rank, dim).rank; }
  // The group's communicator in a process: number of init.
  int comm_index(int rank, Dim dim) const;
  // The network edge that starts or ends at a member; -1 where it has none.
  int network_peer(const Group& group, int member, bool sends) const;

 private:
  struct Place {
    int group = -1, rank = -1;
  };
  const Place& place(int rank, Dim dim) const {
    return places_[static_cast<size_t>(rank)][static_cast<size_t>(dim)];
  }
  void add_group(Dim dim, std::vector<int> ranks, const Random& random);

  LayoutSizes sizes_;
  std::vector<Group> groups_;
  std::vector<std::array<Place, kDims>> places_;
};

}  // namespace lockstep::sim::job
