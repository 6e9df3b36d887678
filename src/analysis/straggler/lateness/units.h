// SPDX-License-Identifier: Apache-2.0
// The steps of a program that repeats, though not exactly: a flag that is reduced in every 20th step, or an
// evaluation after every 60th, makes a period of 20 or 60 steps out of one.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "analysis/straggler/lateness/steps.h"

namespace lockstep::analysis::straggler {

struct Units {
  size_t length = 0;           // items; 0: none
  std::vector<size_t> begins;  // positions in the sequence, ascending; not empty if there is a length
};

// What repeats in `sequence`: the shortest unit whose copies make up nearly all of it, if they take about the
// same time wherever they stand in `exact`, else `exact`. The layers of a model repeat as well, within its
// steps: but those of the forward pass take another time than those of the backward pass. `time_ns`: when the
// item at a position arrived.
Units find_units(const std::vector<uint32_t>& sequence, const Period& exact,
                 const std::function<int64_t(size_t place)>& time_ns);

// The same where only the order counts: the exact period if it makes up nearly all of `sequence`, else the
// shortest unit whose copies do, else the exact period wherever it is. The last may have only begun.
Units find_rounds(const std::vector<uint32_t>& sequence);

// Where the operations of a communicator stand in what repeats of them.
class Rounds {
 public:
  Rounds() = default;
  // `sequence`: what a member called, one after the other; the first has the index `oldest`.
  Rounds(const std::vector<uint32_t>& sequence, uint64_t oldest);

  size_t length() const { return length_; }  // operations; 0: nothing repeats
  // The index of the first operation of each, ascending.
  const std::vector<uint64_t>& begins() const { return begins_; }
  // Of an operation in its round; none: it is in no round, as of an evaluation now and then.
  std::optional<size_t> place(uint64_t index) const;

 private:
  size_t length_ = 0;
  std::vector<uint64_t> begins_;
};

}  // namespace lockstep::analysis::straggler
