// SPDX-License-Identifier: Apache-2.0
#include "links/judge/use.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::links {
namespace {

constexpr int64_t kTenSeconds = 10'000;
constexpr uint64_t kRate = 400'000;  // Mb/s

// One port, read each ten seconds, that sends at `share` of its rate in each of these spans.
class Port {
 public:
  Port() {
    log_.host = "node3";
    log_.start_ns = 1'770'000'000'000'000'000;
    log_.cards["mlx5_0"] = "pci0000:10/0000:10:01.0/0000:12:00.0";
    for (const char* const name : {"port_xmit_data", "port_xmit_packets", "rate"})
      log_.counters.push_back({{DeviceKind::kPort, "mlx5_0/1", name}, {}});
    log_.counters[2].samples = {{0, kRate, true}};
    sample();
  }
  Port& sends(double share, size_t spans, double packet = 4120, int64_t span_ms = kTenSeconds) {
    for (size_t i = 0; i < spans; ++i) {
      log_.last_ms += span_ms;
      const double bytes = share * static_cast<double>(kRate) * 125 * static_cast<double>(span_ms);
      words_ += static_cast<uint64_t>(bytes / 4);
      packets_ += static_cast<uint64_t>(bytes / packet);
      sample();
    }
    return *this;
  }
  Port& rate(uint64_t megabits) {
    log_.counters[2].samples.push_back({log_.last_ms, megabits, true});
    return *this;
  }
  HostSamples judged() const {
    HostSamples host;
    judge_use(log_, host);
    return host;
  }
  std::string ids() const {
    std::string text;
    for (const LinkTrouble& use : judged().uses) text += std::string(id_text(use.id)) + ' ';
    return text;
  }

 private:
  void sample() {
    log_.counters[0].samples.push_back({log_.last_ms, words_, true});
    log_.counters[1].samples.push_back({log_.last_ms, packets_, true});
  }
  SampleLog log_;
  uint64_t words_ = 5'000'000'000, packets_ = 77;
};

TEST(LinkUse, APortThatIsFullIsWell) {
  const HostSamples host = Port().sends(0.2, 5).sends(0.96, 4).sends(0.1, 3).judged();
  ASSERT_EQ(host.uses.size(), 1u);
  const LinkTrouble& use = host.uses[0];
  EXPECT_EQ(id_text(use.id), "imbalance.link-bound");
  EXPECT_EQ(use.severity, analysis::Severity::kNote);
  EXPECT_EQ(use.card, "pci0000:10/0000:10:01.0/0000:12:00.0");
  ASSERT_EQ(use.evidence.size(), 1u);
  EXPECT_TRUE(use.evidence[0].starts_with("mlx5_0/1 sent 96 % of its rate for 40 s between "))
      << use.evidence[0];
  EXPECT_EQ(use.times_ns.size(), 4u);
  EXPECT_TRUE(host.troubles.empty());
}

TEST(LinkUse, APortThatIsNearlyOrBrieflyFullIsNot) {
  EXPECT_EQ(Port().sends(0.88, 60).ids(), "");
  EXPECT_EQ(Port().sends(0.99, 2).ids(), "");
  // Whatever counts there, it is not what this link carries.
  EXPECT_EQ(Port().sends(2, 60).ids(), "");
  // Which of two rates held is not known.
  EXPECT_EQ(Port().sends(0.5, 1).rate(200'000).sends(0.3, 1).rate(kRate).sends(0.3, 1).ids(), "");
}

TEST(LinkUse, OfAWatchedRunIsTheSame) {
  EXPECT_EQ(Port().sends(0.95, 60, 4120, 1000).ids(), "imbalance.link-bound ");
  EXPECT_EQ(Port().sends(0.5, 60, 1082, 1000).ids(), "slow-nic.packets ");
  EXPECT_EQ(Port().sends(0.95, 20, 4120, 1000).ids(), "");
}

TEST(LinkUse, SmallPacketsCountOnlyWhileMuchIsSent) {
  EXPECT_EQ(Port().sends(0.5, 6, 1086).ids(), "slow-nic.packets ");
  EXPECT_EQ(Port().sends(0.5, 6, 1086).judged().uses[0].evidence[0].substr(0, 53),
            "mlx5_0/1 sent packets of 1,086 bytes on average for 6");
  EXPECT_EQ(Port().sends(0.5, 6, 1500).ids(), "");
  EXPECT_EQ(Port().sends(0.2, 60, 1086).ids(), "") << "small messages of a port with little to do";
  EXPECT_EQ(Port().sends(0.5, 2, 1086).ids(), "");
}

TEST(LinkUse, SumsWhatWasSentAndWhatNvlinksMoved) {
  EXPECT_EQ(Port().sends(0.2, 1).judged().sent.at("mlx5_0"), uint64_t{100'000'000'000});
  SampleLog log;
  const auto add = [&log](const std::string& gpu, const std::string& name, std::vector<Sample> samples) {
    log.counters.push_back({{DeviceKind::kGpu, gpu, name}, std::move(samples)});
  };
  add("0000:1b:00.0", "nvlink_tx_bytes", {{0, 100, true}, {5000, 700, true}});
  add("0000:1b:00.0", "nvlink_rx_bytes", {{0, 5, true}, {5000, 10, true}});
  add("0000:2b:00.0", "nvlink_tx_bytes", {{0, 100, true}});
  add("0000:1b:00.0", "nvlink_replay", {{0, 0, true}, {5000, 9000, true}});
  HostSamples host;
  judge_use(log, host);
  EXPECT_EQ(host.nvlink_moved, (std::map<std::string, uint64_t>{{"0000:1b:00.0", 605}}));
  EXPECT_TRUE(host.sent.empty());
}

}  // namespace
}  // namespace lockstep::links
