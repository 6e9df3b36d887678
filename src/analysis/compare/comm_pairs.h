// SPDX-License-Identifier: Apache-2.0
// Which communicator of one run is which of another. Their ids are new in every run, so they are known by
// their names, by the ranks in them and, of those that are equal in that, by the order in which they were
// created.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "analysis/compare/samples.h"

namespace lockstep::analysis::compare {

struct CommPair {
  uint32_t a = 0, b = 0;  // rows of Samples::comms
  bool resized = false;   // not the same number of ranks: its bandwidths compare, its times do not
};
// By `a`. A communicator is in one pair at most.
std::vector<CommPair> pair_comms(std::span<const CommSamples> a, std::span<const CommSamples> b);

}  // namespace lockstep::analysis::compare
