// SPDX-License-Identifier: Apache-2.0
// Loaded into each program that QEMU runs for tests of another architecture, to make good what QEMU's user
// mode does not do: it passes exec on to the kernel, which knows none of these programs, and has a start time
// of its own for each thread in /proc/self/stat. Children of the C library's own making (system(), popen())
// are programs of this machine.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOST_WORDS 4096

extern char** environ;
static char preload[PATH_MAX + 16];

// QEMU hands it on by itself; other programs cannot load it.
__attribute__((constructor)) static void begin(void) {
  snprintf(preload, sizeof preload, "LD_PRELOAD=%s", LOCKSTEP_EMULATED_LIBRARY);
  unsetenv("LD_PRELOAD");
}

int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const int mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, int) : 0;
  va_end(rest);
  char other[64];
  // A name that QEMU does not take for a process's own.
  if (strncmp(path, "/proc/", 6) == 0 && strlen(path) < sizeof other - 2 &&
      strcmp(path + strlen(path) - 5, "/stat") == 0) {
    if (strcmp(path, "/proc/self/stat") == 0)
      snprintf(other, sizeof other, "/proc//%d/stat", getpid());
    else
      snprintf(other, sizeof other, "/proc//%s", path + 6);
    path = other;
  }
  return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

static int is_ours(const char* path) {
  Elf64_Ehdr head;
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  const ssize_t got = fd < 0 ? 0 : read(fd, &head, sizeof head);
  if (fd >= 0) close(fd);
  return got == sizeof head && memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 && head.e_machine == EM_AARCH64;
}

// What to run in place of `path`; `words` has room for MOST_WORDS.
static const char* through_qemu(const char* path, char* const argv[], const char** words, char* self) {
  if (strcmp(path, "/proc/self/exe") == 0) {
    const ssize_t length = readlink(path, self, PATH_MAX - 1);
    if (length > 0) self[length] = 0, path = self;
  }
  size_t count = 0;
  if (is_ours(path)) {
    const char* first[] = {LOCKSTEP_EMULATOR, "-L", LOCKSTEP_SYSROOT, "-E", preload, "-0", argv[0], path};
    for (; count < sizeof first / sizeof *first; ++count) words[count] = first[count];
    ++argv;
    path = LOCKSTEP_EMULATOR;
  }
  while (*argv != NULL && count < MOST_WORDS - 1) words[count++] = *argv++;
  words[count] = NULL;
  return path;
}

int execve(const char* path, char* const argv[], char* const environment[]) {
  const char* words[MOST_WORDS];
  char self[PATH_MAX];
  const char* program = through_qemu(path, argv, words, self);
  return (int)syscall(SYS_execve, program, words, environment);
}
int execv(const char* path, char* const argv[]) { return execve(path, argv, environ); }

int execvp(const char* file, char* const argv[]) {
  if (strchr(file, '/') != NULL) return execv(file, argv);
  const char* folder = getenv("PATH");
  int error = ENOENT;
  while (folder != NULL && *folder != 0) {
    const char* end = strchrnul(folder, ':');
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%.*s/%s", (int)(end - folder), folder, file);
    if (access(path, F_OK) == 0) {
      execv(path, argv);
      error = errno;
    }
    folder = *end == 0 ? end : end + 1;
  }
  errno = error;
  return -1;
}

int execl(const char* path, const char* first, ...) {
  char* argv[64] = {(char*)first};
  va_list rest;
  va_start(rest, first);
  for (int i = 1; i < 63 && (argv[i] = va_arg(rest, char*)) != NULL; ++i) {
  }
  va_end(rest);
  return execv(path, argv);
}

int posix_spawn(pid_t* pid, const char* path, const posix_spawn_file_actions_t* files,
                const posix_spawnattr_t* attributes, char* const argv[], char* const environment[]) {
  int (*real)(pid_t*, const char*, const posix_spawn_file_actions_t*, const posix_spawnattr_t*, char* const[],
              char* const[]) = dlsym(RTLD_NEXT, "posix_spawn");
  const char* words[MOST_WORDS];
  char self[PATH_MAX];
  const char* program = through_qemu(path, argv, words, self);
  return real(pid, program, files, attributes, (char* const*)words, environment);
}
