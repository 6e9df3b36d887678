// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "analysis/testing/job_builder.h"
#include "job/clock/clock.h"

namespace lockstep::job::clock {
namespace {

using analysis::testing::Call;
using analysis::testing::JobBuilder;

constexpr double kErrorMs = 0.001;  // of the GPU times that JobBuilder makes

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  double between(double low, double high) {
    return low + (high - low) * static_cast<double>(engine_() >> 11) * 0x1p-53;
  }
  uint32_t below(uint32_t most) { return static_cast<uint32_t>(engine_() % most); }

 private:
  std::mt19937_64 engine_;
};

struct HostTime {
  double offset_ms = 0, drift = 0;
  double at(double true_ms) const { return true_ms + offset_ms + drift * true_ms; }
};

// Ranks on hosts whose clocks are known, calling operations that keep what operations must keep.
class World {
 public:
  World(uint64_t seed, uint32_t hosts, uint32_t per_host)
      : random(seed), job(hosts * per_host, per_host), clocks(hosts), per_host_(per_host) {
    for (HostTime& clock : clocks) {
      clock.offset_ms = 5000 + random.between(-2000, 2000);
      clock.drift = random.between(-100e-6, 100e-6);
    }
  }

  // Members enter over `spread_ms`; who needs another's data leaves after that one has entered.
  void collective(uint32_t comm, const std::vector<uint32_t>& ranks, const std::string& func, double true_ms,
                  double spread_ms) {
    uint32_t root = random.below(static_cast<uint32_t>(ranks.size()));
    std::vector<double> enter;
    for (size_t i = 0; i < ranks.size(); ++i) enter.push_back(true_ms + random.between(0, spread_ms));
    double all = *std::max_element(enter.begin(), enter.end());
    for (size_t i = 0; i < ranks.size(); ++i) {
      double needed = enter[i];
      if (func == "AllReduce" || (func == "Reduce" && i == root)) needed = all;
      if (func == "Broadcast") needed = std::max(needed, enter[root]);
      call(ranks[i], comm, {.func = func, .called_ms = 0, .root = static_cast<int>(root)}, enter[i],
           needed + random.between(0.005, 0.05));
    }
  }

  void send(uint32_t comm, const std::vector<uint32_t>& ranks, uint32_t from, uint32_t to, double true_ms) {
    double sent = true_ms + random.between(0, 0.2), posted = true_ms + random.between(0, 0.2);
    call(ranks[from], comm, {.func = "Send", .called_ms = 0, .peer = static_cast<int>(to)}, sent,
         sent + random.between(0.01, 0.1));
    call(ranks[to], comm, {.func = "Recv", .called_ms = 0, .peer = static_cast<int>(from)}, posted,
         std::max(sent, posted) + random.between(0.01, 0.1));
  }

  model::Job build() { return job.build(false); }

  const HostTime& clock_of(uint32_t rank) const { return clocks[rank / per_host_]; }

  // How often the interval does not hold the truth, over the whole job and some time around it.
  int misses(const model::Job& built, double until_ms, double* widest_ms) {
    int wrong = 0;
    for (uint32_t host = 0; host < clocks.size(); ++host) {
      for (int i = -2; i <= 42; ++i) {
        double true_ms = until_ms * i / 40;
        int64_t here = analysis::testing::at_ms(clocks[host].at(true_ms));
        auto common = built.common_ns(host * per_host_, here);
        if (!common) return -1;
        double off = static_cast<double>(common->ns - analysis::testing::at_ms(clocks[0].at(true_ms)));
        wrong += std::abs(off) > static_cast<double>(common->half_width_ns);
        if (i >= 2 && i <= 38)
          *widest_ms = std::max(*widest_ms, static_cast<double>(common->half_width_ns) * 1e-6);
      }
    }
    return wrong;
  }

  Random random;
  JobBuilder job;
  std::vector<HostTime> clocks;

 private:
  void call(uint32_t rank, uint32_t comm, Call call, double enter_ms, double leave_ms) {
    const HostTime& clock = clock_of(rank);
    call.launched_ms = clock.at(enter_ms - random.between(0.005, 0.02));
    call.called_ms = call.launched_ms - 0.01;
    call.gpu_start_ms = clock.at(enter_ms) + random.between(-kErrorMs, kErrorMs);
    call.gpu_end_ms = clock.at(leave_ms) + random.between(-kErrorMs, kErrorMs);
    job.call(rank, comm, call);
  }

