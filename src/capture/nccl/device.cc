// SPDX-License-Identifier: Apache-2.0
// Asks the driver that the process has loaded for the current device; a driver is never loaded for the
// question (capture/core/host/loaded_library.h).
#include "capture/nccl/device.h"

#include "capture/core/host/loaded_library.h"

namespace lockstep::capture::nccl {
namespace {

bool read_cuda(CommInfo* comm) {
  LoadedLibrary cuda("libcuda.so.1");
  auto get_device = cuda.function<int (*)(int*)>("cuCtxGetDevice");
  int device = -1;
  // It fails without a current context: then no device is this thread's.
  if (get_device == nullptr || get_device(&device) != 0) return false;
  comm->device = device;
  if (auto get_pci = cuda.function<int (*)(char*, int, int)>("cuDeviceGetPCIBusId"))
    if (get_pci(comm->pci, sizeof comm->pci, device) != 0) comm->pci[0] = 0;
  // The second version tells the instances of a divided GPU (MIG) apart.
  auto get_uuid = cuda.function<int (*)(unsigned char*, int)>("cuDeviceGetUuid_v2");
  if (get_uuid == nullptr) get_uuid = cuda.function<int (*)(unsigned char*, int)>("cuDeviceGetUuid");
  if (get_uuid != nullptr) get_uuid(comm->uuid, device);
  return true;
}

bool read_hip(CommInfo* comm) {
  LoadedLibrary hip("libamdhip64.so");
  auto get_device = hip.function<int (*)(int*)>("hipGetDevice");
  int device = -1;
  if (get_device == nullptr || get_device(&device) != 0) return false;
  comm->device = device;
  if (auto get_pci = hip.function<int (*)(char*, int, int)>("hipDeviceGetPCIBusId"))
    if (get_pci(comm->pci, sizeof comm->pci, device) != 0) comm->pci[0] = 0;
  return true;
}

}  // namespace

void read_device(CommInfo* comm) {
  if (!read_cuda(comm)) read_hip(comm);
}

format::GpuClock gpu_clock() {
  if (LoadedLibrary("librccl.so.1") || LoadedLibrary("libamdhip64.so") ||
      LoadedLibrary("libhsa-runtime64.so.1"))
    return format::GpuClock::kAmdTicks;
  return format::GpuClock::kNvidiaNs;
}

}  // namespace lockstep::capture::nccl
