// SPDX-License-Identifier: Apache-2.0
// Tools find communication by PyTorch's exact keys and spellings, so these are used also where our own words
// are plainer. They depend on communicator and shape alone and are made once for each pair: a trace has
// millions of operations and a few dozen pairs.
#include "exporters/common/operation_words.h"

#include <algorithm>
#include <charconv>

#include "base/hex.h"
#include "model/event_kind.h"
#include "model/names/op_names.h"
#include "model/names/operation_size.h"
#include "model/torch/comms_id.h"
#include "model/torch/process_group.h"

namespace lockstep::exporters::common {
namespace {

// Global ranks of the members, empty if unknown: declared ones, or all of the job.
std::vector<int32_t> members(const model::Trace& trace, uint32_t comm) {
  std::vector<int32_t> ranks;
  if (comm >= trace.comms.size()) return ranks;
  std::string_view text = trace.strings[trace.comms.members[comm]];
  while (!text.empty()) {
    int32_t rank = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
    // A list with anything else in it is unknown as a whole: half a group would look complete.
    if (error != std::errc{}) return {};
    ranks.push_back(rank);
    text.remove_prefix(std::min(text.size(), static_cast<size_t>(end - text.data()) + 1));
  }
  int32_t size = trace.comms.ranks[comm];
  // A communicator as large as the job holds all of its ranks, in their order. A damaged file may claim any
  // size, and the list is made for every shape: a million ranks is the bound.
  bool whole_job = ranks.empty() && trace.processes.size() == 1 && size > 0 &&
                   trace.processes.world[0] == size && size <= (1 << 20);
  for (int32_t i = 0; whole_job && i < size; ++i) ranks.push_back(i);
  return ranks;
}

std::string comm_hash(const model::Trace& trace, uint32_t comm) { return hex16(trace.comms.comm_id[comm]); }

// PyTorch's name and description of the group, where it is known or the communicator's name gives them.
struct GroupNames {
  std::string name, description;
};
GroupNames group_names(const model::Trace& trace, uint32_t comm) {
  if (comm >= trace.comms.size()) return {"unknown", ""};
  if (trace.comms.group_name[comm] != 0)
    return {std::string(trace.strings[trace.comms.group_name[comm]]),
            std::string(trace.strings[trace.comms.group_description[comm]])};
  const std::string_view name = trace.strings[trace.comms.name[comm]];
  const std::string_view torch = model::torch_group_name(name);
  const model::ProcessGroup group =
      torch.empty() ? model::process_group_of(name)
                    : model::ProcessGroup{torch, name.substr(0, name.size() - torch.size() - 1)};
  const std::string fallback = name.empty() ? comm_hash(trace, comm) : std::string(name);
  return {group.name.empty() ? fallback : std::string(group.name), std::string(group.description)};
}

// As PyTorch gives it, else what the members show.
model::RankProgression progression(const model::Trace& trace, uint32_t comm,
                                   const std::vector<int32_t>& ranks) {
  if (comm < trace.comms.size() && trace.comms.group_name[comm] != 0)
    return {trace.comms.rank_start[comm], trace.comms.rank_stride[comm]};
  return ranks.empty() ? model::RankProgression{} : model::progression_of(ranks);
}

}  // namespace

const OperationWords& OperationWordsTable::of(uint32_t op) {
  uint32_t comm = trace_.ops.comm[op], shape = trace_.ops.shape[op];
  bool custom = trace_.ops.kind[op] == model::number(model::EventKind::kApiOp);
  // `comm` may be kNoRow, whose top bit is lost here. No trace has 2^31 communicators that it could be
  // mistaken for.
  uint64_t key = (uint64_t{comm} << 32 | shape) * 2 + custom;
  auto place = made_.find(key);
  if (place == made_.end()) place = made_.emplace(key, make(comm, shape, custom)).first;
  return place->second;
}

OperationWords OperationWordsTable::make(uint32_t comm, uint32_t shape, bool custom) {
  OperationWords words;
  // Writers keep what they rendered by this number, so lists of one process never share one.
  for (FixedArguments* list :
       {&words.what, &words.even_splits, &words.group, &words.global_ranks, &words.plan})
    list->number = lists_++;
  bool has_shape = shape < trace_.shapes.size(), has_comm = comm < trace_.comms.size();
  std::string_view func = has_shape ? trace_.strings[trace_.shapes.func[shape]] : "unknown";
  std::string_view datatype = has_shape ? trace_.strings[trace_.shapes.datatype[shape]] : "";
  words.kernel_name =
      words_.intern(has_shape ? model::kernel_name(trace_, shape, custom) : "ncclKernel_unknown");
  const std::string collective(model::torch_collective(func));
  words.is_send = collective == "send";
  words.func = func;
  words.what.items = {text(Argument::kCollective, collective),
                      text(Argument::kDatatype, model::torch_dtype(datatype))};
  words.group_size = has_comm ? trace_.comms.ranks[comm] : -1;
  const std::vector<int32_t>& ranks = words.ranks = members(trace_, comm);
  words.even_splits.items = {text(Argument::kInSplit, "[]"), text(Argument::kOutSplit, "[]")};
  const GroupNames names = group_names(trace_, comm);
  words.group.items = {{Argument::kGroupSize, false, 0, words.group_size},
                       text(Argument::kGroupName, names.name)};
  if (!names.description.empty())
    words.group.items.push_back(text(Argument::kGroupDescription, names.description));
  words.group.items.push_back(text(Argument::kGroupRanks, model::torch_list(ranks, ranks.size())));
  const model::RankProgression stated = progression(trace_, comm, ranks);
  if (stated.start >= 0) words.global_ranks.items.push_back({Argument::kRankStart, false, 0, stated.start});
  if (stated.stride > 0) words.global_ranks.items.push_back({Argument::kRankStride, false, 0, stated.stride});
  const bool is_rooted = has_shape && model::has_root(func) && trace_.shapes.root[shape] >= 0;
  words.rank_argument = is_rooted ? trace_.shapes.root[shape] : has_comm ? trace_.comms.rank[comm] : -1;
  words.comm_hash = has_comm ? comm_hash(trace_, comm) : "unknown";
  if (has_shape && trace_.shapes.algo[shape] != 0) {
    words.plan.items = {text(Argument::kAlgo, trace_.strings[trace_.shapes.algo[shape]]),
                        text(Argument::kProto, trace_.strings[trace_.shapes.proto[shape]])};
  }
  return words;
}

}  // namespace lockstep::exporters::common
