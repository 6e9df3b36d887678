// SPDX-License-Identifier: Apache-2.0
// What the end-to-end tests trace: a process that communicates, as far as Lockstep can tell, and misbehaves
// on demand. Its words are done in turn:
//   ops N         N all-reduces on the group of all ranks      argv ...      print the rest, one a line, and
//                                                                            end
//   say TEXT      print it                                     touch FILE    create it
//   sleep MS                                                   await FILE    until it is there
//   signal N      raise it                                     count N       from now on count this signal
//   await-signal  until one was counted, then 300 ms more      exit-count    exit with the count
//   exit N                                                     _exit N       without exit handlers
//   orphan ...    start another job with the rest and go on    stdin         copy it to stdout
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <lockstep/lockstep.h>

static volatile sig_atomic_t counted = 0;
static void count_signal(int) { counted = counted + 1; }

static int number_of(const char* name, int fallback) {
  const char* text = getenv(name);
  return text == nullptr ? fallback : atoi(text);
}

static void do_ops(int count) {
  lockstep_group_info info = {
      sizeof info, number_of("RANK", 0), "world", nullptr, number_of("WORLD_SIZE", 1), 0, 1, 0, nullptr};
  lockstep_group group = lockstep_declare_group_info(&info);
  for (int i = 0; i < count; ++i)
    lockstep_end(lockstep_begin(group, "allreduce", 1024, 1024, "Float", nullptr), nullptr);
}

static void wait_for(int ms) { usleep(static_cast<useconds_t>(ms) * 1000); }

static void await_file(const char* path) {
  while (access(path, F_OK) != 0) wait_for(2);
}

// Sanitizers handle some signals; the exit code would be theirs.
static void raise_plainly(int number) {
  struct sigaction now;
  sigaction(number, nullptr, &now);
  if (now.sa_handler != SIG_IGN) signal(number, SIG_DFL);
  raise(number);
}

static void orphan(char** argv, char* self) {
  if (fork() != 0) return;
  argv[-1] = self;
  execv("/proc/self/exe", argv - 1);
  _exit(97);
}

int main(int argc, char** argv) {
  setvbuf(stdout, nullptr, _IONBF, 0);
  for (int i = 1; i < argc; ++i) {
    const char* word = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : "";
    auto is = [&](const char* name) { return strcmp(word, name) == 0; };
    auto takes = [&](const char* name) { return is(name) && ++i < argc; };
    if (is("argv")) {
      while (++i < argc) printf("[%s]\n", argv[i]);
    } else if (is("orphan")) {
      orphan(argv + i + 1, argv[0]);
      return 0;
    } else if (is("stdin")) {
      for (int c = getchar(); c != EOF; c = getchar()) putchar(c);
    } else if (is("await-signal")) {
      while (counted == 0) wait_for(2);
      wait_for(300);
    } else if (is("exit-count")) {
      return counted;
    } else if (takes("ops")) {
      do_ops(atoi(value));
    } else if (takes("say")) {
      puts(value);
    } else if (takes("touch")) {
      fclose(fopen(value, "w"));
    } else if (takes("sleep")) {
      wait_for(atoi(value));
    } else if (takes("await")) {
      await_file(value);
    } else if (takes("signal")) {
      raise_plainly(atoi(value));
    } else if (takes("count")) {
      signal(atoi(value), count_signal);
    } else if (takes("exit")) {
      return atoi(value);
    } else if (takes("_exit")) {
      _exit(atoi(value));
    } else {
      return 96;
    }
  }
  return 0;
}
