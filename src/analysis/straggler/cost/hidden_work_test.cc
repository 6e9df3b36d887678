// SPDX-License-Identifier: Apache-2.0
#include "analysis/straggler/cost/hidden_work.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "analysis/straggler/lateness/lateness.h"
#include "analysis/testing/job_builder.h"

namespace lockstep::analysis::straggler {
namespace {

constexpr uint32_t kRowSteps = 20, kInRow = 6, kRowRanks = 4, kRowLate = 2;
constexpr double kWorkMs = 1, kReduceMs = 0.1;

enum class Work : uint8_t { kBeside, kAnew };

// Steps of a row of reductions, for each of which every rank works 1 ms: beside the one before, or once that
// is through. Rank kRowLate comes `late_ms(step)` later to the first, and works so much longer for each if
// `longer`.
struct BucketRow {
  Work work = Work::kBeside;
  std::function<double(uint32_t step)> late_ms = [](uint32_t) { return 2.0; };
  bool longer = false;
  bool timed = true;
  bool another = false;  // each rank calls something on another communicator in between

  // Of a rank, by operation of its communicator, ms.
  std::vector<float> hidden(uint32_t rank) const {
    testing::JobBuilder builder(kRowRanks);
    const uint32_t world = builder.world(), beside = builder.world("beside");
    double begin = 1;
    for (uint32_t step = 0; step < kRowSteps; ++step) {
      std::vector<double> ready(kRowRanks, begin + 3);
      ready[kRowLate] += late_ms(step);
      double end = begin;
      for (uint32_t k = 0; k < kInRow; ++k) {
        std::vector<double> start;
        for (const double at : ready) start.push_back(std::max(at, end));
        end = *std::max_element(start.begin(), start.end()) + kReduceMs;
        for (uint32_t r = 0; r < kRowRanks; ++r) {
          testing::Call call{.called_ms = begin + 0.1 * k, .bytes = k == 0 ? 64u : 1u << 20};
          if (timed) call.gpu_start_ms = start[r], call.gpu_end_ms = end;
          builder.call(r, world, call);
          if (another) builder.call(r, beside, {.called_ms = begin + 0.1 * k + 0.05});
          ready[r] = (work == Work::kBeside ? ready[r] : end) + kWorkMs +
                     (longer && r == kRowLate ? late_ms(step) : 0);
        }
      }
      begin = end;
    }
    const model::Job job = builder.build();
    std::vector<ExclusiveTimes> times;
    measure(job, {}, &times);
    std::vector<float> out = HiddenWork(job, times).of(rank);
    for (float& ns : out) ns /= 1e6f;
    return out;
  }
};

float total(const std::vector<float>& hidden) {
  float sum = 0;
  for (const float ms : hidden) sum += ms;
  return sum;
}

TEST(HiddenWork, IsAsMuchAsTheLateRankWorksWhereTheOthersAreThroughFirst) {
  const auto hidden = BucketRow{}.hidden(0);
  ASSERT_EQ(hidden.size(), kRowSteps * kInRow);
  for (uint32_t op = 0; op < hidden.size(); ++op)
    EXPECT_NEAR(hidden[op], op % kInRow == 0 ? 0 : kWorkMs - kReduceMs, 1e-3) << op;
  EXPECT_EQ(total(BucketRow{}.hidden(kRowLate)), 0) << "it waits for nobody";
}

double uneven_ms(uint32_t step) { return 0.4 + 0.05 * (step * 7 % 5); }

TEST(HiddenWork, IsWhatTheyWaitedWhereTheyAreNotThrough) {
  const auto hidden = BucketRow{.late_ms = uneven_ms}.hidden(0);
  for (uint32_t op = 0; op < hidden.size(); ++op)
    EXPECT_NEAR(hidden[op], op % kInRow == 0 ? 0 : uneven_ms(op / kInRow), 1e-3) << op;
}

TEST(HiddenWork, IsNoneWhereWorkStartsOverAndOneWorksLonger) {
  const BucketRow row{.work = Work::kAnew, .late_ms = uneven_ms, .longer = true};
  EXPECT_EQ(total(row.hidden(0)), 0);
}

TEST(HiddenWork, IsNotToldWhereNothingVaries) {
  const auto always = [](uint32_t) { return 0.5; };
  EXPECT_EQ(total(BucketRow{.work = Work::kAnew, .late_ms = always, .longer = true}.hidden(0)), 0);
}

TEST(HiddenWork, IsUnknownWithoutGpuTimesAndAcrossCommunicators) {
  EXPECT_EQ(total(BucketRow{.timed = false}.hidden(0)), 0);
  EXPECT_EQ(total(BucketRow{.another = true}.hidden(0)), 0);
}

}  // namespace
}  // namespace lockstep::analysis::straggler
