// SPDX-License-Identifier: Apache-2.0
#include "run/liveness.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "format/file_layout.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::run {
namespace {

using model::Liveness;

// A child that does nothing, in the state that the test puts it in.
class Child {
 public:
  Child() : pid_(fork()) {
    if (pid_ == 0)
      for (;;) pause();
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() { end(); }
  void stop() const {
    kill(pid_, SIGSTOP);
    int status = 0;
    waitpid(pid_, &status, WUNTRACED);
  }
  void end() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  ProcessIdentity identity() const {
    ProcessIdentity identity = own_identity();
    identity.pid = pid_;
    identity.start_ticks = read_stat(pid_)->start_ticks;
    return identity;
  }

 private:
  pid_t pid_;
};

TEST(Liveness, TellsRunningStoppedAndGone) {
  Child child;
  ProcessIdentity identity = child.identity();
  EXPECT_EQ(look_at(identity), Liveness::kRunning);
  child.stop();
  EXPECT_EQ(look_at(identity), Liveness::kStopped);
  child.end();
  EXPECT_EQ(look_at(identity), Liveness::kGone);
}

TEST(Liveness, AnEarlierProcessOfTheSameNumberIsGone) {
  ProcessIdentity earlier = own_identity();
  --earlier.start_ticks;
  EXPECT_EQ(look_at(earlier), Liveness::kGone);
}

TEST(Liveness, OtherBootsAndContainersAreUnknown) {
  ProcessIdentity elsewhere = own_identity();
  elsewhere.boot_id = "0";
  EXPECT_EQ(look_at(elsewhere), Liveness::kUnknown);
  ProcessIdentity contained = own_identity();
  ++contained.pid_namespace;
  EXPECT_EQ(look_at(contained), Liveness::kUnknown);
}

// The header of a process file, and the process as a reader gives it.
std::string with_dashes(const std::string& hex) {
  return hex.substr(0, 8) + '-' + hex.substr(8, 4) + '-' + hex.substr(12, 4) + '-' + hex.substr(16, 4) + '-' +
         hex.substr(20);
}
void write_header(const std::string& path, const ProcessIdentity& process, int64_t start_ns) {
  std::vector<char> bytes(format::kHeaderBytes);
  format::FileHeader header{};
  std::memcpy(header.magic, format::kMagic, sizeof header.magic);
  header.major = format::kMajor;
  header.pid = static_cast<int32_t>(process.pid);
  header.pid_namespace = static_cast<uint32_t>(process.pid_namespace);
  header.start_ticks = process.start_ticks;
  header.start_realtime_ns = start_ns;
  for (size_t i = 0; i < sizeof header.boot_id; ++i)
    header.boot_id[i] = static_cast<unsigned char>(std::stoi(process.boot_id.substr(2 * i, 2), nullptr, 16));
  header.state = static_cast<uint32_t>(format::FileState::kOpen);
  std::memcpy(bytes.data(), &header, sizeof header);
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

TEST(Liveness, FindsTheProcessesOfAJob) {
  const test::TemporaryFolder folder;
  const std::string& run = folder.path();
  ProcessIdentity self = own_identity(), earlier = self;
  --earlier.start_ticks;
  write_header(run + "/now.lks", self, 2'000'000'000);
  write_header(run + "/before.lks", earlier, 1'000'000'000);
  model::Job job;
  auto add = [&](int64_t pid, int64_t start_ns) {
    model::JobProcess process;
    process.row.boot_id = job.strings.intern(with_dashes(self.boot_id));
    process.row.pid = pid;
    process.row.start_ns = start_ns;
    job.processes.push_back(process);
  };
  add(self.pid, 2'000'000'005);  // two libraries of a process work its start out apart
  add(self.pid, 1'000'000'005);
  add(self.pid + 100'000'000, 0);
  set_liveness({run}, job);
  EXPECT_EQ(job.processes[0].liveness, Liveness::kRunning);
  EXPECT_EQ(job.processes[1].liveness, Liveness::kGone);
  EXPECT_EQ(job.processes[2].liveness, Liveness::kUnknown);
  set_liveness({run + "/before.lks"}, job);
  EXPECT_EQ(job.processes[0].liveness, Liveness::kGone) << "the file named alone";
}

TEST(Liveness, AHeartbeatOfTheMomentStandsForWhatCannotBeSeen) {
  constexpr int64_t kSecond = 1'000'000'000, kNow = 1'000 * kSecond;
  EXPECT_TRUE(beats(kNow - 10 * kSecond, kNow));
  EXPECT_FALSE(beats(kNow - 11 * kSecond, kNow));
  EXPECT_TRUE(beats(kNow + kSecond, kNow)) << "another host's clock is ahead";
  EXPECT_FALSE(beats(0, kNow));
}

TEST(Liveness, WhatRunsOnAnotherHostBeats) {
  std::string run = ::testing::TempDir() + "/liveness_elsewhere";
  std::filesystem::remove_all(run);
  std::filesystem::create_directories(run);
  ProcessIdentity other = own_identity();
  other.boot_id = std::string(32, 'a');
  write_header(run + "/other.lks", other, 0);
  model::Job job;
  model::JobProcess process;
  process.row.boot_id = job.strings.intern(with_dashes(other.boot_id));
  process.row.pid = other.pid;
  process.row.heartbeat_ns =
      std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count();
  job.processes.push_back(process);
  auto beats_now = [&] {
    set_liveness({run}, job);
    EXPECT_EQ(job.processes[0].liveness, Liveness::kUnknown);
    return job.processes[0].beats;
  };
  EXPECT_TRUE(beats_now());
  job.processes[0].row.closed = 1;
  EXPECT_FALSE(beats_now());
  job.processes[0].row.closed = 0;
  job.processes[0].row.heartbeat_ns -= 60'000'000'000;
  EXPECT_FALSE(beats_now());
}

}  // namespace
}  // namespace lockstep::run
