// SPDX-License-Identifier: Apache-2.0
#include "run/process_info.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <thread>

#include "cli/trace/capture_environment.h"
#include "cli/trace/tokens.h"

namespace lockstep::cli::trace {
namespace {

run::JobPlace place(const std::map<std::string, std::string>& environment) {
  return run::job_place([&](const char* name) -> const char* {
    auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  });
}

TEST(ProcessInfo, KnowsItself) {
  run::ProcessIdentity self = run::own_identity();
  EXPECT_EQ(self.pid, getpid());
  EXPECT_GT(self.start_ticks, 0u);
  EXPECT_FALSE(self.host.empty());
  EXPECT_EQ(self.boot_id.size(), 32u);
  EXPECT_EQ(run::is_alive(self), true);
  EXPECT_EQ(run::read_stat(self.pid)->parent, getppid());
  run::ProcessIdentity earlier = self;
  --earlier.start_ticks;  // the pid was reused
  EXPECT_EQ(run::is_alive(earlier), false);
  run::ProcessIdentity elsewhere = self;
  elsewhere.boot_id = "0";
  EXPECT_EQ(run::is_alive(elsewhere), std::nullopt);
}

// The kernel shows it as a zombie, though its process goes on: a rank whose interpreter's first thread has
// returned is not dead.
TEST(ProcessInfo, AMainThreadThatHasEndedIsNotItsProcess) {
  const pid_t pid = fork();
  if (pid == 0) {
    std::thread([] { pause(); }).detach();
    syscall(SYS_exit, 0);  // of this thread alone
  }
  const std::string path = "/proc/" + std::to_string(pid) + "/stat";
  const auto state = [&] {
    std::ifstream file(path);
    std::string text((std::istreambuf_iterator<char>(file)), {});
    return text.substr(text.rfind(')') + 2, 1);
  };
  for (int tries = 0; tries < 1000 && state() != "Z"; ++tries) usleep(10'000);
  ASSERT_EQ(state(), "Z");
  EXPECT_FALSE(run::read_stat(pid)->zombie);
  run::ProcessIdentity process = run::own_identity();
  process.pid = pid;
  process.start_ticks = run::read_stat(pid)->start_ticks;
  EXPECT_EQ(run::is_alive(process), true);
  EXPECT_EQ(run::is_alive_launcher(process), false) << "nobody is left to merge";
  kill(pid, SIGKILL);
  siginfo_t info{};
  waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT);
  EXPECT_TRUE(run::read_stat(pid)->zombie);
  waitpid(pid, nullptr, 0);
  EXPECT_FALSE(run::read_stat(pid));
}

TEST(JobPlace, Torchrun) {
  run::JobPlace at =
      place({{"RANK", "3"}, {"WORLD_SIZE", "8"}, {"GROUP_RANK", "1"}, {"TORCHELASTIC_RUN_ID", "job"}});
  EXPECT_EQ(at.rank, 3);
  EXPECT_EQ(at.world, 8);
  EXPECT_EQ(at.node_rank, 1);
  EXPECT_EQ(at.job, "job");
  EXPECT_EQ(at.launchers, 8);
  EXPECT_FALSE(at.launchers_key.empty());
}

TEST(JobPlace, SlurmStepsShareABatchScriptDoesNot) {
  std::map<std::string, std::string> batch = {
      {"SLURM_JOB_ID", "77"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "16"}};
  EXPECT_EQ(place(batch).launchers_key, "");
  EXPECT_EQ(place(batch).launchers, 1);
  batch["SLURM_STEP_ID"] = "2";
  batch["SLURM_STEP_NUM_TASKS"] = "4";
  EXPECT_EQ(place(batch).launchers_key, "slurm:77.2");
  EXPECT_EQ(place(batch).launchers, 4);
  EXPECT_EQ(place(batch).job, "77");
}

TEST(JobPlace, OpenMpiAndNothing) {
  run::JobPlace at =
      place({{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}, {"PMIX_NAMESPACE", "ns"}});
  EXPECT_EQ(at.rank, 1);
  EXPECT_EQ(at.launchers_key, "openmpi:ns");
  EXPECT_EQ(place({}).rank, -1);
  EXPECT_EQ(place({{"RANK", "x"}, {"WORLD_SIZE", "-1"}}).rank, -1);
}

TEST(Tokens, Expand) {
  run::ProcessIdentity self;
  self.host = "a/b";
  self.pid = 12;
  run::JobPlace at;
  EXPECT_EQ(expand_tokens("%p-%h-%r-%n-%j-%%-%x-%", self, at), "12-a_b--1--1-nojob-%-%x-%");
  at = place({{"RANK", "3"}, {"GROUP_RANK", "1"}, {"TORCHELASTIC_RUN_ID", "j"}});
  EXPECT_EQ(expand_tokens("%r.%n.%j", self, at), "3.1.j");
  EXPECT_EQ(expand_tokens(protect_tokens("100%p"), self, at), "100%p");
}

TEST(Retention, IsCheckedBeforeTheJob) {
  for (const char* good : {"stream", "stream:4G", "ring:64M", "ring:1048576", "stream:1k"})
    EXPECT_TRUE(is_retention(good)) << good;
  for (const char* bad : {"", "ring", "ring:", "ring:0", "stream:4T", "stream:4GG", "loop:4G", "stream:-1",
                          "ring:99999999999G"}) {
    EXPECT_FALSE(is_retention(bad)) << bad;
  }
}

}  // namespace
}  // namespace lockstep::cli::trace
