// SPDX-License-Identifier: Apache-2.0
#include "links/judge/samples.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace lockstep::links {
namespace {

using analysis::Severity;

constexpr int64_t kStart = 1'770'000'000'000'000'000;
constexpr int64_t kHourMs = 3'600'000;

// A log of one host that ran for an hour. Tests name a counter and what it was when.
class Log {
 public:
  Log() {
    log_.host = "node3";
    log_.boot_id = "boot";
    log_.start_ns = kStart;
    log_.last_ms = kHourMs;
    log_.cards["mlx5_0"] = "pci0000:10/0000:10:01.0/0000:12:00.0";
  }
  Log& with(DeviceKind kind, const std::string& device, const std::string& name,
            const std::vector<std::pair<int64_t, int64_t>>& samples) {
    SampledCounter& counter = log_.counters.emplace_back();
    counter.key = {kind, device, name};
    for (const auto& [ms, value] : samples)
      counter.samples.push_back({ms, value < 0 ? 0 : static_cast<uint64_t>(value), value >= 0});
    return *this;
  }
  Log& port(const std::string& name, const std::vector<std::pair<int64_t, int64_t>>& samples) {
    return with(DeviceKind::kPort, "mlx5_0/1", name, samples);
  }
  Log& lasts(int64_t ms) {
    log_.last_ms = ms;
    return *this;
  }
  Log& starts(int64_t ns) {
    log_.start_ns = ns;
    return *this;
  }
  const SampleLog& log() const { return log_; }

