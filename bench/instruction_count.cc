// SPDX-License-Identifier: Apache-2.0
// Instructions that one callback executes, on average and exactly: a child plays a stream of nccl_streams.h
// and is stepped through it one instruction at a time, first with a plugin that returns at once, then with
// the capture library; the difference is what the library adds. Needs ptrace, and no counter of the
// processor. What is rare has its share: the rounds should fill a chunk. Retention and folder:
// LOCKSTEP_RETAIN, LOCKSTEP_DIR.
//   instruction_count A|B ROUNDS
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "nccl_streams.h"

using namespace lockstep::bench;

namespace {

// The tracer takes this signal as the end of a stretch, and keeps it from the child.
constexpr int kMark = SIGUSR1;
using Stream = void (Host::*)();

[[noreturn]] void play(Stream stream, int rounds) {
  Host empty(&kEmpty), ours(lockstep_plugin());
  for (int i = 0; i < rounds; ++i) (empty.*stream)(), (ours.*stream)();
  ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
  raise(kMark);
  for (int i = 0; i < rounds; ++i) (empty.*stream)();
  raise(kMark);
  for (int i = 0; i < rounds; ++i) (ours.*stream)();
  raise(kMark);
  _exit(0);
}

bool next_stop(pid_t child, int* signal) {
  int status = 0;
  if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status)) return false;
  *signal = WSTOPSIG(status);
  return true;
}

// Instructions up to the next mark; -1 if the child ended before.
long count(pid_t child) {
  int signal = 0;
  for (long steps = 0;; ++steps) {
    if (ptrace(PTRACE_SINGLESTEP, child, nullptr, nullptr) != 0 || !next_stop(child, &signal)) return -1;
    if (signal == kMark) return steps;
  }
}

}  // namespace

int main(int argc, char** argv) {
  const bool is_a = argc == 3 && strcmp(argv[1], "A") == 0;
  const int rounds = argc == 3 ? std::atoi(argv[2]) : 0;
  if (rounds <= 0 || lockstep_plugin() == nullptr) {
    std::fprintf(stderr, "usage: instruction_count A|B ROUNDS (needs %s/liblockstep-nccl.so)\n",
                 LOCKSTEP_LIB_DIR);
    return 2;
  }
  setenv("LOCKSTEP_MODE", "deep", 1);
  const pid_t child = fork();
  if (child == 0) play(is_a ? &Host::stream_a : &Host::stream_b, rounds);
  int signal = 0;
  const bool begun = next_stop(child, &signal) && signal == kMark;
  const long empty = begun ? count(child) : -1, ours = empty >= 0 ? count(child) : -1;
  if (ours < 0) {
    std::fprintf(stderr, "instruction_count: the child cannot be stepped through (is ptrace allowed?)\n");
    return 1;
  }
  ptrace(PTRACE_CONT, child, nullptr, nullptr);
  waitpid(child, nullptr, 0);
  const double callbacks = static_cast<double>(rounds) * (is_a ? kCallsA : kCallsB);
  std::printf("%.1f\n", static_cast<double>(ours - empty) / callbacks);
  return 0;
}
