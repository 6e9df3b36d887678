// SPDX-License-Identifier: Apache-2.0
// The words of an operation, made once per (communicator, shape): the arguments of PyTorch's record_param_comms under its
// exact keys and spellings, and the names of its slices. Everything returned is JSON, escaped where it must be.
#pragma once
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "model/comms_id.h"
#include "model/trace.h"

namespace lockstep::exporters::chrome_json {

struct OpText {
  std::string kernel_name;                 // quoted
  std::string before_counts;               // "Collective name":"allreduce","dtype":"Float"
  std::string group;                       // split sizes, group size, process group name, description, ranks
  std::string global_ranks;                // ,"Global rank start":..., where known; on the host event only
  std::string comms_id;                    // ,"lockstep comms_id":"<comm hash> without the rest: ":coll:7"
  std::string plan;                        // ,"lockstep algo":...; empty where unknown
  uint32_t in_factor = 1, out_factor = 1;  // message elements per count
  std::vector<int32_t> ranks;              // global ranks of the members; empty unknown
  int32_t rank_argument = -1;  // what PyTorch calls Rank: the root of rooted operations, else the own rank
};

class OpTexts {
 public:
  explicit OpTexts(const model::Trace& trace) : trace_(trace) {}
  const OpText& of(uint32_t op);

 private:
  OpText make(uint32_t comm, uint32_t shape, bool custom) const;
  const model::Trace& trace_;
  std::unordered_map<uint64_t, OpText> texts_;
};

}  // namespace lockstep::exporters::chrome_json
