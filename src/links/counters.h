// SPDX-License-Identifier: Apache-2.0
// Counters of a host's links by one name each, and what became of them between two readings. Raw values as
// the hardware has them; their widths and units are in links/counters.def.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "links/machine.h"

namespace lockstep::links {

// A port of an RDMA card, the card itself, a network interface, a device of PCI, a GPU.
enum class DeviceKind : uint8_t { kPort, kNic, kNetDevice, kPci, kGpu };

// Equal in every reading of a host for as long as the device keeps its name or address.
struct CounterKey {
  DeviceKind kind = DeviceKind::kPort;
  std::string device;  // "mlx5_0/1", "eth0", "0000:1b:00.0"
  std::string name;    // "link_downed"
  auto operator<=>(const CounterKey&) const = default;
};

using Counters = std::map<CounterKey, uint64_t>;
// Of all devices; what a device does not count is absent.
Counters counters_of(const Machine& machine);

struct Increase {
  uint64_t amount = 0;
  bool was_reset = false;    // it fell: `amount` is what it has counted since
  bool is_at_least = false;  // it stands at its largest value and counts no further
  bool has_wrapped = false;  // it began again at zero behind its largest value, which `amount` allows for
};
// Of one counter by its name, from one reading to the next.
Increase increase_of(std::string_view name, uint64_t start, uint64_t end);

using Increases = std::map<CounterKey, Increase>;
// Of counters that both readings have.
Increases increases(const Counters& before, const Counters& after);

}  // namespace lockstep::links
