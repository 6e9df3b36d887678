// SPDX-License-Identifier: Apache-2.0
// Absolute thresholds differ by platform and age; siblings of one machine share both. So a cell is judged
// against its siblings first, and by the median of the others, which one slow sibling cannot move.
#include "links/judge/siblings.h"

#include <algorithm>
#include <cmath>

namespace lockstep::links {
namespace {

constexpr double kShare = 0.9;
constexpr double kSpreads = 3;
// One or two siblings show no spread: what they differ by must be more than a busy host makes of it.
constexpr double kShareOfFew = 0.75;
constexpr size_t kFew = 3;

const Gpu* gpu_at(const Machine& machine, const std::string& pci) {
  for (const Gpu& gpu : machine.gpus)
    if (gpu.pci == pci) return &gpu;
  return nullptr;
}

const PciDevice* device_at(const Machine& machine, const std::string& pci) {
  const auto found = machine.pci.find(pci);
  return found == machine.pci.end() ? nullptr : &found->second;
}

// Links of `from` that lead to `to`: all that are up where they lead to switches.
size_t links_between(const Machine& machine, const std::string& from, const std::string& to) {
  const Gpu* const gpu = gpu_at(machine, from);
  if (gpu == nullptr) return 0;
  size_t up = 0, direct = 0, to_gpus = 0;
  for (const GpuLink& link : gpu->links) {
    if (!link.is_up.value_or(false)) continue;
    ++up;
    direct += link.remote_pci == to ? 1 : 0;
    to_gpus += gpu_at(machine, link.remote_pci) != nullptr ? 1 : 0;
  }
  // Links to NVSwitches lead to every GPU of the host, so all of them serve the pair.
  return to_gpus > 0 ? direct : up;
}

// What NCCL reckons with for one NVLink, by its generation, known by the raw rate of a link in GB/s.
double modelled_link(double rate) {
  // The thresholds lie between the raw rates of generations; the results are NCCL's constants (topo.h).
  if (rate > 40) return 40.1;
  if (rate > 26) return 20.6;
  if (rate > 24) return 20;
  if (rate > 19) return 18;
  return 12;
}

std::optional<double> modelled_pcie(const PciDevice& device) {
  // 12, 24, 48, 96 GB/s for sixteen lanes of generations 3 to 6.
  const PciLink& link = device.most.gigatransfers ? device.most : device.now;
  if (!link.gigatransfers || !device.now.width) return std::nullopt;
  return *link.gigatransfers * 1.5 * *device.now.width / 16;
}

}  // namespace

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  // Linear in the number of values, as each cell is compared with all: sorting would cost more than
  // comparing.
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 != 0) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

double spread(const std::vector<double>& values, double center) {
  std::vector<double> distances;
  distances.reserve(values.size());
  for (const double value : values) distances.push_back(std::abs(value - center));
  return median(std::move(distances));
}

std::string path_words(const Cell& cell, const Machine& machine) {
  const bool from_host = cell.from.starts_with("host"), to_host = cell.to.starts_with("host");
  if (!from_host && !to_host) {
    if (links_between(machine, cell.from, cell.to) > 0) return "NVLink";
    const Gpu* const gpu = gpu_at(machine, cell.from);
    if (gpu != nullptr && gpu->vendor == "amd" && !gpu->links.empty()) return "xGMI";
    return std::string(path_text(path_between(machine, cell.from, cell.to)));
  }
  const std::string& host = from_host ? cell.from : cell.to;
  const PciDevice* const device = device_at(machine, from_host ? cell.to : cell.from);
  // A node alone says nothing: near and far are named only where the device's own node is known.
  if (host == "host" || device == nullptr || !device->numa_node) return "host memory";
  return host == "host:" + std::to_string(*device->numa_node) ? "near host memory" : "far host memory";
}

std::vector<std::string> paths_of(const std::vector<Cell>& cells, const Machine& machine) {
  std::vector<std::string> paths;
  paths.reserve(cells.size());
  for (const Cell& cell : cells) paths.push_back(path_words(cell, machine));
  return paths;
}

std::optional<Comparison> compare(const std::vector<Cell>& cells, size_t index,
                                  const std::vector<std::string>& paths) {
  std::vector<double> others;
  for (size_t i = 0; i < cells.size(); ++i)
    if (i != index && cells[i].kind == cells[index].kind && !cells[i].samples.empty() &&
        paths[i] == paths[index])
      others.push_back(cells[i].value());
  if (others.empty()) return std::nullopt;
  const double center = median(others);
  return Comparison{center, spread(others, center), others.size()};
}

bool stands_out(const Cell& cell, double value, const Comparison& siblings) {
  if (value <= 0 || siblings.siblings <= 0) return false;
  // Both must hold, a share and a multiple of the spread: a wide spread makes any share ordinary, and a
  // narrow one makes small differences look large.
  const double share = siblings.count < kFew ? kShareOfFew : kShare;
  if (is_latency(cell.kind))
    return value > siblings.siblings / share && value > siblings.siblings + kSpreads * siblings.spread;
  return value < siblings.siblings * share && value < siblings.siblings - kSpreads * siblings.spread;
}

std::vector<size_t> standing_out(const std::vector<Cell>& cells, const Machine& machine) {
  std::vector<size_t> found;
  const std::vector<std::string> paths = paths_of(cells, machine);
  for (size_t i = 0; i < cells.size(); ++i) {
    const auto siblings = compare(cells, i, paths);
    const auto modelled = modelled_rate(cells[i], machine);
    if ((siblings && stands_out(cells[i], cells[i].value(), *siblings)) ||
        (modelled && cells[i].value() > 0 && cells[i].value() < kShare * *modelled))
      found.push_back(i);
  }
  return found;
}

std::optional<double> modelled_rate(const Cell& cell, const Machine& machine) {
  switch (cell.kind) {
    case CellKind::kWrite:
    case CellKind::kRead:
    case CellKind::kBothWays: {
      const size_t links = links_between(machine, cell.from, cell.to);
      const Gpu* const gpu = gpu_at(machine, cell.from);
      if (links == 0 || gpu == nullptr || !gpu->link_rate) return std::nullopt;
      return static_cast<double>(links) * modelled_link(*gpu->link_rate);
    }
    case CellKind::kToGpu:
    case CellKind::kToHost: {
      if (path_words(cell, machine) == "far host memory") return std::nullopt;
      const PciDevice* const device = device_at(machine, cell.from.starts_with("host") ? cell.to : cell.from);
      if (device == nullptr) return std::nullopt;
      return modelled_pcie(*device);
    }
    default:
      return std::nullopt;
  }
}

}  // namespace lockstep::links
