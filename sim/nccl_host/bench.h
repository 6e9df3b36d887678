// SPDX-License-Identifier: Apache-2.0
// run_bench(): ns per callback of a plugin beside an empty plugin, in one run: the same loop over the same
// prepared descriptors, in turns, one comm a thread. Stream A is 1 Coll + 8 KernelCh; stream B is 1 Coll + 2
// KernelCh and 2 channels of send and receive with 4 steps of 3 states. `init` times init + finalize. Nothing
// but the calls through the plugin's table, and the handles between them, is inside the loop. The empty
// plugin is the build tree's libempty-plugin.so, found beside this program.
#pragma once
#include <cstdint>
#include <string>

#include "base/result.h"
#include "nccl_host/plugin_library.h"

namespace lockstep::sim {

struct BenchOptions {
  std::string stream;           // "A", "B" or "init"
  uint64_t events = 4'000'000;  // callbacks (comms for init) per thread and plugin
  unsigned threads = 1;
};

struct BenchResult {
  uint64_t callbacks = 0;              // made into the plugin by each thread, warm-up included
  int mask = 0;                        // what the plugin asked for
  bool masked_off = false;             // NCCL would not have made some of these calls under that mask
  double plugin_ns = 0, empty_ns = 0;  // medians over the rounds
  double plugin_min_ns = 0, empty_min_ns = 0;
};

Result<BenchResult> run_bench(const PluginLibrary& plugin, const BenchOptions& options);
std::string bench_text(const BenchOptions& options, const BenchResult& result);
std::string bench_json(const BenchOptions& options, const BenchResult& result, int api);

}  // namespace lockstep::sim
