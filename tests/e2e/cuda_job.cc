// SPDX-License-Identifier: Apache-2.0
// A program that uses CUDA, without a GPU: linked with a libcupti (sim/cupti), as PyTorch is, and started as
// CUDA's driver starts what CUDA_INJECTION64_PATH names; and marks ranges as a program with NVTX in it.
// Prints what its own profiler saw of its kernels.
//
//   lockstep-e2e-cuda-job [kernels N] [profile N] [sleep MS] [ranges] [kill] ...
//
// `ranges`: some of each kind, that of a library's domain, and one of NCCL's.
#include <dlfcn.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "capture/cuda/cupti_abi.h"
#include "sim/cupti/fake_cupti.h"
#include "tests/support/nvtx.h"

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

using Nvtx = lockstep::test::NvtxCopy<0>;
using OfLibrary = lockstep::test::NvtxCopy<1>;

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

void mark_ranges() {
  Nvtx::initialize();
  OfLibrary::initialize();
  void* loader = OfLibrary::domain("loader");
  void* nccl = OfLibrary::domain("NCCL");
  const uint64_t prefetch = OfLibrary::start(loader, OfLibrary::named(L"pr\u00e9fetch"));
  Nvtx::push("step");
  Nvtx::push("forward");
  OfLibrary::push(nccl, OfLibrary::named("ncclAllReduce"));
  OfLibrary::pop(nccl);
  Nvtx::pop();
  std::thread([&] { OfLibrary::end(loader, prefetch); }).join();
  Nvtx::pop();
  Nvtx::push("open at the end");
}

}  // namespace

int main(int argc, char** argv) {
  start_cuda();
  for (int i = 1; i < argc; ++i) {
    const char* word = argv[i];
    if (strcmp(word, "kill") == 0) raise(SIGKILL);
    if (strcmp(word, "ranges") == 0) {
      mark_ranges();
      continue;
    }
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
