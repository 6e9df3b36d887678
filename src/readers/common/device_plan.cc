// SPDX-License-Identifier: Apache-2.0
// Numbers the devices of a run so that a number says host and place: each host has a block of numbers, of the
// size that the largest host needs. Ordinals are used only where they differ between the ranks of a host;
// where every rank calls its device 0 they say nothing, and local ranks or PCI addresses order the devices.
#include "readers/common/device_plan.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <set>
#include <tuple>

namespace lockstep::readers::common {
namespace {

constexpr int32_t kLeastBlock = 8;
// Numbers beyond these are a damaged file's.
constexpr int32_t kMostPlaces = 1024, kMostNodes = 1 << 17;

bool are_places(const std::vector<int32_t>& numbers) {
  const std::set<int32_t> distinct(numbers.begin(), numbers.end());
  return distinct.size() == numbers.size() && *distinct.begin() >= 0 && *distinct.rbegin() < kMostPlaces;
}

}  // namespace

void DevicePlan::add(const PlannedDevice& device) {
  const auto [at, is_new] = rows_.try_emplace(device.key, planned_.size());
  if (is_new) {
    planned_.push_back({device});
    return;
  }
  Planned& known = planned_[at->second];
  PlannedDevice& into = known.device;
  // Two ordinals for one device cannot both be the host's number, so neither counts.
  known.contradictory =
      known.contradictory || (into.ordinal >= 0 && device.ordinal >= 0 && into.ordinal != device.ordinal);
  into.ordinal = std::max(into.ordinal, device.ordinal);
  if (into.local_rank < 0 || (device.local_rank >= 0 && device.local_rank < into.local_rank))
    into.local_rank = device.local_rank;
  if (into.node_rank < 0) into.node_rank = device.node_rank;
  if (into.pci.empty()) into.pci = device.pci;
  into.communicates = into.communicates || device.communicates;
}

std::vector<int32_t> DevicePlan::places(const Rows& rows) const {
  std::vector<int32_t> ordinals, local_ranks;
  for (const size_t row : rows) {
    ordinals.push_back(planned_[row].contradictory ? -1 : planned_[row].device.ordinal);
    local_ranks.push_back(planned_[row].device.local_rank);
  }
  if (are_places(ordinals)) return ordinals;
  if (are_places(local_ranks)) return local_ranks;
  std::vector<size_t> order(rows.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const std::string &x = planned_[rows[a]].device.pci, &y = planned_[rows[b]].device.pci;
    // Devices without an address come last, in the order of the files.
    return std::tuple(x.empty(), x) < std::tuple(y.empty(), y);
  });
  std::vector<int32_t> places(rows.size());
  for (size_t i = 0; i < order.size(); ++i) places[order[i]] = static_cast<int32_t>(i);
  return places;
}

std::vector<int32_t> DevicePlan::host_numbers(const std::map<std::string, Rows>& hosts) const {
  // Node ranks only where each host names one and no two the same: else two hosts would share a block.
  std::vector<int32_t> by_name, by_node;
  for (const auto& [host, rows] : hosts) {
    by_name.push_back(static_cast<int32_t>(by_name.size()));
    std::set<int32_t> nodes;
    for (const size_t row : rows) nodes.insert(planned_[row].device.node_rank);
    by_node.push_back(nodes.size() == 1 ? *nodes.begin() : -1);
  }
  const std::set<int32_t> distinct(by_node.begin(), by_node.end());
  const bool all_named = distinct.size() == by_node.size() && !distinct.empty() && *distinct.begin() >= 0 &&
                         *distinct.rbegin() < kMostNodes;
  return all_named ? by_node : by_name;
}

void DevicePlan::finish() {
  std::map<std::string, Rows> hosts;
  for (size_t row = 0; row < planned_.size(); ++row) {
    if (planned_[row].device.communicates) hosts[planned_[row].device.host].push_back(row);
  }
  const std::vector<int32_t> host_number = host_numbers(hosts);
  std::vector<std::vector<int32_t>> place;
  int32_t most = kLeastBlock - 1;
  for (const auto& [host, rows] : hosts) {
    place.push_back(places(rows));
    most = std::max(most, *std::max_element(place.back().begin(), place.back().end()));
  }
  const auto block = static_cast<int32_t>(std::bit_ceil(static_cast<uint32_t>(most) + 1));
  size_t at = 0;
  for (const auto& [host, rows] : hosts) {
    const int32_t first = host_number[at] * block;
    for (size_t i = 0; i < rows.size(); ++i)
      numbers_.emplace(planned_[rows[i]].device.key, first + place[at][i]);
    next_ = std::max(next_, first + block);
    ++at;
  }
  for (const Planned& planned : planned_) {
    if (!planned.device.communicates) numbers_.emplace(planned.device.key, next_++);
  }
}

int32_t DevicePlan::number(const std::string& key) {
  std::lock_guard lock(mutex_);
  const auto [at, is_new] = numbers_.try_emplace(key, next_);
  next_ += is_new ? 1 : 0;
  return at->second;
}

}  // namespace lockstep::readers::common
