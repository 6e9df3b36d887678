// SPDX-License-Identifier: Apache-2.0
#include "links/judge/state_rules.h"

#include <algorithm>
#include <cstdint>

#include "base/text/units.h"
#include "base/text/wording.h"

namespace lockstep::links {

std::optional<std::string> inactive_words(const Nic& nic, const Port& port) {
  // The port of an EFA always calls itself active.
  if (nic.is_efa || ((port.state.empty() || port.state == "ACTIVE") &&
                     (port.physical_state.empty() || port.physical_state == "LinkUp")))
    return std::nullopt;
  return "is not active: " + wording::name(port.state) +
         (port.physical_state.empty() ? "" : ", " + wording::name(port.physical_state));
}

std::optional<std::string> slow_words(const Machine& machine, const Nic& nic, const Port& port) {
  if (nic.is_efa || port.state != "ACTIVE" || inactive_words(nic, port) || !port.gigabits)
    return std::nullopt;
  double most = 0;
  for (const Nic& other : machine.nics)
    for (const Port& sibling : other.ports)
      if ((other.name == nic.name || (!nic.type.empty() && other.type == nic.type)) &&
          sibling.state == "ACTIVE")
        most = std::max(most, sibling.gigabits.value_or(0));
  if (*port.gigabits >= most) return std::nullopt;
  return "runs at " + format_decimal(*port.gigabits, 0) + " Gb/s, its siblings at up to " +
         format_decimal(most, 0);
}

size_t down_links(const Gpu& gpu) {
  return static_cast<size_t>(std::count_if(gpu.links.begin(), gpu.links.end(),
                                           [](const GpuLink& link) { return link.is_up == false; }));
}

size_t unconnected_links(const Machine& machine) {
  size_t least = SIZE_MAX;
  for (const Gpu& gpu : machine.gpus)
    if (!gpu.links.empty()) least = std::min(least, down_links(gpu));
  return least;
}

}  // namespace lockstep::links
