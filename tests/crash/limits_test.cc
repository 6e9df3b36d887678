// SPDX-License-Identifier: Apache-2.0
// No space, no permission, no memory, no descriptors: the host goes on, and what is missing is counted.
#include <linux/capability.h>
#include <pthread.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>

#include "tests/support/nccl_test.h"
#include "tests/support/private_mount.h"

namespace lockstep::test {
namespace {

using format::FileState;
using format::Kind;

constexpr uint64_t kMany = 60'000;  // events that fill more than 3 MB

void write_many(NcclPlugin<5>& plugin) {
  for (uint64_t i = 0; i < kMany; ++i) plugin.stop(plugin.start_coll(i));
}

// How many events were started, in memory that outlives the child.
uint64_t& shared_count() {
  void* memory = mmap(nullptr, sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return *static_cast<uint64_t*>(memory);
}
// Writes until the file's state is this one, and kMany more.
void write_until(NcclPlugin<5>& plugin, const LiveHeader& live, FileState state, uint64_t& started) {
  LiveHeader::wait([&] {
    for (int i = 0; i < 1000; ++i, ++started) plugin.stop(plugin.start_coll(i));
    return live.state() == state;
  });
  write_many(plugin);
  started += kMany;
}
// Of what was dropped, all but what no writer could have been fast enough for.
uint64_t lost_for_want_of_room(const LksFile& file) {
  return file.lost(capture::kLoss_disk_full) + file.lost_without_a_place();
}

std::string g_messages;
void keep_message(int, unsigned long, const char*, int, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  char text[2048];
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  g_messages += text;
  g_messages += '\n';
}

class Limits : public NcclCapture {
 protected:
  static void limit(__rlimit_resource resource, rlim_t value) {
    rlimit to{value, value};
    EXPECT_EQ(setrlimit(resource, &to), 0);
  }
  // Root may write anywhere. It gives that up, but stays root: the tree may be where only root can read.
  static void obey_modes() {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {};
    EXPECT_EQ(syscall(SYS_capget, &header, sets), 0);
    sets[0].effective &= ~(1u << CAP_DAC_OVERRIDE);
    EXPECT_EQ(syscall(SYS_capset, &header, sets), 0);
  }
  // Capture cannot start; the host must not notice but for one line.
  void expect_off(const Environment& settings, const char* message) {
    Exit exit = run_child(settings, [&] {
      NcclPlugin<5> plugin;
      EXPECT_NE(plugin.init(1, nullptr, 1, 0, keep_message), nullptr);
      EXPECT_EQ(plugin.mask, 0);
      plugin.stop(plugin.start_coll(0));
      plugin.finalize(plugin.context);
      EXPECT_NE(g_messages.find("capture is off"), std::string::npos) << g_messages;
      EXPECT_NE(g_messages.find(message), std::string::npos) << g_messages;
    });
    EXPECT_TRUE(exit.ok()) << exit;
  }
};

TEST_F(Limits, AFullDiskStopsCaptureAndNothingElse) {
  constexpr int kNoMount = 40;
  uint64_t& started = shared_count();
  Exit exit = run_child({}, [&] {
    if (!mount_private_tmpfs(run_.path(), "size=1m")) _exit(kNoMount);
    Exit inner = run_child(settings(), [&] {
      NcclPlugin<5> plugin;
      plugin.init(1, nullptr, 1, 0, keep_message);
      write_until(plugin, LiveHeader(run_), FileState::kDiskFull, started);
      plugin.finalize(plugin.context);
      plugin.init(2, nullptr, 1, 0, keep_message);
      plugin.finalize(plugin.context);
      EXPECT_EQ(g_messages.find("no space left"), g_messages.rfind("no space left")) << "said once";
      EXPECT_NE(g_messages.find("no space left"), std::string::npos);
    });
    EXPECT_TRUE(inner.ok()) << inner;
    LksFile file = run_.file();
    EXPECT_EQ(file.state(), FileState::kDiskFull);
    EXPECT_GT(file.count(Kind::kColl), 1000u);
    EXPECT_EQ(file.count(Kind::kColl) + lost_for_want_of_room(file), started)
        << "what is not on the disk is in memory";
    EXPECT_EQ(file.lost(), lost_for_want_of_room(file));
    LksFile::remove_segment(file.path());
  });
  if (exit.code == kNoMount) GTEST_SKIP() << "cannot mount a tmpfs here";
  EXPECT_TRUE(exit.ok()) << exit;
}

TEST_F(Limits, ADiskWithRoomForAHeaderOnly) {
  constexpr int kNoMount = 40;
  for (const char* size : {"size=4k", "size=8k", "size=40k", "size=72k", "size=104k"}) {
    Exit exit = run_child({}, [&] {
      if (!mount_private_tmpfs(run_.path(), size)) _exit(kNoMount);
      Exit inner = run_child(settings(), [] {
        NcclPlugin<5> plugin;
        EXPECT_NE(plugin.init(), nullptr);
        write_many(plugin);
        plugin.finalize(plugin.context);
      });
      EXPECT_TRUE(inner.ok()) << size << inner;
      for (const std::string& path : run_.files()) EXPECT_TRUE(LksFile(path).problems().empty());
    });
    if (exit.code == kNoMount) GTEST_SKIP() << "cannot mount a tmpfs here";
    EXPECT_TRUE(exit.ok()) << exit;
  }
}

// The kernel answers growth beyond this limit with a signal that ends the process.
TEST_F(Limits, FileSizeLimitIsAFullDisk) {
  uint64_t& started = shared_count();
  LksFile file = record([&] {
    NcclPlugin<5> plugin;
    limit(RLIMIT_FSIZE, 1 << 20);
    plugin.init();
    write_until(plugin, LiveHeader(run_), FileState::kDiskFull, started);
    plugin.finalize(plugin.context);
  });
  EXPECT_EQ(file.state(), FileState::kDiskFull);
  EXPECT_LE(file.size(), 1u << 20);
  EXPECT_EQ(file.count(Kind::kColl) + lost_for_want_of_room(file), started);
}

TEST_F(Limits, FileSizeLimitBelowTheFirstChunks) {
  for (rlim_t bytes : {rlim_t{0}, rlim_t{4096}, rlim_t{100'000}}) {
    std::filesystem::remove_all(run_.path());
    Exit exit = run_child(settings(), [&] {
      NcclPlugin<5> plugin;
      limit(RLIMIT_FSIZE, bytes);
      EXPECT_NE(plugin.init(), nullptr);
      for (uint64_t i = 0; i < 100; ++i) plugin.init(i);
      write_many(plugin);
    });
    EXPECT_TRUE(exit.ok()) << bytes << ": " << exit;
  }
}

// The cap is met when the last chunk is taken. What is left of that chunk is still written.
TEST_F(Limits, TheSizeCapStopsAndCounts) {
  constexpr uint64_t kFillsAChunk = format::kUnitsPerChunk, kTooMany = 100;
  auto* shared = mmap(nullptr, sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  uint64_t& started = *static_cast<uint64_t*>(shared);
  LksFile file = record(settings("deep", "stream:1M"), [&] {
    NcclPlugin<5> plugin;
    plugin.init();
    LiveHeader live(run_);
    LiveHeader::wait([&] {
      for (int i = 0; i < 1000; ++i, ++started) plugin.start_coll(0);
      return live.state() == FileState::kSizeCap;
    });
    for (uint64_t i = 0; i < kFillsAChunk + kTooMany; ++i, ++started) plugin.start_coll(0);
  });
  EXPECT_EQ(file.state(), FileState::kSizeCap);
  EXPECT_LE(file.size(), (1u << 20) + format::kHeaderBytes);
  EXPECT_GE(file.lost(capture::kLoss_size_cap), kTooMany);
  uint64_t lost = file.lost(capture::kLoss_size_cap) + file.lost_without_a_place();
  EXPECT_EQ(file.count(Kind::kColl) + lost, started);
  EXPECT_EQ(file.lost(), lost);
  munmap(shared, sizeof(uint64_t));
}

TEST_F(Limits, PlacesWhereNoFileCanBe) {
  std::ofstream(run_.path() + "/file") << "x";
  for (const std::string& place : {run_.path() + "/file", run_.path() + "/file/below", std::string("/proc/x"),
                                   std::string("/dev/null")}) {
    Environment at = settings();
    at[0].second = place;
    expect_off(at, place.c_str());
  }
}

TEST_F(Limits, AReadOnlyDirectory) {
  Exit exit = run_child({}, [&] {
    chmod(run_.path().c_str(), 0555);
    obey_modes();
    expect_off(settings(), "Permission denied");
  });
  EXPECT_TRUE(exit.ok()) << exit;
}

TEST_F(Limits, NoDescriptors) {
  Exit exit = run_child(settings(), [] {
    NcclPlugin<5> plugin;
    rlimit before{};
    getrlimit(RLIMIT_NOFILE, &before);
    rlimit none{3, before.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
    EXPECT_NE(plugin.init(1, nullptr, 1, 0, keep_message), nullptr);
    EXPECT_EQ(plugin.mask, 0);
    plugin.stop(plugin.start_coll(0));
    setrlimit(RLIMIT_NOFILE, &before);
    EXPECT_NE(g_messages.find("capture is off"), std::string::npos) << g_messages;
  });
  EXPECT_TRUE(exit.ok()) << exit;
}

TEST_F(Limits, LittleAddressSpace) {
  if (kSanitized) GTEST_SKIP() << "sanitizers need address space themselves";
  for (uint64_t room : {uint64_t{1} << 20, uint64_t{24} << 20, uint64_t{300} << 20}) {
    std::filesystem::remove_all(run_.path());
    Exit exit = run_child(settings(), [&] {
      NcclPlugin<5> plugin;
      std::ifstream statm("/proc/self/statm");
      uint64_t pages = 0;
      statm >> pages;
      limit(RLIMIT_AS, pages * 4096 + room);
      EXPECT_NE(plugin.init(), nullptr);
      write_many(plugin);
    });
    EXPECT_TRUE(exit.ok()) << room << ": " << exit;
    for (const std::string& path : run_.files()) {
      LksFile file(path);
      EXPECT_TRUE(file.problems().empty());
      EXPECT_EQ(file.count(Kind::kColl) + file.lost(), kMany);
    }
  }
}

// As a daemon does it.
TEST_F(Limits, AHostThatClosesAllDescriptorsAndChangesItsDirectoryLosesNothing) {
  if (kThreadSanitizer) GTEST_SKIP() << "to close others' descriptors is what the sanitizer calls a race";
  const Environment here = {{"LOCKSTEP_DIR", "."}, {"LOCKSTEP_MODE", "deep"}, {"LOCKSTEP_RETAIN", "stream"}};
  LksFile file = record(here, [&] {
    EXPECT_EQ(chdir(run_.path().c_str()), 0);
    NcclPlugin<5> plugin;
    plugin.init();
    LiveHeader(run_).wait_for_room(0);
    for (int fd = 3; fd < 1024; ++fd) close(fd);
    EXPECT_EQ(chdir("/"), 0);
    write_many(plugin);
  });
  EXPECT_EQ(file.count(Kind::kColl) + file.lost_without_a_place(), kMany);
}

// A host that closes descriptors it does not know and opens its own finds its file as it left it.
TEST_F(Limits, ADescriptorTakenAwayIsNotWrittenTo) {
  if (kThreadSanitizer) GTEST_SKIP() << "to take a descriptor away is what the sanitizer calls a race";
  std::string precious = run_.path() + "/precious";
  LksFile file = record([&] {
    NcclPlugin<5> plugin;
    plugin.init();
    LiveHeader(run_).wait_for_room(0);
    for (int fd = 3; fd < 64; ++fd) close(fd);
    std::ofstream(precious) << std::string(5 << 20, 'p');
    for (int fd = 3; fd < 16; ++fd) EXPECT_GE(open(precious.c_str(), O_RDWR), 0);
    write_many(plugin);
    sleep_ms(100);
  });
  EXPECT_EQ(std::filesystem::file_size(precious), 5u << 20);
  EXPECT_EQ(file.count(Kind::kColl) + file.lost(), kMany);
}

// Fibres, and threads of runtimes that save memory. What a thread keeps for its runtime comes off the stack,
// too.
TEST_F(Limits, AThreadWithAStackOf16KiBCanBeTheFirst) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer needs more stack than that itself";
  const LksFile file = record([] {
    static NcclPlugin<5>* plugin;
    static std::atomic<bool> is_done;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    EXPECT_EQ(pthread_attr_setstacksize(
                  &attributes, static_cast<size_t>(std::max<long>(16384, sysconf(_SC_THREAD_STACK_MIN)))),
              0);
    NcclPlugin<5> own;
    plugin = &own;
    pthread_t thread;
    ASSERT_EQ(pthread_create(
                  &thread, &attributes,
                  [](void*) -> void* {
                    plugin->init();
                    plugin->stop(plugin->start_coll(0));
                    is_done = true;
                    return nullptr;
                  },
                  nullptr),
              0);
    pthread_join(thread, nullptr);
    EXPECT_TRUE(is_done);
  });
  EXPECT_EQ(file.count(Kind::kColl), 1u);
}

}  // namespace
}  // namespace lockstep::test
