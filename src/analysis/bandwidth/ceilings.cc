// SPDX-License-Identifier: Apache-2.0
// Knows the nominal rate of the links of each GPU model, by its name or its PCI id. A model that is not
// listed has no ceiling: a guess would make a healthy link look slow.
#include "analysis/bandwidth/ceilings.h"

namespace lockstep::analysis::bandwidth {
namespace {

constexpr Ceiling kNvlink1{80, "NVLink 1"}, kNvlink2{150, "NVLink 2"}, kNvlink3{300, "NVLink 3"},
    kNvlink4{450, "NVLink 4"}, kNvlink5{900, "NVLink 5"};
constexpr Ceiling kPcie3{15.75, "PCIe 3 x16"}, kPcie4{31.5, "PCIe 4 x16"};

struct Model {
  std::string_view name;  // without the maker
  Ceiling ceiling;
};
// Names as the driver's files under /proc have them, else vendor and device of PCI.
constexpr Model kModels[] = {
    {"P100-SXM2-16GB", kNvlink1},
    {"V100-SXM2-16GB", kNvlink2},
    {"V100-SXM2-32GB", kNvlink2},
    {"V100-SXM3-32GB", kNvlink2},
    {"A100-SXM4-40GB", kNvlink3},
    {"A100-SXM4-80GB", kNvlink3},
    {"H100 80GB HBM3", kNvlink4},
    {"H200", kNvlink4},
    {"B200", kNvlink5},
    {"GB200", kNvlink5},
    {"T4", kPcie3},
    {"A10", kPcie4},
    {"L4", kPcie4},
    {"L40", kPcie4},
    {"L40S", kPcie4},
    {"PCI 10de:15f9", kNvlink1},
    {"PCI 10de:1db1", kNvlink2},
    {"PCI 10de:1db5", kNvlink2},
    {"PCI 10de:20b0", kNvlink3},
    {"PCI 10de:20b2", kNvlink3},
    {"PCI 10de:2330", kNvlink4},
    {"PCI 10de:2335", kNvlink4},
    {"PCI 10de:2901", kNvlink5},
};

}  // namespace

std::optional<Ceiling> ceiling(std::string_view gpu_model) {
  for (std::string_view maker : {"NVIDIA ", "Tesla "}) {
    if (gpu_model.starts_with(maker)) gpu_model.remove_prefix(maker.size());
  }
  for (const Model& model : kModels) {
    if (model.name == gpu_model) return model.ceiling;
  }
  return std::nullopt;
}

}  // namespace lockstep::analysis::bandwidth
