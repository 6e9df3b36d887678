// SPDX-License-Identifier: Apache-2.0
// Draws rings, trees and connections from what each rank says of its own neighbours. It is drawn only where
// all whose word it takes have spoken: a guess at a missing piece would show a wiring that no job had.
#include "analysis/log_figures/topology.h"

#include <algorithm>
#include <optional>

#include "analysis/log_figures/log_figures.h"
#include "base/text/units.h"
#include "base/text/wording.h"

namespace lockstep::analysis::log_figures {

using readers::nccl_log::ChannelPosition;
using readers::nccl_log::CommPart;
using readers::nccl_log::Connection;
using readers::nccl_log::Fact;
using readers::nccl_log::kNobody;
using readers::nccl_log::LineKind;
using readers::nccl_log::LogModel;
using readers::nccl_log::TopologyDevice;

namespace {

using Parts = std::vector<const CommPart*>;

constexpr size_t kRanksShown = 64;  // of a ring or tree

std::string_view path_meaning(const std::string& kind) {
  static const std::map<std::string, std::string_view> kWords = {
      {"NVL", "NVLink or NVSwitch"},    {"NVB", "NVLink through another GPU"},
      {"C2C", "a chip's own link"},     {"PIX", "one PCIe switch"},
      {"PXB", "several PCIe switches"}, {"P2C", "a chip's link and PCIe"},
      {"PXN", "another GPU's NVLink"},  {"PHB", "the CPU"},
      {"SYS", "the link between CPUs"}, {"XGMI", "AMD's links"}};
  const auto found = kWords.find(kind);
  return found == kWords.end() ? std::string_view() : found->second;
}

std::string with_meaning(const std::string& kind) {
  const std::string_view words = path_meaning(kind);
  return words.empty() ? kind : kind + " (" + std::string(words) + ')';
}

// "370.8 GB/s", "350.2 to 370.8 GB/s"; empty: not said.
std::string range_text(const std::set<double>& values) {
  if (values.empty()) return {};
  const std::string low = format_decimal(*values.begin(), 1), high = format_decimal(*values.rbegin(), 1);
  return (low == high ? low : low + " to " + high) + " GB/s";
}

std::string kinds_text(const std::set<std::string>& kinds) {
  std::string text;
  for (const std::string& kind : kinds) text += (text.empty() ? "" : ", ") + with_meaning(kind);
  return text;
}

// What tells hosts apart for NCCL, by process.
std::vector<std::string> nodes_of(const LogModel& model) {
  std::vector<std::string> nodes;
  for (const auto& process : model.processes) nodes.push_back(process.host);
  for (const uint32_t row : model.of(LineKind::kEnvironment)) {
    const Fact& fact = model.facts[row];
    if (fact.process != kNobody && fact.value(0) == "HOSTID") nodes[fact.process] = fact.value(1);
  }
  return nodes;
}

// By rank; null where a rank reports nothing.
Parts by_rank(const Parts& parts, int32_t ranks) {
  // The size is text of a log: a changed digit must not cost gigabytes.
  constexpr int32_t kRanksMost = 1 << 16;
  Parts ordered(static_cast<size_t>(std::clamp(ranks, 0, kRanksMost)));
  for (const CommPart* part : parts) {
    if (part->rank >= 0 && static_cast<size_t>(part->rank) < ordered.size())
      ordered[static_cast<size_t>(part->rank)] = part;
  }
  return ordered;
}

const ChannelPosition* position_of(const Parts& members, size_t rank, size_t channel) {
  const CommPart* part = members[rank];
  return part == nullptr || channel >= part->positions.size() ? nullptr : &part->positions[channel];
}

bool has_each_once(std::vector<int32_t> ranks) {
  std::sort(ranks.begin(), ranks.end());
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i] != static_cast<int32_t>(i)) return false;
  }
  return true;
}

