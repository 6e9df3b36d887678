// SPDX-License-Identifier: Apache-2.0
// How a job is wired according to its logs: what each host has, and for each communicator its rings, trees,
// connections and NVLink SHARP, in words.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "readers/nccl_log/log_model.h"

namespace lockstep::analysis::log_figures {

// "8 GPUs, each with NVLink of 370.8 GB/s and PCIe of 48 GB/s; GPU to GPU NVL (direct NVLink or NVSwitch)"
struct HostHardware {
  std::string host, text;
};
std::vector<HostHardware> host_hardware(const readers::nccl_log::LogModel& model);

// Channels that are wired alike.
struct Wiring {
  std::vector<int32_t> channels;
  // Of a ring: the ranks in its order. Of a tree: by rank the one above it; -1: the top.
  std::vector<int32_t> ranks;
  std::string text;  // "0 3 2 1 | 4 7 6 5": hosts between bars. Of trees: "0 (1 (2) 4 (5))": a rank and those
                     // below it
};

// Pairs of ranks that use one kind of connection. Only what senders report.
struct PairGroup {
  std::string via;  // "P2P/CUMEM", "NET/IB" without the card
  bool gdr = false;
  std::set<std::pair<int32_t, int32_t>> pairs;  // from, to: ranks of the communicator
  std::set<int32_t> cards;                      // network cards
  uint64_t least_channels = 0, most_channels = 0;
};

struct CommWiring {
  std::string name;
  int32_t ranks = -1;
  std::vector<int32_t> members;      // ranks of the job, of those that report it
  std::vector<Wiring> rings, trees;  // empty: not reported by all that it takes
  std::vector<PairGroup> pairs;
  std::string nvls;  // empty: unknown
};
// The largest communicators first; at most `most`.
std::vector<CommWiring> comm_wirings(const readers::nccl_log::LogModel& model, size_t most);

// "every rank to every other", "0>4 4>0": at most a dozen are listed.
std::string pairs_text(const PairGroup& group, int32_t ranks);
// "channels 0-23"
std::string channels_text(const std::vector<int32_t>& channels);

}  // namespace lockstep::analysis::log_figures
