// SPDX-License-Identifier: Apache-2.0
#include "capture/nccl/device.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

namespace lockstep::capture::nccl {
namespace {

// A library that the process has loaded already. It is looked for among the loaded ones by file name: to dlopen a name
// that is not among them would search the file system, for every communicator.
class LoadedLibrary {
 public:
  explicit LoadedLibrary(const char* name) {
    Search search{name, {}};
    if (dl_iterate_phdr(compare, &search) != 0) handle_ = dlopen(search.path, RTLD_LAZY | RTLD_NOLOAD);
  }
  ~LoadedLibrary() {
    if (handle_ != nullptr) dlclose(handle_);
  }
  LoadedLibrary(const LoadedLibrary&) = delete;
  LoadedLibrary& operator=(const LoadedLibrary&) = delete;
  explicit operator bool() const { return handle_ != nullptr; }
  template <class Function>
  Function function(const char* name) const {
    return reinterpret_cast<Function>(handle_ == nullptr ? nullptr : dlsym(handle_, name));
  }

 private:
  struct Search {
    const char* name;
    char path[1024];
  };
  static int compare(dl_phdr_info* object, size_t, void* data) {
    auto* search = static_cast<Search*>(data);
    const char* slash = strrchr(object->dlpi_name, '/');
    if (strcmp(slash != nullptr ? slash + 1 : object->dlpi_name, search->name) != 0) return 0;
    if (strlen(object->dlpi_name) >= sizeof search->path) return 0;
    strcpy(search->path, object->dlpi_name);
    return 1;
  }

  void* handle_ = nullptr;
};

bool read_cuda(CommInfo* comm) {
  LoadedLibrary cuda("libcuda.so.1");
  auto get_device = cuda.function<int (*)(int*)>("cuCtxGetDevice");
  int device = -1;
  if (get_device == nullptr || get_device(&device) != 0) return false;
  comm->device = device;
  if (auto get_pci = cuda.function<int (*)(char*, int, int)>("cuDeviceGetPCIBusId"))
    if (get_pci(comm->pci, sizeof comm->pci, device) != 0) comm->pci[0] = 0;
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

uint32_t read_nccl_version() {
  for (const char* name : {"libnccl.so.2", "librccl.so.1", "librccl.so"}) {
    LoadedLibrary library(name);
    auto get_version = library.function<int (*)(int*)>("ncclGetVersion");
    int version = 0;
    if (get_version != nullptr && get_version(&version) == 0 && version > 0)
      return static_cast<uint32_t>(version);
  }
  auto get_version = reinterpret_cast<int (*)(int*)>(dlsym(RTLD_DEFAULT, "ncclGetVersion"));
  int version = 0;
  return get_version != nullptr && get_version(&version) == 0 && version > 0 ? static_cast<uint32_t>(version)
                                                                             : 0;
}

format::GpuClock gpu_clock() {
  if (LoadedLibrary("librccl.so.1") || LoadedLibrary("libamdhip64.so") ||
      LoadedLibrary("libhsa-runtime64.so.1"))
    return format::GpuClock::kAmdTicks;
  return format::GpuClock::kNvidiaNs;
}

}  // namespace lockstep::capture::nccl
