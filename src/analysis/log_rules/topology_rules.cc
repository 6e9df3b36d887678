// SPDX-License-Identifier: Apache-2.0
// What NCCL saw of the hardware, and the ways that it chose on it. Devices are compared with their siblings
// on the same host, so that no table of hardware has to be kept. Names of devices changed between releases;
// both forms are known here.
#include <algorithm>
#include <array>
#include <functional>
#include <map>

#include "analysis/log_rules/rules.h"
#include "base/text/wording.h"
#include "readers/nccl_log/pattern.h"

namespace lockstep::analysis::log_rules {
namespace {

using readers::nccl_log::Path;
using readers::nccl_log::to_double;
using readers::nccl_log::TopologyDevice;

// Kinds of path, the best first (NCCL's own order since 2.28).
int path_rank(std::string_view kind) {
  static constexpr std::array<std::string_view, 10> kKinds = {"LOC", "NVL", "NVB", "C2C", "PIX",
                                                              "PXB", "P2C", "PXN", "PHB", "SYS"};
  return static_cast<int>(std::find(kKinds.begin(), kKinds.end(), kind) - kKinds.begin());
}
bool is_through_cpu(std::string_view kind) { return kind == "PHB" || kind == "SYS"; }

std::string number(double value) {
  std::string text = std::to_string(value);
  return text.substr(0, text.find('.') + 2);
}

// Processes by host.
class Hosts {
 public:
  explicit Hosts(const View& view) {
    for (uint32_t i = 0; i < view.model().processes.size(); ++i) {
      Host& host = hosts_[view.model().processes[i].host];
      host.processes.insert(i);
      host.uses_sockets = host.uses_sockets || view.uses_sockets(i);
    }
  }
  bool uses_sockets(const std::string& host) const { return hosts_.at(host).uses_sockets; }
  void add(const std::string& host, Hit& hit) const {
    const auto& processes = hosts_.at(host).processes;
    hit.processes.insert(processes.begin(), processes.end());
  }

 private:
  struct Host {
    std::set<uint32_t> processes;
    bool uses_sockets = false;
  };
  std::map<std::string, Host> hosts_;
};

using FigureOf = std::function<double(const TopologyDevice&)>;  // below 0: not said

// Devices of one host whose value is below that of their siblings.
std::optional<Hit> uneven(const View& view, std::string_view kind, const FigureOf& value_of) {
  std::map<std::string, std::vector<const TopologyDevice*>> hosts;
  for (const TopologyDevice& device : view.model().topology) {
    if (device.name.starts_with(kind) && value_of(device) >= 0) hosts[device.host].push_back(&device);
  }
  const Hosts processes(view);
  Hit hit;
  for (const auto& [host, devices] : hosts) {
    const auto less = [&](const TopologyDevice* a, const TopologyDevice* b) {
      return value_of(*a) < value_of(*b);
    };
    const auto [least, most] = std::minmax_element(devices.begin(), devices.end(), less);
    if (value_of(**least) >= value_of(**most) * 0.99) continue;
    if (hit.what.empty())
      hit.what = ": " + (*least)->name + " of " + host + " has " + number(value_of(**least)) + " GB/s, " +
                 (*most)->name + ' ' + number(value_of(**most)) + " GB/s";
    processes.add(host, hit);
    prove(view, (*least)->first, hit);
    prove(view, (*most)->first, hit);
  }
  if (hit.evidence.empty()) return std::nullopt;
  return hit;
}

// A sender's GPU, and the network card that a connection leaves by, as the topology names them.
struct Ends {
  const TopologyDevice* gpu = nullptr;
  std::string card;
};
class Devices {
 public:
  explicit Devices(const View& view) : view_(view) {
    for (const TopologyDevice& device : view.model().topology)
      by_name_[device.host + ' ' + device.name] = &device;
  }
  const TopologyDevice* gpu_of(const CommPart& part) const {
    char hex[20];
    std::snprintf(hex, sizeof(hex), "%llx", static_cast<unsigned long long>(part.bus_id));
    std::string upper = hex;
    for (char& c : upper) c = c >= 'a' && c <= 'f' ? static_cast<char>(c - 'a' + 'A') : c;
    const std::string& host = view_.model().processes[part.process].host;
    // Newer releases put the number of the system first, and print lower-case digits.
    for (const std::string& name : {"GPU/0-" + std::string(hex), "GPU/" + upper}) {
      const auto found = by_name_.find(host + ' ' + name);
      if (found != by_name_.end()) return found->second;
    }
    return nullptr;
  }
  Ends ends_of(const Connection& row) const {
    // With PXN another rank's GPU serves the card, and the sender's distance to it does not matter.
    if (row.comm == kNobody || row.card < 0 || row.proxy >= 0) return {};
    Ends ends;
    ends.gpu = gpu_of(view_.model().comms[row.comm]);
    if (ends.gpu == nullptr) return ends;
    // Cards are named as the GPUs of the same release are.
    const bool is_old = ends.gpu->name.find('-') == std::string::npos;
    ends.card = (is_old ? "NET/" : "NET/0-") + std::to_string(row.card);
    return ends;
  }