 private:
  SampleLog log_;
};

HostSamples judged(const Log& log) {
  std::vector<HostSamples> hosts = judge_samples({log.log()});
  EXPECT_EQ(hosts.size(), 1u);
  return hosts.empty() ? HostSamples() : hosts[0];
}
std::string ids(const HostSamples& host) {
  std::string text;
  for (const LinkTrouble& trouble : host.troubles)
    text += (text.empty() ? "" : " ") + std::string(id_text(trouble.id)) + "@" + trouble.device;
  return text;
}

TEST(LinkSamplesJudge, ALinkThatWentDownAndCameBack) {
  const HostSamples host = judged(
      Log().port("link_downed", {{0, 3}, {60'000, 4}}).port("state", {{0, 4}, {60'000, 1}, {71'000, 4}}));
  ASSERT_EQ(ids(host), "transport-error.link-flapped@mlx5_0/1");
  const LinkTrouble& trouble = host.troubles[0];
  EXPECT_EQ(trouble.severity, Severity::kWarning);
  EXPECT_EQ(trouble.says, "the link went down and came back");
  EXPECT_EQ(trouble.card, "pci0000:10/0000:10:01.0/0000:12:00.0");
  ASSERT_EQ(trouble.times_ns.size(), 2u);
  EXPECT_EQ(trouble.times_ns[0], kStart + 60'000'000'000);
  ASSERT_EQ(trouble.evidence.size(), 2u);
  EXPECT_NE(trouble.evidence[0].find("link_downed: +1, at "), std::string::npos) << trouble.evidence[0];
}

TEST(LinkSamplesJudge, APortThatStaysDown) {
  const HostSamples host =
      judged(Log().port("state", {{0, 4}, {9000, 1}}).port("link_downed", {{0, 0}, {9000, 1}}));
  EXPECT_EQ(ids(host), "transport-error.link-flapped@mlx5_0/1 slow-nic.port@mlx5_0/1");
  EXPECT_EQ(host.troubles[0].says, "the link went down");
  EXPECT_EQ(host.troubles[1].says, "the port is no longer active");
}

TEST(LinkSamplesJudge, APortThatWasNeverUpIsNoTrouble) {
  EXPECT_EQ(
      ids(judged(Log().port("state", {{0, 1}}).port("rate", {{0, 10'000}}).port("link_downed", {{0, 9}}))),
      "");
}

TEST(LinkSamplesJudge, APortThatIsGone) {
  const HostSamples host =
      judged(Log().port("state", {{0, 4}, {5000, -1}}).port("link_downed", {{0, 0}, {5000, -1}}));
  ASSERT_EQ(ids(host), "slow-nic.port@mlx5_0/1");
  EXPECT_EQ(host.troubles[0].says, "the port is gone");
  // As long as one of its files could be read, it was there.
  const HostSamples later =
      judged(Log().port("state", {{0, 4}, {9000, -1}}).port("link_downed", {{0, 0}, {5000, -1}}));
  ASSERT_EQ(later.troubles.size(), 1u);
  EXPECT_EQ(later.troubles[0].times_ns, std::vector<int64_t>{kStart + 9'000'000'000});
  // One file of it that cannot be read is not the port.
  EXPECT_EQ(ids(judged(Log().port("state", {{0, 4}}).port("link_downed", {{0, 0}, {5000, -1}}))), "");
}

TEST(LinkSamplesJudge, ALowerRate) {
  const HostSamples host =
      judged(Log().port("state", {{0, 4}}).port("rate", {{0, 400'000}, {50'000, 200'000}}));
  ASSERT_EQ(ids(host), "slow-nic.rate@mlx5_0/1");
  EXPECT_NE(host.troubles[0].evidence[0].find("200 Gb/s from "), std::string::npos);
  // What a port without a link says of its rate means nothing.
  EXPECT_EQ(ids(judged(Log()
                           .port("state", {{0, 4}, {50'500, 1}, {60'000, 4}})
                           .port("rate", {{0, 400'000}, {50'000, 10'000}, {60'000, 400'000}}))),
            "transport-error.link-flapped@mlx5_0/1");
}

TEST(LinkSamplesJudge, WrapsAndResetsAreToldApart) {
  // 100,000 acknowledgements a second were lost, over the end of 32 bits.
  const HostSamples wrapped =
      judged(Log().port("local_ack_timeout_err", {{0, 4'294'900'000}, {1000, 32'704}}));
  ASSERT_EQ(ids(wrapped), "transport-error.loss@mlx5_0/1");
  EXPECT_NE(wrapped.troubles[0].evidence[0].find("+100,000, at"), std::string::npos)
      << wrapped.troubles[0].evidence[0];
  EXPECT_NE(wrapped.troubles[0].evidence[0].find("wrapped around at its largest value: 1 time"),
            std::string::npos);
  // Somebody cleared it: what it has counted since is what is known.
  const HostSamples reset =
      judged(Log().port("local_ack_timeout_err", {{0, 500'000}, {1000, 0}, {2000, 300}}));
  ASSERT_EQ(ids(reset), "transport-error.loss@mlx5_0/1");
  EXPECT_NE(reset.troubles[0].evidence[0].find("+300, at"), std::string::npos)
      << reset.troubles[0].evidence[0];
  EXPECT_NE(reset.troubles[0].evidence[0].find("reset to zero meanwhile: 1 time"), std::string::npos);
  // Cleared and quiet.
  EXPECT_EQ(ids(judged(Log().port("symbol_error", {{0, 9}, {1000, 0}}))), "");
}

TEST(LinkSamplesJudge, ACounterAtItsLargestValueIsABound) {
  const HostSamples host = judged(Log().port("link_error_recovery", {{0, 200}, {1000, 255}}));
  ASSERT_EQ(ids(host), "transport-error.signal@mlx5_0/1");
  EXPECT_NE(host.troubles[0].evidence[0].find("+at least 55"), std::string::npos);
}

TEST(LinkSamplesJudge, AMinuteOfErrorsInADayIsSeen) {
  Log log;
  log.lasts(24 * kHourMs);
  log.port("local_ack_timeout_err", {{0, 0}, {kHourMs, 100}});
  EXPECT_EQ(ids(judged(log)), "transport-error.loss@mlx5_0/1");
  // As many, one now and then.
  std::vector<std::pair<int64_t, int64_t>> slowly = {{0, 0}};
  for (int i = 1; i <= 100; ++i) slowly.emplace_back(i * 600'000, i);
  EXPECT_EQ(ids(judged(Log().lasts(24 * kHourMs).port("local_ack_timeout_err", slowly))), "");
}

TEST(LinkSamplesJudge, AFewSymbolErrorsOfAShortJobAreNone) {
  EXPECT_EQ(ids(judged(Log().lasts(5000).port("symbol_error", {{0, 0}, {1000, 1}}))), "");
  EXPECT_EQ(ids(judged(Log().lasts(5000).port("symbol_error", {{0, 0}, {1000, 10}}))),
            "transport-error.signal@mlx5_0/1");
}

TEST(LinkSamplesJudge, ABusyHealthyPortIsSilent) {
  Log log;
  const int64_t bits32 = int64_t{1} << 32;
  std::vector<std::pair<int64_t, int64_t>> data, waits, order, throttled;
  for (int64_t second = 0; second <= 3600; second += 10) {
    data.emplace_back(second * 1000, second * 12'500'000'000 / 4);
    waits.emplace_back(second * 1000, second * 900'000'000 % bits32);
    order.emplace_back(second * 1000, second * 5000);
    throttled.emplace_back(second * 1000, second * 20'000);
  }
  log.port("port_xmit_data", data).port("port_xmit_wait", waits).port("out_of_sequence", order);
  log.port("rp_cnp_handled", throttled).port("rnr_nak_retry_err", {{0, 0}, {9000, 40}});
  log.port("symbol_error", {{0, 12}})
      .port("link_downed", {{0, 2}})
      .port("state", {{0, 4}})
      .port("rate", {{0, 400'000}});
  log.with(DeviceKind::kNetDevice, "eth0", "rx_dropped", {{0, 0}, {kHourMs, 5'000'000}});
  log.with(DeviceKind::kPci, "0000:12:00.0", "aer_correctable", {{0, 4}, {kHourMs, 20}});
  const HostSamples host = judged(log);
  EXPECT_EQ(ids(host), "");
  EXPECT_EQ(host.congestion.size(), 4u);
  EXPECT_EQ(host.watched, 2u);
}

TEST(LinkSamplesJudge, TellsWhetherTheCardWasUsed) {
  const auto flapped = [] { return Log().port("link_downed", {{0, 0}, {1000, 1}}); };
  EXPECT_FALSE(judged(flapped()).troubles[0].moved_data.has_value());
  EXPECT_EQ(judged(flapped().port("port_rcv_data", {{0, 7}, {10'000, 400}})).troubles[0].moved_data, false);
  EXPECT_EQ(judged(flapped().port("port_rcv_data", {{0, 7}, {10'000, 400'000'000}})).troubles[0].moved_data,
            true);
}

TEST(LinkSamplesJudge, APortThatIsDownIsNotCalledUnused) {
  const auto moved = [](Log log) {
    const HostSamples host = judged(log.port("port_rcv_data", {{0, 7}, {10'000, 400}}));
    EXPECT_FALSE(host.troubles.empty());
    return host.troubles.empty() ? std::optional<bool>() : host.troubles[0].moved_data;
  };
  EXPECT_EQ(moved(Log().port("state", {{0, 4}, {3'500'000, 1}})), false);
  EXPECT_FALSE(moved(Log().port("state", {{0, 4}, {20'000, 1}})).has_value());
  // Nor one of which little was seen.
  EXPECT_FALSE(moved(Log().port("link_downed", {{0, 0}, {1000, 1}}).lasts(30'000)).has_value());
}

TEST(LinkSamplesJudge, ErrorsOfPcieAreThoseOfTheCard) {
  const HostSamples host =
      judged(Log().with(DeviceKind::kPci, "0000:10:01.0", "aer_nonfatal", {{0, 0}, {1000, 1}}));
  ASSERT_EQ(ids(host), "transport-error.pcie@0000:10:01.0");
  EXPECT_EQ(host.troubles[0].card, "pci0000:10/0000:10:01.0/0000:12:00.0");
}

TEST(LinkSamplesJudge, LogsOfOneHostFollowEachOther) {
  const Log first = Log().port("link_downed", {{0, 0}, {1000, 1}}).lasts(10'000);
  const Log inside = Log().port("link_downed", {{0, 0}, {900, 1}}).starts(kStart + 1'000'000'000).lasts(5000);
  const Log later =
      Log().port("link_downed", {{0, 1}, {500, 2}}).starts(kStart + 20'000'000'000).lasts(10'000);
  const auto hosts = judge_samples({later.log(), inside.log(), first.log()});
  ASSERT_EQ(hosts.size(), 1u);
  EXPECT_EQ(ids(hosts[0]), "transport-error.link-flapped@mlx5_0/1");
  EXPECT_EQ(hosts[0].troubles[0].evidence.size(), 2u);
  EXPECT_EQ(hosts[0].first_ns, kStart);
  EXPECT_EQ(hosts[0].last_ns, kStart + 30'000'000'000);
}

TEST(LinkSamplesJudge, WhatCouldNotBeReadIsNotCalledWatched) {
  const HostSamples host = judged(Log().port("symbol_error", {{0, -1}}).port("state", {{0, 4}}));
  EXPECT_EQ(host.watched, 0u);
  EXPECT_EQ(host.unreadable, 1u);
}

}  // namespace
}  // namespace lockstep::links
