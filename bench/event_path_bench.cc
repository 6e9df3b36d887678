// SPDX-License-Identifier: Apache-2.0
// What one callback of the capture library costs, beside a plugin that returns at once, for the streams of
// nccl_streams.h. `clock` is what reading the time stamp counter costs, which every callback does once. The
// retention is taken from LOCKSTEP_RETAIN; LOCKSTEP_DIR says where the file goes. `per_call` is the figure.
// LOCKSTEP_CHAIN=PATH measures it with that plugin chained behind it, as `chained` instead of `lockstep`.
// LOCKSTEP_BENCH_PEER names another v5 plugin to measure in the same run; its own settings come from the
// environment.
#include <benchmark/benchmark.h>

#include <cstdlib>

#include "nccl_streams.h"

using namespace lockstep::bench;

namespace {

void run(benchmark::State& state, const abi::v5::Plugin* plugin, void (Host::*stream)(), int calls) {
  if (plugin == nullptr) {
    state.SkipWithError("liblockstep-nccl.so is not there; build the target lockstep-nccl");
    return;
  }
  Host host(plugin);
  for (auto _ : state) (host.*stream)();
  state.counters["per_call"] = benchmark::Counter(
      static_cast<double>(state.iterations()) * calls,
      benchmark::Counter::kIsRate | benchmark::Counter::kInvert | benchmark::Counter::kAvgThreads);
}

#if defined(__x86_64__)
void read_clock(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(__builtin_ia32_rdtsc());
  state.counters["per_call"] = benchmark::Counter(static_cast<double>(state.iterations()),
                                                  benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
#endif

}  // namespace

int main(int argc, char** argv) {
  setenv("LOCKSTEP_MODE", "deep", 1);
  benchmark::Initialize(&argc, argv);
  auto add = [](const char* name, const abi::v5::Plugin* plugin, void (Host::*stream)(), int calls) {
    benchmark::RegisterBenchmark(name, [=](benchmark::State& state) { run(state, plugin, stream, calls); })
        ->ThreadRange(1, 2)
        ->UseRealTime();
  };
#if defined(__x86_64__)
  benchmark::RegisterBenchmark("clock", read_clock)->UseRealTime();
#endif
  const bool chained = getenv("LOCKSTEP_CHAIN") != nullptr;
  add("A/empty", &kEmpty, &Host::stream_a, kCallsA);
  add(chained ? "A/chained" : "A/lockstep", lockstep_plugin(), &Host::stream_a, kCallsA);
  add("B/empty", &kEmpty, &Host::stream_b, kCallsB);
  add(chained ? "B/chained" : "B/lockstep", lockstep_plugin(), &Host::stream_b, kCallsB);
  if (const char* peer = getenv("LOCKSTEP_BENCH_PEER")) {
    add("A/peer", load(peer), &Host::stream_a, kCallsA);
    add("B/peer", load(peer), &Host::stream_b, kCallsB);
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
