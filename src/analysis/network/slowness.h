// SPDX-License-Identifier: Apache-2.0
// Which pairs of ranks move less than their peers do. A pair is compared with those that carry the like: of communicators
// of the same size, transfers of about the same size. Three others are needed. What cannot be told apart is not slow.
#pragma once
#include <vector>

#include "analysis/network/links.h"

namespace lockstep::analysis::network {

struct Comparison {
  Link pair;
  double usual_rate = 0;  // median of the others, bytes per second
  size_t others = 0;
  bool slow = false;
  int32_t ranks = 1;  // of the communicator: all of them wait for the slowest transfer
  // Time that the ranks together lost against the usual rate.
  double lost_ns() const;
};

// Pairs of ranks that can be compared; of several communicators the one that carried most.
std::vector<Comparison> compare(const model::Job& job, const std::vector<Link>& links);

}  // namespace lockstep::analysis::network
