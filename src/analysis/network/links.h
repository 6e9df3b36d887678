// SPDX-License-Identifier: Apache-2.0
// What went from rank to rank over the network, and where the time of its transfers went: both ends of each
// (communicator, source, target, channel, traffic, device) in one row. docs/nccl-events.md says what each
// wait means.
#pragma once
#include <cstdint>
#include <vector>

#include "model/job.h"

namespace lockstep::analysis::network {

struct Link {
  uint32_t comm = model::kNoRow;
  int32_t from = -1, to = -1;                                               // ranks of the communicator
  int32_t source = -1, target = -1;                                         // global ranks; -1 unknown
  uint32_t source_process = model::kNoRow, target_process = model::kNoRow;  // kNoRow: not in the run
  uint16_t channel = 0;
  model::Traffic traffic{};
  int32_t device = -1;                                            // of the sender; -1 unknown
  model::NetTransport transport = model::NetTransport::kUnknown;  // as the sender's network plugin says
  uint32_t lanes = 1;                                             // channels and devices that were added up
  uint64_t steps = 0, bytes = 0;                                  // the sender's, else the receiver's
  // The sender's.
  int64_t gpu_wait_ns = 0, peer_wait_ns = 0, send_wait_ns = 0;
  // The receiver's. It waits for the data from when it posted, so for the sender too.
  int64_t receive_wait_ns = 0, flush_wait_ns = 0, take_wait_ns = 0;
  int64_t busy_ns = 0;           // in which the sender had transfers on their way
  double send_squares = 0;       // sum of their squared durations, ns^2
  model::TimeHistogram sending;  // of their durations
  model::RateParts parts{};
  int64_t first_ns = 0, last_ns = 0;  // on the sender's clock, else the receiver's

  // Of the sender while it had transfers on their way, bytes per second; 0 unknown.
  double rate() const {
    return busy_ns <= 0 ? 0 : static_cast<double>(bytes) * 1e9 / static_cast<double>(busy_ns);
  }
  // What three quarters of the transfers take at most; ns, to within an eighth.
  double most_ns() const { return sending.quantile(0.75); }
  double bytes_each() const {
    return steps == 0 ? 0 : static_cast<double>(bytes) / static_cast<double>(steps);
  }
  // Another link's transfers; which one it is and how it goes stay.
  void add(const Link& other);
  // Standard error of the rate, relative: from how much the durations of transfers differ, or the rates of
  // its parts, for transfers that follow each other are slow together.
  double relative_error() const;
};

// By communicator, source, target, channel, traffic, device.
std::vector<Link> links(const model::Job& job);
// All that one rank sent another on a communicator: `channel`, `traffic` and `device` mean nothing.
std::vector<Link> pairs(const std::vector<Link>& links);
// The same, each traffic for itself: `channel` and `device` mean nothing.
std::vector<Link> flows(const std::vector<Link>& links);

}  // namespace lockstep::analysis::network
