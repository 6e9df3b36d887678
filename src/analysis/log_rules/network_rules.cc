// SPDX-License-Identifier: Apache-2.0
// Addresses, ports and classes of traffic: what keeps hosts from reaching each other, or slows them on the
// way. Logs show addresses, and neither routes nor counters. So different subnets count only beside a
// connection that failed, and a missing class of traffic asks for the cards' counters.
#include <algorithm>
#include <map>

#include "analysis/log_rules/rules.h"
#include "base/text/wording.h"
#include "readers/nccl_log/pattern.h"

namespace lockstep::analysis::log_rules {
namespace {

using readers::nccl_log::to_int;

// "198.51.100.9" of "198.51.100.9<39611>".
std::string without_port(const std::string& peer) { return peer.substr(0, peer.find('<')); }

// What hosts that reach each other share as a rule: two numbers of four, or that both are IPv6.
std::string subnet_of(const std::string& address) {
  // No log prints the length of a prefix. This guess is asked only once a connection has failed.
  if (std::count(address.begin(), address.end(), ':') > 1) return "IPv6";
  const size_t dot = address.find('.');
  const size_t second = dot == std::string::npos ? dot : address.find('.', dot + 1);
  return second == std::string::npos ? address : address.substr(0, second);
}

// The index behind "GID " in what a queue pair's line ends in; -1: none.
int64_t gid_of(const Fact& fact) {
  const std::string text = fact.value(2);
  return text.starts_with("GID ") ? to_int(text.substr(4, text.find_first_not_of("-0123456789", 4) - 4)) : -1;
}

}  // namespace

std::optional<Hit> different_subnets(const View& view) {
  // Hosts in different subnets are normal where routes join them.
  if (view.facts(LineKind::kConnectFailed).empty()) return std::nullopt;
  std::map<std::string, Camps> worlds;
  for (const Fact* fact : view.facts(LineKind::kBootstrap)) {
    if (fact->process == kNobody) continue;
    Camp& camp = worlds[view.world(fact->process)]["subnet of " + subnet_of(address_of(*fact))];
    camp.processes.insert(fact->process);
    if (camp.proof == nullptr) camp.proof = fact;
  }
  Hit hit;
  for (const auto& [world, camps] : worlds) {
    if (camps.size() > 1) add_camps(view, camps, hit);
  }
  if (hit.evidence.empty()) return std::nullopt;
  for (const Fact* fact : view.facts(LineKind::kConnectFailed)) prove(view, fact->first, hit);
  return hit;
}

// A peer whose own log goes on was not reached. Its port is unknown: it is any of those with its address.
std::optional<Hit> closed_ports(const View& view) {
  const auto& dead = view.torch().dead();
  std::set<uint32_t> gone;
  for (const CommPart& part : view.model().comms) {
    // A process that has ended closed its ports itself.
    if (part.ended || part.aborted || dead.contains(view.model().processes[part.process].rank))
      gone.insert(part.process);
  }
  std::map<std::string, uint32_t> alive;
  std::set<std::string> left;  // addresses of those that are gone
  for (const Fact* fact : view.facts(LineKind::kBootstrap)) {
    if (fact->process == kNobody) continue;
    if (gone.contains(fact->process)) left.insert(address_of(*fact));
    alive.emplace(address_of(*fact), fact->process);
  }
  std::erase_if(alive, [&](const auto& row) { return left.contains(row.first); });
  Hit hit;
  for (const Fact* fact : view.facts(LineKind::kConnectFailed)) {
    if (fact->process == kNobody || !fact->is_warning) continue;
    const auto& processes = view.model().processes;
    for (const std::string& value : fact->values) {
      const auto peer = alive.find(without_port(value));
      if (peer == alive.end() || processes[peer->second].host == processes[fact->process].host) continue;
      if (hit.what.empty()) hit.what = value + " on " + processes[peer->second].host;
      add(view, *fact, hit);
      prove(view, view.first(LineKind::kBootstrap, peer->second)->first, hit);
    }
  }
  return unless_empty(std::move(hit));
}

std::optional<Hit> different_gids(const View& view) {
  std::map<std::string, Camps> worlds;
  for (const Fact* fact : view.facts(LineKind::kQueuePair)) {
    const int64_t gid = gid_of(*fact);
    if (gid < 0 || fact->process == kNobody) continue;
    Camp& camp = worlds[view.world(fact->process)]["GID " + std::to_string(gid)];
    camp.processes.insert(fact->process);
    if (camp.proof == nullptr) camp.proof = fact;
  }
  Hit hit;
  for (const auto& [world, camps] : worlds) {
    if (camps.size() > 1) add_camps(view, camps, hit);
  }
  return unless_empty(std::move(hit));
}

std::optional<Hit> link_local_gid(const View& view) {
  Hit hit;
  for (const Fact* fact : view.facts(LineKind::kQueuePairFailed)) {
    // fe80::/10 is valid on one link only, so no router forwards it.
    if (fact->is_warning && fact->first.text.find("GID fe80:") != std::string::npos) add(view, *fact, hit);
  }
  return unless_empty(std::move(hit));
}

std::optional<Hit> roce_without_class(const View& view) {
  Hit hit;
  for (const Fact* fact : view.facts(LineKind::kIbCards)) {
    const bool is_roce = fact->value(0).find("/RoCE") != std::string::npos;
    if (!is_roce || !view.spans_nodes(fact->process) || view.uses_sockets(fact->process)) continue;
    // Either puts NCCL's traffic into a class, which the network may protect from loss.
    if (view.setting(fact->process, "IB_TC") != nullptr || view.setting(fact->process, "IB_SL") != nullptr)
      continue;
    add(view, *fact, hit);
  }
  if (hit.evidence.empty()) return std::nullopt;
  hit.needed_evidence = "counters of congestion and pause on the cards and switches";
  return hit;
}

std::optional<Hit> fused_cards(const View& view) {
  std::map<std::string, Camps> by_index;
  Hit hit;
  for (const Fact* fact : view.facts(LineKind::kVirtualCard)) {
    if (to_int(fact->value(3)) < 2) continue;
    Camp& camp = by_index[fact->value(0)][fact->value(1) + " of " + fact->value(2) + " Mb/s"];
    camp.processes.insert(fact->process);
    if (camp.proof == nullptr) camp.proof = fact;
  }
  for (const auto& [index, camps] : by_index) {
    std::set<std::string> speeds;
    for (const auto& [value, camp] : camps) speeds.insert(camp.proof->value(2));
    if (speeds.size() < 2) continue;
    hit.what = ", and have different speeds on different hosts";
    hit.severity = Severity::kWarning;
    add_camps(view, camps, hit);
  }
  for (const Fact* fact : view.facts(LineKind::kCardFusion)) {
    if (fact->value(0).find("failed") == std::string::npos &&
        fact->value(0).find("Failed") == std::string::npos)
      continue;
    if (hit.what.empty()) hit.what = ", and that failed for some";
    add(view, *fact, hit);
  }
  if (hit.evidence.empty()) {
    for (const auto& [index, camps] : by_index) add_camps(view, camps, hit);
  }
  return unless_empty(std::move(hit));
}

std::optional<Hit> few_cores(const View& view) {
  Hit hit;
  for (const Fact* fact : view.facts(LineKind::kAffinityEmpty)) {
    static constexpr std::string_view kOwn = "CPU affinity = ";
    const std::string text = fact->value(1);
    const size_t at = text.rfind(kOwn);
    if (at == std::string::npos) continue;
    const std::string cores = text.substr(at + kOwn.size(), text.find_first_of(").", at) - at - kOwn.size());
    if (!cores.empty() && cores.find_first_not_of("0123456789") == std::string::npos) add(view, *fact, hit);
  }
  if (!hit.evidence.empty()) {
    hit.what = "NCCL's threads may use only one core";
    return hit;
  }
  // Where many ranks of a host were on one core at once, they share it.
  std::map<std::string, std::map<std::string, std::vector<const Fact*>>> hosts;
  std::map<std::string, std::set<uint32_t>> processes_of;
  for (const Fact* fact : view.facts(LineKind::kProxyCore)) {
    if (!fact->first.text.ends_with(" CPU core " + fact->value(1))) continue;
    const std::string& host = view.model().processes[fact->process].host;
    const bool is_progress = fact->first.text.find("[Proxy Progress]") != std::string::npos;
    hosts[host][(is_progress ? "progress " : "service ") + fact->value(1)].push_back(fact);
    processes_of[host].insert(fact->process);
  }
  for (const auto& [host, cores] : hosts) {
    for (const auto& [core, facts] : cores) {
      std::set<uint32_t> processes;
      for (const Fact* fact : facts) processes.insert(fact->process);
      // The line says where a thread was when it began, and two of many may meet there by chance.
      if (processes.size() < 3 || processes.size() * 2 <= processes_of[host].size()) continue;
      hit.what = "the network threads of " + wording::count(processes.size(), "process") + " of " + host +
                 " run on one core";
      for (const Fact* fact : facts) add(view, *fact, hit);
    }
  }
  return unless_empty(std::move(hit));
}

// Closed by another process of the host before this one gave up.
std::optional<Hit> local_rank_gone(const View& view) {
  // The lines number ranks as the largest communicator does. A CUDA device has another number: where each
  // process sees one GPU, all have device 0.
  std::vector<int32_t> local_ranks(view.process_count(), -1);
  for (const CommPart& part : view.model().comms) {
    if (part.local_rank >= 0 && part.group == view.world(part.process))
      local_ranks[part.process] = part.local_rank;
  }
  Hit hit;
  for (const CommPart& part : view.model().comms) {
    const int32_t own = local_ranks[part.process];
    if (!part.aborted || own < 0) continue;
    for (const Fact* fact : view.facts(LineKind::kLocalRankGone, part.process)) {
      // The service thread also sees its own rank close.
      const bool is_other = to_int(fact->value(0)) != own;
      if (fact->first.file == part.abort.file && fact->first.line < part.abort.line && is_other)
        add(view, *fact, hit);
    }
  }
  return unless_empty(std::move(hit));
}

// Result 6 says that the cause is elsewhere.
std::optional<Hit> remote_result(const View& view) {
  Hit hit;
  for (uint32_t process = 0; process < view.process_count(); ++process) {
    const Fact* remote = nullptr;
    for (const Fact* fact : view.facts(LineKind::kErrorTrace, process)) {
      const bool has_site = fact->values.size() > 4;  // with the function in brackets
      if (fact->value(has_site ? 3 : 2) == "6" && remote == nullptr) remote = fact;
    }
    if (remote != nullptr) add(view, *remote, hit);
  }
  return unless_empty(std::move(hit));
}

std::optional<Hit> debug_left_on(const View& view) {
  constexpr uint64_t kMany = 10'000;
  Hit hit;
  for (uint32_t process = 0; process < view.process_count(); ++process) {
    const Fact* subsystems = view.setting(process, "DEBUG_SUBSYS");
    // COLL, which ALL includes, prints a line for each call.
    if (subsystems != nullptr && subsystems->value(1) == "ALL") add(view, *subsystems, hit);
  }
  if (view.model().collectives > kMany) {
    hit.what = ": " + wording::count(view.model().collectives, "line") + " of single calls";
    hit.evidence.push_back(wording::count(view.model().collectives, "line") + " of subsystem COLL");
  }
  return unless_empty(std::move(hit));
}

std::optional<Hit> holes(const View& view) {
  if (view.model().coverage.zero_bytes == 0) return std::nullopt;
  Hit hit;
  hit.what = wording::bytes(view.model().coverage.zero_bytes);
  hit.evidence.push_back(wording::bytes(view.model().coverage.zero_bytes) + " of zeros between the lines");
  return hit;
}

std::optional<Hit> profiler_absent(const View& view) {
  Hit hit;
  for (const Fact* fact : view.facts(LineKind::kProfilerAbsent)) {
    const Fact* setting = view.setting(fact->process, "PROFILER_PLUGIN");
    if (setting == nullptr || setting->value(1) == "none") continue;
    hit.what = setting->value(1);
    add(view, *fact, hit);
    prove(view, setting->first, hit);
  }
  return unless_empty(std::move(hit));
}

std::optional<Hit> collnet_unused(const View& view) {
  std::set<uint32_t> reporting;
  for (const Connection& row : view.model().connections) {
    // Who prints no connections may use CollNet unseen.
    if (row.transport == Transport::kNet) reporting.insert(row.process);
  }
  Hit hit;
  for (const Fact* fact : view.facts(LineKind::kCollNetFailed)) add(view, *fact, hit);
  for (uint32_t process = 0; process < view.process_count(); ++process) {
    const Fact* setting = view.setting(process, "COLLNET_ENABLE");
    const bool is_on = setting != nullptr && setting->value(1) == "1";
    if (is_on && reporting.contains(process) && view.first(LineKind::kCollNetConnection, process) == nullptr)
      add(view, *setting, hit);
  }
  return unless_empty(std::move(hit));
}

}  // namespace lockstep::analysis::log_rules
