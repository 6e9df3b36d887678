// SPDX-License-Identifier: Apache-2.0
// Gives each counter of a host one name, so that readings of today and of last week compare key by key.
// Between two readings a counter may rise, stop at its largest value, begin again behind it, or be cleared by
// somebody. The four look alike in the numbers; the widths in counters.def tell them apart.
#include "links/counters.h"

#include <algorithm>

namespace lockstep::links {
namespace {

struct Width {
  std::string_view name;
  int bits;
  bool wraps;
};
constexpr Width kWidths[] = {
#define NARROW(name, bits) {name, bits, false},
#define WRAPS(name, bits) {name, bits, true},
#include "links/counters.def"
#undef NARROW
#undef WRAPS
};

void add_all(Counters& counters, DeviceKind kind, const std::string& device,
             const std::map<std::string, uint64_t>& values) {
  for (const auto& [name, value] : values) counters[{kind, device, name}] = value;
}

}  // namespace

Counters counters_of(const Machine& machine) {
  Counters counters;
  for (const Nic& nic : machine.nics) {
    add_all(counters, DeviceKind::kNic, nic.name, nic.device_counters);
    for (const Port& port : nic.ports) {
      const std::string device = nic.name + "/" + std::to_string(port.number);
      add_all(counters, DeviceKind::kPort, device, port.counters);
      add_all(counters, DeviceKind::kPort, device, port.hw_counters);
    }
    for (const NetDevice& net : nic.net) {
      add_all(counters, DeviceKind::kNetDevice, net.name, net.statistics);
      if (net.carrier_changes)
        counters[{DeviceKind::kNetDevice, net.name, "carrier_changes"}] = *net.carrier_changes;
    }
  }
  for (const auto& [address, device] : machine.pci)
    for (const auto& [kind, count] : device.errors)
      counters[{DeviceKind::kPci, address, "aer_" + kind}] = count;
  for (const Gpu& gpu : machine.gpus) {
    add_all(counters, DeviceKind::kGpu, gpu.pci, gpu.counters);
    for (const GpuLink& link : gpu.links)
      for (const auto& [name, count] : link.errors)
        // A GPU's links are added up: rules and lines of evidence are per GPU.
        counters[{DeviceKind::kGpu, gpu.pci, "nvlink_" + name}] += count;
  }
  return counters;
}

Increase increase_of(std::string_view name, uint64_t start, uint64_t end) {
  const auto width = std::find_if(std::begin(kWidths), std::end(kWidths),
                                  [name](const Width& candidate) { return candidate.name == name; });
  const uint64_t largest = width == std::end(kWidths) ? UINT64_MAX : (uint64_t{1} << width->bits) - 1;
  Increase increase;
  if (end >= start) {
    increase.amount = end - start;
    increase.is_at_least = width != std::end(kWidths) && !width->wraps && end == largest;
  } else if (width != std::end(kWidths) && width->wraps && start > largest / 2 && start <= largest) {
    // From the upper half it most likely wrapped. From the lower half it would have had to count half of its
    // range between two readings, so it was cleared.
    increase.amount = end + (largest - start) + 1;
    increase.has_wrapped = true;
  } else {
    increase.amount = end;
    increase.was_reset = true;
  }
  return increase;
}

Increases increases(const Counters& before, const Counters& after) {
  Increases all;
  for (const auto& [key, end] : after)
    // A counter that is new has no start: its sum may be of months.
    if (const auto start = before.find(key); start != before.end())
      all[key] = increase_of(key.name, start->second, end);
  return all;
}

}  // namespace lockstep::links
