// SPDX-License-Identifier: Apache-2.0
// Random numbers by key: a draw depends on the seed and on what it is for, never on what was drawn before. So
// the order in which ranks are simulated, and the number of threads, change nothing.
#pragma once
#include <cmath>
#include <cstdint>
#include <numbers>

namespace lockstep::sim::job {

// What a draw is for.
enum class Draw : uint64_t {
  kIdentity = 1,
  kClock,
  kLayout,
  kCompute,
  kHostGap,
  kHiccup,
  kHostCalls,
  kTransfer,
  kEndSkew,
  kNetwork,
  kSeen,
  kAnchor,
  kFault,
  kAgain,
};

class Random {
 public:
  explicit Random(uint64_t seed) : seed_(mix(seed ^ 0x6c6f636b73746570)) {}

  uint64_t bits(Draw draw, uint64_t a = 0, uint64_t b = 0, uint64_t c = 0) const {
    uint64_t key = mix(seed_ + static_cast<uint64_t>(draw));
    return mix(mix(mix(key ^ a) + b) ^ c);
  }
  double uniform(Draw draw, uint64_t a = 0, uint64_t b = 0, uint64_t c = 0) const {  // [0, 1)
    return static_cast<double>(bits(draw, a, b, c) >> 11) * 0x1p-53;
  }
  // [low, high)
  double between(double low, double high, Draw draw, uint64_t a = 0, uint64_t b = 0, uint64_t c = 0) const {
    return low + (high - low) * uniform(draw, a, b, c);
  }
  uint64_t below(uint64_t limit, Draw draw, uint64_t a = 0, uint64_t b = 0, uint64_t c = 0) const {
    return static_cast<uint64_t>(uniform(draw, a, b, c) * static_cast<double>(limit));
  }
  // A factor around 1.
  double lognormal(double sigma, Draw draw, uint64_t a = 0, uint64_t b = 0, uint64_t c = 0) const {
    uint64_t raw = bits(draw, a, b, c);
    double u = (static_cast<double>(raw >> 32) + 1) * 0x1p-32;
    double v = static_cast<double>(raw & 0xffffffff) * 0x1p-32;
    return std::exp(sigma * std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v));
  }

 private:
  static constexpr uint64_t mix(uint64_t x) {  // splitmix64
    x += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
  }
  uint64_t seed_;
};

}  // namespace lockstep::sim::job
