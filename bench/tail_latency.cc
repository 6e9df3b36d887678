// SPDX-License-Identifier: Apache-2.0
// How long the slowest callbacks take: KernelCh start, then state and stop, at a steady rate. Whether
// callbacks wait for storage is seen with LOCKSTEP_DIR on the file system in question, quiet and under write
// load. Prints percentiles in ns, clock calls included.
//   tail_latency SECONDS EVENTS_PER_SECOND
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "capture/nccl/abi.h"

namespace abi = lockstep::nccl_abi;

namespace {

using Clock = std::chrono::steady_clock;
int64_t ns_between(Clock::time_point a, Clock::time_point b) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(b - a).count();
}

}  // namespace

int main(int argc, char** argv) {
  void* library = dlopen(LOCKSTEP_LIB_DIR "/liblockstep-nccl.so", RTLD_NOW);
  if (argc != 3 || library == nullptr) {
    std::fprintf(stderr, "usage: tail_latency SECONDS EVENTS_PER_SECOND (needs %s/liblockstep-nccl.so)\n",
                 LOCKSTEP_LIB_DIR);
    return 2;
  }
  const auto* plugin = static_cast<const abi::v5::Plugin*>(dlsym(library, "ncclProfiler_v5"));
  setenv("LOCKSTEP_MODE", "deep", 1);
  void* context = nullptr;
  int mask = 0;
  plugin->init(&context, 1, &mask, "tail", 1, 1, 0, nullptr);
  const double seconds = std::atof(argv[1]);
  const int per_millisecond = std::max(1, std::atoi(argv[2]) / 1000);
  std::vector<int64_t> times;
  times.reserve(static_cast<size_t>(seconds * 1000) * static_cast<size_t>(per_millisecond) * 2);
  abi::v5::Descriptor descriptor{};
  abi::StateArgsV4 args{};
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  while (Clock::now() < end) {
    const auto tick = Clock::now() + std::chrono::milliseconds(1);
    for (int i = 0; i < per_millisecond; ++i) {
      void* handle = nullptr;
      descriptor.type = abi::kTypeKernelCh;
      const auto before = Clock::now();
      plugin->start_event(context, &handle, &descriptor);
      const auto between = Clock::now();
      plugin->record_event_state(handle, abi::kKernelChStop, &args);
      plugin->stop_event(handle);
      times.push_back(ns_between(before, between));
      times.push_back(ns_between(between, Clock::now()));
    }
    while (Clock::now() < tick) {
    }
  }
  std::sort(times.begin(), times.end());
  auto at = [&](double share) {
    return static_cast<long>(times[static_cast<size_t>(share * static_cast<double>(times.size() - 1))]);
  };
  std::printf("callbacks %zu, ns: p50 %ld, p99 %ld, p99.9 %ld, p99.99 %ld, p99.999 %ld, max %ld\n",
              times.size(), at(0.5), at(0.99), at(0.999), at(0.9999), at(0.99999), at(1));
  plugin->finalize(context);
  return 0;
}
