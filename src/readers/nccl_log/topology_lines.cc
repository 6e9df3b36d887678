// SPDX-License-Identifier: Apache-2.0
// The part of LogParser that knows what hardware NCCL sees: a tree of links, and the best path between any
// two devices.
#include <algorithm>

#include "readers/nccl_log/log_parser.h"

namespace lockstep::readers::nccl_log {
namespace {

bool is_named(std::string_view name) { return name.starts_with("GPU/") || name.starts_with("NET/"); }

}  // namespace

// Processes of one host see the same devices.
TopologyDevice* LogParser::device(uint32_t process, std::string_view name) {
  key_.assign(model_.processes[process].host).append(" ").append(name.substr(0, 40));
  auto found = device_by_name_.find(key_);
  if (found == device_by_name_.end()) {
    if (model_.topology.size() >= LogModel::kDevicesMost) {
      ++model_.coverage.beyond;
      return nullptr;
    }
    found = device_by_name_.emplace(key_, static_cast<uint32_t>(model_.topology.size())).first;
    TopologyDevice& made = model_.topology.emplace_back();
    made.host = model_.processes[process].host;
    made.name = printable(name.substr(0, 40));
    made.first = here();
  }
  return &model_.topology[found->second];
}

// A communicator's tree leaves out what it does not use: the most that any shows is what there is.
void LogParser::close_device(uint32_t process) {
  Context& context = contexts_[process];
  if (context.device != kNobody && context.nvlink_gbps > 0 && !context.lacks_lines) {
    double& most = model_.topology[context.device].nvlink_gbps;
    most = std::max(most, context.nvlink_gbps);
  }
  context.device = kNobody;
  context.nvlink_gbps = 0;
  context.link_ends.clear();
  context.lacks_lines = false;
}

// Each end of a GPU's links is listed once, and never itself: else the next GPU's own line is missing.
void LogParser::nvlink(uint32_t process, double gbps, std::string_view end) {
  constexpr size_t kEndsMost = 256;
  Context& context = contexts_[process];
  context.nvlink_gbps += gbps;
  const bool is_own = context.device != kNobody && model_.topology[context.device].name == end;
  const auto& ends = context.link_ends;
  if (is_own || ends.size() >= kEndsMost || std::find(ends.begin(), ends.end(), end) != ends.end())
    context.lacks_lines = true;
  else
    context.link_ends.emplace_back(end.substr(0, 40));
}

bool LogParser::topology(LineKind kind, uint32_t process, const Captures& captures) {
  Context& context = contexts_[process];
  switch (kind) {
    case LineKind::kTopologyBegin:
    case LineKind::kOtherPaths:
      close_device(process);
      return true;
    case LineKind::kTopologyCpu:
      close_device(process);
      return captures.count < 3;
    case LineKind::kPciLink:
    case LineKind::kNetLink: {
      close_device(process);
      TopologyDevice* const of = is_named(captures[1]) ? device(process, captures[1]) : nullptr;
      if (of == nullptr) return kind == LineKind::kNetLink;
      const double gbps = to_double(captures[0]);
      double& most = kind == LineKind::kPciLink ? of->pci_gbps : of->net_gbps;
      most = std::max(most, gbps);
      // A number, as the vector may move before the links of this device are read.
      if (kind == LineKind::kPciLink) context.device = static_cast<uint32_t>(of - model_.topology.data());
      return kind == LineKind::kNetLink;
    }
    case LineKind::kXgmiLink:
      // xGMI is AMD's link: it is summed up as NVLink is.
      if (context.device != kNobody) model_.topology[context.device].has_xgmi = true;
      [[fallthrough]];
    case LineKind::kNvLink:
      nvlink(process, to_double(captures[0]), captures[1]);
      return false;
    case LineKind::kPaths:
      break;
    default:
      return false;
  }
  close_device(process);
  key_.assign("GPU/").append(captures[0]);
  const std::string name = key_;
  TopologyDevice* of = device(process, name);
  if (of == nullptr) return true;
  static const Pattern kPath("{word} ({int}/{num}/{word})");
  std::string_view list = captures[1];
  while (!list.empty()) {
    while (list.starts_with(' ')) list.remove_prefix(1);
    Captures path;
    // A list that was cut keeps the paths before the cut.
    if (!kPath.match(list, path)) return true;
    list.remove_prefix(static_cast<size_t>(path[3].end() - list.data()) + 1);
    if (!is_named(path[0]) || of->paths.contains(std::string(path[0]))) continue;
    if (paths_ >= LogModel::kPathsMost) {
      ++model_.coverage.beyond;
      return true;
    }
    ++paths_;
    if (of->paths.empty()) of->paths_at = here();
    of->paths.emplace(printable(path[0].substr(0, 40)),
                      Path{printable(path[3].substr(0, 8)), to_double(path[2])});
  }
  return true;
}

}  // namespace lockstep::readers::nccl_log