// As rank 0 reports, else from the neighbours that each rank reports. Empty: unknown, or no ring.
std::vector<int32_t> ring_of(const Parts& members, size_t channel) {
  for (const CommPart* part : members) {
    // An order that is shorter than the communicator was cut.
    if (part != nullptr && channel < part->orders.size() && part->orders[channel].size() == members.size() &&
        has_each_once(part->orders[channel]))
      return part->orders[channel];
  }
  std::vector<int32_t> order;
  size_t at = 0;
  while (order.size() < members.size()) {
    order.push_back(static_cast<int32_t>(at));
    const ChannelPosition* position = position_of(members, at, channel);
    if (position == nullptr || position->ring_behind < 0 ||
        static_cast<size_t>(position->ring_behind) >= members.size())
      return {};
    // A ring that closes before it has all ranks is none.
    at = static_cast<size_t>(position->ring_behind);
    if (at == 0) break;
  }
  return at == 0 && order.size() == members.size() ? order : std::vector<int32_t>();
}

std::string ring_text(const std::vector<int32_t>& order, const Parts& members,
                      const std::vector<std::string>& nodes) {
  std::string text;
  const std::string* before = nullptr;
  for (size_t i = 0; i < order.size(); ++i) {
    if (i == kRanksShown) return text + " ...";
    const auto rank = static_cast<size_t>(order[i]);
    const CommPart* part = rank < members.size() ? members[rank] : nullptr;
    const std::string* node = part == nullptr ? nullptr : &nodes[part->process];
    if (i > 0) text += node != nullptr && before != nullptr && *node != *before ? " | " : " ";
    text += std::to_string(order[i]);
    before = node;
  }
  return text;
}

// "0 (1 (2) 4)". False: unknown, or no tree.
// Each rank names those below it, and who is above. Damaged numbers may point back up, so depth and number of
// ranks are bounded.
bool add_branch(const Parts& members, size_t channel, int32_t rank, int32_t up, size_t depth, size_t& shown,
                std::string& text) {
  constexpr size_t kDepthMost = 128;
  if (rank < 0 || static_cast<size_t>(rank) >= members.size() || depth > kDepthMost) return false;
  const ChannelPosition* position = position_of(members, static_cast<size_t>(rank), channel);
  if (position == nullptr || position->tree_up != up || ++shown > members.size()) return false;
  text += std::to_string(rank);
  size_t below = 0;
  for (const int32_t down : position->tree_down) {
    if (down < 0) continue;
    text += below++ == 0 ? " (" : " ";
    if (!add_branch(members, channel, down, rank, depth + 1, shown, text)) return false;
  }
  if (below > 0) text += ')';
  return true;
}

// Every rank must have spoken and hang below one root. A drawing without some would show another tree.
std::string tree_text(const Parts& members, size_t channel) {
  for (size_t rank = 0; rank < members.size(); ++rank) {
    const ChannelPosition* position = position_of(members, rank, channel);
    if (position == nullptr || position->tree_up == ChannelPosition::kUnknown) return {};
    if (position->tree_up != -1) continue;
    std::string text;
    size_t shown = 0;
    if (!add_branch(members, channel, static_cast<int32_t>(rank), -1, 0, shown, text)) return {};
    // Ranks that hang below nobody belong to a tree of which a part is not known.
    if (shown != members.size()) return {};
    return members.size() <= kRanksShown
               ? text
               : "root " + std::to_string(rank) + ", " + plural(members.size(), "rank");
  }
  return {};
}

// Of a tree that every rank reports.
std::vector<int32_t> tops_of(const Parts& members, size_t channel) {
  std::vector<int32_t> tops;
  for (size_t rank = 0; rank < members.size(); ++rank) {
    const ChannelPosition* position = position_of(members, rank, channel);
    tops.push_back(position == nullptr ? -1 : position->tree_up);
  }
  return tops;
}

