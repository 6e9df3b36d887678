// SPDX-License-Identifier: Apache-2.0
#include "run/run_directory.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "run/process_files.h"
#include "run/small_file.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::run {
namespace {

namespace fs = std::filesystem;
using Leaving = RunDirectory::Leaving;

class RunDirectoryTest : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return root_ / name; }
  static Manifest manifest(const std::string& key, int64_t launchers = 1) {
    Manifest manifest;
    manifest.launcher = own_identity();
    manifest.launchers_key = key;
    manifest.launchers = launchers;
    return manifest;
  }
  // Another launcher: the same live process under another start, on a host that cannot be looked at.
  static Manifest other(const std::string& key, int64_t launchers = 1) {
    Manifest other = manifest(key, launchers);
    other.launcher.boot_id = "elsewhere";
    other.launcher.host = "b";
    return other;
  }
  const test::TemporaryFolder root_;
};

TEST_F(RunDirectoryTest, NeverReusesADirectory) {
  auto first = RunDirectory::create_or_join(path("a.run"), manifest(""));
  ASSERT_TRUE(first);
  EXPECT_EQ(first->path(), path("a.run"));
  auto second = RunDirectory::create_or_join(path("a.run"), manifest(""));
  ASSERT_TRUE(second);
  EXPECT_EQ(second->path(), path("a.run.2"));
}

TEST_F(RunDirectoryTest, ForeignFilesStay) {
  fs::create_directories(path("a.run"));
  std::ofstream(path("a.run/precious.lks")) << "mine";
  auto run = RunDirectory::create_or_join(path("a.run"), manifest(""));
  ASSERT_TRUE(run);
  EXPECT_EQ(run->path(), path("a.run.2"));
  std::ofstream(run->path() + "/notes.txt") << "mine";
  std::ofstream(run->path() + "/foreign.lks") << "mine";
  run->remove({});
  EXPECT_FALSE(fs::exists(manifest_path(run->path())));
  EXPECT_TRUE(fs::exists(run->path() + "/notes.txt"));
  EXPECT_TRUE(fs::exists(run->path() + "/foreign.lks"));
  EXPECT_TRUE(fs::exists(path("a.run/precious.lks")));
}

TEST_F(RunDirectoryTest, AnEmptyDirectoryIsTaken) {
  fs::create_directories(path("a.run"));
  auto run = RunDirectory::create_or_join(path("a.run"), manifest(""));
  ASSERT_TRUE(run);
  EXPECT_EQ(run->path(), path("a.run"));
  // What launchers that were killed left of their files.
  std::ofstream(path("a.run/launchers/h.1.2.json.partial-h-3-1")) << "{";
  std::ofstream(path("a.run/census.h.1.2.json.partial-h-3-1")) << "{";
  run->remove({});
  EXPECT_FALSE(fs::exists(path("a.run")));
}

TEST_F(RunDirectoryTest, TheLastLauncherMerges) {
  auto first = RunDirectory::create_or_join(path("a.run"), manifest("job", 2));
  auto second = RunDirectory::create_or_join(path("a.run"), other("job", 2));
  ASSERT_TRUE(first);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->path(), first->path());
  EXPECT_TRUE(second->joined());
  EXPECT_EQ(first->leave(), Leaving::kOthersRunning);
  EXPECT_EQ(second->leave(), Leaving::kLast);
  // Whoever comes now gets a directory of its own: the merge has begun.
  auto late = RunDirectory::create_or_join(path("a.run"), manifest("job", 2));
  ASSERT_TRUE(late);
  EXPECT_EQ(late->path(), path("a.run.2"));
  ASSERT_TRUE(second->mark_complete());
  EXPECT_EQ(read_manifest(path("a.run"))->state, "complete");
}

TEST_F(RunDirectoryTest, AnotherJobDoesNotJoin) {
  auto first = RunDirectory::create_or_join(path("a.run"), manifest("job 1"));
  auto second = RunDirectory::create_or_join(path("a.run"), other("job 2"));
  ASSERT_TRUE(first);
  ASSERT_TRUE(second);
  EXPECT_NE(first->path(), second->path());
}

TEST_F(RunDirectoryTest, ADeadLauncherIsNotWaitedFor) {
  auto first = RunDirectory::create_or_join(path("a.run"), manifest("job", 2));
  ASSERT_TRUE(first);
  Manifest dead = manifest("job", 2);
  dead.launcher.pid = 0x3fffffff;  // beyond the largest pid
  ASSERT_TRUE(RunDirectory::create_or_join(path("a.run"), dead));
  EXPECT_EQ(first->leave(), Leaving::kLast);
}

