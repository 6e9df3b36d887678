// SPDX-License-Identifier: Apache-2.0
#include "base/partial_path.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "tests/support/temporary_folder.h"

namespace lockstep {
namespace {

class PartialPath : public ::testing::Test {
 protected:
  PartialPath() {
    own_ = partial_path(target());
    stem_ = own_.substr(0, own_.size() - std::to_string(getpid()).size());
  }
  std::string target() const { return folder_ + "/trace.db"; }
  std::string of(pid_t pid) const { return stem_ + std::to_string(pid); }
  static void make(const std::string& path) { std::ofstream(path) << "x"; }
  std::set<std::string> files() const {
    std::set<std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) files.insert(entry.path());
    return files;
  }
  const test::TemporaryFolder temporary_;
  const std::string folder_ = temporary_.path();
  std::string own_, stem_;
};

// A pid that nobody has now.
pid_t gone() {
  pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  return child;
}

TEST_F(PartialPath, OnlyWhatDeadProcessesOfThisHostLeftIsStale) {
  pid_t dead = gone();
  std::string name = std::to_string(dead);
  std::set<std::string> stay = {
      own_,
      of(getppid()),
      target(),
      folder_ + "/other.db" + own_.substr(target().size()),
      target() + ".partial-" + name,
      target() + ".partial-elsewhere-1-" + name,
      target() + stem_.substr(target().size(), stem_.size() - target().size() - 1) + "9-" + name,
      stem_ + "notes",
      stem_ + name + ".txt"};
  for (const std::string& path : stay) make(path);
  make(of(dead));
  make(of(dead) + "-journal");
  remove_stale_partials(target());
  EXPECT_EQ(files(), stay);
}

TEST_F(PartialPath, OwnOnes) {
  make(own_);
  make(own_ + "-wal");
  make(of(getppid()));
  remove_own_partials(target());
  EXPECT_EQ(files(), std::set<std::string>{of(getppid())});
}

TEST_F(PartialPath, ABareNameIsInTheWorkingFolder) {
  std::string before = std::filesystem::current_path();
  std::filesystem::current_path(folder_);
  make(of(gone()));
  remove_stale_partials("trace.db");
  EXPECT_TRUE(files().empty());
  std::filesystem::current_path(before);
}

TEST_F(PartialPath, AFileIsWrittenWholeOrNotAtAll) {
  make(of(gone()));
  ASSERT_TRUE(write_whole(target(), "first, and longer"));
  EXPECT_EQ(files(), std::set<std::string>{target()}) << "nor of a writer that was killed";
  ASSERT_TRUE(write_whole(target(), "second"));
  std::string text;
  std::getline(std::ifstream(target()) >> std::ws, text);
  EXPECT_EQ(text, "second");
  std::filesystem::create_directories(folder_ + "/taken/inside");
  EXPECT_FALSE(write_whole(folder_ + "/taken", "x")) << "a folder has the name";
  EXPECT_FALSE(write_whole(folder_ + "/absent/file", "x"));
  std::filesystem::remove_all(folder_ + "/taken");
  EXPECT_EQ(files(), std::set<std::string>{target()}) << "nothing is left of what failed";
}

// The name can be guessed by anybody who may write to the folder.
TEST_F(PartialPath, ALinkUnderThePartialNameIsNotFollowed) {
  const std::string victim = folder_ + "/victim";
  make(victim);
  std::filesystem::create_symlink(victim, own_);
  ASSERT_TRUE(write_whole(target(), "mine"));
  std::filesystem::create_symlink(victim, folder_ + "/new");
  const int file = create_new_file(folder_ + "/new", 0644);
  ASSERT_GE(file, 0);
  EXPECT_EQ(write(file, "mine", 4), 4);
  close(file);
  for (const char* name : {"/trace.db", "/new"}) {
    EXPECT_FALSE(std::filesystem::is_symlink(folder_ + name));
    EXPECT_EQ(std::filesystem::file_size(folder_ + name), 4u);
  }
  EXPECT_EQ(std::filesystem::file_size(victim), 1u);
}

}  // namespace
}  // namespace lockstep
