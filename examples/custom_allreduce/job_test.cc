// SPDX-License-Identifier: Apache-2.0
#include "job.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace custom_allreduce {
namespace {

// The ranks as threads of this program.
template <class Body>
void run_ranks(const Arena& arena, Body body) {
  std::vector<std::thread> threads;
  for (int r = 0; r < arena.ranks(); ++r) {
    threads.emplace_back([&, r] {
      Rank rank(arena, r);
      body(rank);
    });
  }
  for (auto& thread : threads) thread.join();
}

TEST(CustomAllreduceTest, AWrongElementIsNoSum) {
  std::vector<float> out;
  for (size_t i = 0; i < 100; ++i) out.push_back(6 * contribution(0, 3, 40 + i));
  EXPECT_TRUE(is_sum(out.data(), 40, out.size(), 3, 3));
  EXPECT_FALSE(is_sum(out.data(), 41, out.size(), 3, 3));
  EXPECT_FALSE(is_sum(out.data(), 40, out.size(), 4, 3));
  out.back() += 1;
  EXPECT_FALSE(is_sum(out.data(), 40, out.size(), 3, 3));
}

TEST(CustomAllreduceTest, BothAllReducesSumAnyNumberOfElements) {
  for (int ranks : {1, 2, 3, 5}) {
    const Arena arena(ranks, 1000);
    ASSERT_TRUE(arena.ok());
    run_ranks(arena, [&](Rank& rank) {
      std::vector<float> out(1000);
      uint64_t n = 0;
      for (size_t count : {size_t{1}, size_t{2}, size_t{7}, size_t{1000}}) {
        for (auto all_reduce : {&Rank::all_reduce_one_shot, &Rank::all_reduce_two_shot}) {
          for (size_t i = 0; i < count; ++i) rank.input()[i] = contribution(rank.rank(), n, i);
          (rank.*all_reduce)(out.data(), count);
          EXPECT_TRUE(is_sum(out.data(), 0, count, ranks, n)) << ranks << " ranks, " << count << " elements";
          ++n;
        }
      }
    });
  }
}

TEST(CustomAllreduceTest, ARankThatComputesWronglyIsFoundByAll) {
  const Arena arena(2, 64);
  ASSERT_TRUE(arena.ok());
  run_ranks(arena, [&](Rank& rank) {
    std::vector<float> out(64);
    for (size_t i = 0; i < 64; ++i) rank.input()[i] = contribution(rank.rank(), 0, i);
    if (rank.rank() == 1) rank.input()[63] += 1;
    rank.all_reduce_two_shot(out.data(), 64);
    EXPECT_FALSE(is_sum(out.data(), 0, 64, 2, 0));
  });
}

TEST(CustomAllreduceTest, AJobIsRightWithALateRank) {
  Options options;
  options.ranks = 3;
  options.steps = 2;
  options.iterations = 1;
  options.min_bytes = 64;
  options.max_bytes = 4096;
  options.slow_rank = 2;
  options.slow_us = 500;
  const Arena arena(options.ranks, options.max_bytes / sizeof(float));
  ASSERT_TRUE(arena.ok());
  run_ranks(arena, [&](Rank& rank) {
    const Outcome outcome = run_rank(rank, options);
    EXPECT_EQ(outcome.wrong, "");
    EXPECT_EQ(outcome.operations, 2u * 4 * 4);
    EXPECT_GE(outcome.seconds, 32 * 0.0005);
  });
}

}  // namespace
}  // namespace custom_allreduce
