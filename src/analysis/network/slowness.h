// SPDX-License-Identifier: Apache-2.0
// Which pairs of ranks move less than their peers do. What a rank sends another is held against what carries
// the like, which are at least three flows: of the same traffic (model/job.h: function, algorithm, protocol,
// channels, number and size of transfers), over as many lanes, with as many flows at the end that has more of
// them; of its own communicator where that has enough, else of communicators of as many ranks as far apart.
// Slow is what falls behind their median, in a quarter of its transfers at least. What cannot be told apart
// is not slow, nor is a pair of ranks that is well in other traffic whose transfers are as large.
//
// Where few hosts meet, a host that is slow has half of the pairs and more, and the median with them; and a
// communicator of two hosts has no other pairs. So all the pairs through one host, rail or rank are held
// against those that do not go through it, over all communicators that are alike, and are slow if even the
// slowest of those is faster.
#pragma once
#include <vector>

#include "analysis/network/links.h"

namespace lockstep::analysis::network {

struct Comparison {
  Link pair;              // one of flows()
  double usual_rate = 0;  // median of what it was held against, bytes per second
  size_t others = 0;
  bool slow = false;
  // Held against a flow of its own communicator, or of one of which every member is in the run. Where members
  // are missing, the flows that were seen may go well only because an unseen one holds all of them up.
  bool sure = false;
  int32_t ranks = 1;  // of the communicator: all of them wait for the slowest transfer
  // Time that the ranks together lost against the usual rate.
  double lost_ns() const;
};

// What several pairs may have in common. A rail is the ranks of one local rank number.
struct Place {
  enum class Kind { kHost, kRail, kRank } kind;
  int64_t number;  // of Job::hosts, local rank, global rank
  auto operator<=>(const Place&) const = default;
};
inline constexpr Place::Kind kPlaceKinds[] = {Place::Kind::kHost, Place::Kind::kRail, Place::Kind::kRank};
// Where a process is; -1 unknown.
int64_t place_number(const model::Job& job, Place::Kind kind, uint32_t process);
// The places of both ends, each once.
std::vector<Place> places(const model::Job& job, const Link& pair, Place::Kind kind);

// Who a rank sends to: a rank of the run, else one of a communicator who left no file, of whom no more is
// known.
struct End {
  int32_t rank = -1;  // -1: only known as
  uint32_t comm = model::kNoRow;
  int32_t of_comm = -1;  // its rank there
  auto operator<=>(const End&) const = default;
};
End target_of(const Link& pair);

// Pairs of ranks that can be compared; of several flows the one that carried most.
std::vector<Comparison> compare(const model::Job& job, const std::vector<Link>& links);

}  // namespace lockstep::analysis::network
