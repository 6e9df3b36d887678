// SPDX-License-Identifier: Apache-2.0
// What a GPU's links to its neighbours can carry at most. docs/summary.md names the sources.
#pragma once
#include <optional>
#include <string_view>

namespace lockstep::analysis::bandwidth {

struct Ceiling {
  double gbps;            // of all links of one GPU together, one direction, nominal, 1e9 bytes per second
  std::string_view link;  // "NVLink 4", "PCIe 4 x16"
};
// By the model's name, as the driver gives it, or its PCI number. Nothing for a model that is not known, and
// for one that may or may not have bridges between cards.
std::optional<Ceiling> ceiling(std::string_view gpu_model);

}  // namespace lockstep::analysis::bandwidth
