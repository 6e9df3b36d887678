// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "analysis/analysis.h"
#include "analysis/bandwidth/rates.h"
#include "analysis/testing/job_builder.h"

namespace lockstep::analysis::bandwidth {

extern const Analysis kAnalysis;

namespace {

using testing::JobBuilder;

// Pairs (0 1) (2 3) ...: all-reduces of 64 MiB that take `ms` from the last arrival, rank 1 of each always 5
// ms late.
JobBuilder pairs(uint32_t count, const std::vector<double>& ms, uint32_t per_host = 0) {
  JobBuilder builder(count * 2, per_host);
  for (uint32_t pair = 0; pair < count; ++pair) {
    const uint32_t comm = builder.comm("tp" + std::to_string(pair), {pair * 2, pair * 2 + 1});
    for (uint32_t i = 0; i < 20; ++i) {
      const double at = i * 50.0;
      const double end = at + 6 + ms[pair] * (1 + 0.01 * (i % 3));
      builder.call(pair * 2, comm,
                   {.called_ms = at, .bytes = 64 << 20, .gpu_start_ms = at + 1, .gpu_end_ms = end});
      builder.call(pair * 2 + 1, comm,
                   {.called_ms = at, .bytes = 64 << 20, .gpu_start_ms = at + 6, .gpu_end_ms = end});
    }
  }
  return builder;
}

TEST(Bandwidth, CountsFromTheLastArrivalOn) {
  const Rates rates = measure(pairs(1, {1.0}).build());
  ASSERT_EQ(rates.rates.size(), 1u);
  const Rate& rate = rates.rates[0];
  EXPECT_EQ(rate.ops, 20u);
  EXPECT_EQ(rates.untimed, 0u);
  EXPECT_EQ(rate.size_from, uint64_t{64} << 20);
  EXPECT_NEAR(rate.algbw.middle, (64 << 20) / 1.01e6, 0.1);
  EXPECT_NEAR(rate.busbw.middle, rate.algbw.middle, 1e-9) << "2 (n - 1) / n is 1 for two ranks";
  EXPECT_EQ(rate.error, 0) << "one clock";
}

TEST(Bandwidth, TheCeilingIsThatOfTheSlowestGpuWithinOneHost) {
  auto ceiling_of = [](const char* of_first, const char* of_second, uint32_t per_host) {
    JobBuilder builder = pairs(1, {1.0}, per_host);
    builder.process(0).row.gpu_model = builder.text(of_first);
    builder.process(1).row.gpu_model = builder.text(of_second);
    const Rates rates = measure(builder.build());
    return rates.rates.at(0).ceiling ? rates.rates[0].ceiling->gbps : 0;
  };
  EXPECT_EQ(ceiling_of("NVIDIA H200", "NVIDIA H200", 2), 450);
  EXPECT_EQ(ceiling_of("NVIDIA H200", "NVIDIA A100-SXM4-80GB", 2), 300);
  EXPECT_EQ(ceiling_of("NVIDIA H200", "", 2), 0);
  EXPECT_EQ(ceiling_of("NVIDIA H200", "NVIDIA H200", 1), 0);
}

// 64 MiB from one rank of the world to another: sender and receiver begin on the GPU at those times, and end
// together.
void transfer(JobBuilder& builder, uint32_t from, uint32_t to, double send_ms, double receive_ms,
              double end_ms) {
  const double called = std::min(send_ms, receive_ms);
  builder.call(from, 0,
               {.func = "Send",
                .called_ms = called,
                .bytes = 64 << 20,
                .peer = static_cast<int>(to),
                .gpu_start_ms = send_ms,
                .gpu_end_ms = end_ms});
  builder.call(to, 0,
               {.func = "Recv",
                .called_ms = called,
                .bytes = 64 << 20,
                .peer = static_cast<int>(from),
                .gpu_start_ms = receive_ms,
                .gpu_end_ms = end_ms});
}

// Rank 0 sends 64 MiB to 1 (one host) and to 2 (another); each takes 1 and 4 ms, with receivers that wait for
// 3 ms.
TEST(Bandwidth, SendsOfPairsCountFromTheLaterOfTheTwo) {
  JobBuilder builder(4, 2);
  builder.world();
  for (uint32_t i = 0; i < 10; ++i) {
    for (uint32_t to : {1u, 2u}) {
      const double at = i * 50.0 + to * 20;
      transfer(builder, 0, to, at + 3, at, at + 3 + (to == 1 ? 1 : 4));
    }
  }
  const Rates rates = measure(builder.build());
  ASSERT_EQ(rates.pairs.size(), 2u);
  for (const Rate& rate : rates.pairs) {
    EXPECT_EQ(rate.ops, 10u);
    EXPECT_NEAR(rate.algbw.middle, (64 << 20) / (rate.hosts == 1 ? 1e6 : 4e6), 0.1);
    EXPECT_EQ(rate.busbw.middle, rate.algbw.middle);
  }
  EXPECT_NE(rates.pairs[0].hosts, rates.pairs[1].hosts);
}

// Rank 1's only collective has the number `seq`; it receives 64 MiB from rank 0 ten times.
size_t pair_rates(uint32_t seq) {
  JobBuilder builder(2);
  const uint32_t world = builder.world();
  builder.call(1, world, {.called_ms = 0, .seq = seq});
  for (uint32_t i = 0; i < 10; ++i) {
    const double at = 10 + i * 50.0;
    transfer(builder, 0, 1, at, at, at + 1);
  }
  return measure(builder.build()).pairs.size();
}

TEST(Bandwidth, SendsOfPairsHaveNoRateWhereOlderOnesMayBeGone) {
  EXPECT_EQ(pair_rates(0), 1u);
  EXPECT_EQ(pair_rates(7), 0u) << "numbers begin at 7: something is missing that nobody counted";
}

TEST(Ceilings, GoByTheDriversNameOrThePciNumber) {
  EXPECT_EQ(ceiling("Tesla V100-SXM2-32GB")->link, "NVLink 2");
  EXPECT_EQ(ceiling("PCI 10de:2335")->gbps, ceiling("NVIDIA H200")->gbps);
  EXPECT_EQ(ceiling("NVIDIA L4")->link, "PCIe 4 x16");
  for (const char* unknown : {"", "NVIDIA H100 PCIe", "NVIDIA H200 NVL", "PCI 1002:74a1", "A"})
    EXPECT_FALSE(ceiling(unknown)) << unknown;
}

TEST(Bandwidth, OperationsWithoutGpuTimesHaveNone) {
  JobBuilder builder(2);
  builder.steps(builder.world(), 5, 0, 10, 0);
  const Rates rates = measure(builder.build());
  EXPECT_TRUE(rates.rates.empty());
  EXPECT_EQ(rates.ops, 5u);
  EXPECT_EQ(rates.untimed, 5u);
}

TEST(Bandwidth, NamesThePairThatIsSlowerThanItsEquals) {
  std::vector<Finding> findings;
  kAnalysis.run(pairs(4, {1, 1.02, 2, 0.99}).build(), findings);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(id_text(findings[0].id), "slow-link.intra-host");
  EXPECT_EQ(findings[0].ranks, (std::vector<int32_t>{4, 5}));
  EXPECT_EQ(findings[0].comm, "tp2");
}

TEST(Bandwidth, AmdsLinksAreLookedAtWithAmdsTools) {
  JobBuilder builder = pairs(4, {1, 1.02, 2, 0.99});
  for (uint32_t rank = 0; rank < 8; ++rank)
    builder.process(rank).row.gpu_model = builder.text("AMD Instinct MI300X");
  std::vector<Finding> findings;
  kAnalysis.run(builder.build(), findings);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_TRUE(findings[0].advice.starts_with("Check the xGMI or PCIe state of these GPUs (amd-smi xgmi, "))
      << findings[0].advice;
}

TEST(Bandwidth, AHostWithoutANameIsNone) {
  model::Job job = pairs(4, {1, 1.02, 2, 0.99}).build();
  for (model::JobHost& host : job.hosts) host.name = 0;
  std::vector<Finding> findings;
  kAnalysis.run(job, findings);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_TRUE(findings[0].hosts.empty());
  EXPECT_EQ(findings[0].statement.substr(0, 44), "a link of ranks 4 and 5 is slow: AllReduce o");
}

TEST(Bandwidth, ARankThatIsNotKnownIsNotNamed) {
  model::Job job = pairs(4, {1, 1.02, 2, 0.99}).build();
  job.processes[4].row.rank = -1;
  std::vector<Finding> findings;
  kAnalysis.run(job, findings);
  job.processes[5].row.rank = -1;
  kAnalysis.run(job, findings);
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0].ranks, std::vector<int32_t>{5});
  EXPECT_TRUE(findings[1].ranks.empty());
  EXPECT_EQ(findings[1].statement.substr(0, 45), "a link of processes of unknown rank (node0) i");
}

TEST(Bandwidth, SaysNothingOfEqualsOfTwoOrOfTheNetwork) {
  std::vector<Finding> findings;
  kAnalysis.run(pairs(4, {1, 1.02, 1.1, 0.99}).build(), findings);
  kAnalysis.run(pairs(2, {1, 2}).build(), findings);
  kAnalysis.run(pairs(4, {1, 1, 2, 1}, 1).build(), findings);
  EXPECT_TRUE(findings.empty());
}

TEST(Fit, FindsStartUpTimeAndBandwidth) {
  std::vector<Point> points;
  for (double bytes = 8; bytes < 1e9; bytes *= 4) points.push_back({bytes, 10'000 + bytes / 300, 10});
  Fit line;
  ASSERT_TRUE(fit(points, line));
  EXPECT_NEAR(line.alpha_ns, 10'000, 1);
  EXPECT_NEAR(line.beta_gbps, 300, 0.1);
  EXPECT_LE(line.beta_low_gbps, line.beta_gbps);
  points.resize(2);
  EXPECT_FALSE(fit(points, line));
}

}  // namespace
}  // namespace lockstep::analysis::bandwidth
