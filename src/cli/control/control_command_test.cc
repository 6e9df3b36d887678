// SPDX-License-Identifier: Apache-2.0
// `lockstep control` of this very process, whose file the test answers for.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <fstream>
#include <thread>

#include "cli/command.h"
#include "cli/control/live_header.h"
#include "run/process_info.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::cli::control {
namespace {

std::string file_of_this_process() {
  const run::ProcessIdentity self = run::own_identity();
  format::FileHeader header{};
  std::memcpy(header.magic, format::kMagic, sizeof header.magic);
  header.major = format::kMajor;
  header.minor = format::kMinor;
  header.header_bytes = format::kHeaderBytes;
  header.pid = static_cast<int32_t>(self.pid);
  header.pid_namespace = static_cast<uint32_t>(self.pid_namespace);
  header.start_ticks = self.start_ticks;
  for (size_t i = 0; i < sizeof header.boot_id; ++i)
    header.boot_id[i] = static_cast<unsigned char>(std::stoi(self.boot_id.substr(2 * i, 2), nullptr, 16));
  header.rank = 0;
  header.in_force.until_monotonic_ns = INT64_MIN;
  header.state = static_cast<uint32_t>(format::FileState::kOpen);
  std::string bytes(format::kHeaderBytes, '\0');
  std::memcpy(bytes.data(), &header, sizeof header);
  return bytes;
}

struct Ended {
  int code = 0;
  std::string out, err;
};
Ended control(const std::vector<const char*>& words) {
  const Command* command = find_command("control");
  auto arguments = parse_arguments(command->options, command->operands, words);
  EXPECT_TRUE(arguments);
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  Ended ended;
  ended.code = command->run(*arguments);
  ended.out = ::testing::internal::GetCapturedStdout();
  ended.err = ::testing::internal::GetCapturedStderr();
  return ended;
}

class ControlCommand : public ::testing::Test {
 protected:
  void SetUp() override { std::ofstream(file_, std::ios::binary) << file_of_this_process(); }
  const test::TemporaryFolder folder_;
  const std::string file_ = folder_ / "h.1.1.nccl.lks";
};

TEST_F(ControlCommand, IsNotHeldUpByARequestThatCameAfterItsOwn) {
  std::thread process([this] {
    while (look_at_header(file_)->in_force.asked == 0) std::this_thread::yield();
    const auto other = LiveHeader::open(file_);
    const uint32_t taken = *(*other)->ask({});
    const int fd = open(file_.c_str(), O_WRONLY | O_CLOEXEC);
    constexpr size_t kTaken = offsetof(format::FileHeader, in_force) + offsetof(format::ControlState, taken);
    EXPECT_EQ(pwrite(fd, &taken, sizeof taken, kTaken), static_cast<ssize_t>(sizeof taken));
    close(fd);
  });
  const Ended ended = control({"--mode", "lite", folder_.path().c_str()});
  process.join();
  EXPECT_EQ(ended.code, kExitFindings);
  EXPECT_NE(ended.err.find("got another request meanwhile"), std::string::npos) << ended.err;
}

TEST_F(ControlCommand, ShowsWhatIsThereAndNamesWhatIsNoProcessFile) {
  ASSERT_EQ(mkfifo((folder_ / "pipe.lks").c_str(), 0600), 0);
  const Ended ended = control({"--show", folder_.path().c_str()});
  EXPECT_EQ(ended.code, kExitOk) << ended.err;
  EXPECT_NE(ended.out.find("running"), std::string::npos) << ended.out;
  EXPECT_NE(ended.err.find("pipe.lks: not a regular file"), std::string::npos) << ended.err;
}

TEST_F(ControlCommand, TakesNothingBesideShow) {
  for (const char* option :
       {"--mode=lite", "--for=3s", "--comm=world", "--min-bytes=1M", "--mark=x", "--save"})
    EXPECT_EQ(control({"--show", option, folder_.path().c_str()}).code, kExitUsage) << option;
}

}  // namespace
}  // namespace lockstep::cli::control
