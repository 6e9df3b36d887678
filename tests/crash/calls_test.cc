// SPDX-License-Identifier: Apache-2.0
// Every call of the capture library into the kernel fails in turn, once or from then on: the host ends as
// ever, and what was recorded is in the file or counted, by its cause.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include "segment/adopt.h"
#include "tests/support/nccl_test.h"

namespace {

struct Plan {
  std::atomic<uint32_t> calls, first;  // the first that fails; 0 none
  std::atomic<bool> is_for_good;
  std::atomic<bool> has_no_shm;    // no segment with a name
  std::atomic<int64_t> end;        // of what storage takes; 0: all
  std::atomic<uint32_t> write_us;  // that each write takes
  std::atomic<bool> is_frozen;     // no write ends
  std::atomic<uint32_t> writes;    // that were begun
};
Plan* g_plan = nullptr;  // shared with the child

bool is_of_library(const void* caller) {
  Dl_info info{};
  return dladdr(caller, &info) != 0 && info.dli_fname != nullptr &&
         strstr(info.dli_fname, "liblockstep-nccl.so") != nullptr;
}

bool fails(const void* caller, int error) {
  if (g_plan == nullptr || g_plan->first == 0 || !is_of_library(caller)) return false;
  const uint32_t call = ++g_plan->calls;
  if (call != g_plan->first && !(g_plan->is_for_good && call > g_plan->first)) return false;
  errno = error;
  return true;
}

bool has_no_shm(const char* path) {
  return g_plan != nullptr && g_plan->has_no_shm && strcmp(path, lockstep::format::kSegmentFolder) == 0;
}

// Whether storage refuses a write that ends there. Takes its time.
bool is_past_end(const void* caller, off_t end) {
  if (g_plan == nullptr || !is_of_library(caller)) return false;
  ++g_plan->writes;
  if (g_plan->write_us != 0) usleep(g_plan->write_us);
  while (g_plan->is_frozen) usleep(1000);
  errno = ENOSPC;
  return g_plan->end != 0 && end > g_plan->end;
}

template <class Function>
Function* next(Function*, const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

// They stand before libc's.
#define EXPORTED extern "C" __attribute__((visibility("default")))
#define CALLER __builtin_return_address(0)
#define INTERPOSE(result, name, parameters, arguments, specifier, failure, error) \
  EXPORTED result name parameters specifier {                                     \
    static auto* const real = next(&::name, #name);                               \
    if (fails(CALLER, error)) return failure;                                     \
    return real arguments;                                                        \
  }
INTERPOSE(int, fallocate, (int fd, int mode, off_t at, off_t bytes), (fd, mode, at, bytes), , -1, ENOSPC)
INTERPOSE(ssize_t, pread, (int fd, void* to, size_t size, off_t at), (fd, to, size, at), , -1, EIO)
INTERPOSE(ssize_t, read, (int fd, void* to, size_t size), (fd, to, size), , -1, EIO)
INTERPOSE(int, ftruncate, (int fd, off_t size), (fd, size), noexcept, -1, EIO)
INTERPOSE(int, flock, (int fd, int operation), (fd, operation), noexcept, -1, ENOLCK)
INTERPOSE(int, mkdir, (const char* path, mode_t mode), (path, mode), noexcept, -1, EACCES)
INTERPOSE(int, unlink, (const char* path), (path), noexcept, -1, EIO)
INTERPOSE(ssize_t, readlink, (const char* path, char* to, size_t size), (path, to, size), noexcept, -1,
          EACCES)
INTERPOSE(char*, getcwd, (char* to, size_t size), (to, size), noexcept, nullptr, ENOENT)
INTERPOSE(int, gethostname, (char* to, size_t size), (to, size), noexcept, -1, EPERM)
INTERPOSE(void*, mmap, (void* at, size_t size, int protection, int flags, int fd, off_t offset),
          (at, size, protection, flags, fd, offset), noexcept, MAP_FAILED, ENOMEM)
INTERPOSE(int, munmap, (void* at, size_t size), (at, size), noexcept, -1, EINVAL)
INTERPOSE(int, madvise, (void* at, size_t size, int advice), (at, size, advice), noexcept, -1, EFAULT)
INTERPOSE(int, pthread_create,
          (pthread_t * thread, const pthread_attr_t* attributes, void* (*run)(void*), void* argument),
          (thread, attributes, run, argument), noexcept, EAGAIN, EAGAIN)
INTERPOSE(int, pthread_key_create, (pthread_key_t * key, void (*end)(void*)), (key, end), noexcept, EAGAIN,
          EAGAIN)
EXPORTED ssize_t pwrite(int fd, const void* from, size_t size, off_t at) {
  static auto* const real = next(&::pwrite, "pwrite");
  if (fails(CALLER, ENOSPC) || is_past_end(CALLER, at + static_cast<off_t>(size))) return -1;
  return real(fd, from, size, at);
}
EXPORTED int statfs(const char* path, struct statfs* to) noexcept {
  static auto* const real = next(&::statfs, "statfs");
  return fails(CALLER, ENOSYS) || has_no_shm(path) ? -1 : real(path, to);
}
EXPORTED int fcntl(int fd, int command, ...) {
  static auto* const real = next(&::fcntl, "fcntl");
  va_list arguments;
  va_start(arguments, command);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  return fails(CALLER, EPERM) ? -1 : real(fd, command, argument);
}
EXPORTED long syscall(long number, ...) noexcept {
  static auto* const real = next(&::syscall, "syscall");
  va_list arguments;
  va_start(arguments, number);
  long words[6];
  for (long& word : words) word = va_arg(arguments, long);
  va_end(arguments);
  if (number == SYS_memfd_create && fails(CALLER, EMFILE)) return -1;
  return real(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}
EXPORTED int open(const char* path, int flags, ...) {
  static auto* const real = next(&::open, "open");
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  return fails(CALLER, EMFILE) ? -1 : real(path, flags, mode);
}

namespace lockstep::test {
namespace {

using format::Kind;

constexpr uint64_t kEvents = 2'000;
constexpr uint32_t kMostCalls = 400;
constexpr int kHostExit = 7;

class Calls : public NcclCapture {
 protected:
  static void SetUpTestSuite() {
    g_plan = static_cast<Plan*>(
        mmap(nullptr, sizeof(Plan), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  }
  void TearDown() override { new (g_plan) Plan{}; }

  // In /dev/shm, or in memory without a name.
  void every_call(bool is_for_good, bool has_no_shm) {
    g_plan->has_no_shm = has_no_shm;
    for (const char* retain : {"stream", "ring:1M"}) {
      uint32_t n = 1;
      while (n < kMostCalls && host(n, is_for_good, retain)) ++n;
      EXPECT_LT(n, kMostCalls);
      EXPECT_TRUE(is_for_good || n > 20u) << "calls are seen";
    }
  }

 private:
  // The host, with call `n` failing; false once there are fewer calls.
  static bool host(uint32_t n, bool is_for_good, const char* retain) {
    SCOPED_TRACE("call " + std::to_string(n) + (is_for_good ? " and all behind it" : "") + ", " + retain);
    const RunDirectory run;
    g_plan->calls = 0;
    g_plan->first = n;
    g_plan->is_for_good = is_for_good;
    const Exit exit = run_child(
        {{"LOCKSTEP_DIR", run.path() + "/deeper"}, {"LOCKSTEP_MODE", "lite"}, {"LOCKSTEP_RETAIN", retain}},
        [&] {
          NcclPlugin<5> plugin;
          EXPECT_NE(plugin.init(), nullptr);
          for (uint64_t i = 0; i < kEvents; ++i) plugin.stop(plugin.start_coll(i));
          plugin.finalize(plugin.context);
          ::exit(kHostExit);  // what runs at exit is part of it
        });
    g_plan->first = 0;
    EXPECT_EQ(exit.code, kHostExit) << exit;
    check(run, is_for_good);
    return g_plan->calls >= n;
  }
  static void check(const RunDirectory& run, bool is_for_good) {
    segment::adopt_all(UINT32_MAX);
    const std::string folder = run.path() + "/deeper";
    size_t files = 0;
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
      ++files;
      const LksFile file(entry.path());
      if (is_for_good && !file.problems().empty()) continue;  // nothing could be said any more, in no file
      EXPECT_TRUE(file.problems().empty()) << file.problems().front();
      EXPECT_EQ(file.count(Kind::kColl) + file.lost(), kEvents);
    }
    EXPECT_LE(files, 1u);
  }
};

TEST_F(Calls, EachFailsOnce) { every_call(false, false); }
TEST_F(Calls, NoneIsAnsweredFromThenOn) { every_call(true, false); }
TEST_F(Calls, EachFailsOnceWhereMemoryHasNoName) { every_call(false, true); }

class Storage : public Calls {
 protected:
  static constexpr uint64_t kDropped = 200'000, kFew = 10,
                            kMoreThanMemory = 1'000'000;  // 48 MB of records, where memory for 32 is

  void call(NcclPlugin<5>& plugin, uint64_t times) {
    for (uint64_t i = 0; i < times; ++i) plugin.stop(plugin.start_coll(calls_++));
  }
  // Few callbacks until so many more writes were begun.
  void await_writes(NcclPlugin<5>& plugin, uint32_t more) {
    const uint32_t end = g_plan->writes + more;
    LiveHeader::wait([&] {
      call(plugin, kFew);
      return g_plan->writes >= end;
    });
  }
  // Callbacks without a pause until so many are dropped of this cause, and what was dropped of others
  // meanwhile.
  uint64_t drop(NcclPlugin<5>& plugin, capture::Loss cause) {
    const auto without_cause = [&] {
      const LksFile file(run_.files().at(0));
      return std::pair(file.lost(cause), file.lost() - file.lost(cause));
    };
    const auto [before, others_before] = without_cause();
    uint64_t others = 0;
    LiveHeader::wait([&] {
      call(plugin, kMoreThanMemory);
      const auto [now, others_now] = without_cause();
      others = others_now - others_before;
      return now - before >= kDropped;
    });
    return others;
  }

  uint64_t calls_ = 0;
};

// What the file has already can be written again, as on a file system that copies on write.
TEST_F(Storage, ThatIsFullIsTheCauseThoughSomeWritesSucceed) {
  record(settings("lite"), [&] {
    NcclPlugin<5> plugin;
    plugin.init();
    g_plan->end = 4 << 20;
    const LiveHeader live(run_);
    LiveHeader::wait([&] {
      call(plugin, 1000);
      return live.state() == format::FileState::kDiskFull;
    });
    EXPECT_EQ(drop(plugin, capture::kLoss_disk_full), 0u) << "nothing else is the cause";
    g_plan->end = 0;
  });
}

// The writer takes a write of 100 ms for one that does not end.
TEST_F(Storage, ThatDoesNotAnswerIsTheCause) {
  record(settings("lite"), [&] {
    NcclPlugin<5> plugin;
    plugin.init();
    g_plan->is_frozen = true;
    await_writes(plugin, 1);
    sleep_ms(150);
    EXPECT_EQ(drop(plugin, capture::kLoss_storage_slow), 0u) << "nothing else is the cause";
    g_plan->is_frozen = false;
  });
}

// Of a chunk it takes a millisecond, in the mean, for one that storage is slow to take.
TEST_F(Storage, ThatIsSlowIsTheCause) {
  record(settings("lite"), [&] {
    NcclPlugin<5> plugin;
    plugin.init();
    g_plan->write_us = 20'000;
    await_writes(plugin, 8);
    EXPECT_EQ(drop(plugin, capture::kLoss_storage_slow), 0u) << "nothing else is the cause";
    g_plan->write_us = 0;
  });
}

}  // namespace
}  // namespace lockstep::test