std::vector<Wiring> wirings(const Parts& members, const std::vector<std::string>& nodes, bool trees) {
  size_t channels = 0;
  for (const CommPart* part : members) {
    if (part != nullptr) channels = std::max({channels, part->positions.size(), part->orders.size()});
  }
  std::vector<Wiring> list;
  for (size_t channel = 0; channel < channels; ++channel) {
    std::string text =
        trees ? tree_text(members, channel) : ring_text(ring_of(members, channel), members, nodes);
    if (text.empty()) continue;
    // Most channels are wired alike. They are compared by ranks and not by text, which is cut for many ranks.
    std::vector<int32_t> ranks = trees ? tops_of(members, channel) : ring_of(members, channel);
    auto alike =
        std::find_if(list.begin(), list.end(), [&](const Wiring& one) { return one.ranks == ranks; });
    if (alike == list.end()) alike = list.insert(list.end(), Wiring{{}, std::move(ranks), std::move(text)});
    alike->channels.push_back(static_cast<int32_t>(channel));
  }
  return list;
}

std::string nvls_text(const LogModel& model, const Parts& parts) {
  int32_t channels = -1;
  std::set<uint32_t> processes;
  for (const CommPart* part : parts) {
    channels = std::max(channels, part->nvls_channels);
    processes.insert(part->process);
  }
  const auto stated = [&](LineKind kind) {
    return std::any_of(model.of(kind).begin(), model.of(kind).end(),
                       [&](uint32_t row) { return processes.contains(model.facts[row].process); });
  };
  const bool is_off = std::any_of(
      model.of(LineKind::kEnvironment).begin(), model.of(LineKind::kEnvironment).end(), [&](uint32_t row) {
        const Fact& fact = model.facts[row];
        return processes.contains(fact.process) && fact.value(0) == "NVLS_ENABLE" && fact.value(1) == "0";
      });
  // From the surest to the least: a setting, channels in use, and what NCCL found of the hardware.
  if (is_off) return "off: NCCL_NVLS_ENABLE=0";
  if (channels > 0) return plural(static_cast<uint64_t>(channels), "channel");
  if (stated(LineKind::kNvlsAbsent)) return "not available";
  if (stated(LineKind::kNvlsReady)) return "available, not used";
  return channels == 0 ? "not used" : "";
}

void add_pairs(const LogModel& model, const std::vector<uint32_t>& rows, std::vector<PairGroup>& list) {
  std::map<std::pair<std::string, bool>, PairGroup> groups;
  for (const uint32_t number : rows) {
    const Connection& row = model.connections[number];
    const std::string via = without_card(row);
    PairGroup& of = groups[{via, row.gdr}];
    const uint64_t channels = row.lanes.any() ? row.lanes.count() : row.channels;
    of.least_channels = of.pairs.empty() ? channels : std::min(of.least_channels, channels);
    of.most_channels = std::max(of.most_channels, channels);
    of.via = via;
    of.gdr = row.gdr;
    of.pairs.emplace(row.from, row.to);
    if (row.card >= 0) of.cards.insert(row.card);
  }
  for (auto& [key, of] : groups) list.push_back(std::move(of));
}

}  // namespace

