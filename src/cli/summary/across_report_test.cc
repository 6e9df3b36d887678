// SPDX-License-Identifier: Apache-2.0
#include "cli/summary/across_report.h"

#include <gtest/gtest.h>

#include "analysis/testing/job_builder.h"

namespace lockstep::cli {
namespace {

using analysis::testing::JobBuilder;

// Two ranks, ten all-reduces of 64 MiB, one in 10 ms; rank 1 always comes 2 ms after rank 0, and data takes 1
// ms.
model::Job job(bool timed) {
  JobBuilder builder(2);
  const uint32_t world = builder.world();
  for (uint32_t rank = 0; rank < 2; ++rank) {
    for (uint32_t i = 0; i < 10; ++i) {
      analysis::testing::Call call{.called_ms = i * 10.0 + 2.0 * rank, .bytes = 64 << 20};
      if (timed) {
        call.gpu_start_ms = call.called_ms + 0.5;
        call.gpu_end_ms = i * 10.0 + 3.5;
      }
      builder.call(rank, world, call);
    }
  }
  return builder.build();
}

TEST(SummaryAcross, SplitsWaitingFromMoving) {
  const analysis::summary::AcrossFigures figures = analysis::summary::across(job(true));
  ASSERT_EQ(figures.ranks.size(), 2u);
  EXPECT_NEAR(figures.ranks[0].waiting_ns, 20e6, 1e3);
  EXPECT_NEAR(figures.ranks[1].waiting_ns, 0, 1e3);
  EXPECT_NEAR(figures.ranks[1].moving_ns, 10e6, 1e3);
  EXPECT_NEAR(figures.ranks[1].late_p50_ns, 2e6, 0.25e6);
  EXPECT_GT(figures.ranks[1].blamed_ns, 10e6);
  EXPECT_EQ(figures.ranks[0].blamed_ns, 0);
  ASSERT_EQ(figures.comms.size(), 1u);
  EXPECT_NEAR(figures.comms[0].waiting_ns, 20e6, 1e3);
  EXPECT_EQ(figures.comms[0].blamed_ns, figures.ranks[1].blamed_ns);
  ASSERT_EQ(figures.rates.size(), 1u);
  EXPECT_NEAR(figures.rates[0].busbw, 67.1, 0.1);
  EXPECT_EQ(figures.rates[0].of_best, 1);
  EXPECT_EQ(figures.steps.source, "period");
  EXPECT_NEAR(figures.steps.length.p50_ns, 10e6, 1);
  EXPECT_NEAR(figures.steps.exposed_at_most.max_ns, 3e6, 1e3) << "rank 0";
  EXPECT_NEAR(figures.steps.exposed_at_most.min_ns, 1e6, 1e3) << "rank 1";
  EXPECT_EQ(figures.rates[0].ceiling, 0);
}

TEST(SummaryAcross, SaysWhatIsNotKnown) {
  const analysis::summary::AcrossFigures figures = analysis::summary::across(job(false));
  EXPECT_EQ(figures.untimed, figures.matched);
  EXPECT_NE(across_text(figures, 20).find("no operation has GPU times"), std::string::npos);
  Json document;
  add_across_json(figures, document);
  EXPECT_TRUE(document["bandwidth_list"].empty());
  EXPECT_TRUE(document["rank_wait_list"][0]["moving_ns"].is_null());
  EXPECT_EQ(document["matched_ops_without_gpu_times"], 10);
}

TEST(SummaryAcross, TellsBandwidthAgainstTheLinks) {
  model::Job h200 = job(true);
  for (model::JobProcess& process : h200.processes)
    process.row.gpu_model = h200.strings.intern("NVIDIA H200");
  const analysis::summary::AcrossFigures figures = analysis::summary::across(h200);
  EXPECT_EQ(figures.rates.at(0).ceiling, 450);
  EXPECT_NE(across_text(figures, 20).find("NVLink 4 450"), std::string::npos) << across_text(figures, 20);
  Json document;
  add_across_json(figures, document);
  EXPECT_NEAR(document["bandwidth_list"][0]["of_ceiling"], 67.1 / 450, 0.001);
}

TEST(SummaryAcross, CutsTablesToTheLimit) {
  const std::string text = across_text(analysis::summary::across(job(true)), 1);
  EXPECT_NE(text.find("... and 1 more"), std::string::npos) << text;
}

}  // namespace
}  // namespace lockstep::cli
