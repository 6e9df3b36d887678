// SPDX-License-Identifier: Apache-2.0
// A program that uses CUDA, without a GPU: linked with a libcupti (sim/cupti), as PyTorch is, and started as CUDA's driver
// starts what CUDA_INJECTION64_PATH names. Prints what its own profiler saw of its kernels.
//
//   lockstep-e2e-cuda-job [kernels N] [profile N] [sleep MS] [kill] ...
#include <dlfcn.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "capture/cuda/cupti_abi.h"
#include "sim/cupti/fake_cupti.h"

namespace cupti = lockstep::capture::cuda::cupti;

extern "C" {
cupti::Result cuptiActivityRegisterCallbacks(cupti::BufferRequested, cupti::BufferCompleted);
cupti::Result cuptiActivityEnable(uint32_t);
cupti::Result cuptiActivityDisable(uint32_t);
cupti::Result cuptiActivityFlushAll(uint32_t);
cupti::Result cuptiActivityGetNextRecord(uint8_t*, size_t, uint8_t**);
extern const lockstep::sim::FakeCupti fake_cupti_functions;
}

namespace {

int g_seen = 0;

void requested(uint8_t** buffer, size_t* bytes, size_t* most) {
  *buffer = new uint8_t[65536];
  *bytes = 65536;
  *most = 0;
}
void completed(void*, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  uint8_t* at = nullptr;
  while (valid > 0 && cuptiActivityGetNextRecord(buffer, valid, &at) == cupti::kSuccess) ++g_seen;
  delete[] buffer;
}

void run_kernels(int count) {
  for (int i = 0; i < count; ++i) {
    const lockstep::sim::FakeLaunch launch{.name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
                                           .driver_call = cupti::kLaunchKernelEx};
    const uint32_t correlation = fake_cupti_functions.launch(&launch);
    const uint64_t start = fake_cupti_functions.now();
    fake_cupti_functions.finish(correlation, start, start + 20000);
  }
}

void start_cuda() {
  const char* path = getenv("CUDA_INJECTION64_PATH");
  if (path == nullptr) return;
  void* library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
  auto* start =
      library == nullptr ? nullptr : reinterpret_cast<int (*)()>(dlsym(library, "InitializeInjection"));
  if (start != nullptr) start();
}

}  // namespace

int main(int argc, char** argv) {
  start_cuda();
  for (int i = 1; i < argc; ++i) {
    const char* word = argv[i];
    if (strcmp(word, "kill") == 0) raise(SIGKILL);
    const int number = i + 1 < argc ? atoi(argv[++i]) : 0;
    if (strcmp(word, "kernels") == 0) run_kernels(number);
    if (strcmp(word, "sleep") == 0) usleep(static_cast<unsigned>(number) * 1000);
    if (strcmp(word, "profile") == 0) {
      g_seen = 0;
      cuptiActivityRegisterCallbacks(requested, completed);
      cuptiActivityEnable(cupti::kConcurrentKernel);
      run_kernels(number);
      cuptiActivityFlushAll(cupti::kFlushForced);
      cuptiActivityDisable(cupti::kConcurrentKernel);
      printf("profiled %d kernels, saw %d\n", number, g_seen);
    }
  }
  return 0;
}
