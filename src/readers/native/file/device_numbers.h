// SPDX-License-Identifier: Apache-2.0
// What names the devices of a process, for the run-wide numbers of readers/common/device_plan.h. A device is
// known by its UUID, else by (boot, PCI address), else by (boot, local rank), else by the process that uses
// it.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "readers/common/device_plan.h"

namespace lockstep::readers::native {

// What one communicator or agent says of its device. Views of texts that outlive it.
struct DeviceIdentity {
  int32_t ordinal = -1;  // inside the process
  std::string_view pci, uuid;
  int32_t place = -1;  // among the GPUs of the host, if that is known apart
  bool physical() const { return !pci.empty() || !uuid.empty(); }
  bool known() const { return physical() || ordinal >= 0; }
};

// One object serves a whole run: add all processes, finish, then ask from any thread.
class DeviceNumbers {
 public:
  // How the devices of one process are named. `process` and `boot` are unique texts; `host_id` is
  // NCCL_HOSTID, which tells hosts apart that share a boot (simulated ones); `local_rank` and `node_rank` -1
  // if unknown; `visible` as in Process; `main` is the device of its first communicator that knows one.
  struct Process {
    std::string process, boot, host, host_id, visible;
    int32_t local_rank = -1, node_rank = -1;
    DeviceIdentity main;
  };
  // The process's main device; if the process does not communicate, it is numbered behind those of all hosts.
  void add_process(const Process& process, bool communicates);
  void add_device(const Process& process, const DeviceIdentity& device);
  void finish() { plan_.finish(); }

  // Run-wide numbers (`gpuId`); of a device that was not added, one behind all others.
  int32_t of_process(const Process& process);
  int32_t of_comm(const Process& process, const DeviceIdentity& device);

 private:
  common::DevicePlan plan_;
};

}  // namespace lockstep::readers::native
