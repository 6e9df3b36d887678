// SPDX-License-Identifier: Apache-2.0
#include "capture/nccl/chain/pairs.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "tests/support/sanitizers.h"

namespace lockstep::capture::nccl {
namespace {

constexpr uint32_t kHeld = 32'768;  // pairs of one room

uint64_t handle_of(uint32_t log, uint64_t event) { return format::make_handle(4, log, 4 + 4 * event); }
PairFacts facts_of(uint64_t n) {
  return {static_cast<uint16_t>(n),
          static_cast<uint16_t>(n >> 3),
          static_cast<uint8_t>(n % 16),
          3,
          false,
          n % 2 == 0};
}
HandlePairs* new_pairs() { return new HandlePairs(); }

TEST(HandlePairs, FindsWhatItWasGivenAndNothingElse) {
  std::unique_ptr<HandlePairs> pairs(new_pairs());
  EXPECT_FALSE(pairs->find(HandlePairs::kTasks, handle_of(1, 0)).known);
  for (uint64_t i = 0; i < 1000; ++i)
    EXPECT_TRUE(pairs->put(HandlePairs::kTasks, handle_of(1, i), 77 * i, facts_of(i)));
  for (uint64_t i = 0; i < 1000; ++i) {
    const auto found = pairs->find(HandlePairs::kTasks, handle_of(1, i));
    ASSERT_TRUE(found.known);
    EXPECT_EQ(found.other, 77 * i);
    EXPECT_EQ(found.facts.own_mask, static_cast<uint16_t>(i));
    EXPECT_EQ(found.facts.other_mask, static_cast<uint16_t>(i >> 3));
    EXPECT_EQ(found.facts.type, i % 16);
    EXPECT_EQ(found.facts.mask, 3);
    EXPECT_EQ(found.facts.without_states, i % 2 == 0);
    EXPECT_FALSE(found.facts.stopped);
    EXPECT_FALSE(pairs->find(HandlePairs::kTasks, handle_of(1, i) + 1).known);
    EXPECT_FALSE(pairs->find(HandlePairs::kLeaves, handle_of(1, i)).known);
  }
}

// A step that NCCL starts again has one handle of ours, and each time a new one of the other.
TEST(HandlePairs, TheNewestOfAHandleCounts) {
  std::unique_ptr<HandlePairs> pairs(new_pairs());
  for (uint64_t other = 1; other <= 5; ++other)
    EXPECT_TRUE(pairs->put(HandlePairs::kLeaves, handle_of(1, 9), other, facts_of(1)));
  EXPECT_EQ(pairs->find(HandlePairs::kLeaves, handle_of(1, 9)).other, 5u);
}

TEST(HandlePairs, KeepsTheNewestAndTellsOfOpenOnesThatGo) {
  std::unique_ptr<HandlePairs> pairs(new_pairs());
  uint64_t lost = 0;
  for (uint64_t i = 0; i < 10 * kHeld; ++i)
    lost += !pairs->put(HandlePairs::kTasks, handle_of(1, i), i + 1, facts_of(i));
  EXPECT_EQ(lost, 9u * kHeld);
  for (uint64_t i = 9 * kHeld + 8; i < 10 * kHeld; ++i)
    ASSERT_EQ(pairs->find(HandlePairs::kTasks, handle_of(1, i)).other, i + 1);
  EXPECT_FALSE(pairs->find(HandlePairs::kTasks, handle_of(1, 0)).known);
}

TEST(HandlePairs, AnOpenEventOutlivesAnyNumberThatStopped) {
  std::unique_ptr<HandlePairs> pairs(new_pairs());
  EXPECT_TRUE(pairs->put(HandlePairs::kLeaves, handle_of(1, 0), 4711, facts_of(0)));
  for (uint64_t i = 1; i < 20 * kHeld; ++i) {
    ASSERT_TRUE(pairs->put(HandlePairs::kLeaves, handle_of(1, i), i, facts_of(i)));
    pairs->note_stop(HandlePairs::kLeaves, handle_of(1, i));
  }
  EXPECT_EQ(pairs->find(HandlePairs::kLeaves, handle_of(1, 0)).other, 4711u);
}

// What is not the other plugin's may go without a word.
TEST(HandlePairs, EventsThatTheOtherDoesNotHaveAreNotLost) {
  std::unique_ptr<HandlePairs> pairs(new_pairs());
  for (uint64_t i = 0; i < 3 * kHeld; ++i)
    ASSERT_TRUE(pairs->put(HandlePairs::kTasks, handle_of(1, i), 0, facts_of(i)));
}

TEST(HandlePairs, CapturedCallsMayGoWithoutAWord) {
  std::unique_ptr<HandlePairs> pairs(new_pairs());
  for (uint64_t i = 0; i < 3 * kHeld; ++i)
    ASSERT_TRUE(pairs->put(HandlePairs::kCaptured, handle_of(1, i), i + 1, facts_of(i)));
  EXPECT_EQ(pairs->find(HandlePairs::kCaptured, handle_of(1, 3 * kHeld - 1)).room, HandlePairs::kCaptured);
}

// More than there is room for, from all sides: what is found is what was put.
TEST(HandlePairs, NeverMixesTwoEvents) {
  std::unique_ptr<HandlePairs> pairs(new_pairs());
  const uint64_t events = test::kSanitized ? 20'000 : 300'000;
  std::atomic<uint64_t> wrong{0}, found{0};
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < events; ++i) {
        const uint64_t handle = handle_of(t + 1, i * 97 % kHeld + i / kHeld * kHeld);
        pairs->put(HandlePairs::kTasks, handle, ~handle, facts_of(handle / 4 % 1024));
        for (uint32_t other = 1; other <= 4; ++other) {
          const uint64_t sought = handle_of(other, i * 97 % kHeld);
          const auto pair = pairs->find(HandlePairs::kTasks, sought);
          if (!pair.known) continue;
          ++found;
          wrong += pair.other != ~sought || pair.facts.own_mask != sought / 4 % 1024;
        }
        pairs->note_stop(HandlePairs::kTasks, handle);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_GT(found, events / 100);
}

}  // namespace
}  // namespace lockstep::capture::nccl