// Others are waited for by 200 looks at the files of launchers.
TEST_F(RunDirectoryTest, TheOnlyLauncherDoesNotWaitForItself) {
  auto only = RunDirectory::create_or_join(path("a.run"), manifest(""));
  ASSERT_TRUE(only);
  fs::remove_all(path("a.run/launchers"));
  std::ofstream(path("a.run/launchers")) << "no folder: nothing can be put there";
  const auto sleeps = [] {
    rusage usage{};
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw;
  };
  const long before = sleeps();
  EXPECT_EQ(only->leave(), Leaving::kLast);
  EXPECT_LT(sleeps() - before, 100);
}

TEST_F(RunDirectoryTest, ASilentLauncherElsewhereIsNotWaitedFor) {
  auto first = RunDirectory::create_or_join(path("a.run"), manifest("job", 2));
  ASSERT_TRUE(first);
  ASSERT_TRUE(RunDirectory::create_or_join(path("a.run"), other("job", 2)));
  for (const auto& entry : fs::directory_iterator(path("a.run/launchers"))) {
    fs::last_write_time(entry, fs::file_time_type::clock::now() - std::chrono::minutes(5));
  }
  EXPECT_EQ(first->leave(), Leaving::kLast);
}

// The lock of a launcher whose process cannot be seen from here stays; that of a dead one is broken.
TEST_F(RunDirectoryTest, OnlyTheLockOfTheDeadIsBroken) {
  auto leave_with_lock_of = [&](const ProcessIdentity& holder) {
    fs::remove_all(path("a.run"));
    auto run = RunDirectory::create_or_join(path("a.run"), manifest("job"));
    std::ofstream(path("a.run/merge.lock")) << to_json(holder, "merging");
    return run->leave();
  };
  const ProcessIdentity elsewhere = other("job").launcher, here = own_identity();
  ProcessIdentity dead = here;
  dead.pid = 0x3fffffff;  // beyond the largest pid
  EXPECT_EQ(leave_with_lock_of(elsewhere), Leaving::kOthersRunning);
  EXPECT_EQ(leave_with_lock_of(here), Leaving::kOthersRunning);
  EXPECT_EQ(leave_with_lock_of(dead), Leaving::kLast);
}

TEST_F(RunDirectoryTest, OneOfManyBreaksTheLockOfTheDead) {
  ProcessIdentity dead = own_identity();
  dead.pid = 0x3fffffff;  // beyond the largest pid
  for (int round = 0; round < 50; ++round) {
    fs::remove_all(path("a.run"));
    const auto run = RunDirectory::create_or_join(path("a.run"), manifest(""));
    ASSERT_TRUE(run);
    std::ofstream(path("a.run/merge.lock")) << to_json(dead, "merging");
    std::atomic<int> waiting = 4, last = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&, launcher = *run]() mutable {
        for (--waiting; waiting > 0;) std::this_thread::yield();
        if (launcher.leave() == Leaving::kLast) ++last;
      });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(last, 1) << "launchers that merge, round " << round;
  }
}

TEST_F(RunDirectoryTest, ReadOnlyPlaceIsAnError) {
  auto run = RunDirectory::create_or_join("/proc/nowhere.run", manifest(""));
  ASSERT_FALSE(run);
  EXPECT_NE(run.error().text.find("--dir"), std::string::npos);
}

TEST_F(RunDirectoryTest, HostileManifestsAreNotJoined) {
  for (const std::string& text :
       {std::string("{"), std::string(1 << 20, '['), std::string("[]"), std::string("{\"format\":7}"),
        std::string("{\"format\":\"lockstep-run\",\"state\":[],\"launcher\":3}")}) {
    fs::remove_all(path("a.run"));
    fs::create_directories(path("a.run"));
    std::ofstream(manifest_path(path("a.run"))) << text;
    auto found = read_manifest(path("a.run"));
    EXPECT_FALSE(found && found->state == "running");
    auto registration = read_registration(manifest_path(path("a.run")));
    EXPECT_FALSE(registration && registration->state == "running");
  }
}

TEST_F(RunDirectoryTest, NamesTellOfDamagedFiles) {
  fs::create_directories(path("a.run"));
  std::ofstream(path("a.run/node.a-1.4711.99.nccl.lks")) << "torn";
  std::ofstream(path("a.run/192.0.2.1.12.34.api.3.lks")) << "";
  std::ofstream(path("a.run/odd.lks")) << "";
  auto files = process_files(path("a.run"));
  ASSERT_EQ(files.size(), 3u);
  EXPECT_EQ(files[0].process.host, "192.0.2.1");
  EXPECT_EQ(files[0].process.pid, 12);
  EXPECT_EQ(files[0].process.start_ticks, 34u);
  EXPECT_EQ(files[1].process.host, "node.a-1");
  EXPECT_EQ(files[1].process.pid, 4711);
  EXPECT_EQ(files[1].bytes, 4u);
  EXPECT_FALSE(files[1].valid);
  EXPECT_EQ(files[2].process.host, "");
}

}  // namespace
}  // namespace lockstep::run
