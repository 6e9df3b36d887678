// SPDX-License-Identifier: Apache-2.0
// Where a GPU's clock stands against its host's clock, from one-sided observations:
//   a kernel cannot start before the host began to launch it   offset(t) <= gpu_start - host_launch
//   its end cannot be seen before it ended                     offset(t) >= gpu_stop  - host_seen
// where offset = GPU clock - host clock. Both clocks tick in ns, their rates differ by a few ppm, so offset
// is a line as long as the temperature is steady: the line in the middle of the bounds, with the width that
// the bounds leave at each time as its uncertainty. A span in which no line fits is halved, down to
// kMinSpanNs; what contradicts itself even there is fitted as well as possible, gets an uncertainty that
// covers the contradiction, and is counted.
//
// NCCL sometimes reports a kernel with the stamps of an earlier one (docs/nccl-events.md, "KernelCh").
// Whatever kernel a stamp belongs to, it was written before the host saw it, so every lower bound holds; but
// a stale start may lie before the launch of the kernel that it is reported for, and then its upper bound
// contradicts the lower ones. Such observations are set aside before the fit.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace lockstep::job::assemble {

class GpuClockFit {
 public:
  // One kernel on one channel. 0 for what is not known: the launch, or the stop and when it was seen.
  struct Observation {
    uint64_t gpu_start, gpu_stop;
    int64_t launched_host_ns, stop_seen_host_ns;
  };
  // Returns the observation's number.
  size_t observe(const Observation& observation);
  // After the last observation. False if one side is missing: nothing can be said.
  bool fit();
  // After fit(): whether the stamps of an observation can be its own kernel's.
  bool plausible(size_t observation) const { return intervals_[observation].plausible; }

  struct HostTime {
    int64_t ns;
    int32_t error_ns;  // half-width
  };
  // Nothing for times that no host clock can have.
  std::optional<HostTime> to_host(uint64_t gpu) const;
  // Observations that the fit cannot satisfy.
  uint64_t contradictions() const { return contradictions_; }

 private:
  static constexpr int kBins = 64;
  static constexpr double kMaxDrift = 200e-6;
  static constexpr double kMinSpanNs = 2e9;
  static constexpr size_t kMaxPieces = 4096;

  struct Bound {
    double t;       // GPU time since base_gpu_
    double offset;  // above base_offset_
  };
  using Bounds = std::vector<Bound>;
  struct Piece {
    double from, until;  // GPU time
    double offset, drift;
    std::vector<float> error_ns;  // at the edges of equal bins over from..until
  };
  struct Line {
    double drift, offset,
        margin;  // margin: distance of the parallel bounds from the line; < 0: contradiction
  };

  struct Interval {  // offsets that an observation allows; infinite where a side is not known
    double low, high;
    Observation observation;
    bool plausible = true;
  };

  Bound relative(uint64_t gpu, int64_t host_ns);
  void set_stale_aside();
  void fit_span(std::span<const Bound> lower, std::span<const Bound> upper, double from, double until);
  static Bounds tightest(std::span<const Bound> bounds, double from, double until, bool lower);
  static Bounds hull(const Bounds& bounds, bool lower);
  static Line at_drift(const Bounds& lower, const Bounds& upper, double drift);
  static Line best_line(const Bounds& lower, const Bounds& upper);
  void add_piece(const Bounds& lower, const Bounds& upper, const Line& line, double from, double until);

  bool has_base_ = false;
  uint64_t base_gpu_ = 0;
  uint64_t base_offset_ = 0;  // modulo 2^64, as all arithmetic on raw clocks
  std::vector<Interval> intervals_;
  Bounds lower_, upper_;
  std::vector<Piece> pieces_;
  uint64_t contradictions_ = 0;
};

}  // namespace lockstep::job::assemble
