// SPDX-License-Identifier: Apache-2.0
// Files of ranks are written apart, so an operation's key is made of what all ranks know alike: communicator,
// its size, and the place in the order of calls. Of sends and receives it is the sender, the receiver and the
// number of the message between them. An operation without a place has no key rather than a doubtful one, and
// so have those of a recording that has forgotten older ones: ranks forget different amounts.
#include "exporters/common/operation_facts.h"

#include <map>
#include <optional>
#include <tuple>

namespace lockstep::exporters::common {
namespace {

// A key is a hash because viewers join events by one number. Two operations that share one by chance get a
// wrong arrow and nothing worse.
uint64_t mix(uint64_t h, uint64_t value) {
  h = (h ^ value) * 0x9e3779b97f4a7c15;
  return h ^ (h >> 32);
}

}  // namespace

OperationFacts::OperationFacts(const model::Trace& trace, uint64_t first_correlation)
    : trace_(trace), first_correlation_(first_correlation), numbers_(trace) {
  find_first_kernels();
  identify_ops();
}

void OperationFacts::find_first_kernels() {
  first_kernels_.assign(trace_.launches.size(), model::kNoRow);
  for (uint32_t row = 0; row < trace_.kernels.size(); ++row) {
    const uint32_t launch = trace_.kernels.launch[row];
    // A kernel that seems to begin before its launch gets no arrow: it would lead back in time.
    if (trace_.kernels.op[row] < trace_.ops.size() || launch >= first_kernels_.size() ||
        trace_.kernels.start_ns[row] <= trace_.launches.start_ns[launch])
      continue;
    uint32_t& first = first_kernels_[launch];
    if (first == model::kNoRow || trace_.kernels.start_ns[row] < trace_.kernels.start_ns[first]) first = row;
  }
}

void OperationFacts::identify_ops() {
  const model::OpTable& ops = trace_.ops;
  rank_keys_.assign(ops.size(), 0);
  std::map<std::tuple<uint32_t, int32_t, bool>, uint64_t> messages;  // P2P so far by comm, peer and direction
  for (uint32_t op = 0; op < ops.size(); ++op) {
    // A group's operations share one launch. The first keeps it, so that an arrow has one end.
    if (ops.launched_ns[op] != 0) op_by_launch_.try_emplace(ops.launched_ns[op], op);
    uint32_t comm = ops.comm[op];
    if (comm >= trace_.comms.size() || trace_.comms.comm_id[comm] == 0 || ops.index[op] == model::kNoIndex)
      continue;
    const std::optional<int64_t> from =
        ops.peer[op] < 0 ? numbers_.collectives_from(comm) : numbers_.messages_from();
    if (!from) continue;
    uint64_t key = mix(mix(0, trace_.comms.comm_id[comm]), static_cast<uint64_t>(trace_.comms.ranks[comm]));
    key = mix(key, static_cast<uint64_t>(*from));
    if (ops.peer[op] < 0) {
      // Never 0, which stands for no key.
      rank_keys_[op] = mix(mix(key, 1), ops.index[op]) | 1;
      continue;
    }
    bool send =
        ops.shape[op] < trace_.shapes.size() && trace_.strings[trace_.shapes.func[ops.shape[op]]] == "Send";
    auto own = static_cast<uint64_t>(trace_.comms.rank[comm]), peer = static_cast<uint64_t>(ops.peer[op]);
    // Both ends count their messages to each other, so the n-th is the n-th on both.
    uint64_t number = messages[{comm, ops.peer[op], send}]++;
    rank_keys_[op] = mix(mix(mix(mix(key, 2), send ? own : peer), send ? peer : own), number) | 1;
  }
}

uint32_t OperationFacts::op_of_launch(int64_t launched_ns) const {
  const auto first = op_by_launch_.find(launched_ns);
  return first != op_by_launch_.end() ? first->second : model::kNoRow;
}

}  // namespace lockstep::exporters::common
