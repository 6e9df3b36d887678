// SPDX-License-Identifier: Apache-2.0
// The calls of lockstep.h to be measured. Static, as the header is: each translation unit finds its own run
// time.
#pragma once
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "lockstep/lockstep.h"

namespace {

lockstep_group declare_world() {
  static const int32_t kRanks[] = {0, 1, 2, 3, 4, 5, 6, 7};
  return lockstep_declare_group("default_pg:0", kRanks, 8, 0);
}

void begin_end(benchmark::State& state) {
  const lockstep_group group = declare_world();
  for (auto _ : state) {
    lockstep_op op = lockstep_begin(group, "allreduce", 1 << 20, 1 << 20, "BFloat16", nullptr);
    benchmark::DoNotOptimize(op);
    lockstep_end(op, nullptr);
  }
}

void begin_end_gpu_times(benchmark::State& state) {
  const lockstep_group group = declare_world();
  for (auto _ : state) {
    lockstep::Operation operation(group, "allreduce", 1 << 20, 1 << 20, "BFloat16");
    operation.set_gpu_times(LOCKSTEP_CLOCK_GPU_NS, 1, 2);
  }
}

void param_comms(benchmark::State& state) {
  const std::vector<int64_t> splits;
  const auto group = std::make_tuple(std::string("0"), std::string("default_pg"));
  int64_t seq = 0;
  for (auto _ : state) {
    LOCKSTEP_RECORD_PARAM_COMMS(std::make_tuple(++seq, false), group, 0, "allreduce", 1 << 20, 1 << 20,
                                "BFloat16", splits, splits, 0, 1, 8);
  }
}

void mark(benchmark::State& state) {
  for (auto _ : state) lockstep_mark("checkpoint", 1);
}

[[maybe_unused]] void register_calls(const std::string& where) {
  const std::pair<const char*, void (*)(benchmark::State&)> kCalls[] = {
      {"begin_end", begin_end},
      {"begin_end_gpu_times", begin_end_gpu_times},
      {"param_comms", param_comms},
      {"mark", mark}};
  for (const auto& [name, call] : kCalls) {
    benchmark::RegisterBenchmark((where + "/" + name).c_str(), call)->ThreadRange(1, 2)->UseRealTime();
  }
}

}  // namespace
