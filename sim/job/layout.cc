// SPDX-License-Identifier: Apache-2.0
#include "job/layout.h"

#include <algorithm>
#include <map>

namespace lockstep::sim::job {
namespace {

constexpr const char* kDescriptions[kDims] = {"default_pg", "mesh_tp", "mesh_dp", "mesh_pp", "mesh_ep"};

Result<void> check(const LayoutSizes& s) {
  auto wrong = [](std::string text) { return Error{ErrorCode::kUsage, std::move(text), ""}; };
  if (s.tp < 1 || s.pp < 1 || s.ep < 1 || s.dp < 1 || s.ranks_per_host < 1)
    return wrong("sizes of a layout are positive");
  if (s.dp * s.tp * s.pp != s.ranks)
    return wrong("dp x tp x pp is " + std::to_string(s.dp * s.tp * s.pp) + ", not the " +
                 std::to_string(s.ranks) + " ranks asked for");
  if (s.dp % s.ep != 0) return wrong("ep must divide dp");
  return {};
}

}  // namespace

Result<Layout> Layout::make(LayoutSizes sizes, const Random& random) {
  if (sizes.dp == 0) sizes.dp = std::max(1, sizes.ranks / std::max(1, sizes.tp * sizes.pp));
  LOCKSTEP_TRY(check(sizes));
  Layout layout;
  layout.sizes_ = sizes;
  layout.places_.resize(static_cast<size_t>(sizes.ranks));
  auto rank_at = [&](int t, int d, int p) { return t + sizes.tp * (d + sizes.dp * p); };
  auto add = [&](Dim dim, int groups, int size, auto&& member) {
    for (int g = 0; g < groups && size > 1; ++g) {
      std::vector<int> ranks;
      for (int i = 0; i < size; ++i) ranks.push_back(member(g, i));
      layout.add_group(dim, std::move(ranks), random);
    }
  };
  const int tp = sizes.tp, dp = sizes.dp, pp = sizes.pp, ep = sizes.ep;
  add(Dim::kWorld, 1, sizes.ranks, [](int, int i) { return i; });
  add(Dim::kTensor, dp * pp, tp, [&](int g, int i) { return rank_at(i, g % dp, g / dp); });
  add(Dim::kData, tp * pp, dp, [&](int g, int i) { return rank_at(g % tp, i, g / tp); });
  add(Dim::kPipeline, tp * dp, pp, [&](int g, int i) { return rank_at(g % tp, g / tp, i); });
  add(Dim::kExpert, tp * pp * (dp / ep), ep, [&](int g, int i) {
    const int data = (g / tp) % (dp / ep) * ep + i;
    return rank_at(g % tp, data, g / tp / (dp / ep));
  });
  return layout;
}

void Layout::add_group(Dim dim, std::vector<int> ranks, const Random& random) {
  Group group;
  group.dim = dim;
  group.comm_id = random.bits(Draw::kIdentity, 1, groups_.size());
  group.name = std::string(kDescriptions[static_cast<size_t>(dim)]) + ":" + std::to_string(groups_.size());
  std::map<int, int> members;  // by host
  for (int rank : ranks) ++members[host_of(rank)];
  group.nodes = static_cast<int>(members.size());
  if (group.nodes > 1) {
    group.rails = INT32_MAX;
    for (const auto& [host, count] : members) group.rails = std::min(group.rails, count);
  }
  for (size_t i = 0; i < ranks.size(); ++i) {
    places_[static_cast<size_t>(ranks[i])][static_cast<size_t>(dim)] = {static_cast<int>(groups_.size()),
                                                                        static_cast<int>(i)};
  }
  group.ranks = std::move(ranks);
  groups_.push_back(std::move(group));
}

std::vector<int> Layout::ranks_of_host(int host) const {
  std::vector<int> ranks;
  for (int rank = host * sizes_.ranks_per_host; rank < (host + 1) * sizes_.ranks_per_host; ++rank) {
    if (rank < sizes_.ranks) ranks.push_back(rank);
  }
  return ranks;
}

int Layout::comm_index(int rank, Dim dim) const {
  int index = 0;
  for (int d = 0; d < static_cast<int>(dim); ++d) index += group_of(rank, static_cast<Dim>(d)) >= 0;
  return index;
}

int Layout::network_peer(const Group& group, int member, bool sends) const {
  if (group.nodes < 2) return -1;
  const int size = group.size();
  auto host = [&](int m) { return host_of(group.ranks[static_cast<size_t>(m)]); };
  auto first_of = [&](int m) {  // members of one host are neighbours
    while (m > 0 && host(m - 1) == host(m)) --m;
    return m;
  };
  const int first = first_of(member);
  if (member - first >= group.rails) return -1;
  int other = first;
  if (sends) {
    while (other < size && host(other) == host(first)) ++other;
    if (other == size) other = 0;
  } else {
    other = first_of(first == 0 ? size - 1 : first - 1);
  }
  return other + (member - first);
}

}  // namespace lockstep::sim::job
