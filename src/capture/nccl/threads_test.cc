// SPDX-License-Identifier: Apache-2.0
// Threads that begin: many at once, and while the file system hangs.
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <atomic>
#include <barrier>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/support/nccl_test.h"

namespace {

std::atomic<bool> g_hold{false}, g_held{false};

bool is_keeper() {
  char name[16] = {};
  prctl(PR_GET_NAME, name);
  return strcmp(name, "lockstep") == 0;
}

}  // namespace

// Stands before libc's: the keeper waits in it as long as the test wants.
extern "C" __attribute__((visibility("default"))) int fallocate(int fd, int mode, off_t offset, off_t bytes) {
  if (g_hold && is_keeper()) {
    g_held = true;
    g_held.notify_all();
    g_hold.wait(true);
  }
  return static_cast<int>(syscall(SYS_fallocate, fd, mode, offset, bytes));
}

namespace lockstep::test {
namespace {

using format::Kind;

class StartingThreads : public NcclCapture {};

// No thread depends on what the keeper has prepared.
TEST_F(StartingThreads, ManyAtOnceLoseNothing) {
  constexpr size_t kThreads = 300, kEvents = 100;
  LksFile file = record([] {
    NcclPlugin<5> plugin;
    plugin.init();
    std::barrier begin(kThreads), end(kThreads);
    std::vector<std::thread> threads;
    for (size_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&] {
        begin.arrive_and_wait();
        for (size_t i = 0; i < kEvents; ++i) plugin.stop(plugin.start_coll(i));
        end.arrive_and_wait();  // none ends before all have begun: no log is used twice
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
  EXPECT_EQ(file.logs(), kThreads);
  EXPECT_EQ(file.count(Kind::kColl), kThreads * kEvents);
  EXPECT_EQ(file.lost(), 0u);
}

// The keeper is stuck in the file system; comms and threads come and go all the same.
TEST_F(StartingThreads, DoNotWaitForTheKeeper) {
  constexpr int kThreads = 100;
  LksFile file = record([] {
    NcclPlugin<5> plugin;
    plugin.init(1);
    g_hold = true;
    for (uint64_t i = 0; !g_held; ++i) plugin.stop(plugin.start_coll(i));
    for (int i = 0; i < kThreads; ++i) {
      std::thread([&] {
        NcclPlugin<5> own;
        own.init(2);
        auto d = own.p2p(1);
        own.stop(own.start(d));
        own.finalize(own.context);
      }).join();
    }
    g_hold = false;
    g_hold.notify_all();
  });
  EXPECT_EQ(file.count(Kind::kP2p), static_cast<size_t>(kThreads));
  EXPECT_EQ(file.count(format::Def::kCommEnd), static_cast<size_t>(kThreads));
}

// Chunks of definitions that were written are used again, by another thread as well.
TEST_F(StartingThreads, TakeOverChunksOfEachOther) {
  constexpr int kThreads = 3, kShapes = 20'000;
  LksFile file = record([&] {
    NcclPlugin<5> plugin;
    plugin.init(1);
    const LiveHeader live(run_);
    constexpr uint64_t kBytes = sizeof(format::CollRecord) + sizeof(format::ShapeDef);
    constexpr int kBurst = 500;
    std::atomic<uint64_t> shapes = 0;  // relaxed: it orders nothing between the threads
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < kShapes; ++i) {
          if (i % kBurst == 0)
            live.wait_for_room((shapes.fetch_add(kBurst, std::memory_order_relaxed) + kThreads * kBurst) *
                               kBytes);
          auto d = plugin.coll(static_cast<uint64_t>(i));
          d.coll.root = i;
          plugin.stop(plugin.start(d));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
  EXPECT_EQ(file.count(Kind::kColl), size_t{kThreads} * kShapes);
  EXPECT_EQ(file.lost(), 0u);
}

}  // namespace
}  // namespace lockstep::test
