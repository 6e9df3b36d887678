// SPDX-License-Identifier: Apache-2.0
// Ring retention: the newest records, the number of those that went, and statistics of all.
#include <map>
#include <thread>
#include <vector>

#include "tests/support/nccl_test.h"

namespace lockstep::test {
namespace {

using format::Kind;

class Ring : public NcclCapture {};

TEST_F(Ring, KeepsTheNewestAndCountsTheRest) {
  constexpr uint64_t kEvents = 200'000;
  LksFile file = record(settings("deep", "ring:1M"), [] {
    NcclPlugin<5> plugin;
    plugin.init();
    for (uint64_t i = 0; i < kEvents; ++i) plugin.stop(plugin.start_coll(i));
  });
  auto colls = file.all<format::CollRecord>(Kind::kColl);
  EXPECT_GT(colls.size(), 10'000u);
  EXPECT_EQ(colls.size() + file.lost(capture::kLoss_overwritten), kEvents);
  EXPECT_EQ(file.lost(), file.lost(capture::kLoss_overwritten));
  for (uint64_t i = 0; i < colls.size(); ++i) ASSERT_EQ(colls[i].seq, kEvents - colls.size() + i);
  EXPECT_LE(file.size(), (1u << 20) + format::kHeaderBytes);
}

TEST_F(Ring, IsReadableWhenKilled) {
  Child child = Child::start(settings("deep", "ring:1M"), [&] {
    NcclPlugin<5> plugin;
    plugin.init();
    for (uint64_t i = 0;; ++i) plugin.stop(plugin.start_coll(i));
  });
  LiveHeader::wait([&] { return !run_.files().empty(); });
  sleep_ms(100);
  kill(child.pid(), SIGKILL);
  EXPECT_EQ(child.wait().signal, SIGKILL);
  auto colls = run_.file().all<format::CollRecord>(Kind::kColl);
  ASSERT_GT(colls.size(), 1000u);
  for (size_t i = 1; i < colls.size(); ++i) ASSERT_EQ(colls[i].seq, colls[i - 1].seq + 1);
}

TEST_F(Ring, TotalsOfTheHistogramsAreExact) {
  constexpr uint64_t kThreads = 4, kRounds = 20'000;
  LksFile file = record(settings("deep", "ring:2M"), [] {
    NcclPlugin<5> plugin;
    plugin.init();
    std::vector<std::thread> threads;
    for (uint64_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (uint64_t i = 0; i < kRounds; ++i) {
          auto d = plugin.coll(i, nullptr, uint64_t{1} << (i % 8), static_cast<int>(t));
          void* coll = plugin.start(d);
          plugin.stop(coll);
          auto p2p = plugin.p2p(1, nullptr, 10);
          plugin.stop(plugin.start(p2p));
          void* kernel = plugin.start_kernel_ch(coll, 0, 1'000'000);
          plugin.state_with(kernel, 22, 1'000'000 + 2000 * (i % 3));
          plugin.stop(kernel);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
  EXPECT_GT(file.lost(capture::kLoss_overwritten), 0u);
  uint64_t ops[32] = {}, bytes[32] = {}, timed = 0, nanoseconds = 0, bucketed = 0;
  for (const auto& cell : file.histogram()) {
    ops[cell.key & 0xff] += cell.ops;
    bytes[cell.key & 0xff] += cell.bytes;
    timed += cell.timed;
    nanoseconds += cell.sum_ns;
    for (uint32_t bucket : cell.buckets) bucketed += bucket;
    EXPECT_LE(cell.max_ns, 4000u);
    EXPECT_LE(cell.first_ticks, cell.last_ticks);
  }
  constexpr auto kColl = static_cast<size_t>(Kind::kColl), kP2p = static_cast<size_t>(Kind::kP2p);
  EXPECT_EQ(ops[kColl], kThreads * kRounds);
  EXPECT_EQ(bytes[kColl], kThreads * kRounds / 8 * 255 * 4);
  EXPECT_EQ(ops[kP2p], kThreads * kRounds);
  EXPECT_EQ(bytes[kP2p], kThreads * kRounds * 40);
  // A kernel whose operation was pushed out of the table of recent ones is not timed.
  EXPECT_LE(timed, kThreads * kRounds);
  EXPECT_GT(timed, kThreads * kRounds * 9 / 10);
  EXPECT_EQ(bucketed, timed);
  EXPECT_LE(nanoseconds, kThreads * (kRounds + 2) / 3 * 6000);
  EXPECT_EQ(file.lost(), file.lost(capture::kLoss_overwritten));
}

TEST_F(Ring, MoreThreadsThanItCanServeAreCounted) {
  constexpr uint64_t kThreads = 40, kEvents = 2000;
  LksFile file = record(settings("deep", "ring:1M"), [] {
    NcclPlugin<5> plugin;
    plugin.init();
    std::vector<std::thread> threads;
    for (uint64_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&] {
        for (uint64_t i = 0; i < kEvents; ++i) plugin.stop(plugin.start_coll(i));
        sleep_ms(50);  // all of them live at the same time
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
  uint64_t lost = file.lost(capture::kLoss_overwritten) + file.lost(capture::kLoss_no_chunk);
  EXPECT_EQ(file.count(Kind::kColl) + lost, kThreads * kEvents);
  EXPECT_LE(file.size(), (1u << 20) + format::kHeaderBytes);
}

TEST_F(Ring, ALateStopOfAnOverwrittenRecordIsKeptApart) {
  LksFile file = record(settings("deep", "ring:1M"), [] {
    NcclPlugin<5> plugin;
    plugin.init();
    void* early = plugin.start_coll(0);
    for (uint64_t i = 1; i < 50'000; ++i) plugin.stop(plugin.start_coll(i));
    plugin.state(early, 22);
    plugin.stop(early);
  });
  auto states = file.all<format::StateRecord>(Kind::kState);
  ASSERT_EQ(states.size(), 2u);
  EXPECT_EQ(states[1].head.link, format::kStateStop);
  EXPECT_EQ(file.at(states[1].target).bytes, nullptr);
  for (const auto& coll : file.all<format::CollRecord>(Kind::kColl)) EXPECT_NE(coll.head.stop_after, 0u);
}

TEST_F(Ring, TheSmallestStillWorks) {
  LksFile file = record(settings("deep", "ring:1"), [] {
    NcclPlugin<5> plugin;
    plugin.init();
    for (uint64_t i = 0; i < 50'000; ++i) plugin.stop(plugin.start_coll(i));
  });
  EXPECT_EQ(file.count(Kind::kColl) + file.lost(capture::kLoss_overwritten), 50'000u);
}

}  // namespace
}  // namespace lockstep::test
