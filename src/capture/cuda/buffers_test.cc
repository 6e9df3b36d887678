// SPDX-License-Identifier: Apache-2.0
#include "capture/cuda/buffers.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <vector>

namespace lockstep::capture::cuda {
namespace {

TEST(BufferPool, GivesEachOnceAndTheLowestFirst) {
  static BufferPool pool;
  EXPECT_EQ(pool.take(), nullptr) << "nothing was reserved";
  ASSERT_TRUE(pool.reserve());
  std::vector<uint8_t*> all;
  while (uint8_t* buffer = pool.take()) all.push_back(buffer);
  EXPECT_EQ(all.size(), BufferPool::kBuffers);
  EXPECT_EQ(std::set<uint8_t*>(all.begin(), all.end()).size(), all.size());
  all[700][5] = 9;
  for (const uint32_t slot : {700u, 3u}) pool.give_back(all[slot]);
  EXPECT_EQ(pool.taken(), BufferPool::kBuffers - 2);
  EXPECT_EQ(pool.take(), all[3]);
  EXPECT_EQ(pool.take(), all[700]);
  EXPECT_EQ(all[700][5], 0) << "its memory was given back";
  EXPECT_EQ(pool.take(), nullptr);
  EXPECT_TRUE(pool.owns(all[0] + BufferPool::kBufferBytes - 1));
  EXPECT_FALSE(pool.owns(all[BufferPool::kBuffers - 1] + BufferPool::kBufferBytes));
  uint8_t other = 0;
  EXPECT_FALSE(pool.owns(&other));
}

TEST(BufferPool, ThreadsNeverShareOne) {
  static BufferPool pool;
  ASSERT_TRUE(pool.reserve());
  std::vector<std::thread> threads;
  for (uint8_t mark = 1; mark <= 4; ++mark) {
    threads.emplace_back([mark] {
      for (int i = 0; i < 20000; ++i) {
        uint8_t* buffer = pool.take();
        buffer[0] = mark;
        std::atomic_signal_fence(std::memory_order_seq_cst);
        ASSERT_EQ(buffer[0], mark);
        pool.give_back(buffer);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(pool.taken(), 0u);
}

}  // namespace
}  // namespace lockstep::capture::cuda
