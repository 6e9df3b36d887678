// SPDX-License-Identifier: Apache-2.0
#include "run/held_segments.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "tests/support/patience.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::run {
namespace {

namespace fs = std::filesystem;

// How often the thread has gone to sleep; nothing while there is no such thread.
std::optional<uint64_t> naps() {
  for (const auto& task : fs::directory_iterator("/proc/self/task")) {
    std::string name, word;
    std::getline(std::ifstream(task.path() / "comm"), name);
    if (name != "lockstep-hold") continue;
    std::ifstream status(task.path() / "status");
    while (status >> word) {
      uint64_t switches = 0;
      if (word == "voluntary_ctxt_switches:" && status >> switches) return switches;
    }
  }
  return std::nullopt;
}

// Beside a job the launcher costs nothing: 20 looks a second would be eight here.
TEST(HeldSegments, SleepsWhileNoFileComes) {
  const test::TemporaryFolder run;
  HeldSegments held(run.path());
  std::optional<uint64_t> before;
  for (int tries = 0; (before = naps()).value_or(0) == 0 && tries < test::kPatienceSeconds * 100; ++tries)
    usleep(10'000);
  ASSERT_TRUE(before) << "the thread has no name";
  usleep(400'000);
  EXPECT_LE(*naps() - *before, 2u);
}

}  // namespace
}  // namespace lockstep::run
