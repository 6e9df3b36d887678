// SPDX-License-Identifier: Apache-2.0
// What `lockstep summary` prints of a recorded trace.
#include <gtest/gtest.h>

#include "cli/command.h"
#include "tests/support/places.h"

namespace lockstep::cli {
namespace {

std::string summary_of(const char* path, const char* limit) {
  const Command* command = find_command("summary");
  const std::vector<const char*> words = {path, "-n", limit};
  auto arguments = parse_arguments(command->options, command->operands, words);
  EXPECT_TRUE(arguments);
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(command->run(*arguments), kExitOk);
  return ::testing::internal::GetCapturedStdout();
}

TEST(SummaryCommand, KnowsOfGpuTimesThatItShowsNoRowOf) {
  const std::string text = summary_of(LOCKSTEP_SOURCE_DIR "/tests/data/kineto/rank0.json.gz", "0");
  EXPECT_NE(text.find("\nOperations ("), std::string::npos) << text;
  EXPECT_EQ(text.find("This trace has no GPU times"), std::string::npos) << text;
}

}  // namespace
}  // namespace lockstep::cli
