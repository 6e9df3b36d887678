// SPDX-License-Identifier: Apache-2.0
// Slower ways than the hardware has. Each rule needs a line that says which way NCCL took: what a log does
// not print is no evidence. Releases say it in different lines, so a rule may ask several kinds of line, and
// what was done counts more than what a card could do.
#include <algorithm>
#include <map>

#include "analysis/log_rules/rules.h"

namespace lockstep::analysis::log_rules {
namespace {

std::optional<Hit> unless_nobody(Hit hit) {
  if (hit.processes.empty()) return std::nullopt;
  return hit;
}

// The first connection of each process over a transport.
std::map<uint32_t, const Connection*> connections(const View& view, Transport transport) {
  std::map<uint32_t, const Connection*> found;
  for (const Connection& row : view.model().connections) {
    if (row.transport == transport) found.try_emplace(row.process, &row);
  }
  return found;
}

// NCCL takes 0 for a switch that is off.
bool is_set(const Fact* setting) { return setting != nullptr && setting->value(1) != "0"; }

// P2P_LEVEL as a name, or as the number that older releases took.
const Fact* p2p_switched_off(const View& view, uint32_t process) {
  const Fact* setting = view.setting(process, "P2P_DISABLE");
  if (is_set(setting)) return setting;
  setting = view.setting(process, "P2P_LEVEL");
  return setting != nullptr && (setting->value(1) == "LOC" || setting->value(1) == "0") ? setting : nullptr;
}

enum class Gdr { kUnknown, kOn, kOff };

// Cards speak for themselves until 2.30; connections always do.
std::map<uint32_t, Gdr> gdr_by_process(const View& view) {
  std::map<uint32_t, Gdr> found;
  for (const Fact* fact : view.facts(LineKind::kCardGdr)) {
    if (view.uses_sockets(fact->process) || fact->value(0) == "Socket") continue;
    if (fact->value(1) == "Enabled") found[fact->process] = Gdr::kOn;
    // A process may use several cards: one that has it suffices, whatever the others say.
    if (fact->value(1) == "Disabled") found.try_emplace(fact->process, Gdr::kOff);
  }
  std::map<uint32_t, Gdr> of_connections;
  for (const Connection& row : view.model().connections) {
    // Libfabric's cards have a way of their own, which old releases do not print.
    const bool is_reported = !row.via.starts_with("NET/Socket") && !row.via.starts_with("NET/AWS") &&
                             !row.via.starts_with("NET/OFI") && !row.via.starts_with("NET/Libfabric");
    if (row.transport != Transport::kNet || view.uses_sockets(row.process) || (!row.gdr && !is_reported))
      continue;
    Gdr& gdr = of_connections.try_emplace(row.process, Gdr::kOff).first->second;
    if (row.gdr) gdr = Gdr::kOn;
  }
  // A card says what is possible, a connection what was done.
  for (const auto& [process, gdr] : of_connections) found[process] = gdr;
  // 1 is how it starts; 0 says that a ring goes over a card without it.
  for (const Fact* fact : view.facts(LineKind::kRingsConnected)) {
    const bool is_off =
        fact->value(1) == "0" && view.spans_nodes(fact->process) && !view.uses_sockets(fact->process);
    if (is_off) found.try_emplace(fact->process, Gdr::kOff);
  }
  return found;
}

void add_gdr_proof(const View& view, uint32_t process, const Connection* row, Hit& hit) {
  hit.processes.insert(process);
  if (row != nullptr) prove(view, row->first, hit);
  for (const Fact* fact : view.facts(LineKind::kCardGdr, process)) {
    if (fact->value(1) == "Disabled") prove(view, fact->first, hit);
  }
  if (const Fact* rings = view.first(LineKind::kRingsConnected, process)) prove(view, rings->first, hit);
}

std::optional<Hit> without_gdr(const View& view, bool uneven) {
  const auto states = gdr_by_process(view);
  // Two findings share this walk: either nobody has it, or some lack what others have. Never both.
  const bool on_somewhere =
      std::any_of(states.begin(), states.end(), [](const auto& state) { return state.second == Gdr::kOn; });
  if (on_somewhere != uneven) return std::nullopt;
  Hit hit;
  const auto over_network = connections(view, Transport::kNet);
  for (const auto& [process, gdr] : states) {
    if (gdr != Gdr::kOff) continue;
    const auto row = over_network.find(process);
    add_gdr_proof(view, process, row == over_network.end() ? nullptr : row->second, hit);
  }
  return unless_nobody(std::move(hit));
}

}  // namespace

std::optional<Hit> socket_fallback(const View& view) {
  Hit hit;
  const auto over_network = connections(view, Transport::kNet);
  for (uint32_t process = 0; process < view.process_count(); ++process) {
    if (!view.uses_sockets(process) || !view.spans_nodes(process)) continue;
    const Fact* absent = view.first(LineKind::kIbAbsent, process);
    const Fact* disabled = view.setting(process, "IB_DISABLE");
    if (hit.processes.empty()) {
      hit.what = is_set(disabled)    ? ": NCCL_IB_DISABLE is set"
                 : absent != nullptr ? ": no InfiniBand or RoCE card was found"
                                     : "";
      if (is_set(disabled)) prove(view, disabled->first, hit);
      if (absent != nullptr) prove(view, absent->first, hit);
    }
    const Fact* network = view.first(LineKind::kNetworkUsed, process);
    const auto row = over_network.find(process);
    hit.processes.insert(process);
    if (network != nullptr) prove(view, network->first, hit);
    // One connection is proof enough, except for processes whose log began behind the setup.
    if (row != over_network.end() && (hit.processes.size() == 1 || network == nullptr))
      prove(view, row->second->first, hit);
  }
  return unless_nobody(std::move(hit));
}

std::optional<Hit> plugin_absent(const View& view) {
  Hit hit;
  for (const Fact* fact : view.facts(LineKind::kPluginAbsent)) {
    const Fact* setting = view.setting(fact->process, "NET_PLUGIN");
    // NCCL looks for a plugin in every run. That there is none matters only to who named one.
    if (setting == nullptr || setting->value(1) == "none") continue;
    hit.what = setting->value(1);
    prove(view, setting->first, hit);
    add(view, *fact, hit);
  }
  return unless_nobody(std::move(hit));
}

std::optional<Hit> p2p_disabled(const View& view) {
  Hit hit;
  const auto over_memory = connections(view, Transport::kShm);
  for (uint32_t process = 0; process < view.process_count(); ++process) {
    const Fact* setting = p2p_switched_off(view, process);
    if (setting == nullptr) continue;
    const auto row = over_memory.find(process);
    if (hit.what.empty() && row != over_memory.end())
      hit.what = ", so data within the host goes through host memory";
    add(view, *setting, hit);
    if (row != over_memory.end() && hit.processes.size() == 1) prove(view, row->second->first, hit);
  }
  return unless_nobody(std::move(hit));
}

std::optional<Hit> shared_memory_despite_nvlink(const View& view) {
  Hit hit;
  for (const auto& [process, row] : connections(view, Transport::kShm)) {
    const Fact* link = view.first(LineKind::kNvLink, process);
    if (link == nullptr) link = view.first(LineKind::kXgmiLink, process);
    if (link == nullptr || p2p_switched_off(view, process) != nullptr) continue;
    // NCCL's own reason has a row of its own in rules.def.
    if (view.first(LineKind::kPeerRefused, process) != nullptr) continue;
    hit.processes.insert(process);
    prove(view, row->first, hit);
    if (hit.processes.size() == 1) prove(view, link->first, hit);
    const Fact* direct = view.first(LineKind::kDirectP2p, process);
    if (direct != nullptr && direct->value(0) == "0") prove(view, direct->first, hit);
    if (hit.what.empty())
      hit.what = std::string(link->kind == LineKind::kXgmiLink ? "xGMI" : "NVLink") + " (rank " +
                 std::to_string(row->from) + " to rank " + std::to_string(row->to) + ')';
  }
  return unless_nobody(std::move(hit));
}

std::optional<Hit> gdr_off(const View& view) { return without_gdr(view, false); }
std::optional<Hit> gdr_uneven(const View& view) { return without_gdr(view, true); }

std::optional<Hit> nvls_disabled(const View& view) {
  Hit hit;
  for (uint32_t process = 0; process < view.process_count(); ++process) {
    const Fact* setting = view.setting(process, "NVLS_ENABLE");
    if (setting != nullptr && setting->value(1) == "0") add(view, *setting, hit);
  }
  return unless_nobody(std::move(hit));
}

}  // namespace lockstep::analysis::log_rules
