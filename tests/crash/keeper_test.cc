// SPDX-License-Identifier: Apache-2.0
// The keeper thread: cheap, named, deaf to signals, alive.
#include <dirent.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cstdarg>
#include <cstddef>
#include <fstream>
#include <sstream>

#include "tests/support/nccl_test.h"

namespace lockstep::test {
namespace {

class Keeper : public NcclCapture {
 protected:
  // /proc/self/task/<tid> of the thread with this name; empty if there is none.
  static std::string task_named(const std::string& name) {
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
      std::string comm;
      std::ifstream(task.path() / "comm") >> comm;
      if (comm == name) return task.path();
    }
    return {};
  }
  static uint64_t status_mask(const std::string& task, const std::string& field) {
    std::ifstream status(task + "/status");
    for (std::string word; status >> word;) {
      if (word == field + ":" && status >> word) return std::stoull(word, nullptr, 16);
    }
    return 0;
  }
  // How often the keeper went to sleep so far.
  static uint64_t naps() {
    std::ifstream status(task_named("lockstep") + "/status");
    for (std::string word; status >> word;) {
      if (word == "voluntary_ctxt_switches:" && status >> word) return std::stoull(word);
    }
    return 0;
  }
};

// Naps of 50 ms, once it has found out that there is nothing to do; a busy machine only makes them longer.
TEST_F(Keeper, SleepsWhenNothingHappens) {
  record([] {
    NcclPlugin<5> plugin;
    plugin.init();
    plugin.stop(plugin.start_coll(0));
    LiveHeader::wait([] { return naps() > 16; });
    uint64_t before = naps();
    double start = seconds_now();
    sleep_ms(1000);
    uint64_t after = naps();
    EXPECT_GT(before, 0u);
    EXPECT_LE(static_cast<double>(after - before), (seconds_now() - start) / 0.05 + 4);
  });
}

TEST_F(Keeper, IsNamedAndBlocksSignals) {
  record([] {
    NcclPlugin<5> plugin;
    uint64_t own = status_mask("/proc/thread-self", "SigBlk");
    plugin.init();
    EXPECT_EQ(status_mask("/proc/thread-self", "SigBlk"), own) << "the caller's mask is as before";
    LiveHeader::wait([] { return !task_named("lockstep").empty(); });
    uint64_t blocked = status_mask(task_named("lockstep"), "SigBlk");
    for (int signal :
         {SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGTERM, SIGCHLD, SIGPROF, SIGXFSZ, SIGXCPU}) {
      EXPECT_TRUE(blocked >> (signal - 1) & 1) << "signal " << signal;
    }
  });
}

TEST_F(Keeper, BeatsWhileNothingHappens) {
  record([&] {
    NcclPlugin<5> plugin;
    plugin.init();
    LiveHeader live(run_);
    for (int beat = 0; beat < 2; ++beat) {
      uint64_t before = live.heartbeat();
      LiveHeader::wait([&] { return live.heartbeat() != before; });
    }
  });
}

std::string g_messages;
void hear(int level, unsigned long, const char*, int, const char* format, ...) {
  char text[2048];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  g_messages += (level == abi::kLogWarn ? "WARN " : "INFO ") + std::string(text) + "\n";
}

// From here on the process has no more threads than it has.
bool forbid_threads() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAGAIN),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog program{5, filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST_F(Keeper, ItsAbsenceIsSaid) {
  constexpr int kNoFilter = 7;
  if (run_child(settings(), [] { _exit(forbid_threads() ? 0 : kNoFilter); }).code == kNoFilter)
    GTEST_SKIP() << "no filter of system calls here, as under QEMU";
  LksFile file = record([] {
    ASSERT_TRUE(forbid_threads());
    NcclPlugin<5> plugin;
    plugin.init(0x1234, nullptr, 8, 3, hear);
    EXPECT_NE(g_messages.find("WARN lockstep: writing "), std::string::npos) << g_messages;
    EXPECT_NE(g_messages.find("no thread can be started"), std::string::npos) << g_messages;
    plugin.stop(plugin.start_coll(0));
  });
  EXPECT_EQ(file.count(format::Kind::kColl), 1u) << "what there is room for is recorded";
}

// Much more than is there at the beginning: the keeper adds to it for ever, and where it has, nothing is
// lost.
TEST_F(Keeper, PreparesAhead) {
  constexpr uint64_t kEvents = 100'000;
  LksFile file = record([&] {
    NcclPlugin<5> plugin;
    plugin.init();
    LiveHeader live(run_);
    for (uint64_t i = 0; i < kEvents; ++i) {
      if (i % 1000 == 0) live.wait_for_room((i + 1000) * sizeof(format::CollRecord));
      plugin.stop(plugin.start_coll(i));
    }
  });
  EXPECT_EQ(file.count(format::Kind::kColl), kEvents);
  EXPECT_EQ(file.lost(), 0u);
}

}  // namespace
}  // namespace lockstep::test
