// SPDX-License-Identifier: Apache-2.0
#include "cli/kit/standard_input.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "cli/command.h"
#include "tests/support/places.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::cli {
namespace {

// Standard input is `path` while it lives.
class Redirected {
 public:
  explicit Redirected(const std::string& path) : before_(::dup(STDIN_FILENO)) {
    const int from = ::open(path.c_str(), O_RDONLY);
    ::dup2(from, STDIN_FILENO);
    ::close(from);
    std::clearerr(stdin);
  }
  ~Redirected() {
    ::dup2(before_, STDIN_FILENO);
    ::close(before_);
    std::clearerr(stdin);
  }
  Redirected(const Redirected&) = delete;
  Redirected& operator=(const Redirected&) = delete;

 private:
  const int before_;
};

TEST(StandardInput, IsCopiedIntoAFile) {
  const test::TemporaryFolder folder;
  std::ofstream(folder / "log") << "NCCL INFO";
  const Redirected redirected(folder / "log");
  const auto input = StandardInput::read();
  ASSERT_TRUE(input) << input.error().message();
  std::stringstream text;
  text << std::ifstream(input->in_place_of_dash({"-"})[0]).rdbuf();
  EXPECT_EQ(text.str(), "NCCL INFO");
}

TEST(StandardInput, ThatCannotBeReadIsNoEmptyOne) {
  const test::TemporaryFolder folder;
  // Reading a folder fails, as a disk or a network may in the middle.
  const Redirected redirected(folder.path());
  const auto input = StandardInput::read();
  ASSERT_FALSE(input);
  EXPECT_NE(input.error().message().find("standard input: cannot be read"), std::string::npos)
      << input.error().message();
}

TEST(StandardInput, IsInNoCommandThatComesNext) {
  const Command* command = find_command("diagnose");
  const std::vector<const char*> words = {"-"};
  const auto arguments = parse_arguments(command->options, command->operands, words);
  ASSERT_TRUE(arguments);
  const Redirected redirected(LOCKSTEP_SOURCE_DIR "/tests/data/flight_recorder/hang/fr_0");
  ::testing::internal::CaptureStdout();
  command->run(*arguments);
  const std::string text = ::testing::internal::GetCapturedStdout();
  EXPECT_NE(text.find("[evidence-missing"), std::string::npos) << text;
  EXPECT_EQ(text.find("lockstep report"), std::string::npos) << text;
  EXPECT_EQ(text.find("lockstep show"), std::string::npos) << text;
}

}  // namespace
}  // namespace lockstep::cli
