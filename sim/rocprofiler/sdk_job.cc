// SPDX-License-Identifier: Apache-2.0
// lockstep-sdk-job SDK [KERNELS]: a program whose runtime has rocprofiler's SDK, SDK being the stub. Launches
// kernels of 10 us, each ended before the next, in a range of roctx, and prints how many clients the SDK has.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "sim/rocprofiler/stub_sdk.h"

int main(int argc, char** argv) {
  void* library = argc < 2 ? nullptr : dlopen(argv[1], RTLD_NOW);
  if (library == nullptr) return 2;
  const auto& sdk = *static_cast<const lockstep::sim::StubSdk*>(dlsym(library, "stub_sdk"));
  std::printf("%d\n", sdk.start({}));
  sdk.load_kernel(1, "_Z7computePf.kd");
  sdk.push("all kernels");
  for (int left = argc > 2 ? std::atoi(argv[2]) : 100; left > 0; --left) {
    const uint64_t own = sdk.launch(1, 7, 1), start = sdk.now();
    while (sdk.now() < start + 10'000) {
    }
    sdk.end(own, start, start + 10'000);
  }
  sdk.pop();
}
