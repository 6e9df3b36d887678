// SPDX-License-Identifier: Apache-2.0
// Decides which of all processes' devices are one GPU. A UUID or a PCI address of a boot is proof. Without
// either a process's main device is known by its local rank on its host, since ranks of one host have GPUs of
// their own; and any other device is the process's alone. Ordinals do not compare between processes:
// CUDA_VISIBLE_DEVICES renumbers them.
#include "readers/native/file/device_numbers.h"

#include "model/names/who.h"

namespace lockstep::readers::native {
namespace {

using Process = DeviceNumbers::Process;

// A UUID is unique in the world, a PCI address on its host alone.
std::string physical_key(const std::string& boot, const DeviceIdentity& device) {
  if (!device.uuid.empty()) return "uuid " + std::string(device.uuid);
  return "pci " + boot + ' ' + std::string(device.pci);
}

std::string main_key(const Process& process) {
  if (process.main.physical()) return physical_key(process.boot, process.main);
  if (process.local_rank >= 0)
    return "local " + process.boot + ' ' + process.host_id + ' ' + std::to_string(process.local_rank);
  return "process " + process.process;
}

// A communicator that knows no ordinal is taken to be on the main device.
bool is_main(const Process& process, const DeviceIdentity& device) {
  return !device.physical() && (device.ordinal < 0 || device.ordinal == process.main.ordinal);
}

std::string key_of(const Process& process, const DeviceIdentity& device) {
  if (device.physical()) return physical_key(process.boot, device);
  if (is_main(process, device)) return main_key(process);
  return "process " + process.process + " device " + std::to_string(device.ordinal);
}

common::PlannedDevice planned(const Process& process, const DeviceIdentity& device) {
  const std::string& name = process.host_id.empty() ? process.host : process.host_id;
  return {.key = key_of(process, device),
          .host = name + ' ' + process.boot,
          .node_rank = process.node_rank,
          .local_rank = -1,
          .ordinal = device.place >= 0 ? device.place : model::host_device(device.ordinal, process.visible),
          .pci = std::string(device.pci)};
}

}  // namespace

void DeviceNumbers::add_process(const Process& process, bool communicates) {
  common::PlannedDevice main = planned(process, process.main);
  main.key = main_key(process);
  main.local_rank = process.local_rank;
  main.communicates = communicates;
  plan_.add(main);
}

void DeviceNumbers::add_device(const Process& process, const DeviceIdentity& device) {
  plan_.add(planned(process, device));
}

int32_t DeviceNumbers::of_process(const Process& process) { return plan_.number(main_key(process)); }

int32_t DeviceNumbers::of_comm(const Process& process, const DeviceIdentity& device) {
  return plan_.number(key_of(process, device));
}

}  // namespace lockstep::readers::native
