// SPDX-License-Identifier: Apache-2.0
// The keeper thread: cheap, named, deaf to signals, alive.
#include <dirent.h>
#include <sys/resource.h>

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
  static double cpu_seconds() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    auto seconds = [](const timeval& time) {
      return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
  }
};

TEST_F(Keeper, CostsNothingWhenIdle) {
  record([] {
    NcclPlugin<5> plugin;
    plugin.init();
    plugin.stop(plugin.start_coll(0));
    sleep_ms(300);
    double before = cpu_seconds();
    sleep_ms(2000);
    EXPECT_LT(cpu_seconds() - before, kSanitized ? 0.05 : 0.01);
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

TEST_F(Keeper, KeepsUpWithAPacedWriter) {
  constexpr uint64_t kEvents = 200'000;
  LksFile file = record([] {
    NcclPlugin<5> plugin;
    plugin.init();
    // A callback every 5 us or so, without a look at the keeper.
    for (uint64_t i = 0; i < kEvents; ++i) {
      plugin.stop(plugin.start_coll(i));
      if (i % 200 == 199) sleep_ms(1);
    }
  });
  EXPECT_EQ(file.count(format::Kind::kColl), kEvents);
  EXPECT_EQ(file.lost(), 0u);
}

}  // namespace
}  // namespace lockstep::test
