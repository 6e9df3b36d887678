// SPDX-License-Identifier: Apache-2.0
// PyTorch's `Comms Id`: the number that its traces give to one collective on all ranks. It hashes a tuple weakly
// (nearby tuples collide), so what is compared and shown is the tuple; the number is a checksum and a quick index.
//
// A profiler plugin does not see the tuple. It is known here only where the communicator's name says so: PyTorch
// names an NCCL communicator `<group description>:<group name>` (2026 on), where the group name is a decimal counter or
// a SHA-1 in hex; a group declared through lockstep.h may use the same form. TorchGroups derives the rest and stops
// as soon as it could be wrong.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/trace.h"

namespace lockstep::model {

struct CommsTuple {
  std::string_view pg_name;
  int64_t seq = 0;
  bool is_p2p = false;
  int32_t start = -1;   // global rank of the group's first member; -1 unknown to PyTorch
  int32_t stride = -1;  // -1 irregular
  int32_t world = 1;    // members
  bool operator==(const CommsTuple&) const = default;
};

// std::hash<std::string> of 64-bit libstdc++, written out so that it never depends on how we are built.
uint64_t pg_name_hash(std::string_view name);
uint64_t comms_id(const CommsTuple& tuple);
// "(0, 12, coll, 0, 1, 8)": name, seq, coll or p2p, start, stride, world.
std::string to_text(const CommsTuple& tuple);

// The group name in a communicator name of PyTorch's form; empty if it has another form.
std::string_view torch_group_name(std::string_view comm_name);

// The tuples of one trace's ops. Ops are asked for in the order of their `index` on each comm, each once.
// Gives a tuple only while it is certain: a group whose name is of PyTorch's form, whose ranks are known (all ranks of
// the job, or declared), and on which nothing but single collectives has run since its creation. PyTorch counts
// coalesced groups and all-to-all (point-to-point operations below) as one, so those end the certainty for the comm.
class TorchGroups {
 public:
  explicit TorchGroups(const Trace& trace);
  std::optional<CommsTuple> next(uint32_t op);

 private:
  struct Group {
    CommsTuple tuple;
    bool certain = false;
    uint32_t next_index = 0;
    uint32_t last_group_call = kNoRow;
  };
  const Trace& trace_;
  std::vector<Group> groups_;  // by row of comms
};

}  // namespace lockstep::model
