// SPDX-License-Identifier: Apache-2.0
// Makes what is linked on a new machine run on glibc 2.28. Archives were compiled for the new glibc, so their references cannot be
// given another version; the linker's --wrap leads them here, for each name of symbols.def.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define HIDDEN __attribute__((visibility("hidden")))

#if defined(__x86_64__)
#define JUMP(name) "jmp " name "@PLT"
#define SINCE(version) "GLIBC_" #version
#elif defined(__aarch64__)
#define JUMP(name) "b " name
#define SINCE(version) "GLIBC_2.17"
#else
#error "which version of glibc had these functions first?"
#endif

// A jump, whatever the arguments are.
#define OLD(name, version)                                               \
  __asm__(".symver lockstep_old_" #name "," #name "@" SINCE(version) "\n" \
          ".text\n.globl __wrap_" #name "\n.hidden __wrap_" #name "\n"   \
          ".type __wrap_" #name ",%function\n__wrap_" #name ":\n"        \
          JUMP("lockstep_old_" #name) "\n.size __wrap_" #name ", .-__wrap_" #name "\n");
#define OWN(name)
#include "symbols.def"
#undef OLD
#undef OWN

// Since 2.33 stat() is a function of the library; before, an inline one. The kernel's struct is glibc's on these machines.
#define STAT(name, flags)                                                                                         \
  HIDDEN int __wrap_##name(const char* path, struct stat* result) {                                               \
    return (int)syscall(SYS_newfstatat, AT_FDCWD, path, result, flags);                                           \
  }
STAT(stat, 0)
STAT(stat64, 0)
STAT(lstat, AT_SYMLINK_NOFOLLOW)
STAT(lstat64, AT_SYMLINK_NOFOLLOW)
HIDDEN int __wrap_fstat(int file, struct stat* result) { return (int)syscall(SYS_fstat, file, result); }
HIDDEN int __wrap_fstat64(int file, struct stat* result) { return (int)syscall(SYS_fstat, file, result); }

// Since 2.32: whether there is one thread. "No" is always right, and costs an atomic.
HIDDEN char __wrap___libc_single_threaded = 0;

// Since 2.36.
HIDDEN uint32_t __wrap_arc4random(void) {
  uint32_t number = 0;
  if (getentropy(&number, sizeof number) != 0) abort();
  return number;
}

// Since 2.30; the clock of a condition variable is CLOCK_REALTIME, so time that is set meanwhile moves the end of the wait.
HIDDEN int __wrap_pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                                         const struct timespec* until) {
  if (clock == CLOCK_REALTIME) return pthread_cond_timedwait(condition, mutex, until);
  struct timespec of_clock, real;
  if (clock_gettime(clock, &of_clock) != 0 || clock_gettime(CLOCK_REALTIME, &real) != 0) return EINVAL;
  struct timespec end = {real.tv_sec + (until->tv_sec - of_clock.tv_sec), real.tv_nsec + (until->tv_nsec - of_clock.tv_nsec)};
  for (; end.tv_nsec < 0; end.tv_nsec += 1000000000) --end.tv_sec;
  for (; end.tv_nsec >= 1000000000; end.tv_nsec -= 1000000000) ++end.tv_sec;
  if (end.tv_sec < 0) return ETIMEDOUT;
  return pthread_cond_timedwait(condition, mutex, &end);
}

// Since 2.35: where the unwinding table of the code at an address is. An exception asks.
struct Sought {
  uintptr_t address;
  struct dl_find_object* result;
};

static int look_into_object(struct dl_phdr_info* object, size_t size, void* context) {
  (void)size;
  const struct Sought* sought = context;
  const ElfW(Phdr)* table = NULL;
  const ElfW(Phdr)* code = NULL;
  for (const ElfW(Phdr)* segment = object->dlpi_phdr; segment != object->dlpi_phdr + object->dlpi_phnum; ++segment) {
    if (segment->p_type == PT_GNU_EH_FRAME) table = segment;
    if (segment->p_type == PT_LOAD && sought->address - (object->dlpi_addr + segment->p_vaddr) < segment->p_memsz) code = segment;
  }
  if (code == NULL || table == NULL) return 0;
  sought->result->dlfo_flags = 0;
  sought->result->dlfo_map_start = (void*)(object->dlpi_addr + code->p_vaddr);
  sought->result->dlfo_map_end = (void*)(object->dlpi_addr + code->p_vaddr + code->p_memsz);
  sought->result->dlfo_link_map = NULL;
  sought->result->dlfo_eh_frame = (void*)(object->dlpi_addr + table->p_vaddr);
  return 1;
}

HIDDEN int __wrap__dl_find_object(void* address, struct dl_find_object* result) {
  struct Sought sought = {(uintptr_t)address, result};
  return dl_iterate_phdr(look_into_object, &sought) == 1 ? 0 : -1;
}
