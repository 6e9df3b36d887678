// SPDX-License-Identifier: Apache-2.0
#include "live/newest_states.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "readers/native/test_run.h"

namespace lockstep::live {
namespace {

using readers::native::FileBuilder;

void write_file_of(pid_t pid, const std::string& path, format::FileState state = format::FileState::kOpen) {
  const run::ProcessIdentity self = run::own_identity();
  FileBuilder file;
  file.header().pid = pid;
  file.header().state = static_cast<uint32_t>(state);
  file.header().pid_namespace = static_cast<uint32_t>(self.pid_namespace);
  file.header().start_ticks = run::read_stat(pid)->start_ticks;
  for (size_t i = 0; i < sizeof file.header().boot_id; ++i)
    file.header().boot_id[i] =
        static_cast<unsigned char>(std::stoi(self.boot_id.substr(2 * i, 2), nullptr, 16));
  file.comm(0xabc, 0, 1, "world");
  file.log(11);
  ASSERT_TRUE(file.write(path));
}

// A launcher merges a run that has ended, and removes its directory between two looks.
TEST(NewestStates, KnowsThatARunHasEndedWhoseDirectoryIsGone) {
  const std::string directory = readers::native::test_dir();
  const pid_t child = fork();
  if (child == 0) {
    for (;;) pause();
  }
  write_file_of(child, directory + "/a.lks");
  NewestStates states(directory);
  const auto seen = states.look();
  ASSERT_TRUE(seen) << seen.error().message();
  EXPECT_EQ(seen->size(), 1u);
  EXPECT_FALSE(states.all_ended());
  std::filesystem::remove_all(directory);
  EXPECT_FALSE(states.look());
  EXPECT_FALSE(states.all_ended()) << "out of reach for a while";
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_FALSE(states.look());
  EXPECT_TRUE(states.all_ended());
}

// A reading is followed by a rest, which the last look does not keep: a closed process would look dead.
TEST(NewestStates, HaveTheEndAtTheLastLook) {
  const std::string directory = readers::native::test_dir();
  write_file_of(getpid(), directory + "/a.lks");
  NewestStates states(directory);
  const auto open = states.look();
  ASSERT_TRUE(open) << open.error().message();
  EXPECT_FALSE(open->at(0).closed);
  write_file_of(getpid(), directory + "/a.lks", format::FileState::kClosed);
  const auto closed = states.look(true);
  ASSERT_TRUE(closed) << closed.error().message();
  EXPECT_TRUE(closed->at(0).closed);
}

TEST(NewestStates, OfNoRunHaveNotEnded) {
  NewestStates states(readers::native::test_dir() + "/to-come");
  EXPECT_FALSE(states.look());
  EXPECT_FALSE(states.all_ended());
}

}  // namespace
}  // namespace lockstep::live
