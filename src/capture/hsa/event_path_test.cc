// SPDX-License-Identifier: Apache-2.0
// What a launch may not do: allocate, lock, or call the system. The built library's handler is called as the
// runtime calls it. This program's own malloc and pthread_mutex_lock come first in the loader's search, and
// count what the library asks for.
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>

#include <thread>

#include "capture/hsa/hsa_test.h"
#include "tests/support/forbidden_calls.h"
#include "tests/support/sanitizers.h"

namespace {

uintptr_t g_library_begin = 0, g_library_end = 0;
std::atomic<uint64_t> g_allocations{0}, g_locks{0};
thread_local bool t_counts = false;

[[maybe_unused]] void count(std::atomic<uint64_t>& counter, const void* caller) {
  const auto at = reinterpret_cast<uintptr_t>(caller);
  if (t_counts && at >= g_library_begin && at < g_library_end) ++counter;
}

}  // namespace

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
__attribute__((visibility("default"))) void* malloc(size_t bytes) noexcept {
  count(g_allocations, __builtin_return_address(0));
  return __libc_malloc(bytes);
}
__attribute__((visibility("default"))) void* calloc(size_t number, size_t bytes) noexcept {
  count(g_allocations, __builtin_return_address(0));
  return __libc_calloc(number, bytes);
}
__attribute__((visibility("default"))) int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  using Lock = int (*)(pthread_mutex_t*);
  static std::atomic<Lock> real{nullptr};
  if (real.load() == nullptr) real.store(reinterpret_cast<Lock>(dlsym(RTLD_NEXT, "pthread_mutex_lock")));
  count(g_locks, __builtin_return_address(0));
  return real.load()(mutex);
}
}
#endif

namespace lockstep::test {
namespace {

int find_library(dl_phdr_info* info, size_t, void*) {
  if (!std::string_view(info->dlpi_name).ends_with("liblockstep-hsa.so")) return 0;
  g_library_begin = info->dlpi_addr;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& part = info->dlpi_phdr[i];
    if (part.p_type == PT_LOAD)
      g_library_end = std::max<uintptr_t>(g_library_end, info->dlpi_addr + part.p_vaddr + part.p_memsz);
  }
  return 1;
}

// The GPU: what it is given has ended at once.
thread_local uint64_t t_written = 0;
void end_at_once(const void* packets, uint64_t count) {
  const auto* packet = static_cast<const Packet*>(packets);
  for (uint64_t i = 0; i < count; ++i, ++packet) {
    if (packet->completion.handle == 0) continue;
    auto* signal = capture::hsa::memory_of(packet->completion);
    signal->start = 1000 + t_written;
    signal->stop = 2000 + t_written++;
    __atomic_store_n(&signal->value, 0, __ATOMIC_RELEASE);
  }
}

constexpr int kNoFilter = 40;

TEST_F(HsaTest, ALaunchAllocatesLocksAndCallsTheSystemNever) {
  if (kSanitized) GTEST_SKIP() << "sanitizers do all of that";
  constexpr uint64_t kLaunches = 100'000;
  const Exit exit = run({}, [](FakeHsa& hsa) {
    dl_iterate_phdr(find_library, nullptr);
    ASSERT_NE(g_library_end, 0u);
    hsa.freeze(kernels_of_tests());
    auto* queue = hsa.make_queue(1024);
    const auto handler = hsa.handler(queue);
    const auto signal = hsa.make_signal();
    auto* arguments = static_cast<uint64_t*>(hsa.allocate(16));
    arguments[0] = 0x1111000;
    static Packet packets[3];
    packets[0] = FakeHsa::kernel(kCompute);
    packets[1] = FakeHsa::kernel(kReduce, 0, signal, reinterpret_cast<uint64_t>(arguments));
    packets[2] = FakeHsa::barrier();
    std::thread([&] {
      handler.call(packets, 3, 0, handler.data, end_at_once);  // a thread's first takes a log
      if (!forbid_system_calls()) _exit(kNoFilter);
      t_counts = true;
      for (uint64_t i = 0; i < kLaunches; ++i) handler.call(&packets[i % 3], 1, 0, handler.data, end_at_once);
      t_counts = false;
      syscall(SYS_exit, 0);
    }).join();
    EXPECT_EQ(g_allocations.load(), 0u);
    EXPECT_EQ(g_locks.load(), 0u);
  });
  if (exit.code == kNoFilter) GTEST_SKIP() << "no seccomp here";
  EXPECT_TRUE(exit.ok()) << exit;
  const HsaFile f = file();
  EXPECT_EQ(f.counters()["packets"], kLaunches + 3);
  EXPECT_GT(f.finished().size(), kLaunches / 20);
  f.expect_sums();
}

// That the counts would show it: loading code does lock.
TEST_F(HsaTest, WhatLocksIsCounted) {
  if (kSanitized) GTEST_SKIP() << "the counts are not there";
  ASSERT_TRUE(run({}, [](FakeHsa& hsa) {
                dl_iterate_phdr(find_library, nullptr);
                t_counts = true;
                hsa.freeze(kernels_of_tests());
                t_counts = false;
                EXPECT_GT(g_locks.load(), 0u);
              }).ok());
}

}  // namespace
}  // namespace lockstep::test
