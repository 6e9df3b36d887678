// SPDX-License-Identifier: Apache-2.0
#include "links/judge/gpu_samples.h"

#include <gtest/gtest.h>

namespace lockstep::links {
namespace {

using analysis::Severity;

constexpr int64_t kLogStart = 1'770'000'000'000'000'000;
constexpr const char* kGpu = "0000:1b:00.0";

// A log of 100 s.
class GpuLog {
 public:
  GpuLog() {
    log_.host = "node3";
    log_.start_ns = kLogStart;
    log_.last_ms = 100'000;
    log_.gpus[kGpu] = "pci0000:10/0000:10:01.0/0000:1b:00.0";
  }
  GpuLog& with(const std::string& name, const std::vector<std::pair<int64_t, int64_t>>& samples,
               const std::string& gpu = kGpu) {
    SampledCounter& counter = log_.counters.emplace_back();
    counter.key = {DeviceKind::kGpu, gpu, name};
    for (const auto& [ms, value] : samples)
      counter.samples.push_back({ms, value < 0 ? 0 : static_cast<uint64_t>(value), value >= 0});
    return *this;
  }
  HostSamples judged() const {
    std::vector<HostSamples> hosts = judge_samples({log_});
    EXPECT_EQ(hosts.size(), 1u);
    return hosts.empty() ? HostSamples() : hosts[0];
  }

