// SPDX-License-Identifier: Apache-2.0
#include "job/assemble/gpu_clock_fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace lockstep::job::assemble {
namespace {

constexpr int64_t kHost = 1'700'000'000'000'000'000;
constexpr int64_t kOffset = 640'000;  // the GPU is that far ahead at kHost

// A GPU clock that runs `ppm` faster than the host's.
uint64_t gpu_at(int64_t host_ns, double ppm) {
  return static_cast<uint64_t>(host_ns + kOffset +
                               std::llround(static_cast<double>(host_ns - kHost) * ppm * 1e-6));
}

// Kernels over `seconds`: launched up to `late_ns` before they begin, seen up to `late_ns` after they end.
void observe(GpuClockFit& fit, double ppm, double seconds, int kernels, int64_t late_ns,
             int64_t from_ns = kHost) {
  std::mt19937_64 random(3);
  for (int i = 0; i < kernels; ++i) {
    int64_t start = from_ns + static_cast<int64_t>(seconds * 1e9 * i / kernels), stop = start + 50'000;
    auto late = [&] { return static_cast<int64_t>(random() % static_cast<uint64_t>(late_ns)); };
    fit.observe({gpu_at(start, ppm), gpu_at(stop, ppm), start - 2'000 - late(), stop + 1'000 + late()});
  }
}

TEST(GpuClockFit, DriftOverMinutesStaysInsideTheStatedError) {
  GpuClockFit fit;
  observe(fit, 14.9, 120, 20'000, 40'000);
  ASSERT_TRUE(fit.fit());
  EXPECT_EQ(fit.contradictions(), 0u);
  for (double seconds : {0.0, 0.1, 17.0, 60.0, 119.9}) {
    int64_t truth = kHost + static_cast<int64_t>(seconds * 1e9);
    auto host = fit.to_host(gpu_at(truth, 14.9));
    ASSERT_TRUE(host);
    EXPECT_LE(std::abs(host->ns - truth), host->error_ns) << seconds;
    EXPECT_LT(host->error_ns, 6'000) << seconds;  // a constant offset would be 1.8 ms wrong at the end
  }
}

TEST(GpuClockFit, OneKernelGivesTheMiddleOfItsBounds) {
  GpuClockFit fit;
  fit.observe({gpu_at(kHost + 10'000, 0), gpu_at(kHost + 50'000, 0), kHost, kHost + 80'000});
  ASSERT_TRUE(fit.fit());
  auto host = fit.to_host(gpu_at(kHost + 10'000, 0));
  ASSERT_TRUE(host);
  EXPECT_NEAR(static_cast<double>(host->ns - kHost), 20'000, 20);  // between 0 and 40 us
  EXPECT_NEAR(host->error_ns, 20'000, 50);
}

TEST(GpuClockFit, OneSideAloneSaysNothing) {
  GpuClockFit launches, ends;
  launches.observe({5, 6, kHost, 0});
  ends.observe({5, 6, 0, kHost});
  EXPECT_FALSE(launches.fit());
  EXPECT_FALSE(ends.fit());
  EXPECT_FALSE(launches.to_host(5));
}

TEST(GpuClockFit, AChangeOfDriftSplitsTheSpan) {
  GpuClockFit fit;
  observe(fit, 5, 60, 6'000, 10'000);
  // From 60 s on the GPU is 40 ppm fast, with no jump in between.
  auto later = [](int64_t host_ns) {
    return gpu_at(kHost + 60'000'000'000, 5) +
           static_cast<uint64_t>(
               std::llround(static_cast<double>(host_ns - kHost - 60'000'000'000) * (1 + 40e-6)));
  };
  for (int64_t i = 0; i < 6'000; ++i) {
    int64_t start = kHost + 60'000'000'000 + i * 10'000'000;
    fit.observe({later(start), later(start + 50'000), start - 3'000, start + 54'000});
  }
  ASSERT_TRUE(fit.fit());
  EXPECT_EQ(fit.contradictions(), 0u);
  for (int second : {3, 30, 57, 63, 90, 117}) {
    int64_t truth = kHost + second * 1'000'000'000LL;
    auto host = fit.to_host(second < 60 ? gpu_at(truth, 5) : later(truth));
    ASSERT_TRUE(host);
    EXPECT_LE(std::abs(host->ns - truth), host->error_ns) << second;
    EXPECT_LT(host->error_ns, 30'000) << second;
  }
}

TEST(GpuClockFit, StampsOfAnotherKernelAreSetAside) {
  GpuClockFit fit;
  observe(fit, 8, 60, 6'000, 10'000);
  int64_t now = kHost + 30'000'000'000;
  size_t earlier =
      fit.observe({gpu_at(now - 5'000'000, 8), gpu_at(now - 4'900'000, 8), now - 3'000, now + 100'000});
  size_t good = fit.observe({gpu_at(now, 8), gpu_at(now + 50'000, 8), now - 3'000, now + 60'000});
  ASSERT_TRUE(fit.fit());
  EXPECT_FALSE(fit.plausible(earlier));
  EXPECT_TRUE(fit.plausible(good));
  EXPECT_EQ(fit.contradictions(), 0u);
  auto host = fit.to_host(gpu_at(now, 8));
  ASSERT_TRUE(host);
  EXPECT_LE(std::abs(host->ns - now), host->error_ns);
  EXPECT_LT(host->error_ns, 6'000);
}

TEST(GpuClockFit, HostileStampsNeitherCrashNorHang) {
  GpuClockFit fit;
  std::mt19937_64 random(5);
  for (int i = 0; i < 20'000; ++i) {
    fit.observe({random(), random(), static_cast<int64_t>(random()), static_cast<int64_t>(random())});
  }
  fit.fit();
  for (int i = 0; i < 1'000; ++i) {
    auto host = fit.to_host(random());
    EXPECT_TRUE(!host || host->error_ns >= 0);
  }
}

}  // namespace
}  // namespace lockstep::job::assemble
