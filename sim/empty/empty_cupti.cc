// SPDX-License-Identifier: Apache-2.0
// The CUPTI library that does nothing with what it gets: what a benchmark subtracts. CUDA loads it by
// CUDA_INJECTION64_PATH. EMPTY_CUPTI: "kernels" (the default) switches kernel records on, "calls" also those
// of the calls that launch, "nothing" only loads CUPTI. EMPTY_CUPTI_BUFFER sets the bytes of a buffer (8
// MiB).
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "capture/cuda/cupti_library.h"
#include "capture/cuda/records.h"

namespace {

size_t buffer_bytes() {
  static const size_t bytes = [] {
    const char* text = std::getenv("EMPTY_CUPTI_BUFFER");
    return text != nullptr ? std::strtoul(text, nullptr, 0) : size_t{8} << 20;
  }();
  return bytes;
}

// Buffers that came back, as a list through their first bytes would be; CUPTI needs few at a time.
std::atomic<uint8_t*> g_free[16];

void requested(uint8_t** buffer, size_t* bytes, size_t* most_records) {
  *buffer = nullptr;
  for (auto& place : g_free) {
    if (*buffer == nullptr) *buffer = place.exchange(nullptr);
  }
  if (*buffer == nullptr) *buffer = static_cast<uint8_t*>(std::aligned_alloc(4096, buffer_bytes()));
  *bytes = *buffer != nullptr ? buffer_bytes() : 0;
  *most_records = 0;
}

void completed(void*, uint32_t, uint8_t* buffer, size_t, size_t) {
  for (auto& place : g_free) {
    uint8_t* nothing = nullptr;
    if (place.compare_exchange_strong(nothing, buffer)) return;
  }
  std::free(buffer);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  using namespace lockstep::capture::cuda;
  char why[256];
  const CuptiLibrary* library = find_cupti(why, sizeof why);
  const char* asked = std::getenv("EMPTY_CUPTI");
  if (library == nullptr) {
    std::fprintf(stderr, "empty-cupti: %s\n", why);
    return 1;
  }
  if (asked != nullptr && std::strcmp(asked, "nothing") == 0) return 1;
  if (library->register_callbacks(requested, completed) != cupti::kSuccess ||
      library->enable(cupti::kConcurrentKernel) != cupti::kSuccess)
    std::fprintf(stderr, "empty-cupti: CUPTI refused\n");
  if (asked != nullptr && std::strcmp(asked, "calls") == 0 && library->enable_driver_api != nullptr) {
    for (uint32_t i = 0; i < kLaunchCallsOfNewDrivers; ++i) library->enable_driver_api(kLaunchCalls[i], 1);
  }
  return 1;
}
