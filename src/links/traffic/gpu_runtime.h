// SPDX-License-Identifier: Apache-2.0
// A vendor's driver as the measurements need it: memory on GPUs and pinned on the host, and transfers that
// start together. One thread. Times are the GPUs' own events.
#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace lockstep::links {

// What moves where: a GPU's number, or the host.
struct Place {
  int gpu = -1;   // -1: host memory
  int node = -1;  // of host memory: its NUMA node; -1 wherever it lies
  bool operator==(const Place&) const = default;
};

enum class Engine : uint8_t {
  kCopy,   // the GPU's copy engine
  kCores,  // a kernel that copies
};

struct Transfer {
  Place from, to;
  int by = 0;  // the GPU that carries it out: the one it leaves writes, the one it comes to reads
  Engine engine = Engine::kCopy;
  size_t bytes = 0;  // each of `repeats` copies
  int repeats = 1;
};

class GpuRuntime {
 public:
  virtual ~GpuRuntime() = default;
  virtual int count() const = 0;
  virtual const std::string& pci(int gpu) const = 0;
  virtual bool has_kernels() const = 0;  // Engine::kCores and latency can be measured
  // Whether `by` may access the memory of `other`, as the driver says; it is switched on as it is asked.
  virtual Result<bool> reaches(int by, int other) = 0;
  // Seconds that each of them takes where all start at once.
  virtual Result<std::vector<double>> time(std::span<const Transfer> transfers) = 0;
  // ns of one load that depends on the one before, from `by` out of the memory of `other`.
  virtual Result<double> load_latency(int by, int other) = 0;
};

// `bytes` is the largest transfer. An error where there is no driver or no GPU; the text says what to do.
Result<std::unique_ptr<GpuRuntime>> cuda_runtime(size_t bytes);
Result<std::unique_ptr<GpuRuntime>> hip_runtime(size_t bytes);

}  // namespace lockstep::links
