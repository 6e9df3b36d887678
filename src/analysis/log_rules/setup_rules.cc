// SPDX-License-Identifier: Apache-2.0
// Settings, releases and hosts that do not fit together. Values are compared within each process's largest
// communicator: a set of logs may be of several jobs, which differ with reason. Where NCCL itself says that
// ranks differ, its word is used and nothing is compared.
#include <algorithm>
#include <functional>
#include <map>
#include <numeric>

#include "analysis/log_rules/rules.h"
#include "base/ascii.h"
#include "base/text/wording.h"
#include "readers/nccl_log/pattern.h"

namespace lockstep::analysis::log_rules {
namespace {

using readers::nccl_log::to_int;

using ValueOf = std::function<std::optional<std::string>(uint32_t process, const Fact*& proof)>;

// Members of one communicator by what `value_of` says of them, for the first communicator that is not of one
// mind.
std::optional<Camps> divided(const View& view, const std::vector<uint32_t>& processes,
                             const ValueOf& value_of) {
  std::map<std::string, Camps> worlds;
  for (const uint32_t process : processes) {
    const Fact* proof = nullptr;
    const std::optional<std::string> value = value_of(process, proof);
    // Behind a tear may stand what another process wrote.
    if (!value || (proof != nullptr && proof->is_torn)) continue;
    Camp& camp = worlds[view.world(process)][*value];
    camp.processes.insert(process);
    if (camp.proof == nullptr) camp.proof = proof;
  }
  for (auto& [world, camps] : worlds) {
    if (camps.size() > 1) return std::move(camps);
  }
  return std::nullopt;
}

std::vector<uint32_t> all_processes(const View& view) {
  std::vector<uint32_t> all(view.model().processes.size());
  std::iota(all.begin(), all.end(), 0U);
  return all;
}

std::optional<Hit> hit_of(const View& view, const std::optional<Camps>& camps) {
  if (!camps) return std::nullopt;
  Hit hit;
  add_camps(view, *camps, hit);
  return hit;
}

// Processes that differ in what they say of the first of these kinds that they mention.
std::optional<Hit> differs(const View& view, std::initializer_list<LineKind> kinds) {
  return hit_of(view, divided(view, all_processes(view),
                              [&](uint32_t process, const Fact*& proof) -> std::optional<std::string> {
                                for (const LineKind kind : kinds) {
                                  proof = view.first(kind, process);
                                  if (proof != nullptr) return proof->value(0);
                                }
                                return std::nullopt;
                              }));
}

// Settings that name something of the host or of the process, and differ with reason.
bool is_of_the_host(std::string_view name) {
  static constexpr std::string_view kParts[] = {"IFNAME",  "HCA",   "HOSTID", "GID",  "DEBUG_FILE", "TOPO",
                                                "COMM_ID", "GRAPH", "ADDR",   "RANK", "PORT",       "PLUGIN"};
  return std::any_of(std::begin(kParts), std::end(kParts),
                     [&](std::string_view part) { return name.find(part) != std::string_view::npos; });
}

// Settings that every process reads when its first communicator is made: processes that made one and say
// nothing of it do not have it. Not fewer than two, and not fewer than have it: a line may be missing.
bool is_read_by_all(std::string_view name) {
  return name == "P2P_DISABLE" || name == "SHM_DISABLE" || name == "P2P_LEVEL" || name == "NVLS_ENABLE";
}

std::set<uint32_t> with_communicator(const View& view) {
  std::set<uint32_t> found;
  for (const CommPart& part : view.model().comms) {
    if (part.completed) found.insert(part.process);
  }
  return found;
}

void drop_silent_few(Camps& camps) {
  for (auto camp = camps.begin(); camp != camps.end(); ++camp) {
    size_t others = 0;
    for (const auto& [value, other] : camps) others += &other == &camp->second ? 0 : other.processes.size();
    const size_t silent = camp->second.processes.size();
    // Only one camp can be without proof: those that did not print the setting.
    if (camp->second.proof != nullptr || (silent >= 2 && silent >= others)) continue;
    camps.erase(camp);
    return;
  }
}

// Cards that a list names: "[0]mlx5_0:1/IB [1]...".
size_t cards(std::string_view list) {
  size_t count = 0;
  for (size_t at = list.find('['); at != std::string_view::npos; at = list.find('[', at + 1)) {
    if (at + 1 < list.size() && list[at + 1] >= '0' && list[at + 1] <= '9') ++count;
  }
  return count;
}

// CUDA's version times 1000 out of "2.27.3+cuda12.9"; 0: unknown.
int64_t built_for(std::string_view version) {
  const size_t at = version.find("+cuda");
  if (at == std::string_view::npos) return 0;
  version.remove_prefix(at + 5);
  const size_t dot = version.find('.');
  if (dot == std::string_view::npos) return 0;
  return to_int(version.substr(0, dot)) * 1000 + to_int(version.substr(dot + 1)) * 10;
}

}  // namespace

std::optional<Hit> different_versions(const View& view) {
  Hit stated;
  for (const Fact* fact : view.facts(LineKind::kVersionMismatch)) add(view, *fact, stated);
  if (!stated.evidence.empty()) return stated;
  return differs(view, {LineKind::kRcclVersion, LineKind::kVersion});
}

// A release and what CUDA it was built for; there are two where two libraries are in one process.
std::optional<Hit> two_libraries(const View& view) {
  Hit hit;
  for (uint32_t process = 0; process < view.model().processes.size(); ++process) {
    // Lines that name no process may be of several.
    if (view.model().processes[process].host.empty()) continue;
    std::map<std::string, const Fact*> stated;
    for (const LineKind kind : {LineKind::kVersion, LineKind::kRcclVersion}) {
      for (const Fact* fact : view.facts(kind, process)) stated.try_emplace(fact->value(0), fact);
      // Two releases of one kind are two libraries.
      if (stated.size() > 1) break;
      stated.clear();  // RCCL names the NCCL that it was made from as well
    }
    if (stated.size() < 2) continue;
    if (hit.what.empty()) hit.what = stated.begin()->first + " and " + stated.rbegin()->first;
    for (const auto& [version, fact] : stated) add(view, *fact, hit);
  }
  if (hit.evidence.empty()) return std::nullopt;
  return hit;
}

// pip puts all of them into one folder, under one name.
std::optional<Hit> two_packages(const View& view) {
  Hit hit;
  std::map<uint32_t, std::map<std::string, const Fact*>> by_file;  // by CUDA release
  for (const Fact* fact : view.facts(LineKind::kNcclPackage)) {
    const std::string value = fact->value(1);
    const std::string_view version = trimmed(value, " ");
    if (!version.empty() && version[0] >= '0' && version[0] <= '9')
      by_file[fact->first.file].try_emplace(fact->value(0), fact);
  }
  for (const auto& [file, packages] : by_file) {
    if (packages.size() < 2) continue;
    for (const auto& [cuda, fact] : packages) {
      hit.what += (hit.what.empty() ? "" : " and ") + ("nvidia-nccl-cu" + cuda) + ' ' +
                  std::string(trimmed(fact->value(1), " "));
      prove(view, fact->first, hit);
    }
    return hit;
  }
  return std::nullopt;
}

std::optional<Hit> different_networks(const View& view) { return differs(view, {LineKind::kNetworkUsed}); }

std::optional<Hit> different_settings(const View& view) {
  constexpr size_t kNamesMost = 8;  // named
  std::map<std::string, std::vector<uint32_t>> processes_of;
  for (const Fact* fact : view.facts(LineKind::kEnvironment)) {
    if (fact->process != kNobody && !is_of_the_host(fact->value(0)))
      processes_of[fact->value(0)].push_back(fact->process);
  }
  // Before its first communicator is complete, a process may not have read them all.
  const std::set<uint32_t> complete = with_communicator(view);
  Hit hit;
  size_t differing = 0;
  for (const auto& row : processes_of) {
    const std::string& name = row.first;
    const bool by_all = is_read_by_all(name);
    const auto value_of = [&](uint32_t process, const Fact*& proof) -> std::optional<std::string> {
      proof = view.setting(process, name);
      if (proof != nullptr) return readers::nccl_log::variable_name(name) + '=' + proof->value(1);
      if (by_all && complete.contains(process)) return readers::nccl_log::variable_name(name) + " not set";
      return std::nullopt;
    };
    auto camps = divided(view, by_all ? all_processes(view) : row.second, value_of);
    if (camps) drop_silent_few(*camps);
    if (!camps || camps->size() < 2 || ++differing > kNamesMost) continue;
    hit.what += (hit.what.empty() ? "" : ", ") + readers::nccl_log::variable_name(name);
    add_camps(view, *camps, hit);
  }
  if (hit.evidence.empty()) return std::nullopt;
  if (differing > kNamesMost) hit.what += " and " + wording::count(differing - kNamesMost, "other");
  return hit;
}

std::optional<Hit> different_card_counts(const View& view) {
  Hit stated;
  for (const Fact* fact : view.facts(LineKind::kCardCountsDiffer)) add(view, *fact, stated);
  for (const Fact* fact : view.facts(LineKind::kCardCountRange)) {
    if (fact->value(0) != fact->value(1)) add(view, *fact, stated);
  }
  if (!stated.evidence.empty()) return stated;
  return hit_of(view, divided(view, all_processes(view),
                              [&](uint32_t process, const Fact*& proof) -> std::optional<std::string> {
                                proof = view.first(LineKind::kIbCards, process);
                                if (proof == nullptr) return std::nullopt;
                                return wording::count(cards(proof->value(0)), "card");
                              }));
}

std::optional<Hit> different_link_layers(const View& view) {
  Hit stated;
  for (const Fact* fact : view.facts(LineKind::kLinksDiffer)) add(view, *fact, stated);
  if (!stated.evidence.empty()) return stated;
  return hit_of(view, divided(view, all_processes(view),
                              [&](uint32_t process, const Fact*& proof) -> std::optional<std::string> {
                                proof = view.first(LineKind::kIbCards, process);
                                if (proof == nullptr) return std::nullopt;
                                const bool ib = proof->value(0).find("/IB") != std::string::npos;
                                const bool roce = proof->value(0).find("/RoCE") != std::string::npos;
                                if (ib == roce) return std::nullopt;  // both, or neither: they can meet
                                // A host with one kind only cannot reach a host with the other only.
                                return ib ? "InfiniBand" : "RoCE";
                              }));
}

namespace {

// Of releases before 2.19 the version stands in one line without a head. Null: the file has none, or several.
const Fact* only_version_of(const View& view, uint32_t file) {
  const Fact* only = nullptr;
  for (const Fact* fact : view.facts(LineKind::kVersion)) {
    if (fact->first.file != file) continue;
    if (only != nullptr && only->value(0) != fact->value(0)) return nullptr;
    only = fact;
  }
  return only;
}

}  // namespace

std::optional<Hit> old_driver(const View& view) {
  Hit hit;
  for (const Fact* driver : view.facts(LineKind::kDriverVersion)) {
    const Fact* own = driver->process == kNobody ? nullptr : view.first(LineKind::kVersion, driver->process);
    const Fact* version = own != nullptr ? own : only_version_of(view, driver->first.file);
    if (version == nullptr || to_int(driver->value(0)) >= built_for(version->value(0))) continue;
    hit.what = ": " + driver->value(0) + " and " + version->value(0);
    add(view, *driver, hit);
    prove(view, version->first, hit);
  }
  if (hit.evidence.empty()) return std::nullopt;
  return hit;
}

std::optional<Hit> virtual_interface(const View& view) {
  static constexpr std::string_view kInside[] = {"docker", "virbr",   "veth", "br-",
                                                 "cni",    "flannel", "cali", "tun"};
  Hit hit;
  for (const Fact* fact : view.facts(LineKind::kBootstrap)) {
    const std::string name = interface_of(*fact);
    // These lead to nothing outside their host, and within one host they work.
    const bool inside =
        name == "lo" || std::any_of(std::begin(kInside), std::end(kInside),
                                    [&](std::string_view part) { return name.starts_with(part); });
    const bool matters =
        fact->process != kNobody &&
        (view.spans_nodes(fact->process) || view.first(LineKind::kConnectFailed, fact->process) != nullptr);
    if (!inside || !matters) continue;
    hit.what = name;
    add(view, *fact, hit);
  }
  if (hit.evidence.empty()) return std::nullopt;
  return hit;
}

std::optional<Hit> forced_tuning(const View& view) {
  static constexpr std::string_view kNames[] = {"ALGO",       "PROTO",     "MIN_NCHANNELS", "MAX_NCHANNELS",
                                                "MIN_CTAS",   "MAX_CTAS",  "NTHREADS",      "BUFFSIZE",
                                                "MIN_NRINGS", "MAX_NRINGS"};
  Hit hit;
  std::set<std::string> stated;
  for (const Fact* fact : view.facts(LineKind::kEnvironment)) {
    if (fact->process == kNobody ||
        std::find(std::begin(kNames), std::end(kNames), fact->value(0)) == std::end(kNames))
      continue;
    stated.insert("NCCL_" + fact->value(0) + '=' + fact->value(1));
    add(view, *fact, hit);
  }
  static constexpr std::string_view kFields[] = {"minCTAs", "maxCTAs", "cgaClusterSize", "CTAPolicy"};
  for (const Fact* fact : view.facts(LineKind::kCommConfig)) {
    if (std::find(std::begin(kFields), std::end(kFields), fact->value(0)) == std::end(kFields)) continue;
    stated.insert(fact->value(0) + '=' + fact->value(1));
    add(view, *fact, hit);
  }
  if (hit.evidence.empty()) return std::nullopt;
  for (const std::string& setting : stated) hit.what += (hit.what.empty() ? "" : ", ") + setting;
  return hit;
}

namespace {

// Of the first communicator of which every process is there: what NCCL counts, against the names of hosts.
// NCCL tells hosts apart by a hash of name and boot id. Containers with a boot id of their own look like
// several hosts, clones with the same one like one host.
std::optional<Hit> nodes_and_hosts(const View& view, bool more_nodes) {
  for (const auto& [group, parts] : view.groups()) {
    std::set<std::string> hosts;
    std::set<uint32_t> processes;
    int32_t nodes = 0;
    bool named_by_hand = false;
    for (const CommPart* part : parts) {
      hosts.insert(view.model().processes[part->process].host);
      processes.insert(part->process);
      nodes = std::max(nodes, part->nodes);
      named_by_hand = named_by_hand || view.setting(part->process, "HOSTID") != nullptr;
    }
    // With logs missing there are fewer names than hosts, which proves nothing.
    const bool all_here = static_cast<int32_t>(processes.size()) == parts.front()->ranks;
    const auto names = static_cast<int32_t>(hosts.size());
    if (!all_here || named_by_hand || nodes < 1 || (more_nodes ? nodes <= names : nodes >= names)) continue;
    Hit hit;
    hit.processes = processes;
    hit.what = ": " + wording::count(static_cast<uint64_t>(nodes), "node") + ", but " +
               wording::count(hosts.size(), "host name");
    prove(view, parts.front()->first, hit);
    return hit;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Hit> hosts_look_apart(const View& view) { return nodes_and_hosts(view, true); }
std::optional<Hit> hosts_look_alike(const View& view) { return nodes_and_hosts(view, false); }

}  // namespace lockstep::analysis::log_rules
