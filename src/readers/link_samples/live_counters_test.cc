// SPDX-License-Identifier: Apache-2.0
#include "readers/link_samples/live_counters.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/temporary_folder.h"

namespace lockstep::readers::link_samples {
namespace {

class LiveLinkCounters : public ::testing::Test {
 protected:
  void append(const std::string& name, const std::string& text) const {
    std::ofstream(folder_.path() + "/" + name, std::ios::app) << text;
  }
  static std::string head(const std::string& host) {
    return "lockstep link samples 2\nhost " + host + "\nstart 1000000000\n";
  }
  std::string seen() {
    counters_.look();
    std::string text;
    for (const LiveCounter& counter : counters_.risen())
      text += counter.host + " " + counter.device + " " + counter.name +
              (counter.is_bytes ? " bytes " : " ") + std::to_string(counter.total) + "\n";
    return text;
  }

  const test::TemporaryFolder folder_;
  LiveCounters counters_{{folder_.path(), folder_.path() + "/missing"}};
};

TEST_F(LiveLinkCounters, GrowWithTheLogAndLeaveOutWhatNeverRose) {
  EXPECT_EQ(seen(), "");
  append("links.a.1.log", head("a") +
                              "counter 0 port mlx5_0/1 port_rcv_data\ncounter 1 port mlx5_0/1 link_downed\n"
                              "at 0 0=1000 1=3\nat 10000 0=15");
  EXPECT_EQ(seen(), "a mlx5_0/1 received bytes 0\n") << "half a line counts for nothing";
  append("links.a.1.log", "00 1=4\ncounter 2 port mlx5_0/1 state\nat 11000 2=4\n");
  EXPECT_EQ(seen(), "a mlx5_0/1 link_downed 1\na mlx5_0/1 received bytes 2000\n");
  EXPECT_EQ(seen(), "a mlx5_0/1 link_downed 1\na mlx5_0/1 received bytes 2000\n") << "nothing counts twice";
}

TEST_F(LiveLinkCounters, OfTwoSamplersOfAHostTheSecondCountsOnceTheFirstHasEnded) {
  const std::string declares = "counter 0 net eth0 rx_bytes\nat 0 0=5\n";
  append("links.a.1.log", head("a") + declares);
  append("links.a.2.log", head("a") + declares);
  append("links.b.1.log", "torn");
  EXPECT_EQ(seen(), "a eth0 received bytes 0\n");
  for (const char* const log : {"links.a.1.log", "links.a.2.log"}) append(log, "at 10000 0=8\n");
  EXPECT_EQ(seen(), "a eth0 received bytes 3\n");
  append("links.a.1.log", "end\n");
  append("links.a.2.log", "at 20000 0=20\n");
  EXPECT_EQ(seen(), "a eth0 received bytes 3\n") << "its first sample that counts is where it begins";
  append("links.a.2.log", "at 30000 0=21\n");
  EXPECT_EQ(seen(), "a eth0 received bytes 4\n");
}

}  // namespace
}  // namespace lockstep::readers::link_samples