  uint32_t per_host_;
};

std::vector<uint32_t> ranks_of_hosts(uint32_t first, uint32_t hosts, uint32_t per_host) {
  std::vector<uint32_t> ranks;
  for (uint32_t rank = first * per_host; rank < (first + hosts) * per_host; ++rank) ranks.push_back(rank);
  return ranks;
}

TEST(ClockAlign, HostsOfOneBootShareTheirClock) {
  JobBuilder builder(4, 2);
  builder.steps(builder.world(), 20, 10, 5);
  model::Job job = builder.build(true);
  std::vector<analysis::Finding> findings;
  align(job, findings);
  EXPECT_TRUE(findings.empty());
  EXPECT_TRUE(job.hosts[1].clock.is_same());
  ASSERT_TRUE(job.hosts[1].measured.known());
  EXPECT_FALSE(job.hosts[0].measured.known());
  for (const model::HostClock::Knot& knot : job.hosts[1].measured.knots()) {
    EXPECT_LE(knot.low, 0);
    EXPECT_GE(knot.high, 0);
  }
}

model::Job with_a_shared_clock_that_is_contradicted() {
  JobBuilder builder(2, 1);
  uint32_t world = builder.world();
  for (int i = 0; i < 20; ++i) {  // rank 1 leaves before rank 0 has come
    builder.call(0, world,
                 {.called_ms = 10.0 * i + 5, .gpu_start_ms = 10.0 * i + 5.1, .gpu_end_ms = 10.0 * i + 5.2});
    builder.call(1, world,
                 {.called_ms = 10.0 * i + 1, .gpu_start_ms = 10.0 * i + 1.1, .gpu_end_ms = 10.0 * i + 1.2});
  }
  return builder.build(true);
}

TEST(ClockAlign, SaysSoWhereASharedClockIsContradicted) {
  model::Job job = with_a_shared_clock_that_is_contradicted();
  std::vector<analysis::Finding> findings;
  align(job, findings);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(id_text(findings[0].id), "clock-stepped");
  EXPECT_TRUE(job.hosts[1].clock.is_same());
  EXPECT_GT(job.hosts[1].contradictions, 0u);
}

TEST(ClockAlign, HostsThatAreNotNamedAreCalledSo) {
  model::Job job = with_a_shared_clock_that_is_contradicted();
  for (model::JobHost& host : job.hosts) host.name = 0;
  std::vector<analysis::Finding> findings;
  align(job, findings);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].statement.substr(0, 71),
            "Operations of a host without a name and a host without a name, which sh");
  EXPECT_TRUE(findings[0].hosts.empty());
}

TEST(ClockAlign, NothingIsKnownWithoutGpuTimes) {
  JobBuilder builder(4, 2);
  builder.steps(builder.world(), 20, 10, 5, 0);
  model::Job job = builder.build(false);
  std::vector<analysis::Finding> findings;
  align(job, findings);
  EXPECT_TRUE(findings.empty());
  EXPECT_TRUE(job.hosts[0].clock.is_same());
  EXPECT_FALSE(job.hosts[1].clock.known());
  EXPECT_FALSE(job.common_ns(2, analysis::testing::at_ms(20)));
}

TEST(ClockAlign, OneSideIsNotEnough) {
  World world(1, 2, 1);
  uint32_t comm = world.job.world();
  for (int i = 0; i < 20; ++i) world.send(comm, {0, 1}, 0, 1, i);
  model::Job job = world.build();
  std::vector<analysis::Finding> findings;
  align(job, findings);
  EXPECT_FALSE(job.hosts[1].clock.known());
}

TEST(ClockAlign, TimesOfUnknownUncertaintyProveNothing) {
  World world(1, 2, 1);
  uint32_t comm = world.job.world();
  for (int i = 0; i < 20; ++i) world.collective(comm, {0, 1}, "AllReduce", i, 0.1);
  model::Job job = world.build();
  for (model::JobProcess& process : job.processes)
    std::fill(process.ops.gpu_error_ns.begin(), process.ops.gpu_error_ns.end(), -1);
  std::vector<analysis::Finding> findings;
  align(job, findings);
  EXPECT_FALSE(job.hosts[1].clock.known());
}

TEST(ClockAlign, NcclsStampsOfATreeProveNothing) {
  World world(1, 2, 1);
  uint32_t comm = world.job.world();
  for (int i = 0; i < 20; ++i) world.collective(comm, {0, 1}, "AllReduce", i, 0.1);
  model::Job job = world.build();
  for (model::JobProcess& process : job.processes) {
    std::fill(process.ops.gpu_source.begin(), process.ops.gpu_source.end(),
              static_cast<uint8_t>(model::GpuTimeSource::kKernelCh));
  }
  std::vector<analysis::Finding> findings;
  for (const char* algo : {"TREE", "RING"}) {
    for (model::Signature& s : job.signatures) s.algo = job.strings.intern(algo);
    align(job, findings);
    EXPECT_EQ(job.hosts[1].clock.known(), std::string_view(algo) == "RING");
  }
}

