// SPDX-License-Identifier: Apache-2.0
#include "cli/control/live_header.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <fstream>

#include "tests/support/temporary_folder.h"

namespace lockstep::cli::control {
namespace {

std::string written(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

std::string header_bytes(uint16_t minor) {
  format::FileHeader header{};
  std::memcpy(header.magic, format::kMagic, sizeof header.magic);
  header.major = format::kMajor;
  header.minor = minor;
  header.header_bytes = format::kHeaderBytes;
  header.in_force.taken = 6;
  header.control = 7;
  std::string bytes(format::kHeaderBytes, '\0');
  std::memcpy(bytes.data(), &header, sizeof header);
  return bytes;
}

TEST(LiveHeader, IsLookedAtAndAsked) {
  const test::TemporaryFolder folder;
  const std::string path = written(folder / "a.lks", header_bytes(format::kMinor));
  const auto seen = look_at_header(path);
  ASSERT_TRUE(seen) << seen.error().message();
  EXPECT_EQ(seen->in_force.state.taken, 6u);
  EXPECT_EQ(seen->in_force.asked, 7u);
  const auto steered = LiveHeader::open(path);
  ASSERT_TRUE(steered) << steered.error().message();
  const auto number = (*steered)->ask({});
  ASSERT_TRUE(number);
  EXPECT_EQ(*number, 8u);
  EXPECT_EQ(look_at_header(path)->in_force.asked, 8u);
}

TEST(LiveHeader, OfAPipeACutFileOrAnOldOneIsAnError) {
  const test::TemporaryFolder folder;
  const std::string pipe = folder / "pipe.lks";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const std::string cut = written(folder / "cut.lks", header_bytes(format::kMinor).substr(0, 100));
  const std::string old = written(folder / "old.lks", header_bytes(1));
  for (const std::string& path : {pipe, cut, old, folder / "absent.lks"}) {
    EXPECT_FALSE(look_at_header(path)) << path;
    EXPECT_FALSE(LiveHeader::open(path)) << path;
  }
}

}  // namespace
}  // namespace lockstep::cli::control
