// SPDX-License-Identifier: Apache-2.0
// How findings on links name things, and how they are put together.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "analysis/finding.h"
#include "links/machine.h"

namespace lockstep::links {

// "GPU 3 (0000:1b:00.0)", "mlx5_0 (0000:17:00.0)", else the address.
std::string device_words(const Machine& machine, const std::string& pci);
// "GPU 0", "host memory", "host memory of node 1"
std::string place_words(const Machine& machine, const std::string& place);

// "16.0 GT/s x8"
std::string link_words(const PciLink& link);

// Of nvmlClocksThrottleReasons, what slows a GPU down for trouble's sake: "hardware slowdown, ..."; empty:
// nothing of that. A power cap by software (0x4) is on every busy GPU.
std::string throttle_words(uint64_t reasons);

analysis::Finding& add(std::vector<analysis::Finding>& findings, analysis::FindingId id,
                       std::string statement, const std::string& host, std::string advice);

}  // namespace lockstep::links
