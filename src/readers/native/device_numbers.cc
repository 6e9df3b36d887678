// SPDX-License-Identifier: Apache-2.0
#include "readers/native/device_numbers.h"

namespace lockstep::readers::native {
namespace {

std::string physical_key(const std::string& boot, const DeviceIdentity& device) {
  if (!device.uuid.empty()) return "uuid " + std::string(device.uuid);
  return "pci " + boot + ' ' + std::string(device.pci);
}

}  // namespace

int32_t DeviceNumbers::of_process(const Process& process) {
  if (process.main.physical()) return number(physical_key(process.boot, process.main));
  if (process.local_rank >= 0) {
    return number("local " + process.boot + ' ' + process.host_id + ' ' + std::to_string(process.local_rank));
  }
  return number("process " + process.process);
}

int32_t DeviceNumbers::of_comm(const Process& process, const DeviceIdentity& device) {
  if (device.physical()) return number(physical_key(process.boot, device));
  if (device.ordinal < 0 || device.ordinal == process.main.ordinal) return of_process(process);
  return number("process " + process.process + " device " + std::to_string(device.ordinal));
}

int32_t DeviceNumbers::number(std::string key) {
  std::lock_guard lock(mutex_);
  return numbers_.try_emplace(std::move(key), static_cast<int32_t>(numbers_.size())).first->second;
}

}  // namespace lockstep::readers::native
