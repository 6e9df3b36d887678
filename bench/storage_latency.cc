// SPDX-License-Identifier: Apache-2.0
// How long an operation waits in a plugin: two events, four callbacks. So many operations a period, the
// thread asleep in between, so that what they need is as cold as in a job. Prints a line of JSON: operations,
// percentiles of ns, and what one reading of the clock takes.
//   storage_latency PLUGIN SECONDS PERIOD_US OPERATIONS
#include <dlfcn.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "capture/nccl/abi.h"

namespace abi = lockstep::nccl_abi;

namespace {

int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * int64_t{1'000'000'000} + now.tv_nsec;
}

double clock_read_ns() {
  constexpr int kReads = 1'000'000;
  uint64_t sum = 0;
  const int64_t begin = now_ns();
  for (int i = 0; i < kReads; ++i) {
#ifdef __x86_64__
    sum += __builtin_ia32_rdtsc();
#else
    sum += static_cast<uint64_t>(now_ns());
#endif
  }
  const int64_t end = now_ns();
  return sum == 0 ? 0 : static_cast<double>(end - begin) / kReads;
}

void operation(const abi::v5::Plugin* plugin, void* context, uint64_t number) {
  abi::v5::Descriptor call, coll;
  std::memset(static_cast<void*>(&call), 0, sizeof call);
  std::memset(static_cast<void*>(&coll), 0, sizeof coll);
  call.type = abi::kTypeCollApi;
  call.coll_api.func = "AllReduce";
  call.coll_api.count = 1024;
  call.coll_api.datatype = "ncclFloat32";
  void *call_handle = nullptr, *coll_handle = nullptr;
  plugin->start_event(context, &call_handle, &call);
  coll.type = abi::kTypeColl;
  coll.parent = call_handle;
  coll.coll.seq = number;
  coll.coll.func = "AllReduce";
  coll.coll.count = 1024;
  coll.coll.datatype = "ncclFloat32";
  coll.coll.algo = "RING";
  coll.coll.proto = "LL";
  coll.coll.channels = 2;
  plugin->start_event(context, &coll_handle, &coll);
  plugin->stop_event(coll_handle);
  plugin->stop_event(call_handle);
}

}  // namespace

int main(int argc, char** argv) {
  void* library = argc == 5 ? dlopen(argv[1], RTLD_NOW) : nullptr;
  if (library == nullptr) {
    std::fprintf(stderr, "usage: storage_latency PLUGIN SECONDS PERIOD_US OPERATIONS\n");
    return 2;
  }
  const auto* plugin = static_cast<const abi::v5::Plugin*>(dlsym(library, "ncclProfiler_v5"));
  const auto length = static_cast<int64_t>(std::atof(argv[2]) * 1e9);
  const auto period = static_cast<useconds_t>(std::max(std::atoi(argv[3]), 1));
  const int burst = std::atoi(argv[4]);
  void* context = nullptr;
  int mask = 0;
  plugin->init(&context, 1, &mask, "storage", 1, 1, 0, nullptr);
  std::vector<int64_t> times;
  times.reserve(static_cast<size_t>(length / 1000 / period * burst) + 1024);
  const int64_t end = now_ns() + length;
  uint64_t operations = 0;
  while (now_ns() < end) {
    for (int i = 0; i < burst; ++i) {
      const int64_t before = now_ns();
      operation(plugin, context, operations++);
      times.push_back(now_ns() - before);
    }
    usleep(period);
  }
  plugin->finalize(context);
  std::sort(times.begin(), times.end());
  const auto at = [&](double share) {
    return static_cast<long long>(times[static_cast<size_t>(share * static_cast<double>(times.size() - 1))]);
  };
  std::printf(
      "{\"operations\": %llu, \"p50\": %lld, \"p99\": %lld, \"p99.9\": %lld, \"max\": %lld, \"clock\": "
      "%.1f}\n",
      static_cast<unsigned long long>(operations), at(0.5), at(0.99), at(0.999), at(1), clock_read_ns());
  return 0;
}