std::vector<HostHardware> host_hardware(const LogModel& model) {
  struct Figures {
    size_t gpus = 0, cards = 0;
    std::set<double> nvlink, xgmi, pcie, network;
    std::set<std::string> between, to_cards;
  };
  std::map<std::string, Figures> hosts;
  for (const TopologyDevice& device : model.topology) {
    Figures& host = hosts[device.host];
    const bool is_gpu = device.name.starts_with("GPU/");
    ++(is_gpu ? host.gpus : host.cards);
    if (is_gpu && device.nvlink_gbps >= 0)
      (device.has_xgmi ? host.xgmi : host.nvlink).insert(device.nvlink_gbps);
    if (is_gpu && device.pci_gbps >= 0) host.pcie.insert(device.pci_gbps);
    if (!is_gpu && device.net_gbps >= 0) host.network.insert(device.net_gbps);
    // Paths from cards say the same from the other end.
    for (const auto& [name, path] : device.paths) {
      if (!is_gpu || name == device.name) continue;
      (name.starts_with("GPU/") ? host.between : host.to_cards).insert(path.kind);
    }
  }
  std::vector<HostHardware> list;
  for (const auto& [host, figures] : hosts) {
    std::string text = plural(figures.gpus, "GPU");
    const std::string nvlink = range_text(figures.nvlink), xgmi = range_text(figures.xgmi),
                      pcie = range_text(figures.pcie);
    if (!nvlink.empty()) text += ", NVLink " + nvlink + " each";
    if (!xgmi.empty()) text += ", xGMI " + xgmi + " each";
    if (!pcie.empty()) text += ", PCIe " + pcie;
    if (!figures.between.empty()) text += "; from GPU to GPU " + kinds_text(figures.between);
    if (figures.cards > 0) text += "; " + plural(figures.cards, "network card");
    if (!figures.network.empty()) text += " of " + range_text(figures.network);
    if (!figures.to_cards.empty()) text += ", from the GPUs " + kinds_text(figures.to_cards);
    list.push_back({host, std::move(text)});
  }
  return list;
}

std::vector<CommWiring> comm_wirings(const LogModel& model, size_t most) {
  const std::vector<std::string> nodes = nodes_of(model);
  std::map<std::string, Parts> groups;
  for (const CommPart& part : model.comms) {
    if (!part.group.empty()) groups[part.group].push_back(&part);
  }
  std::vector<std::pair<std::string, Parts>> ordered(groups.begin(), groups.end());
  // The largest is the job's; with many groups the rest is cut.
  std::stable_sort(ordered.begin(), ordered.end(), [](const auto& a, const auto& b) {
    return a.second.front()->ranks > b.second.front()->ranks;
  });
  std::map<std::string, std::vector<uint32_t>> rows_of;
  for (uint32_t row = 0; row < model.connections.size(); ++row) {
    const Connection& connection = model.connections[row];
    // The sender reports it too. What may be of several communicators is drawn in none.
    if (connection.comm != kNobody && !connection.is_receive)
      rows_of[model.comms[connection.comm].group].push_back(row);
  }
  std::vector<CommWiring> list;
  for (const auto& [name, parts] : ordered) {
    if (list.size() == most) break;
    CommWiring& comm = list.emplace_back();
    comm.name = name;
    comm.ranks = parts.front()->ranks;
    std::set<int32_t> members;
    for (const CommPart* part : parts) {
      if (model.processes[part->process].rank >= 0) members.insert(model.processes[part->process].rank);
    }
    comm.members.assign(members.begin(), members.end());
    const Parts ranked = by_rank(parts, comm.ranks);
    comm.rings = wirings(ranked, nodes, false);
    comm.trees = wirings(ranked, nodes, true);
    comm.nvls = nvls_text(model, parts);
    add_pairs(model, rows_of[name], comm.pairs);
  }
  return list;
}

std::string pairs_text(const PairGroup& group, int32_t ranks) {
  const auto all = static_cast<size_t>(std::max(ranks, 0));
  // Of two ranks both directions are shorter than the sentence.
  if (all > 2 && group.pairs.size() == all * (all - 1)) return "every rank to every other";
  constexpr size_t kPairsShown = 12;
  std::string text;
  size_t shown = 0;
  for (const auto& [from, to] : group.pairs) {
    if (shown++ == kPairsShown) return text + " and " + plural(group.pairs.size() - kPairsShown, "other");
    text += (text.empty() ? "" : " ") + std::to_string(from) + '>' + std::to_string(to);
  }
  return text;
}

std::string channels_text(const std::vector<int32_t>& channels) {
  const std::string words = wording::ranks(channels);
  return (channels.size() == 1 ? "channel " : "channels ") + words.substr(words.find(' ') + 1);
}

}  // namespace lockstep::analysis::log_figures
