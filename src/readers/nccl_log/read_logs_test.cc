// SPDX-License-Identifier: Apache-2.0
#include "readers/nccl_log/read_logs.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temporary_folder.h"

namespace lockstep::readers::nccl_log {
namespace {

constexpr std::string_view kLine = "n1:5:5 [0] NCCL INFO Using network IB\n";

class ReadLogs : public ::testing::Test {
 protected:
  std::string write(const std::string& name, std::string_view text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return folder_ / name;
  }
  const test::TemporaryFolder folder_;
};

TEST_F(ReadLogs, ProcessesOfSeveralFilesAreSeveral) {
  auto model = read_logs({write("a.log", kLine), write("b.log", kLine)});
  ASSERT_TRUE(model);
  EXPECT_EQ(model->processes.size(), 2u);
}

TEST_F(ReadLogs, LinesAcrossPiecesOfAFileAreWhole) {
  std::string text;
  for (int i = 0; i < 20000; ++i)
    text += "n1:" + std::to_string(i * 7919 % 1000) + ":5 [0] NCCL INFO Using network IB\n";
  auto model = read_logs({write("a.log", text)});
  ASSERT_TRUE(model);
  EXPECT_EQ(model->coverage.headed, 20000u);
  EXPECT_EQ(model->coverage.bytes, text.size());
}

TEST_F(ReadLogs, ErrorsNameTheFile) {
  auto absent = read_logs({folder_ / "absent"});
  ASSERT_FALSE(absent);
  EXPECT_NE(absent.error().message().find("absent: cannot open: No such file"), std::string::npos);
  auto empty = read_logs({write("empty.log", "")});
  ASSERT_TRUE(empty);
  EXPECT_TRUE(empty->is_silent());
}

}  // namespace
}  // namespace lockstep::readers::nccl_log
