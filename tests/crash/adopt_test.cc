// SPDX-License-Identifier: Apache-2.0
// What a process had in memory when it ended: it is read, it goes into the file, and nothing of it stays.
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <atomic>

#include "run/held_segments.h"
#include "segment/adopt.h"
#include "tests/support/nccl_test.h"
#include "tests/support/private_mount.h"

namespace lockstep::test {
namespace {

using format::FileState;
using format::Kind;
using segment::Adoption;

class Adopt : public NcclCapture {
 protected:
  static std::string path_of(const std::string& segment) { return format::kSegmentFolder + ("/" + segment); }
  static bool is_there(const std::string& segment) { return std::filesystem::exists(path_of(segment)); }
  std::string segment() const {
    std::ifstream in(run_.files().at(0), std::ios::binary);
    format::FileHeader header{};
    in.read(reinterpret_cast<char*>(&header), sizeof header);
    return header.segment;
  }
  // Another process of this user may be at it, or have done it.
  static Adoption adopt(const std::string& name) {
    Adoption adoption = Adoption::kLives;
    LiveHeader::wait([&] { return (adoption = segment::adopt(name.c_str())) != Adoption::kLives; });
    return adoption == Adoption::kRefused && !is_there(name) ? Adoption::kDone : adoption;
  }
  // A process that was killed after so many events; the name of its segment.
  std::string leave_segment(uint64_t events = 5'000) {
    Exit exit = run_child(settings(), [&] {
      NcclPlugin<5> plugin;
      plugin.init();
      for (uint64_t i = 0; i < events; ++i) plugin.stop(plugin.start_coll(i));
      kill(getpid(), SIGKILL);
    });
    EXPECT_EQ(exit.signal, SIGKILL);
    return segment();
  }
};

TEST_F(Adopt, AClosedFileLeavesNoSegment) {
  LksFile file = record([] {
    NcclPlugin<5> plugin;
    plugin.init();
    plugin.stop(plugin.start_coll(0));
  });
  EXPECT_EQ(file.state(), FileState::kClosed);
  EXPECT_EQ(file.header().segment[0], 0);
  EXPECT_NE(file.header().segment_key, 0u);
}

TEST_F(Adopt, AllGoesIntoTheFile) {
  const std::string name = leave_segment();
  if (name.empty()) GTEST_SKIP() << "no room in /dev/shm";
  const size_t seen = run_.file().count(Kind::kColl);
  EXPECT_EQ(seen, 5'000u);
  EXPECT_EQ(adopt(name), Adoption::kDone);
  EXPECT_FALSE(is_there(name));
  LksFile file = run_.file();
  EXPECT_EQ(file.header().segment[0], 0);
  EXPECT_EQ(file.state(), FileState::kOpen) << "it did not end in order";
  EXPECT_EQ(file.count(Kind::kColl), seen);
}

// Nothing of a ring is in the file before it is asked for, and all of it afterwards, its statistics too.
TEST_F(Adopt, ARingGoesIntoTheFileWithItsStatistics) {
  constexpr uint64_t kEvents = 60'000;
  Exit exit = run_child(settings("lite", "ring:1M"), [&] {
    NcclPlugin<5> plugin;
    plugin.init();
    for (uint64_t i = 0; i < kEvents; ++i) plugin.stop(plugin.start_coll(i));
    kill(getpid(), SIGKILL);
  });
  EXPECT_EQ(exit.signal, SIGKILL);
  const std::string name = segment();
  if (name.empty()) GTEST_SKIP() << "no room in /dev/shm";
  const uint64_t size = std::filesystem::file_size(run_.files().at(0));
  if (size != format::kHeaderBytes && LiveHeader::wait([&] { return !is_there(name); }))
    GTEST_SKIP() << "another process of this user has adopted it";
  EXPECT_EQ(size, format::kHeaderBytes);
  const LksFile before = run_.file();
  EXPECT_EQ(before.count(Kind::kColl) + before.lost(capture::kLoss_overwritten), kEvents);
  EXPECT_EQ(adopt(name), Adoption::kDone);
  const LksFile after = run_.file();
  EXPECT_EQ(after.count(Kind::kColl), before.count(Kind::kColl));
  uint64_t ops = 0;
  for (const auto& cell : after.histogram()) ops += cell.ops;
  EXPECT_EQ(ops, kEvents);
  EXPECT_GT(after.header().chunks_kept, 0u);
}

// An adopter that is killed before it has removed the segment is followed by another one.
TEST_F(Adopt, TwiceIsOnce) {
  const std::string name = leave_segment();
  if (name.empty()) GTEST_SKIP() << "no room in /dev/shm";
  const std::string copy = run_.path() + "/kept";
  std::filesystem::copy_file(path_of(name), copy);
  EXPECT_EQ(adopt(name), Adoption::kDone);
  std::filesystem::copy_file(copy, path_of(name));
  EXPECT_EQ(adopt(name), Adoption::kDone);
  EXPECT_FALSE(is_there(name));
  EXPECT_EQ(run_.file().count(Kind::kColl), 5'000u);
}

// Where /dev/shm has no room, as in a container: memory has no name, and whoever began the job keeps it.
TEST_F(Adopt, MemoryWithoutANameIsKeptByTheLauncher) {
  constexpr uint64_t kEvents = 5'000;
  constexpr int kNoMount = 40;
  for (const char* retain : {"stream", "ring:1M"}) {
    SCOPED_TRACE(retain);
    const RunDirectory run;
    auto* go = static_cast<std::atomic<bool>*>(
        mmap(nullptr, sizeof(std::atomic<bool>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    Environment environment = settings("lite", retain);
    for (auto& [name, value] : environment) {
      if (name == "LOCKSTEP_DIR") value = run.path();
    }
    run::HeldSegments held(run.path());
    Child child = Child::start(environment, [&] {
      if (!mount_private_tmpfs(format::kSegmentFolder, "size=64m")) _exit(kNoMount);
      NcclPlugin<5> plugin;
      plugin.init();
      while (!go->load()) sleep_ms(1);
      for (uint64_t i = 0; i < kEvents; ++i) plugin.stop(plugin.start_coll(i));
      kill(getpid(), SIGKILL);
    });
    int status = 0;
    LiveHeader::wait([&] { return held.count() == 1 || waitpid(child.pid(), &status, WNOHANG) != 0; });
    if (held.count() == 0 && WIFEXITED(status) && WEXITSTATUS(status) == kNoMount)
      GTEST_SKIP() << "no file system can be mounted here";
    ASSERT_EQ(held.count(), 1u) << "status " << status;
    go->store(true);
    EXPECT_EQ(child.wait().signal, SIGKILL);
    held.stop();
    const LksFile file = run.file();
    EXPECT_EQ(file.header().segment[0], 0);
    EXPECT_TRUE(file.problems().empty());
    EXPECT_EQ(file.count(Kind::kColl) + file.lost(capture::kLoss_overwritten), kEvents);
  }
}

TEST_F(Adopt, ALivingProcessKeepsItsSegment) {
  LksFile file = record([&] {
    NcclPlugin<5> plugin;
    plugin.init();
    plugin.stop(plugin.start_coll(0));
    const std::string name = segment();
    if (name.empty()) return;
    EXPECT_EQ(segment::adopt(name.c_str()), Adoption::kLives);
    if (kThreadSanitizer) return;  // to take a descriptor away is what the sanitizer calls a race
    for (int fd = 3; fd < 64; ++fd) close(fd);
    EXPECT_EQ(segment::adopt(name.c_str()), Adoption::kLives) << "the mapping holds the lock";
    EXPECT_TRUE(is_there(name));
  });
  EXPECT_EQ(file.state(), FileState::kClosed);
  EXPECT_EQ(file.count(Kind::kColl), 1u);
}

// A child without exec holds mapping and lock for as long as it likes.
TEST_F(Adopt, AForkedChildThatLivesOnIsNotTheOwner) {
  if (kSanitized) GTEST_SKIP() << "the sanitizer's own locks do not survive a fork with threads";
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  Exit exit = run_child(settings(), [&] {
    NcclPlugin<5> plugin;
    plugin.init();
    plugin.stop(plugin.start_coll(0));
    if (fork() == 0) {
      close(ends[1]);
      char end;
      _exit(read(ends[0], &end, 1) == 0 ? 0 : 1);
    }
    kill(getpid(), SIGKILL);
  });
  EXPECT_EQ(exit.signal, SIGKILL);
  const std::string name = segment();
  EXPECT_EQ(adopt(name), Adoption::kDone);
  close(ends[0]);
  close(ends[1]);
  EXPECT_EQ(run_.file().count(Kind::kColl), 1u);
}

// Of a file that cannot be written nothing is lost: the segment waits.
TEST_F(Adopt, WithoutItsFileASegmentStays) {
  const std::string name = leave_segment();
  if (name.empty()) GTEST_SKIP() << "no room in /dev/shm";
  const std::string file = run_.files().at(0), away = run_.path() + "/away";
  std::filesystem::rename(file, away);
  EXPECT_EQ(adopt(name), Adoption::kFailed);
  std::ofstream(file) << "another one";
  EXPECT_EQ(adopt(name), Adoption::kFailed) << "that is somebody else's";
  EXPECT_EQ(segment::adopt(name.c_str(), away.c_str()), Adoption::kDone) << "moved";
  std::filesystem::rename(away, file);
  EXPECT_EQ(run_.file().count(Kind::kColl), 5'000u);
}

TEST_F(Adopt, NamesThatAreNone) {
  for (const char* name :
       {"", "lockstep", "other-1-2", "lockstep-../x", "lockstep-0/x", "lockstep-0-1-2-nccl-00000000"})
    EXPECT_EQ(segment::adopt(name), Adoption::kRefused) << name;
}

TEST_F(Adopt, NobodyElseMayReadIt) {
  const std::string name = leave_segment();
  if (name.empty()) GTEST_SKIP() << "no room in /dev/shm";
  struct stat status {};
  ASSERT_EQ(stat(path_of(name).c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

}  // namespace
}  // namespace lockstep::test
