// SPDX-License-Identifier: Apache-2.0
#include "live/live_run.h"

#include <chrono>

#include "readers/native/test_run.h"

namespace lockstep::live {
namespace {

using readers::native::FileBuilder;

int64_t now_ns() { return std::chrono::system_clock::now().time_since_epoch() / std::chrono::nanoseconds(1); }

// A process with a file for each of its libraries, whose heartbeats came so many seconds after its start; 0:
// none came.
class LiveRunTest : public ::testing::Test {
 protected:
  void file(const std::string& name, uint64_t heartbeat_s) {
    FileBuilder file;
    file.header().heartbeat_ticks = heartbeat_s * 1'000'000'000;
    file.comm(0xabc, 3, 8, "world");
    file.log(11);
    ASSERT_TRUE(file.write(directory + "/" + name));
  }
  SeenProcess only() const {
    auto seen = LiveRun({directory}).look();
    EXPECT_TRUE(seen) << seen.error().message();
    if (!seen || seen->size() != 1) {
      ADD_FAILURE() << "not one process";
      return {};
    }
    return std::move(seen->front());
  }
  // That its last heartbeat came so many seconds after its start.
  void expect_heartbeat(int64_t seconds) const {
    const int64_t beat_ns = FileBuilder::kEpochNs + seconds * 1'000'000'000;
    const int64_t least = now_ns() - beat_ns;
    const int64_t age = only().heartbeat_age_ns;
    EXPECT_GE(age, least);
    EXPECT_LE(age, now_ns() - beat_ns);
  }
  const std::string directory = readers::native::test_dir();
};

TEST_F(LiveRunTest, OfSeveralFilesTheNewestHeartbeatCounts) {
  file("a.lks", 5);
  file("b.lks", 7);
  file("c.lks", 6);
  EXPECT_EQ(only().files.size(), 3u);
  expect_heartbeat(7);
}

TEST_F(LiveRunTest, AFileWithoutAHeartbeatHidesNoOthers) {
  file("a.lks", 5);
  file("b.lks", 0);
  expect_heartbeat(5);
  file("0.lks", 0);
  expect_heartbeat(5);
}

TEST_F(LiveRunTest, WithoutAnyTheAgeIsUnknown) {
  file("a.lks", 0);
  file("b.lks", 0);
  EXPECT_EQ(only().heartbeat_age_ns, -1);
}

}  // namespace
}  // namespace lockstep::live