TEST(ClockAlign, AStepIsAFindingAndBothSidesAreCovered) {
  World world(7, 2, 2);
  std::vector<uint32_t> ranks = {0, 1, 2, 3};
  uint32_t comm = world.job.world();
  constexpr double kStepMs = 25;
  for (int i = 0; i < 100; ++i) {
    if (i == 50) world.clocks[1].offset_ms += kStepMs;
    world.collective(comm, ranks, "AllReduce", 100 + i * 40.0, 0.1);
  }
  model::Job job = world.build();
  std::vector<analysis::Finding> findings;
  align(job, findings);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(id_text(findings[0].id), "clock-stepped");
  EXPECT_EQ(class_of(findings[0].id), analysis::FindingClass::kEvidenceMissing);
  EXPECT_EQ(findings[0].hosts, std::vector<std::string>{"node1"});
  ASSERT_TRUE(findings[0].effect);
  EXPECT_LE(findings[0].effect->low, kStepMs * 1e6);
  EXPECT_GE(findings[0].effect->high, kStepMs * 1e6);
  EXPECT_EQ(job.hosts[1].contradictions, 1u);
  for (int i = 0; i < 1000; ++i) {
    double true_ms = 4 * i + 100;
    if (true_ms > 2060 && true_ms < 2100) continue;  // the step is somewhere between two operations
    HostTime here = world.clocks[1];
    if (true_ms < 2080) here.offset_ms -= kStepMs;
    auto common = job.common_ns(2, analysis::testing::at_ms(here.at(true_ms)));
    ASSERT_TRUE(common);
    double off = static_cast<double>(common->ns - analysis::testing::at_ms(world.clocks[0].at(true_ms)));
    EXPECT_LE(std::abs(off), static_cast<double>(common->half_width_ns)) << true_ms;
  }
}

TEST(ClockAlign, HoldsTheTruthInAThousandJobs) {
  double widest = 0;
  std::vector<double> widths;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    Random shape(seed * 7919 + 1);
    uint32_t hosts = 2 + shape.below(4), per_host = 1 + shape.below(3), ops = 10 + shape.below(60);
    World world(seed, hosts, per_host);
    std::vector<uint32_t> ranks = ranks_of_hosts(0, hosts, per_host);
    uint32_t comm = world.job.world();
    double every_ms = shape.between(2, 400), true_ms = 100;
    for (uint32_t i = 0; i < ops; ++i, true_ms += every_ms) {
      constexpr const char* kFuncs[] = {"AllReduce", "AllReduce", "Broadcast", "Reduce"};
      uint32_t what = shape.below(5);
      if (what < 4) {
        world.collective(comm, ranks, kFuncs[what], true_ms, shape.between(0.01, 2));
      } else {
        uint32_t from = shape.below(static_cast<uint32_t>(ranks.size()));
        uint32_t to = (from + 1 + shape.below(static_cast<uint32_t>(ranks.size()) - 1)) %
                      static_cast<uint32_t>(ranks.size());
        world.send(comm, ranks, from, to, true_ms);
      }
    }
    model::Job job = world.build();
    std::vector<analysis::Finding> findings;
    align(job, findings);
    EXPECT_TRUE(findings.empty()) << seed;
    double width = 0;
    int misses = world.misses(job, true_ms, &width);
    if (misses < 0) continue;  // by chance nothing proves both sides
    EXPECT_EQ(misses, 0) << seed;
    widths.push_back(width);
  }
  std::sort(widths.begin(), widths.end());
  EXPECT_GT(widths.size(), 990u);
  widest = widths.back();
  RecordProperty("aligned_jobs", static_cast<int>(widths.size()));
  RecordProperty("median_half_width_us", static_cast<int>(widths[widths.size() / 2] * 1000));
  RecordProperty("p90_half_width_us", static_cast<int>(widths[widths.size() * 9 / 10] * 1000));
  RecordProperty("largest_half_width_us", static_cast<int>(widest * 1000));
}

TEST(ClockAlign, ReachesHostsThroughOthers) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    World world(seed, 5, 2);
    std::vector<uint32_t> comms;
    for (uint32_t host = 0; host + 1 < 5; ++host)
      comms.push_back(world.job.comm("pair" + std::to_string(host), ranks_of_hosts(host, 2, 2)));
    for (int i = 0; i < 60; ++i) {
      for (uint32_t host = 0; host + 1 < 5; ++host)
        world.collective(comms[host], ranks_of_hosts(host, 2, 2), "AllReduce", 100 + i * 50.0 + host * 3,
                         0.1);
    }
    model::Job job = world.build();
    std::vector<analysis::Finding> findings;
    align(job, findings);
    EXPECT_TRUE(findings.empty());
    double width = 0;
    EXPECT_EQ(world.misses(job, 3100, &width), 0) << seed;
    EXPECT_LT(width, 1.0);
  }
}

TEST(ClockAlign, StopsAtTheFirstDifference) {
  World world(3, 2, 1);
  uint32_t comm = world.job.world();
  for (int i = 0; i < 20; ++i) world.collective(comm, {0, 1}, "AllReduce", 100 + i * 10.0, 0.1);
  // Rank 1 skips one: what follows is matched wrongly, by 10 ms.
  world.collective(comm, {0}, "AllGather", 400, 0.1);
  for (int i = 0; i < 20; ++i) world.collective(comm, {0, 1}, "AllReduce", 500 + i * 10.0, 0.1);
  model::Job job = world.build();
  std::vector<analysis::Finding> findings;
  align(job, findings);
  EXPECT_TRUE(findings.empty());
  double width = 0;
  EXPECT_EQ(world.misses(job, 700, &width), 0);
}

}  // namespace
}  // namespace lockstep::job::clock
