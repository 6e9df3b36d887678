// SPDX-License-Identifier: Apache-2.0
// A rocprofiler-sdk for tests: as much of its C interface as our client uses, and what a runtime does behind
// it. It loads the libraries of ROCP_TOOL_LIBRARIES as the SDK does, each with its own clients' contexts. One
// thread, but for kernels' ends.
#pragma once
#include <cstdint>

namespace lockstep::sim {

struct StubSdkOptions {
  uint32_t version = 10000;
  uint32_t gpus = 2;
  int32_t context_status = 0;  // of making a context
};

// By dlsym from the library: what a test calls.
struct StubSdk {
  // How many clients went on after their initialization.
  int (*start)(const StubSdkOptions&);
  void (*load_kernel)(uint64_t kernel, const char* name);
  // The word that the client left with the kernel. GPUs from 0; `queue` is any number.
  uint64_t (*launch)(uint32_t gpu, uint64_t queue, uint64_t kernel);
  // At times of the SDK's clock.
  void (*end)(uint64_t own, uint64_t start, uint64_t stop);
  uint64_t (*now)();
  // roctx.
  void (*push)(const char* text);
  void (*pop)();
  uint64_t (*start_range)(const char* text);
  void (*stop_range)(uint64_t range);
};

}  // namespace lockstep::sim
