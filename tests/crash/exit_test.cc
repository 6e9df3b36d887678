// SPDX-License-Identifier: Apache-2.0
// The ways a process ends by itself, while other threads are still in NCCL.
#include <signal.h>

#include <atomic>
#include <thread>
#include <vector>

#include "tests/support/nccl_test.h"

namespace lockstep::test {
namespace {

using format::Kind;

class Exits : public NcclCapture {
 protected:
  // Threads that write until the process ends; `end` runs on a thread of its own.
  template <class End>
  Exit write_until(End end) {
    return run_child(settings(), [&] {
      NcclPlugin<5> plugin;
      plugin.init();
      static std::atomic<uint64_t> written{0};
      for (int t = 0; t < 3; ++t) {
        std::thread([&] {
          for (uint64_t i = 0;; ++i) {
            plugin.stop(plugin.start_coll(i));
            ++written;
            if (i % 64 == 0) std::thread([&] { plugin.stop(plugin.start_coll(i)); }).join();
          }
        }).detach();
      }
      while (written < 500) sleep_ms(1);
      std::thread(end).detach();
      for (;;) pause();
    });
  }
};

TEST_F(Exits, ExitWhileOthersWrite) {
  for (int round = 0; round < (kSanitized ? 3 : 20); ++round) {
    std::filesystem::remove_all(run_.path());
    Exit exit = write_until([] { ::exit(7); });
    EXPECT_EQ(exit.code, 7) << exit;
    LksFile file = run_.file();
    EXPECT_EQ(file.state(), format::FileState::kClosed);
    EXPECT_GE(file.count(Kind::kColl), 500u);
    EXPECT_EQ((file.size() - format::kHeaderBytes) % format::kChunkBytes, 0u);
    EXPECT_EQ(file.header().chunks_claimed, file.header().chunks_ready);
  }
}

TEST_F(Exits, ImmediateExitKeepsAll) {
  Exit exit = write_until([] { _exit(8); });
  EXPECT_EQ(exit.code, 8) << exit;
  LksFile file = run_.file();
  EXPECT_EQ(file.state(), format::FileState::kOpen);
  EXPECT_GE(file.count(Kind::kColl), 500u);
}

TEST_F(Exits, ACrashKeepsAll) {
  for (int deadly : {SIGSEGV, SIGABRT, SIGTERM}) {
    std::filesystem::remove_all(run_.path());
    Exit exit = write_until([=] {
      signal(deadly, SIG_DFL);
      raise(deadly);
    });
    EXPECT_EQ(exit.signal, deadly) << exit;
    LksFile file = run_.file();
    EXPECT_EQ(file.state(), format::FileState::kOpen);
    EXPECT_GE(file.count(Kind::kColl), 500u);
  }
}

TEST_F(Exits, TheTailIsTrimmed) {
  LksFile file = record([] {
    NcclPlugin<5> plugin;
    plugin.init();
    plugin.start_coll(0);
  });
  EXPECT_EQ(file.state(), format::FileState::kClosed);
  EXPECT_EQ(file.size(), format::kHeaderBytes + 3 * format::kChunkBytes);
  EXPECT_EQ(file.count(format::Def::kAnchor), 1u);
}

TEST_F(Exits, ALoadedLibraryThatNobodyUsesWritesNothing) {
  Exit exit = run_child(settings(), [] { NcclPlugin<5> plugin; });
  EXPECT_TRUE(exit.ok()) << exit;
  EXPECT_TRUE(run_.files().empty());
}

}  // namespace
}  // namespace lockstep::test
