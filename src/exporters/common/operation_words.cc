// SPDX-License-Identifier: Apache-2.0
#include "exporters/common/operation_words.h"

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "model/comms_id.h"
#include "model/event_kind.h"
#include "model/op_names.h"
#include "model/process_group.h"

namespace lockstep::exporters::common {
namespace {

constexpr size_t kPrintedRanks = 30;  // PyTorch prints no more

// Global ranks of the members, empty if unknown: declared ones, or all of the job.
std::vector<int32_t> members(const model::Trace& trace, uint32_t comm) {
  std::vector<int32_t> ranks;
  if (comm >= trace.comms.size()) return ranks;
  std::string_view text = trace.strings[trace.comms.members[comm]];
  while (!text.empty()) {
    int32_t rank = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
    if (error != std::errc{}) return {};
    ranks.push_back(rank);
    text.remove_prefix(std::min(text.size(), static_cast<size_t>(end - text.data()) + 1));
  }
  int32_t size = trace.comms.ranks[comm];
  bool whole_job = ranks.empty() && trace.processes.size() == 1 && size > 0 &&
                   trace.processes.world[0] == size && size <= (1 << 20);
  for (int32_t i = 0; whole_job && i < size; ++i) ranks.push_back(i);
  return ranks;
}

// "[0, 1, ..., 63]" as PyTorch prints it.
std::string rank_list(const std::vector<int32_t>& ranks) {
  std::string text = "[";
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (ranks.size() > kPrintedRanks && i == kPrintedRanks - 1) {
      text += ", ..., " + std::to_string(ranks.back());
      break;
    }
    if (i) text += ", ";
    text += std::to_string(ranks[i]);
  }
  return text + "]";
}

std::string comm_hash(const model::Trace& trace, uint32_t comm) {
  char hash[24];
  std::snprintf(hash, sizeof(hash), "%016llx", static_cast<unsigned long long>(trace.comms.comm_id[comm]));
  return hash;
}

// PyTorch's name and description of the group, where the communicator's name tells them.
model::ProcessGroup torch_group(std::string_view name) {
  const std::string_view torch = model::torch_group_name(name);
  if (torch.empty()) return model::process_group_of(name);
  return {torch, name.substr(0, name.size() - torch.size() - 1)};
}

std::string group_name(const model::Trace& trace, uint32_t comm) {
  if (comm >= trace.comms.size()) return "unknown";
  const std::string_view name = trace.strings[trace.comms.name[comm]];
  if (const model::ProcessGroup group = torch_group(name); !group.name.empty())
    return std::string(group.name);
  return name.empty() ? comm_hash(trace, comm) : std::string(name);
}

std::string group_description(const model::Trace& trace, uint32_t comm) {
  if (comm >= trace.comms.size()) return "";
  return std::string(torch_group(trace.strings[trace.comms.name[comm]]).description);
}

void set_factors(std::string_view func, uint32_t size, OperationWords& words) {
  bool grows = func == "AllGather" || func == "Gather" || func == "AlltoAll";
  bool shrinks = func == "ReduceScatter" || func == "Scatter" || func == "AlltoAll";
  if (grows) words.out_factor = size;
  if (shrinks) words.in_factor = size;
}

bool rooted(std::string_view func) {
  return func == "Broadcast" || func == "Reduce" || func == "Gather" || func == "Scatter";
}

}  // namespace

const OperationWords& OperationWordsTable::of(uint32_t op) {
  uint32_t comm = trace_.ops.comm[op], shape = trace_.ops.shape[op];
  bool custom = trace_.ops.kind[op] == model::number(model::EventKind::kApiOp);
  uint64_t key = (uint64_t{comm} << 32 | shape) * 2 + custom;
  auto place = made_.find(key);
  if (place == made_.end()) place = made_.emplace(key, make(comm, shape, custom)).first;
  return place->second;
}

OperationWords OperationWordsTable::make(uint32_t comm, uint32_t shape, bool custom) {
  OperationWords words;
  for (FixedArguments* list : {&words.what, &words.group, &words.global_ranks, &words.plan})
    list->number = lists_++;
  bool has_shape = shape < trace_.shapes.size(), has_comm = comm < trace_.comms.size();
  std::string_view func = has_shape ? trace_.strings[trace_.shapes.func[shape]] : "unknown";
  std::string_view datatype = has_shape ? trace_.strings[trace_.shapes.datatype[shape]] : "";
  words.kernel_name =
      words_.intern(has_shape ? model::kernel_name(trace_, shape, custom) : "ncclKernel_unknown");
  const std::string collective(model::torch_collective(func));
  words.is_send = collective == "send";
  words.what.items = {text(Argument::kCollective, collective),
                      text(Argument::kDatatype, model::torch_dtype(datatype))};
  int32_t size = has_comm ? trace_.comms.ranks[comm] : -1;
  const std::vector<int32_t>& ranks = words.ranks = members(trace_, comm);
  words.group.items = {text(Argument::kInSplit, "[]"),
                       text(Argument::kOutSplit, "[]"),
                       {Argument::kGroupSize, false, 0, size},
                       text(Argument::kGroupName, group_name(trace_, comm))};
  if (std::string description = group_description(trace_, comm); !description.empty())
    words.group.items.push_back(text(Argument::kGroupDescription, description));
  words.group.items.push_back(text(Argument::kGroupRanks, rank_list(ranks)));
  if (!ranks.empty()) words.global_ranks.items.push_back({Argument::kRankStart, false, 0, ranks[0]});
  bool progression = ranks.size() > 1 && ranks[1] > ranks[0];
  for (size_t i = 2; progression && i < ranks.size(); ++i)
    progression = ranks[i] - ranks[i - 1] == ranks[1] - ranks[0];
  if (progression)
    words.global_ranks.items.push_back({Argument::kRankStride, false, 0, int64_t{ranks[1]} - ranks[0]});
  set_factors(func, size > 0 ? static_cast<uint32_t>(size) : 1, words);
  words.rank_argument = rooted(func) && has_shape ? trace_.shapes.root[shape]
                        : has_comm                ? trace_.comms.rank[comm]
                                                  : -1;
  words.comm_hash = has_comm ? comm_hash(trace_, comm) : "unknown";
  if (has_shape && trace_.shapes.algo[shape] != 0) {
    words.plan.items = {text(Argument::kAlgo, trace_.strings[trace_.shapes.algo[shape]]),
                        text(Argument::kProto, trace_.strings[trace_.shapes.proto[shape]])};
  }
  return words;
}

}  // namespace lockstep::exporters::common
