// SPDX-License-Identifier: Apache-2.0
#include "readers/link_samples/shown_counter.h"

#include <algorithm>
#include <iterator>

namespace lockstep::readers::link_samples {
namespace {

// Counters whose own name hides their unit. InfiniBand counts words of four bytes.
constexpr Shown kShown[] = {
    {"port_xmit_data", "sent", "bytes", 4},
    {"port_rcv_data", "received", "bytes", 4},
    {"tx_bytes", "sent", "bytes"},
    {"rx_bytes", "received", "bytes"},
    {"nvlink_tx_bytes", "nvlink_sent", "bytes"},
    {"nvlink_rx_bytes", "nvlink_received", "bytes"},
    {"rate", "rate", "Mb/s"},
    {"state", "state", "state"},
    {"throttle", "throttle", "bits"},
    {"sm_clock_mhz", "sm_clock", "MHz"},
    {"temperature_c", "temperature", "C"},
    {"power_mw", "power", "mW"},
};

}  // namespace

Shown shown(std::string_view counter) {
  const auto* const found = std::find_if(std::begin(kShown), std::end(kShown),
                                         [&](const Shown& row) { return row.counter == counter; });
  return found != std::end(kShown) ? *found : Shown{counter, counter, "count"};
}

}  // namespace lockstep::readers::link_samples