 private:
  const View& view_;
  std::map<std::string, const TopologyDevice*> by_name_;
};

bool is_rdma(const View& view, const Connection& row) {
  return row.transport == Transport::kNet && !view.uses_sockets(row.process) &&
         !row.via.starts_with("NET/Socket");
}

constexpr int32_t kFewChannels = 2;
constexpr double kNvLinkGbps = 100;

// What limits channels by hand.
std::string channel_limit(const View& view, uint32_t process) {
  for (const std::string_view name : {"MAX_NCHANNELS", "MAX_CTAS", "MAX_NRINGS"}) {
    if (const Fact* setting = view.setting(process, name))
      return "; NCCL_" + std::string(name) + " is " + setting->value(1);
  }
  return "";
}

std::string of_communicator(const CommPart& part) {
  return part.group.empty() ? "a communicator" : "communicator " + part.group;
}

std::string though_linked(const TopologyDevice& gpu) {
  return std::string(", though the GPUs have ") + (gpu.has_xgmi ? "xGMI" : "NVLink");
}

// NCCL itself gives a peer two channels or more, and two for good reasons: only a limit that was set tells
// that there could be more.
void add_few_for_a_peer(const View& view, const Devices& devices, const CommPart& part, Hit& hit) {
  if (part.peer_channels < 1 || part.peer_channels > kFewChannels || part.ranks < 2) return;
  const TopologyDevice* const gpu = devices.gpu_of(part);
  if (gpu == nullptr || gpu->nvlink_gbps < kNvLinkGbps) return;
  for (const std::string_view name : {"MAX_P2P_NCHANNELS", "NCHANNELS_PER_PEER"}) {
    const Fact* const setting = view.setting(part.process, name);
    if (setting == nullptr || setting->value(1) != std::to_string(part.peer_channels)) continue;
    if (hit.what.empty())
      hit.what = wording::count(static_cast<uint64_t>(part.peer_channels), "channel") +
                 " for what a rank sends to a peer of " + of_communicator(part) + though_linked(*gpu) +
                 "; NCCL_" + std::string(name) + " is " + setting->value(1);
    add(view, *setting, hit);
    prove(view, part.first, hit);
    return;
  }
}

}  // namespace

std::optional<Hit> uneven_nvlink(const View& view) {
  return uneven(view, "GPU/", [](const TopologyDevice& device) { return device.nvlink_gbps; });
}

std::optional<Hit> uneven_pcie(const View& view) {
  return uneven(view, "GPU/", [](const TopologyDevice& device) { return device.pci_gbps; });
}

std::optional<Hit> uneven_card_speed(const View& view) {
  for (uint32_t process = 0; process < view.model().processes.size(); ++process) {
    std::map<double, const Fact*> by_speed;
    for (const Fact* fact : view.facts(LineKind::kCardSpeed, process))
      by_speed.try_emplace(to_double(fact->value(3)), fact);
    if (by_speed.size() < 2) continue;
    Hit hit;
    for (const auto& [ignored, fact] : by_speed) add(view, *fact, hit);
    hit.what =
        ": " + by_speed.begin()->second->value(3) + " and " + by_speed.rbegin()->second->value(3) + " Mb/s";
    return hit;
  }
  const Hosts hosts(view);
  return uneven(view, "NET/", [&](const TopologyDevice& device) {
    return hosts.uses_sockets(device.host) ? -1 : device.net_gbps;
  });
}

std::optional<Hit> far_card(const View& view) {
  const Devices devices(view);
  Hit hit;
  for (const Connection& row : view.model().connections) {
    if (!is_rdma(view, row)) continue;
    const Ends ends = devices.ends_of(row);
    if (ends.gpu == nullptr || !ends.gpu->paths.contains(ends.card)) continue;
    const Path& used = ends.gpu->paths.at(ends.card);
    if (!is_through_cpu(used.kind)) continue;
    for (const auto& [name, path] : ends.gpu->paths) {
      if (!name.starts_with("NET/") || path_rank(path.kind) > path_rank("PXB")) continue;
      if (hit.what.empty())
        hit.what = ": " + ends.gpu->name + " uses " + ends.card + " (" + used.kind + "), and " + name +
                   " is nearer (" + path.kind + ')';
      hit.processes.insert(row.process);
      prove(view, row.first, hit);
      prove(view, ends.gpu->paths_at, hit);
      break;
    }
  }
  if (hit.evidence.empty()) return std::nullopt;
  return hit;
}

// From 2.30 on no line says why a pair does without GPUDirect RDMA where another has it: the path does.
std::optional<Hit> far_for_gdr(const View& view) {
  const Devices devices(view);
  const bool on_somewhere = std::any_of(view.model().connections.begin(), view.model().connections.end(),
                                        [](const Connection& row) { return row.gdr; });
  if (!on_somewhere) return std::nullopt;
  Hit hit;
  for (const Connection& row : view.model().connections) {
    if (row.gdr || !is_rdma(view, row)) continue;
    const Ends ends = devices.ends_of(row);
    if (ends.gpu == nullptr || !ends.gpu->paths.contains(ends.card)) continue;
    const Path& used = ends.gpu->paths.at(ends.card);
    if (!is_through_cpu(used.kind)) continue;
    if (hit.what.empty()) hit.what = ": " + ends.gpu->name + " and " + ends.card + " (" + used.kind + ')';
    hit.processes.insert(row.process);
    prove(view, row.first, hit);
    prove(view, ends.gpu->paths_at, hit);
  }
  if (hit.evidence.empty()) return std::nullopt;
  return hit;
}

std::optional<Hit> cards_look_alike(const View& view) {
  const Hosts hosts(view);
  std::set<std::string> reported;
  Hit hit;
  for (const TopologyDevice& device : view.model().topology) {
    std::set<std::string> kinds;
    size_t cards = 0;
    for (const auto& [name, path] : device.paths) {
      if (!name.starts_with("NET/")) continue;
      kinds.insert(path.kind);
      ++cards;
    }
    // A virtual machine that hides its topology puts every card at the same distance.
    if (cards < 2 || kinds.size() != 1 || !is_through_cpu(*kinds.begin()) || hosts.uses_sockets(device.host))
      continue;
    if (hit.what.empty())
      hit.what = ": all " + std::to_string(cards) + " are " + *kinds.begin() + " from " + device.name;
    if (reported.insert(device.host).second) hosts.add(device.host, hit);
    prove(view, device.paths_at, hit);
  }
  if (hit.evidence.empty()) return std::nullopt;
  return hit;
}

std::optional<Hit> topology_unread(const View& view) {
  Hit hit;
  for (const LineKind kind : {LineKind::kTopologyUnread, LineKind::kCardNotPci, LineKind::kDefaultSpeed}) {
    for (const Fact* fact : view.facts(kind)) {
      // Over sockets the place of a card in the PCI tree and its speed decide little.
      const bool matters = kind == LineKind::kTopologyUnread || !view.uses_sockets(fact->process);
      if (matters) add(view, *fact, hit);
    }
  }
  if (hit.evidence.empty()) return std::nullopt;
  return hit;
}

std::optional<Hit> topology_file_absent(const View& view) {
  Hit hit;
  for (const Fact* fact : view.facts(LineKind::kIgnoredSetting)) {
    const bool names_file = fact->first.text.find("XML") != std::string::npos ||
                            fact->first.text.find("TOPO") != std::string::npos;
    if (names_file && fact->first.text.find("open") != std::string::npos) add(view, *fact, hit);
  }
  if (hit.evidence.empty()) return std::nullopt;
  return hit;
}

std::optional<Hit> few_channels(const View& view) {
  constexpr int32_t kMany = 8;
  const Devices devices(view);
  // Between nodes fewer channels are normal, so communicators are held against their like.
  std::map<bool, bool> many_elsewhere;  // by whether nodes are spanned
  for (const CommPart& part : view.model().comms) {
    if (part.coll_channels >= kMany) many_elsewhere[part.nodes > 1] = true;
  }
  Hit hit;
  for (const CommPart& part : view.model().comms) {
    if (part.coll_channels < 0 || part.coll_channels > kFewChannels || part.ranks < 2 || part.nodes < 1)
      continue;
    const bool spans = part.nodes > 1;
    const TopologyDevice* gpu = spans ? nullptr : devices.gpu_of(part);
    const bool has_nvlink = gpu != nullptr && gpu->nvlink_gbps >= kNvLinkGbps;
    if (!has_nvlink && !many_elsewhere[spans]) continue;
    if (hit.what.empty())
      hit.what = wording::count(static_cast<uint64_t>(part.coll_channels), "channel") + " for " +
                 of_communicator(part) +
                 (has_nvlink ? though_linked(*gpu) : ", where others like it have 8 and more") +
                 channel_limit(view, part.process);
    hit.processes.insert(part.process);
    prove(view, part.first, hit);
  }
  for (const Fact* fact : view.facts(LineKind::kSearchResult)) {
    const bool is_ring = fact->value(0) == "4";
    const std::string kind = fact->value(fact->values.size() - 2);
    if (!is_ring || fact->value(2) != "1" || !kind.starts_with("NVL/")) continue;
    if (hit.what.empty())
      hit.what = "one ring, though the GPUs have NVLink" + channel_limit(view, fact->process);
    add(view, *fact, hit);
  }
  if (hit.evidence.empty())
    for (const CommPart& part : view.model().comms) add_few_for_a_peer(view, devices, part, hit);
  if (hit.evidence.empty()) return std::nullopt;
  return hit;
}

// What NCCL reckons for AllReduce; a bandwidth of 0 means that it is switched off.
namespace {
std::optional<double> cost(const View& view, uint32_t process, std::string_view algorithm,
                           std::string_view protocol) {
  for (const Fact* fact : view.facts(LineKind::kCostRow, process)) {
    if (fact->value(0) == algorithm && fact->value(1) == protocol) return to_double(fact->value(2));
  }
  return std::nullopt;
}
}  // namespace

std::optional<Hit> ll128_off(const View& view) {
  Hit hit;
  for (uint32_t process = 0; process < view.model().processes.size(); ++process) {
    const auto ll128 = cost(view, process, "Ring", "LL128"), simple = cost(view, process, "Ring", "Simple");
    // If Simple has no bandwidth either, the algorithm is off, and not the protocol.
    if (!ll128 || !simple || *ll128 > 0 || *simple <= 0) continue;
    const Fact* protocols = view.setting(process, "PROTO");
    const Fact* mixed = view.first(LineKind::kMixedCpus, process);
    if (hit.what.empty())
      hit.what = protocols != nullptr ? ": NCCL_PROTO is " + protocols->value(1)
                 : mixed != nullptr
                     ? ": CPUs are of different kinds"
                     : ": usually because GPUs or cards are connected through a CPU, or differ";
    hit.processes.insert(process);
    for (const Fact* fact : view.facts(LineKind::kCostRow, process)) {
      if (fact->value(0) == "Ring" && fact->value(1) == "LL128") prove(view, fact->first, hit);
    }
    if (protocols != nullptr) prove(view, protocols->first, hit);
    if (mixed != nullptr) prove(view, mixed->first, hit);
  }
  if (hit.evidence.empty()) return std::nullopt;
  return hit;
}

std::optional<Hit> nvls_not_reckoned(const View& view) {
  constexpr int32_t kLocalLeast = 3;  // two GPUs never use it before 2.30.7
  Hit hit;
  for (const CommPart& part : view.model().comms) {
    const Fact* setting = view.setting(part.process, "NVLS_ENABLE");
    const bool is_off = setting != nullptr && setting->value(1) == "0";
    if (part.local_ranks < kLocalLeast || is_off || view.first(LineKind::kNvlsReady, part.process) == nullptr)
      continue;
    const auto nvls = cost(view, part.process, "NVLS", "Simple");
    if (!nvls || *nvls > 0 || view.setting(part.process, "ALGO") != nullptr) continue;
    hit.processes.insert(part.process);
    for (const Fact* fact : view.facts(LineKind::kCostRow, part.process)) {
      if (fact->value(0) == "NVLS") prove(view, fact->first, hit);
    }
  }
  if (hit.evidence.empty()) return std::nullopt;
  return hit;
}

// NCCL_P2P_LEVEL allows less than the way between two GPUs of a host.
std::optional<Hit> p2p_level_too_low(const View& view) {
  const Devices devices(view);
  std::map<std::pair<std::string, int32_t>, const CommPart*> part_of;
  for (const CommPart& part : view.model().comms) part_of[{part.group, part.rank}] = &part;
  Hit hit;
  for (const Connection& row : view.model().connections) {
    const Fact* level = view.setting(row.process, "P2P_LEVEL");
    if (row.transport != Transport::kShm || level == nullptr || level->value(1) == "LOC" ||
        level->value(1) == "0")
      continue;
    if (row.comm == kNobody) continue;
    const CommPart& part = view.model().comms[row.comm];
    const TopologyDevice* from = devices.gpu_of(part);
    // The line names ranks. Their GPUs stand in each member's own line about the communicator.
    const auto other = part_of.find({part.group, row.to});
    if (from == nullptr || other == part_of.end()) continue;
    const TopologyDevice* to = devices.gpu_of(*other->second);
    if (to == nullptr || !from->paths.contains(to->name)) continue;
    const Path& path = from->paths.at(to->name);
    const int allowed = path_rank(level->value(1));
    // SYS allows every path. Levels as numbers, which older releases take, name no path and rank behind it.
    if (allowed >= path_rank("SYS") || path_rank(path.kind) <= allowed) continue;
    if (hit.what.empty())
      hit.what = ": it is " + level->value(1) + ", but the path from " + from->name + " to " + to->name +
                 " is " + path.kind;
    add(view, *level, hit);
    prove(view, row.first, hit);
  }
  if (hit.evidence.empty()) return std::nullopt;
  return hit;
}

}  // namespace lockstep::analysis::log_rules