 private:
  SampleLog log_;
};

TEST(GpuSamples, AClockThatIsSlowedDown) {
  const HostSamples host = GpuLog()
                               .with("throttle", {{0, 4}, {20'000, 0x44}, {50'000, 0x20}, {62'000, 4}})
                               .with("sm_clock_mhz", {{0, 1755}, {20'000, 1200}, {62'000, 1740}})
                               .judged();
  ASSERT_EQ(host.gpu_troubles.size(), 1u);
  const LinkTrouble& trouble = host.gpu_troubles[0];
  EXPECT_EQ(id_text(trouble.id), "gpu-late.throttled");
  EXPECT_EQ(trouble.severity, Severity::kWarning);
  EXPECT_EQ(trouble.device, kGpu);
  EXPECT_EQ(trouble.card, "pci0000:10/0000:10:01.0/0000:1b:00.0");
  EXPECT_EQ(trouble.says, "its clock was slowed down (software thermal limit, hardware thermal limit)");
  ASSERT_EQ(trouble.evidence.size(), 1u);
  EXPECT_EQ(trouble.evidence[0].find("0000:1b:00.0: slowed in 42 s of 100 s, from "), 0u)
      << trouble.evidence[0];
  EXPECT_NE(trouble.evidence[0].find("; SM clock then 1200 MHz, else 1740 MHz"), std::string::npos)
      << trouble.evidence[0];
  EXPECT_EQ(trouble.times_ns, (std::vector<int64_t>{kLogStart + 20'000'000'000, kLogStart + 62'000'000'000}));
  EXPECT_EQ(host.sm_clocks.at(kGpu), 1740u);
  EXPECT_TRUE(host.troubles.empty());
}

// A warning from 10 s and a tenth of the time on.
TEST(GpuSamples, AShortSlowdownIsANote) {
  const auto severity = [](int64_t ms, int64_t all) {
    SampleLog log;
    log.host = "h";
    log.start_ns = kLogStart;
    log.last_ms = all;
    log.counters.push_back({{DeviceKind::kGpu, kGpu, "throttle"}, {{0, 0x80, true}, {ms, 0, true}}});
    const auto hosts = judge_samples({log});
    return hosts.at(0).gpu_troubles.at(0).severity;
  };
  EXPECT_EQ(severity(9'999, 50'000), Severity::kNote);
  EXPECT_EQ(severity(10'000, 50'000), Severity::kWarning);
  EXPECT_EQ(severity(10'000, 100'000), Severity::kWarning);
  EXPECT_EQ(severity(10'000, 100'001), Severity::kNote);
}

TEST(GpuSamples, IdlenessAndThePowerCapAreNoTrouble) {
  const HostSamples host =
      GpuLog().with("throttle", {{0, 0}, {1000, 1}, {2000, 4}, {3000, 2}, {4000, -1}, {9000, 0x10}}).judged();
  EXPECT_TRUE(host.gpu_troubles.empty());
}

TEST(GpuSamples, WhatCouldNotBeReadIsNoSlowdown) {
  const HostSamples host = GpuLog()
                               .with("throttle", {{0, 0x40}, {1000, -1}, {90'000, 0}})
                               .with("sm_clock_mhz", {{0, 1000}, {1000, -1}, {99'000, 1755}})
                               .judged();
  ASSERT_EQ(host.gpu_troubles.size(), 1u);
  EXPECT_NE(host.gpu_troubles[0].evidence[0].find("slowed in 1 s of 100 s"), std::string::npos);
  EXPECT_NE(host.gpu_troubles[0].evidence[0].find("then 1000 MHz, else 1755 MHz"), std::string::npos)
      << host.gpu_troubles[0].evidence[0];
}

TEST(GpuSamples, MemoryErrorsThatRoseAndOldOnes) {
  const HostSamples host = GpuLog()
                               .with("ecc_uncorrected", {{0, 7}, {30'000, 9}})
                               .with("ecc_uncorrected", {{0, 12}}, "0000:1c:00.0")
                               .judged();
  ASSERT_EQ(host.gpu_troubles.size(), 1u);
  EXPECT_EQ(id_text(host.gpu_troubles[0].id), "gpu-late.memory");
  EXPECT_EQ(host.gpu_troubles[0].evidence[0].find("0000:1b:00.0: +2 uncorrected, from "), 0u);
}

TEST(GpuSamples, XidsByTheirMeaning) {
  const HostSamples host = GpuLog()
                               .with("xid_79", {{40'000, 1}, {41'000, 3}})
                               .with("xid_31", {{50'000, 1}})
                               .with("xid_4711", {{60'000, 1}})
                               .with("xid_", {{60'000, 1}})
                               .with("xid_9x", {{60'000, 1}})
                               .judged();
  ASSERT_EQ(host.gpu_troubles.size(), 3u);
  EXPECT_EQ(host.gpu_troubles[0].says, "the driver reported Xid 79: the GPU can no longer be reached");
  EXPECT_EQ(host.gpu_troubles[0].severity, Severity::kWarning);
  EXPECT_EQ(host.gpu_troubles[0].evidence[0].find("0000:1b:00.0: Xid 79, 3 times, first at "), 0u)
      << host.gpu_troubles[0].evidence[0];
  EXPECT_EQ(host.gpu_troubles[1].severity, Severity::kNote);
  EXPECT_EQ(host.gpu_troubles[2].says, "the driver reported Xid 4711");
  EXPECT_EQ(host.gpu_troubles[2].severity, Severity::kWarning);
}

TEST(GpuSamples, ErrorsOfNvLinkAreALinksTrouble) {
  const HostSamples host = GpuLog().with("nvlink_replay", {{0, 3}, {100'000, 5}}).judged();
  EXPECT_TRUE(host.gpu_troubles.empty());
  ASSERT_EQ(host.troubles.size(), 1u);
  EXPECT_EQ(id_text(host.troubles[0].id), "transport-error.nvlink");
  EXPECT_EQ(host.troubles[0].card, "pci0000:10/0000:10:01.0/0000:1b:00.0");
  EXPECT_FALSE(host.troubles[0].moved_data);
  EXPECT_EQ(host.watched, 1u);
}

TEST(GpuSamples, ErrorsOfNvLinkThatWereReadOnceShowNothing) {
  EXPECT_EQ(GpuLog().with("nvlink_replay", {{0, 3}}).judged().watched, 0u);
}

TEST(GpuSamples, TroubleOfTwoLogsOfAHostIsOne) {
  SampleLog log;
  log.host = "h";
  log.start_ns = kLogStart;
  log.last_ms = 20'000;
  log.counters.push_back({{DeviceKind::kGpu, kGpu, "throttle"}, {{0, 0x40, true}, {500, 0, true}}});
  SampleLog later = log;
  later.start_ns += 60'000'000'000;
  later.counters[0].samples[1].ms = 20'000;
  const auto hosts = judge_samples({log, later});
  ASSERT_EQ(hosts.at(0).gpu_troubles.size(), 1u);
  const LinkTrouble& trouble = hosts[0].gpu_troubles[0];
  EXPECT_EQ(trouble.severity, Severity::kWarning);
  EXPECT_EQ(trouble.evidence.size(), 2u);
  EXPECT_EQ(trouble.times_ns.size(), 4u);
}

}  // namespace
}  // namespace lockstep::links
