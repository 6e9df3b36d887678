// SPDX-License-Identifier: Apache-2.0
#include "exporters/chrome_json/op_text.h"

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "exporters/chrome_json/json_writer.h"
#include "model/event_kind.h"
#include "model/op_names.h"

namespace lockstep::exporters::chrome_json {
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

std::string group_name(const model::Trace& trace, uint32_t comm) {
  if (comm >= trace.comms.size()) return "unknown";
  std::string_view name = trace.strings[trace.comms.name[comm]];
  if (std::string_view torch = model::torch_group_name(name); !torch.empty()) return std::string(torch);
  if (!name.empty()) return std::string(name);
  return comm_hash(trace, comm);
}

std::string group_description(const model::Trace& trace, uint32_t comm) {
  if (comm >= trace.comms.size()) return "";
  std::string_view name = trace.strings[trace.comms.name[comm]];
  std::string_view torch = model::torch_group_name(name);
  return torch.empty() ? "" : std::string(name.substr(0, name.size() - torch.size() - 1));
}

void set_factors(std::string_view func, uint32_t size, OpText& text) {
  bool grows = func == "AllGather" || func == "Gather" || func == "AlltoAll";
  bool shrinks = func == "ReduceScatter" || func == "Scatter" || func == "AlltoAll";
  if (grows) text.out_factor = size;
  if (shrinks) text.in_factor = size;
}

bool rooted(std::string_view func) {
  return func == "Broadcast" || func == "Reduce" || func == "Gather" || func == "Scatter";
}

}  // namespace

const OpText& OpTexts::of(uint32_t op) {
  uint32_t comm = trace_.ops.comm[op], shape = trace_.ops.shape[op];
  bool custom = trace_.ops.kind[op] == model::number(model::EventKind::kApiOp);
  uint64_t key = (uint64_t{comm} << 32 | shape) * 2 + custom;
  auto place = texts_.find(key);
  if (place == texts_.end()) place = texts_.emplace(key, make(comm, shape, custom)).first;
  return place->second;
}

OpText OpTexts::make(uint32_t comm, uint32_t shape, bool custom) const {
  OpText text;
  bool has_shape = shape < trace_.shapes.size(), has_comm = comm < trace_.comms.size();
  std::string_view func = has_shape ? trace_.strings[trace_.shapes.func[shape]] : "unknown";
  std::string_view datatype = has_shape ? trace_.strings[trace_.shapes.datatype[shape]] : "";
  text.kernel_name =
      json_string(has_shape ? model::kernel_name(trace_, shape, custom) : "ncclKernel_unknown");
  text.before_counts = "\"Collective name\":" + json_string(model::torch_collective(func)) +
                       ",\"dtype\":" + json_string(model::torch_dtype(datatype));
  int32_t size = has_comm ? trace_.comms.ranks[comm] : -1;
  const std::vector<int32_t>& ranks = text.ranks = members(trace_, comm);
  text.group = ",\"In split size\":\"[]\",\"Out split size\":\"[]\",\"Group size\":" + std::to_string(size) +
               ",\"Process Group Name\":" + json_string(group_name(trace_, comm));
  if (std::string description = group_description(trace_, comm); !description.empty()) {
    text.group += ",\"Process Group Description\":" + json_string(description);
  }
  text.group += ",\"Process Group Ranks\":\"" + rank_list(ranks) + "\"";
  if (!ranks.empty()) text.global_ranks = ",\"Global rank start\":" + std::to_string(ranks[0]);
  bool progression = ranks.size() > 1 && ranks[1] > ranks[0];
  for (size_t i = 2; progression && i < ranks.size(); ++i)
    progression = ranks[i] - ranks[i - 1] == ranks[1] - ranks[0];
  if (progression)
    text.global_ranks += ",\"Global rank stride\":" + std::to_string(int64_t{ranks[1]} - ranks[0]);
  set_factors(func, size > 0 ? static_cast<uint32_t>(size) : 1, text);
  text.rank_argument = rooted(func) && has_shape ? trace_.shapes.root[shape]
                       : has_comm                ? trace_.comms.rank[comm]
                                                 : -1;
  text.comms_id = ",\"lockstep comms_id\":\"" + (has_comm ? comm_hash(trace_, comm) : "unknown");
  if (has_shape && trace_.shapes.algo[shape] != 0) {
    text.plan = ",\"lockstep algo\":" + json_string(trace_.strings[trace_.shapes.algo[shape]]) +
                ",\"lockstep proto\":" + json_string(trace_.strings[trace_.shapes.proto[shape]]);
  }
  return text;
}

}  // namespace lockstep::exporters::chrome_json
