// SPDX-License-Identifier: Apache-2.0
// How fast each communicator moves data: bandwidths of the part of an operation in which all members were
// there, so that waiting for a late rank is not in it. Of operations without a root that is the shortest time
// that any member spent in it: the last to arrive waits for nobody, and no two clocks are compared. Of those
// with a root, from the last arrival to the last end.
//
// Sizes, algbw and busbw as in model/names/operation_size.h, GB = 1e9 bytes. Reductions inside the switch
// (NVLS) let busbw exceed the link's speed.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "analysis/bandwidth/ceilings.h"
#include "model/job.h"

namespace lockstep::analysis::bandwidth {

struct Quartiles {
  double low = 0, middle = 0, high = 0;
};

// The operation of a Rate with the least bandwidth.
struct Slowest {
  uint32_t index = 0;
  double busbw = 0;  // GB/s
};

// Operations of one communicator that are alike. `algo` and `proto` are the first member's.
struct Rate {
  uint32_t comm = 0;  // of Job::comms
  model::StringId func = 0, algo = 0, proto = 0;
  int32_t ranks = 0;                    // members
  uint32_t hosts = 0;                   // of those members
  uint64_t size_from = 0, size_to = 0;  // a power of two up to the next, exclusive
  uint64_t ops = 0;                     // with a bandwidth
  uint64_t uncertain = 0;               // more, whose time is not above its uncertainty
  uint64_t bytes = 0;                   // of `ops`
  double time_ns = 0;                   // of `ops`, moving
  Quartiles algbw, busbw;               // GB/s, over operations
  std::optional<Ceiling> ceiling;       // of its slowest GPU's links; within one host only
  double error = 0;                     // median relative half-width of a bandwidth, from the clocks
  std::optional<Slowest> slowest;       // of `ops`; not of pairs

  void set_bucket(int bits);  // sizes of so many bits
};

// Time = alpha + S / beta over the sizes of one function on one communicator, with 95 % confidence
// half-widths.
struct Fit {
  uint32_t comm = 0;
  model::StringId func = 0;
  uint32_t sizes = 0;  // different ones, at least three
  double alpha_ns = 0, alpha_error_ns = 0;
  double beta_gbps = 0, beta_low_gbps = 0,
         beta_high_gbps = 0;  // algbw of very large operations; high 0: unbounded
};

struct Rates {
  std::vector<Rate> rates;  // by communicator, function and size
  // Sends of pairs of ranks, by communicator, whether within one host, and size; over all such pairs. Their
  // time is the shorter one of sender and receiver, whose kernel may serve other transfers, too.
  std::vector<Rate> pairs;
  std::vector<Fit> fits;
  uint64_t ops = 0;      // matched by all members
  uint64_t untimed = 0;  // of those, without GPU times: they have no bandwidth
};

// One operation of a rate, with a time above its uncertainty.
struct Moved {
  uint32_t comm = 0;  // of Job::comms
  model::StringId func = 0;
  uint32_t ranks = 0;  // that it moved data between
  uint64_t bytes = 0;  // S
  double time_ns = 0;  // busbw = bytes / time_ns * factor
  double factor = 1;
  uint32_t member = 0, op = 0;  // of Job::members, and in its JobOps: the first member's, or the sender's
};

// Communicators of which a member is missing or not aligned have no rates. Cost is linear in operations.
// `each` sees every operation as it is added, communicator by communicator; it may be empty.
Rates measure(const model::Job& job, const std::function<void(const Moved&)>& each = {});
// busbw of one collective, in GB/s, as measure() has it; nothing where it has none.
std::optional<double> operation_busbw(const model::Job& job, uint32_t comm, uint32_t index);

// One point of a fit: operations of one size.
struct Point {
  double bytes, time_ns, ops;
};
// False with fewer than three sizes or a slope that is not above 0.
bool fit(const std::vector<Point>& points, Fit& out);

}  // namespace lockstep::analysis::bandwidth
