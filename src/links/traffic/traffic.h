// SPDX-License-Identifier: Apache-2.0
// What links move: pairs of GPUs one at a time, then all at once in rounds of disjoint pairs, and each GPU
// against the host's memory. A cell that is much slower than its siblings is measured again, so that one
// disturbance is no finding.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "links/machine.h"
#include "links/traffic/gpu_runtime.h"

namespace lockstep::links {

enum class CellKind : uint8_t {
  kWrite,      // copy engine of the GPU that the data leaves
  kRead,       // copy engine of the GPU that it comes to
  kBothWays,   // kWrite while the other direction runs, too
  kRound,      // kWrite while all GPUs write to a partner
  kCoreWrite,  // a kernel of the GPU that the data leaves
  kLatency,    // ns of one dependent load from `from` out of the memory of `to`
  kToGpu,      // host memory to GPU; `from` is the host
  kToHost,
  kToGpuAll,  // kToGpu while all GPUs do
  kToHostAll,
};
std::string_view kind_text(CellKind kind);  // "write", ...: what the JSON says
bool is_latency(CellKind kind);

struct Cell {
  CellKind kind = CellKind::kWrite;
  std::string from, to;         // PCI addresses; "host", "host:1" with a NUMA node
  std::vector<double> samples;  // GB/s (1e9 bytes), or ns
  std::vector<double> again;    // of a second measurement, where the first stood out
  size_t bytes = 0;
  int round = -1;        // which of kRound: those of one number ran at once
  uint32_t line = 0;     // of what another tool printed; 0: we measured it
  double value() const;  // median of the samples; 0 without any
};

struct Traffic {
  std::vector<Cell> cells;
  std::vector<std::string> notes;  // what was not measured, and why
  double seconds = 0;              // in all
  // Bytes of all copies between GPUs, those of warming up too, by the PCI address of the GPU that they left
  // or came to. Empty: not known.
  std::map<std::string, uint64_t> sent, received;
};

struct TrafficOptions {
  // Of one copy, large enough that starting it shows little in the rate: two H200s read 64 MiB at 368 GB/s from
  // each other, and 256 MiB at 390.
  size_t bytes = size_t{128} << 20;
  // Copies that one time is taken of.
  int repeats = 2;
  // Times that each cell is taken; its value is their median.
  int samples = 3;
  bool deep = false;  // kernels' copies of every pair, not only where the copy engine stands out
};

// Rounds of a tournament: in each of n - 1 (n even) or n rounds every member meets at most one other, over
// all rounds each pair meets once. Pairs of numbers below n.
std::vector<std::vector<std::pair<int, int>>> tournament(int n);

// An error only where nothing can be measured.
Result<Traffic> measure(GpuRuntime& runtime, const Machine& machine, const TrafficOptions& options);

// Copies between the host and all GPUs, over and over, while `meanwhile` runs on the calling thread.
void keep_busy(GpuRuntime& runtime, const TrafficOptions& options, const std::function<void()>& meanwhile);

}  // namespace lockstep::links
