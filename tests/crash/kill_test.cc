// SPDX-License-Identifier: Apache-2.0
// SIGKILL at any moment: every completed callback is in the file, every record in it is whole, and at most
// one per thread is missing.
#include <sys/mman.h>

#include <atomic>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include "tests/support/nccl_test.h"

namespace lockstep::test {
namespace {

using format::Kind;

constexpr uint64_t kThreads = 4;
constexpr int kRounds = kSanitized ? 5 : 20;
constexpr uint64_t kEndless = ~uint64_t{0};

// What each thread has finished, in memory that outlives the child.
struct Progress {
  std::atomic<uint64_t> finished[kThreads];
};
Progress* shared_progress() {
  void* memory = mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return new (memory) Progress{};
}

class Kill : public NcclCapture {
 protected:
  // Round i of thread t: a Coll with seq i and count t, then a KernelCh that began at GPU time i + 1, all
  // stopped.
  static void write(NcclPlugin<5>& plugin, const LiveHeader& live, uint64_t writers, uint64_t t,
                    uint64_t rounds, Progress* progress) {
    constexpr uint64_t kBytes = sizeof(format::CollRecord) + sizeof(format::KernelChRecord);
    for (uint64_t i = 0; i < rounds; ++i) {
      if (i % 128 == 0) live.wait_for_room(writers * (i + 128) * kBytes);
      auto d = plugin.coll(i, nullptr, t);
      void* coll = plugin.start(d);
      plugin.stop(coll);
      void* kernel = plugin.start_kernel_ch(coll, static_cast<uint8_t>(t), i + 1);
      plugin.state_with(kernel, 22, i + 2);
      plugin.stop(kernel);
      progress->finished[t].store(i + 1, std::memory_order_release);
    }
  }
  static void check(const LksFile& file, Progress* progress) {
    std::map<uint64_t, uint64_t> colls, kernels;  // how many, by thread
    std::map<uint64_t, uint64_t> parents;
    for (const Entry& entry : file.records()) {
      if (entry.is(Kind::kColl)) {
        auto coll = entry.as<format::CollRecord>();
        ASSERT_EQ(coll.seq, colls[coll.count]++);
        ASSERT_EQ(coll.send_buffer, 0x7000'0000'1000u);
        ASSERT_EQ(coll.comm, 0u);
        ASSERT_EQ(coll.shape, 1u);
        ASSERT_TRUE(coll.head.stop_after != 0 || coll.seq >= progress->finished[coll.count]);
        parents[coll.count] = entry.handle();
      } else {
        ASSERT_EQ(entry.kind, static_cast<uint32_t>(Kind::kKernelCh));
        auto kernel = entry.as<format::KernelChRecord>();
        uint64_t t = kernel.head.link;
        ASSERT_EQ(kernel.gpu_start, ++kernels[t]);
        ASSERT_EQ(kernel.parent, parents[t]);
        if (kernel.gpu_start <= progress->finished[t]) {
          ASSERT_EQ(kernel.gpu_stop, kernel.gpu_start + 1);
          ASSERT_NE(kernel.head.stop_after, 0u);
        }
      }
    }
    for (uint64_t t = 0; t < kThreads; ++t) {
      EXPECT_GE(colls[t], progress->finished[t]);
      EXPECT_LE(colls[t], progress->finished[t] + 1);
      EXPECT_GE(kernels[t], progress->finished[t]);
    }
    EXPECT_EQ(file.lost(), 0u);
  }
};

TEST_F(Kill, EveryFinishedCallbackIsRead) {
  std::mt19937 random(20240607);
  for (int round = 0; round < kRounds; ++round) {
    SCOPED_TRACE(round);
    RunDirectory run;
    Progress* progress = shared_progress();
    Environment settings = {{"LOCKSTEP_DIR", run.path()}, {"LOCKSTEP_MODE", "deep"}};
    Child child = Child::start(settings, [&] {
      NcclPlugin<5> plugin;
      plugin.init();
      LiveHeader live(run);
      std::vector<std::thread> threads;
      for (uint64_t t = 0; t < kThreads; ++t)
        threads.emplace_back([&, t] { write(plugin, live, kThreads, t, kEndless, progress); });
      for (std::thread& thread : threads) thread.join();
    });
    LiveHeader::wait([&] { return progress->finished[kThreads - 1] > 0; });
    usleep(static_cast<useconds_t>(random() % 20000));
    kill(child.pid(), SIGKILL);
    EXPECT_EQ(child.wait().signal, SIGKILL);
    check(run.file(), progress);
    munmap(progress, sizeof *progress);
    if (HasFatalFailure()) return;
  }
}

// A program that reads while the file grows sees whole records and nothing else.
TEST_F(Kill, TheFileIsReadableWhileItGrows) {
  constexpr uint64_t kWritten = 50'000;
  Progress* progress = shared_progress();
  Child child = Child::start(settings(), [&] {
    NcclPlugin<5> plugin;
    plugin.init();
    LiveHeader live(run_);
    write(plugin, live, 1, 0, kWritten, progress);
  });
  LiveHeader::wait([&] { return progress->finished[0] > 0; });
  for (uint64_t finished = 0, seen = 0; finished < kWritten;) {
    finished = progress->finished[0];
    LksFile file(run_.files().at(0));
    EXPECT_GE(file.count(Kind::kColl), finished);
    EXPECT_GE(file.count(Kind::kColl), seen);
    seen = file.count(Kind::kColl);
  }
  EXPECT_TRUE(child.wait().ok());
  munmap(progress, sizeof *progress);
}

// In the middle of starting: there is no file, an unfinished header, or a readable file.
TEST_F(Kill, StartingLeavesNothingThatMisleads) {
  std::mt19937 random(7);
  int built = 0;
  for (int round = 0; round < 3 * kRounds; ++round) {
    RunDirectory run;
    Child child = Child::start({{"LOCKSTEP_DIR", run.path()}}, [] {
      NcclPlugin<5> plugin;
      for (;;) plugin.init();
    });
    usleep(static_cast<useconds_t>(random() % 3000));
    kill(child.pid(), SIGKILL);
    EXPECT_EQ(child.wait().signal, SIGKILL);
    if (run.files().empty()) continue;
    LksFile file(run.files()[0]);
    if (file.size() < format::kHeaderBytes || file.state() == format::FileState::kBuilding) continue;
    ++built;
    EXPECT_TRUE(file.problems().empty()) << file.problems()[0];
    EXPECT_EQ(file.state(), format::FileState::kOpen);
    EXPECT_NE(file.header().first_anchor.realtime_ns, 0);
  }
  RecordProperty("built", built);
}

}  // namespace
}  // namespace lockstep::test
