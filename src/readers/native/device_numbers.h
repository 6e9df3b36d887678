// SPDX-License-Identifier: Apache-2.0
// Run-wide device numbers: equal for one physical device, distinct for two, also when every rank sees its GPU as
// device 0. A device is known by its UUID, else by (boot, PCI address), else by (boot, local rank), else by the process
// that uses it. Numbers are handed out in the order of asking; one object serves a whole run, and any thread.
#pragma once
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

namespace lockstep::readers::native {

struct DeviceIdentity {
  int32_t ordinal = -1;  // inside the process
  std::string_view pci, uuid;
  bool physical() const { return !pci.empty() || !uuid.empty(); }
  bool known() const { return physical() || ordinal >= 0; }
};

class DeviceNumbers {
 public:
  // How the devices of one process are named. `process` and `boot` are unique texts; `host_id` is NCCL_HOSTID, which tells
  // hosts apart that share a boot (simulated ones); `local_rank` -1 if unknown;
  // `main` is the device of its first communicator that knows one.
  struct Process {
    std::string process, boot, host_id;
    int32_t local_rank = -1;
    DeviceIdentity main;
  };
  int32_t of_process(const Process& process);
  int32_t of_comm(const Process& process, const DeviceIdentity& device);

 private:
  int32_t number(std::string key);
  std::mutex mutex_;
  std::unordered_map<std::string, int32_t> numbers_;
};

}  // namespace lockstep::readers::native
