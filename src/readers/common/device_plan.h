// SPDX-License-Identifier: Apache-2.0
// Run-wide device numbers (gpu, gpuId): equal for one physical device, distinct for two, and the same whether
// or not a file of the run is missing. Each host has a block of numbers, eight or, where a host has a higher
// number, the next power of two; within it a device has the number that its host gives it, else its local
// rank, else its place by PCI address. So gpuId = block x host + GPU. Hosts count by the launcher's node
// rank, where each names its own, else by name. Processes that communicate with nobody (launchers, helpers)
// come behind all blocks.
#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace lockstep::readers::common {

struct PlannedDevice {
  std::string key;   // equal for one physical device, distinct for two
  std::string host;  // distinct for two hosts; in the order of these, hosts are counted
  int32_t node_rank = -1, local_rank = -1;
  int32_t ordinal = -1;  // as the host counts it
  std::string pci{};
  bool communicates = true;
};

// Plan all devices, then ask for their numbers: from any thread.
class DevicePlan {
 public:
  // Several of one key are one device; what they say of it is put together.
  void add(const PlannedDevice& device);
  void finish();
  // One that was not planned comes behind all others, in the order of asking.
  int32_t number(const std::string& key);

 private:
  struct Planned {
    PlannedDevice device;
    bool contradictory = false;  // two ordinals
  };
  using Rows = std::vector<size_t>;  // of planned_

  // By host, in order of its devices' rows: their places in its block.
  std::vector<int32_t> places(const Rows& rows) const;
  std::vector<int32_t> host_numbers(const std::map<std::string, Rows>& hosts) const;

  std::vector<Planned> planned_;
  std::map<std::string, size_t> rows_;  // by key
  std::mutex mutex_;
  std::map<std::string, int32_t> numbers_;
  int32_t next_ = 0;
};

}  // namespace lockstep::readers::common
