// SPDX-License-Identifier: Apache-2.0
// Ring retention: the newest records, the number of those that went, and statistics of all.
#include <algorithm>
#include <atomic>
#include <barrier>
#include <map>
#include <thread>
#include <vector>

#include "tests/support/nccl_test.h"

namespace lockstep::test {
namespace {

using format::Kind;

class Ring : public NcclCapture {
 protected:
  static int64_t now_ns(clockid_t clock) {
    timespec now{};
    clock_gettime(clock, &now);
    return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  }
};

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
  auto* memory = mmap(nullptr, sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto* written = new (memory) std::atomic<uint64_t>{0};
  Child child = Child::start(settings("deep", "ring:1M"), [&] {
    NcclPlugin<5> plugin;
    plugin.init();
    for (uint64_t i = 0;; ++i, ++*written) plugin.stop(plugin.start_coll(i));
  });
  LiveHeader::wait([&] { return *written > 100'000; });
  kill(child.pid(), SIGKILL);
  EXPECT_EQ(child.wait().signal, SIGKILL);
  auto colls = run_.file().all<format::CollRecord>(Kind::kColl);
  ASSERT_GT(colls.size(), 1000u);
  for (size_t i = 1; i < colls.size(); ++i) ASSERT_EQ(colls[i].seq, colls[i - 1].seq + 1);
  munmap(memory, sizeof(uint64_t));
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

// One thread has had the ring to itself; those that come later keep a window each, beside the ring if need
// be.
TEST_F(Ring, EveryThreadKeepsARecentWindow) {
  constexpr uint64_t kThreads = 40, kEvents = 2000;
  LksFile file = record(settings("deep", "ring:1M"), [] {
    NcclPlugin<5> plugin;
    plugin.init();
    for (uint64_t i = 0; i < 100'000; ++i) plugin.stop(plugin.start_coll(i));
    std::vector<std::thread> threads;
    std::barrier all_live(kThreads);
    for (uint64_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&] {
        all_live.arrive_and_wait();
        for (uint64_t i = 0; i < kEvents; ++i) plugin.stop(plugin.start_coll(i));
        all_live.arrive_and_wait();
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
  std::map<uint32_t, std::vector<uint64_t>> kept;
  for (const Entry& entry : file.records(Kind::kColl))
    kept[entry.log].push_back(entry.as<format::CollRecord>().seq);
  EXPECT_EQ(kept.size(), kThreads + 1);
  for (const auto& [log, seqs] : kept) {
    EXPECT_GT(seqs.size(), 600u) << "at least a full chunk, log " << log;
    for (size_t i = 1; i < seqs.size(); ++i) ASSERT_EQ(seqs[i], seqs[i - 1] + 1);
    EXPECT_EQ(seqs.back(), log == 1 ? 99'999u : kEvents - 1);
  }
  EXPECT_EQ(file.count(Kind::kColl) + file.lost(capture::kLoss_overwritten), 100'000 + kThreads * kEvents);
  EXPECT_EQ(file.lost(), file.lost(capture::kLoss_overwritten));
  EXPECT_LE(file.size(), (1u << 20) + kThreads * 4 * format::kChunkBytes + format::kHeaderBytes);
}

// Threads that write at the same time end up with equal parts, whoever came first.
TEST_F(Ring, IsSharedEqually) {
  constexpr uint64_t kThreads = 4;
  LksFile file = record(settings("deep", "ring:4M"), [] {
    NcclPlugin<5> plugin;
    plugin.init();
    for (uint64_t i = 0; i < 200'000; ++i) plugin.stop(plugin.start_coll(i));
    std::vector<std::thread> threads;
    std::barrier turn(kThreads);
    for (uint64_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&] {
        for (uint64_t round = 0; round < 200; ++round) {
          turn.arrive_and_wait();
          for (uint64_t i = 0; i < 1000; ++i) plugin.stop(plugin.start_coll(i));
        }
        turn.arrive_and_wait();
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
  std::map<uint32_t, uint64_t> kept;
  for (const Entry& entry : file.records(Kind::kColl)) ++kept[entry.log];
  uint64_t most = 0, least = UINT64_MAX;
  for (const auto& [log, records] : kept) {
    if (log == 1) continue;  // the main thread, which has stopped writing, keeps what it has
    most = std::max(most, records);
    least = std::min(least, records);
  }
  EXPECT_GT(least * 3, most);
}

// Whoever was alone for a while holds most of the ring, and goes on writing: it gives back what is more than
// its share.
TEST_F(Ring, WhoFilledItFirstGivesBack) {
  constexpr uint64_t kThreads = 4;
  LksFile file = record(settings("deep", "ring:4M"), [] {
    NcclPlugin<5> plugin;
    plugin.init();
    for (uint64_t i = 0; i < 200'000; ++i) plugin.stop(plugin.start_coll(i));
    std::vector<std::thread> threads;
    std::barrier turn(kThreads);
    auto write = [&] {
      for (uint64_t round = 0; round < 200; ++round) {
        turn.arrive_and_wait();
        for (uint64_t i = 0; i < 1000; ++i) plugin.stop(plugin.start_coll(i));
      }
    };
    for (uint64_t t = 1; t < kThreads; ++t) threads.emplace_back(write);
    write();
    for (std::thread& thread : threads) thread.join();
  });
  std::map<uint32_t, uint64_t> kept;
  for (const Entry& entry : file.records(Kind::kColl)) ++kept[entry.log];
  ASSERT_EQ(kept.size(), kThreads);
  uint64_t most = 0, least = UINT64_MAX;
  for (const auto& [log, records] : kept) {
    most = std::max(most, records);
    least = std::min(least, records);
  }
  EXPECT_GT(least * 3, most) << "the first keeps " << kept[1];
}

TEST_F(Ring, AStateOfAnOverwrittenRecordIsCounted) {
  LksFile file = record(settings("deep", "ring:1M"), [] {
    NcclPlugin<5> plugin;
    plugin.init();
    void* early = plugin.start_coll(0);
    plugin.stop(early);
    for (uint64_t i = 1; i < 50'000; ++i) plugin.stop(plugin.start_coll(i));
    plugin.state(early, 22);
    plugin.stop(early);
    std::thread([&] { plugin.stop(early); }).join();
  });
  EXPECT_EQ(file.lost(capture::kLoss_stale_target), 3u);
  EXPECT_EQ(file.count(Kind::kState), 0u);
  for (const auto& coll : file.all<format::CollRecord>(Kind::kColl)) EXPECT_GT(coll.seq, 0u);
}

// What is under way stays in the file, however much is written over it.
TEST_F(Ring, AnOpenEventMovesAlong) {
  LksFile file = record(settings("deep", "ring:1M"), [] {
    NcclPlugin<5> plugin;
    plugin.init();
    void* coll = plugin.start_coll(1'000'000);
    void* kernel = plugin.start_kernel_ch(coll, 5, 777);
    void* stopped_here = plugin.start_coll(1'000'001);
    void* stopped_elsewhere = plugin.start_coll(1'000'002);
    for (uint64_t i = 0; i < 100'000; ++i) plugin.stop(plugin.start_coll(i));
    plugin.stop(stopped_here);
    plugin.stop(stopped_here);
    std::thread([&] { plugin.stop(stopped_elsewhere); }).join();
    plugin.state_with(kernel, 22, 999);
    for (uint64_t i = 100'000; i < 101'000; ++i) plugin.stop(plugin.start_coll(i));
  });
  std::map<uint64_t, format::CollRecord> colls;
  for (const auto& coll : file.all<format::CollRecord>(Kind::kColl)) {
    EXPECT_TRUE(colls.emplace(coll.seq, coll).second) << "twice: " << coll.seq;
  }
  ASSERT_TRUE(colls.count(1'000'000));
  EXPECT_EQ(colls[1'000'000].head.stop_after, 0u);
  EXPECT_EQ(colls[1'000'000].send_buffer, 0x7000'0000'1000u);
  ASSERT_TRUE(colls.count(1'000'001));
  EXPECT_NE(colls[1'000'001].head.stop_after, 0u);
  EXPECT_EQ(file.lost(capture::kLoss_repeated_stop), 1u);
  auto kernel = file.one<format::KernelChRecord>(Kind::kKernelCh);
  EXPECT_EQ(kernel.head.link, 5);
  EXPECT_EQ(kernel.gpu_start, 777u);
  EXPECT_EQ(kernel.gpu_stop, 999u);
  std::map<uint64_t, uint64_t> names;  // by the handle that the host knows
  for (const auto& link : file.all<format::LinkRecord>(Kind::kLink)) {
    EXPECT_EQ(link.head.flags, format::kFlagMoved);
    names[link.parent] = link.child;
  }
  ASSERT_TRUE(names.count(kernel.parent));
  EXPECT_EQ(file.at(names[kernel.parent]).as<format::CollRecord>().seq, 1'000'000u);
  auto stop = file.one<format::StateRecord>(Kind::kState);
  EXPECT_EQ(stop.head.link, format::kStateStop);
  EXPECT_EQ(file.at(names[stop.target]).as<format::CollRecord>().seq, 1'000'002u);
  EXPECT_EQ(file.count(Kind::kColl) + file.lost(capture::kLoss_overwritten), 101'003u);
  EXPECT_EQ(file.lost(), file.lost(capture::kLoss_overwritten) + 1);
}

// What another thread has stopped is not open, and takes no place of what is.
TEST_F(Ring, AnEventThatEndedElsewhereGoesWithItsChunk) {
  LksFile file = record(settings("deep", "ring:1M"), [] {
    constexpr uint64_t kTurn = 50'000;
    NcclPlugin<5> plugin;
    plugin.init();
    const auto turn = [&plugin] {
      for (uint64_t i = 0; i < kTurn; ++i) plugin.stop(plugin.start_coll(i));
    };
    std::vector<void*> handed;
    for (uint64_t i = 0; i < 20; ++i) handed.push_back(plugin.start_coll(2'000'000 + i));
    turn();  // they move, as nobody has stopped them
    for (uint64_t i = 20; i < 100; ++i) handed.push_back(plugin.start_coll(2'000'000 + i));
    plugin.start_coll(1'000'000);
    std::thread([&] {
      for (void* coll : handed) plugin.stop(coll);
      turn();
    }).join();
    turn();
    turn();
  });
  std::vector<uint64_t> open;
  for (const auto& coll : file.all<format::CollRecord>(Kind::kColl)) {
    if (coll.head.stop_after == 0) open.push_back(coll.seq);
  }
  EXPECT_EQ(open, std::vector<uint64_t>{1'000'000});
  EXPECT_EQ(file.lost(), file.lost(capture::kLoss_overwritten));
}

// It moves once more after that: what comes in between names the handle that stays.
TEST_F(Ring, AStateOfAMovedEventBeyondTheWindowNamesItsHandle) {
  LksFile file = record(settings("deep", "ring:8M"), [] {
    NcclPlugin<5> plugin;
    plugin.init();
    void* coll = plugin.start_coll(1'000'000);
    const auto fill = [&plugin](uint64_t from, uint64_t to) {
      for (uint64_t i = from; i < to; ++i) plugin.stop(plugin.start_coll(i));
    };
    fill(0, 200'000);
    plugin.state(coll, 22);
    fill(200'000, 300'000);
  });
  const auto links = file.all<format::LinkRecord>(Kind::kLink);
  ASSERT_FALSE(links.empty());
  const format::LinkRecord& moved = links.back();
  EXPECT_EQ(file.at(moved.child).as<format::CollRecord>().seq, 1'000'000u);
  EXPECT_EQ(file.one<format::StateRecord>(Kind::kState).target, moved.parent);
}

// What a hang looks like to another program: the process lives, and one event of an older past is open.
TEST_F(Ring, ShowsALiveProcessWhatIsUnderWay) {
  int ready[2], end[2];
  ASSERT_EQ(pipe(ready) | pipe(end), 0);
  int64_t before = now_ns(CLOCK_MONOTONIC);
  Child child = Child::start(settings("deep", "ring:1M"), [&] {
    NcclPlugin<5> plugin;
    plugin.init();
    plugin.start_coll(1'000'000);
    for (uint64_t i = 0; i < 100'000; ++i) plugin.stop(plugin.start_coll(i));
    char byte = 0;
    EXPECT_EQ(write(ready[1], &byte, 1), 1);
    EXPECT_EQ(read(end[0], &byte, 1), 1);
  });
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  LksFile file = run_.file();
  std::vector<uint64_t> open;
  for (const auto& coll : file.all<format::CollRecord>(Kind::kColl)) {
    if (coll.head.stop_after == 0) open.push_back(coll.seq);
  }
  EXPECT_EQ(open, std::vector<uint64_t>{1'000'000});
  EXPECT_EQ(file.state(), format::FileState::kOpen);
  EXPECT_EQ(file.header().pid, child.pid());
  EXPECT_GE(file.header().heartbeat_monotonic_ns, before);
  EXPECT_LE(file.header().heartbeat_monotonic_ns, now_ns(CLOCK_MONOTONIC));
  EXPECT_LE(file.header().heartbeat_realtime_ns, now_ns(CLOCK_REALTIME));
  EXPECT_GE(file.header().heartbeat_ticks, file.header().first_anchor.ticks);
  EXPECT_EQ(write(end[1], &byte, 1), 1);
  EXPECT_TRUE(child.wait().ok());
  for (int fd : {ready[0], ready[1], end[0], end[1]}) close(fd);
}

// More of them than can move: the rest is counted as overwritten.
TEST_F(Ring, ManyOpenEventsMoveOrAreCounted) {
  LksFile file = record(settings("deep", "ring:1M"), [] {
    NcclPlugin<5> plugin;
    plugin.init();
    for (uint64_t i = 0; i < 100'000; ++i) plugin.start_coll(i);
  });
  EXPECT_EQ(file.count(Kind::kColl) + file.lost(capture::kLoss_overwritten), 100'000u);
  EXPECT_EQ(file.lost(), file.lost(capture::kLoss_overwritten));
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
