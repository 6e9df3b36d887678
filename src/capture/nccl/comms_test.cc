// SPDX-License-Identifier: Apache-2.0
// Communicators: many, from many threads, coming and going; and threads that do the same.
#include <atomic>
#include <latch>
#include <set>
#include <thread>
#include <vector>

#include "tests/support/nccl_test.h"

namespace lockstep::test {
namespace {

using format::Kind;

class Comms : public NcclCapture {};
class Threads : public NcclCapture {};

// Threads that act in turn and end together, so that none takes over another's log.
template <class Act>
void each_after_the_other(uint32_t count, const Act& act) {
  std::latch all(count);
  std::atomic<uint32_t> done{0};
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < count; ++t) {
    threads.emplace_back([&] {
      act();
      ++done;
      done.notify_one();
      all.arrive_and_wait();
    });
    done.wait(t);
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(Comms, AMillionAreRecorded) {
  constexpr uint32_t kComms = kSanitized ? 50'000 : 1'000'000;
  LksFile file = record([&] {
    NcclPlugin<5> plugin;
    plugin.init();
    plugin.start(abi::kTypeGroup);  // this thread's chunk, before definitions compete for them
    for (uint32_t i = 1; i < kComms; ++i) plugin.finalize(plugin.init(i));
    plugin.start_coll(7);
  });
  EXPECT_EQ(file.count(format::Def::kComm), kComms);
  EXPECT_EQ(file.count(format::Def::kCommEnd), kComms - 1);
  EXPECT_EQ(file.one<format::CollRecord>(Kind::kColl).comm, kComms - 1);
  EXPECT_EQ(file.lost(), 0u);
}

TEST_F(Comms, InitAndFinalizeRaceFromManyThreads) {
  constexpr int kThreads = 16, kRounds = 200;
  LksFile file = record([&] {
    NcclPlugin<5> plugins[kThreads];
    std::atomic<bool> go{false};
    std::vector<std::thread> threads;
    for (NcclPlugin<5>& plugin : plugins) {
      threads.emplace_back([&plugin, &go] {
        while (!go) std::this_thread::yield();
        for (uint64_t i = 0; i < kRounds; ++i) {
          void* context = plugin.init(i);
          plugin.stop(plugin.start_coll(i));
          plugin.finalize(context);
        }
      });
    }
    go = true;
    for (std::thread& thread : threads) thread.join();
  });
  std::set<uint32_t> ids;
  for (const auto& comm : file.all<format::CommDef>(format::Def::kComm)) ids.insert(comm.head.id);
  EXPECT_EQ(ids.size(), static_cast<size_t>(kThreads * kRounds));
  EXPECT_EQ(*ids.rbegin(), static_cast<uint32_t>(kThreads * kRounds - 1));
  EXPECT_EQ(file.count(format::Def::kCommEnd), static_cast<size_t>(kThreads * kRounds));
  EXPECT_EQ(file.count(Kind::kColl) + file.lost_without_a_place(), static_cast<size_t>(kThreads * kRounds));
  EXPECT_EQ(file.lost(capture::kLoss_unknown_context), 0u);
}

TEST_F(Comms, OldVersionsLearnIdAndNameFromEvents) {
  LksFile file = record([] {
    NcclPlugin<3> plugin;
    void* contexts[] = {plugin.init(), plugin.init()};
    char name[] = "tensor-parallel";
    for (int i = 0; i < 100; ++i) {
      for (int comm = 0; comm < 2; ++comm) {
        auto d = plugin.coll(static_cast<uint64_t>(i));
        d.coll.comm_hash = 0x100 + static_cast<uint64_t>(comm);
        d.coll.name = name;
        plugin.start(d, contexts[comm]);
        plugin.start(d, unmapped());
      }
    }
  });
  auto identities = file.all<format::CommIdentityDef>(format::Def::kCommIdentity);
  ASSERT_EQ(identities.size(), 2u);
  EXPECT_EQ(identities[1].head.id, 1u);
  EXPECT_EQ(identities[1].comm_id, 0x101u);
  EXPECT_STREQ(identities[1].name, "tensor-parallel");
  EXPECT_EQ(file.lost(capture::kLoss_unknown_context), 200u);
}

TEST_F(Threads, ShortLivedOnesShareAFewLogs) {
  constexpr int kThreads = 500;
  LksFile file = record([&] {
    NcclPlugin<5> plugin;
    plugin.init();
    plugin.start_coll(0);
    for (uint64_t i = 1; i <= kThreads; ++i) std::thread([&] { plugin.stop(plugin.start_coll(i)); }).join();
  });
  EXPECT_EQ(file.count(Kind::kColl), kThreads + 1u);
  EXPECT_LE(file.logs(), 4u);
  auto threads = file.all<format::ThreadDef>(format::Def::kThread);
  EXPECT_EQ(threads.size(), kThreads + 1u);
  EXPECT_EQ(file.lost(), 0u);
}

// A log that changes hands says from which record on.
TEST_F(Threads, ALogNamesEachOfItsOwners) {
  LksFile file = record([] {
    NcclPlugin<5> plugin;
    plugin.init();
    for (const char* name : {"first", "second"}) {
      std::thread([&] {
        pthread_setname_np(pthread_self(), name);
        plugin.start_coll(0);
      }).join();
    }
  });
  auto threads = file.all<format::ThreadDef>(format::Def::kThread);
  ASSERT_EQ(threads.size(), 2u);
  EXPECT_STREQ(threads[0].name, "first");
  EXPECT_STREQ(threads[1].name, "second");
  EXPECT_NE(threads[0].head.id, threads[1].head.id);
  EXPECT_EQ(threads[1].from_position, file.records(Kind::kColl)[1].position);
}

TEST_F(Threads, MoreThanThereAreLogsAreCounted) {
  constexpr uint32_t kThreads = kSanitized ? 1100 : 1200, kEvents = 20;
  LksFile file = record([&] {
    NcclPlugin<5> plugin;
    plugin.init();
    each_after_the_other(kThreads, [&] {
      for (uint64_t i = 0; i < kEvents; ++i) plugin.stop(plugin.start_coll(i));
    });
  });
  EXPECT_EQ(file.logs(), format::kMaxLogs);
  EXPECT_EQ(file.count(Kind::kColl), format::kMaxLogs * kEvents);
  EXPECT_EQ(file.lost(capture::kLoss_no_log), (kThreads - format::kMaxLogs) * kEvents);
}

// A thread that found a place for its definitions and none for records claims no more: what was claimed is
// published, and the file has every chunk that it counts.
TEST_F(Threads, ThatFindNoRoomLeaveNoHoleInTheFile) {
  constexpr uint64_t kThreads = 12;
  LksFile file = record(settings("deep", "stream:512K"), [] {  // 16 chunks
    NcclPlugin<5> plugin;
    plugin.init();
    each_after_the_other(kThreads, [&] {
      for (uint64_t tries = 0; tries < 3; ++tries) plugin.stop(plugin.start_coll(tries));
    });
  });
  EXPECT_EQ(file.count(Kind::kColl), 3u * 7);
  EXPECT_EQ(file.lost(), 3 * (kThreads - 7));
  EXPECT_EQ(file.header().chunks_claimed, 16u);
  EXPECT_EQ(file.logs(), 8u) << "one has definitions alone";
}

// Threads that hand handles to one another, as user and proxy threads do.
TEST_F(Threads, EventsOfOneCommFromManyThreadsAllArrive) {
  constexpr uint64_t kThreads = 4, kEvents = 5000;
  LksFile file = record([&] {
    NcclPlugin<5> plugin;
    plugin.init();
    LiveHeader(run_).wait_for_room(kThreads * kEvents * (64 + 48 + 32));
    std::atomic<void*> mailbox[kThreads] = {};
    std::vector<std::thread> threads;
    for (uint64_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (uint64_t i = 0; i < kEvents; ++i) {
          void* coll = plugin.start_coll(i);
          void* kernel = plugin.start_kernel_ch(coll);
          plugin.state_with(kernel, 22, 2000);
          plugin.stop(kernel);
          if (void* other = mailbox[(t + 1) % kThreads].exchange(coll)) plugin.stop(other);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
  EXPECT_EQ(file.count(Kind::kColl), kThreads * kEvents);
  EXPECT_EQ(file.count(Kind::kKernelCh), kThreads * kEvents);
  uint64_t stopped = file.count(Kind::kState);
  for (const auto& coll : file.all<format::CollRecord>(Kind::kColl)) stopped += coll.head.stop_after != 0;
  EXPECT_GE(stopped, kThreads * (kEvents - 1));
  EXPECT_EQ(file.lost(), 0u);
}

}  // namespace
}  // namespace lockstep::test
