// SPDX-License-Identifier: Apache-2.0
// fork: a child without exec leaves the parent's file alone; one with exec has its own.
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <thread>
#include <vector>

#include "tests/support/nccl_test.h"

namespace lockstep::test {
namespace {

using format::Kind;

// A child of a process with threads does here what programs do, though sanitizers do not support it.
#define LOCKSTEP_SKIP_WITH_SANITIZERS() \
  if (kSanitized) GTEST_SKIP() << "the sanitizer's own locks do not survive a fork with threads"

class Fork : public NcclCapture {};

// Everything that a forked worker may still call.
void use_in_child(NcclPlugin<5>& plugin, void* inherited) {
  plugin.stop(inherited);
  plugin.state(inherited, 22);
  plugin.stop(plugin.start_coll(999));
  plugin.init();
  EXPECT_EQ(plugin.mask, 0);
  std::thread([&] { plugin.start_coll(1000); }).join();
  plugin.finalize(plugin.context);
}

TEST_F(Fork, AChildWithoutExecLeavesTheFileAlone) {
  LOCKSTEP_SKIP_WITH_SANITIZERS();
  LksFile file = record([] {
    NcclPlugin<5> plugin;
    plugin.init();
    for (uint64_t i = 0; i < 100; ++i) plugin.stop(plugin.start_coll(i));
    void* open = plugin.start_coll(100);
    Exit exit = run_child({}, [&] { use_in_child(plugin, open); });
    EXPECT_TRUE(exit.ok()) << exit;
    for (uint64_t i = 101; i < 200; ++i) plugin.stop(plugin.start_coll(i));
  });
  auto colls = file.all<format::CollRecord>(Kind::kColl);
  ASSERT_EQ(colls.size(), 200u);
  for (uint64_t i = 0; i < colls.size(); ++i) EXPECT_EQ(colls[i].seq, i);
  EXPECT_EQ(colls[100].head.stop_after, 0u);
  EXPECT_EQ(file.count(format::Def::kComm), 1u);
  EXPECT_EQ(file.state(), format::FileState::kClosed);
  EXPECT_GE(file.lost(capture::kLoss_after_fork), 4u);
  EXPECT_EQ(file.lost(), file.lost(capture::kLoss_after_fork));
}

// The child of a fork in the middle of another thread's init must not wait for a lock that nobody will
// release.
TEST_F(Fork, WhileOtherThreadsAreInInit) {
  LOCKSTEP_SKIP_WITH_SANITIZERS();
  LksFile file = record([] {
    std::atomic<bool> done{false};
    std::vector<std::thread> threads;
    NcclPlugin<5> plugins[3];
    plugins[0].init();
    for (NcclPlugin<5>& plugin : plugins) {
      threads.emplace_back([&done, &plugin] {
        while (!done) plugin.finalize(plugin.init());
      });
    }
    for (int i = 0; i < (kSanitized ? 20 : 100); ++i) {
      Exit exit = run_child({}, [&] {
        plugins[0].init();
        plugins[0].stop(plugins[0].start_coll(0));
      });
      EXPECT_TRUE(exit.ok()) << exit;
    }
    done = true;
    for (std::thread& thread : threads) thread.join();
  });
  EXPECT_EQ(file.count(Kind::kColl), 0u);
}

// The very first init is under way: the child may become a process of its own or stay silent, but it ends.
TEST_F(Fork, WhileTheFileIsBeingMade) {
  LOCKSTEP_SKIP_WITH_SANITIZERS();
  for (int round = 0; round < (kSanitized ? 5 : 50); ++round) {
    RunDirectory run;
    Exit exit = run_child({{"LOCKSTEP_DIR", run.path()}}, [&] {
      NcclPlugin<5> plugin;
      std::thread first([&] { plugin.init(); });
      if (round % 2 == 1) usleep(static_cast<useconds_t>(round * 10));
      Exit inner = run_child({}, [forked = plugin]() mutable {
        forked.init();
        forked.stop(forked.start_coll(77));
      });
      EXPECT_TRUE(inner.ok()) << inner;
      first.join();
      plugin.start_coll(1);
    });
    EXPECT_TRUE(exit.ok()) << exit;
    std::vector<uint64_t> seqs;
    for (const std::string& path : run.files()) {
      LksFile file(path);
      if (file.state() == format::FileState::kBuilding) continue;
      EXPECT_TRUE(file.problems().empty());
      for (const auto& coll : file.all<format::CollRecord>(Kind::kColl)) seqs.push_back(coll.seq);
    }
    EXPECT_EQ(std::count(seqs.begin(), seqs.end(), 1), 1);
  }
}

// Runs no handler, so the child does not know that it is one: what both write into is not to be relied on,
// but both live.
TEST_F(Fork, ByTheBareSystemCallHarmsNeither) {
  LOCKSTEP_SKIP_WITH_SANITIZERS();
  constexpr uint64_t kMany = 20'000;  // some chunks full
  Exit exit = run_child(settings(), [] {
    NcclPlugin<5> plugin;
    plugin.init();
    void* open = plugin.start_coll(0);
    const auto child = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
    if (child == 0) {
      plugin.stop(open);
      for (uint64_t i = 0; i < kMany; ++i) plugin.stop(plugin.start_coll(1'000'000 + i));
      _exit(0);
    }
    for (uint64_t i = 1; i < kMany; ++i) plugin.stop(plugin.start_coll(i));
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    plugin.stop(open);
    plugin.finalize(plugin.context);
  });
  EXPECT_TRUE(exit.ok()) << exit;
  ASSERT_EQ(run_.files().size(), 1u);
  // Both write into the same chunks, so these need not be whole.
  const LksFile file(run_.files()[0]);
  EXPECT_EQ(file.state(), format::FileState::kClosed);
  const auto colls = file.all<format::CollRecord>(Kind::kColl);
  const auto own =
      std::count_if(colls.begin(), colls.end(), [](const auto& coll) { return coll.seq < kMany; });
  EXPECT_GT(own, 0);
}

TEST_F(Fork, BeforeTheFirstInitBothAreRecorded) {
  Exit exit = run_child(settings(), [] {
    NcclPlugin<5> plugin;
    Exit inner = run_child({}, [&] {
      plugin.init();
      plugin.start_coll(1);
    });
    EXPECT_TRUE(inner.ok()) << inner;
    plugin.init();
    plugin.start_coll(2);
  });
  EXPECT_TRUE(exit.ok()) << exit;
  ASSERT_EQ(run_.files().size(), 2u);
  for (const std::string& path : run_.files()) EXPECT_EQ(LksFile(path).count(Kind::kColl), 1u);
}

// Run by the next test in a program of its own.
TEST(ForkExec, DISABLED_Program) {
  NcclPlugin<5> plugin;
  plugin.init();
  plugin.start_coll(2);
}
TEST_F(Fork, AChildWithExecHasItsOwnFile) {
  Exit exit = run_child(settings(), [] {
    NcclPlugin<5> plugin;
    plugin.init();
    plugin.start_coll(1);
    pid_t pid = fork();
    if (pid == 0) {
      execl("/proc/self/exe", "test", "--gtest_filter=ForkExec.DISABLED_Program",
            "--gtest_also_run_disabled_tests", "--gtest_brief=1", nullptr);
      _exit(1);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    EXPECT_EQ(status, 0);
  });
  EXPECT_TRUE(exit.ok()) << exit;
  ASSERT_EQ(run_.files().size(), 2u);
  uint64_t sum = 0;
  for (const std::string& path : run_.files()) sum += LksFile(path).one<format::CollRecord>(Kind::kColl).seq;
  EXPECT_EQ(sum, 3u);
}

// A pid is used again within one tick, or a file was copied here: what lies there stays as it is.
TEST_F(Fork, ANameThatIsTakenGetsASuffix) {
  Exit exit = run_child(settings(), [&] {
    NcclPlugin<5> plugin;
    std::ifstream stat("/proc/self/stat");
    std::string word, text(std::istreambuf_iterator<char>(stat), {});
    std::istringstream fields(text.substr(text.rfind(')') + 1));
    for (int field = 3; field <= 22; ++field) fields >> word;
    char host[256] = {};
    gethostname(host, sizeof host - 1);
    std::string name = run_.path() + "/" + host + "." + std::to_string(getpid()) + "." + word + ".nccl.lks";
    std::ofstream(name) << "mine";
    plugin.init();
    plugin.start_coll(5);
    std::ifstream back(name);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(back), {}), "mine");
  });
  EXPECT_TRUE(exit.ok()) << exit;
  ASSERT_EQ(run_.files().size(), 2u);
  EXPECT_NE(run_.files()[0].find(".nccl.1.lks"), std::string::npos);
  EXPECT_EQ(LksFile(run_.files()[0]).one<format::CollRecord>(Kind::kColl).seq, 5u);
}

}  // namespace
}  // namespace lockstep::test
