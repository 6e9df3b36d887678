// SPDX-License-Identifier: Apache-2.0
// Every call of the capture library into the kernel fails in turn, once or from then on: the host ends as ever, and what was
// recorded is in the file or counted.
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
#include <unistd.h>

#include <atomic>

#include "segment/adopt.h"
#include "tests/support/nccl_test.h"

namespace {

struct Plan {
  std::atomic<uint32_t> calls, first;  // the first that fails; 0 none
  std::atomic<bool> is_for_good;
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
INTERPOSE(ssize_t, pwrite, (int fd, const void* from, size_t size, off_t at), (fd, from, size, at), , -1,
          ENOSPC)
INTERPOSE(ssize_t, pread, (int fd, void* to, size_t size, off_t at), (fd, to, size, at), , -1, EIO)
INTERPOSE(ssize_t, read, (int fd, void* to, size_t size), (fd, to, size), , -1, EIO)
INTERPOSE(int, ftruncate, (int fd, off_t size), (fd, size), noexcept, -1, EIO)
INTERPOSE(int, flock, (int fd, int operation), (fd, operation), noexcept, -1, ENOLCK)
INTERPOSE(int, mkdir, (const char* path, mode_t mode), (path, mode), noexcept, -1, EACCES)
INTERPOSE(int, unlink, (const char* path), (path), noexcept, -1, EIO)
INTERPOSE(int, statfs, (const char* path, struct statfs* to), (path, to), noexcept, -1, ENOSYS)
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
  // The host, with call `n` failing; false once there are fewer calls.
  bool host(uint32_t n, bool is_for_good, const char* retain) {
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

 private:
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

TEST_F(Calls, EachFailsOnce) {
  for (const char* retain : {"stream", "ring:1M"}) {
    uint32_t n = 1;
    while (n < kMostCalls && host(n, false, retain)) ++n;
    EXPECT_GT(n, 20u) << "calls are seen";
  }
}

TEST_F(Calls, NoneIsAnsweredFromThenOn) {
  for (const char* retain : {"stream", "ring:1M"}) {
    uint32_t n = 1;
    while (n < kMostCalls && host(n, true, retain)) ++n;
  }
}

}  // namespace
}  // namespace lockstep::test
