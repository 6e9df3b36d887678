// SPDX-License-Identifier: Apache-2.0
#include "readers/link_samples/link_samples.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/temporary_folder.h"

namespace lockstep::readers::link_samples {
namespace {

using model::HostCounter;
using Values = std::vector<HostCounter::Value>;

class LinkSamplesReader : public ::testing::Test {
 protected:
  // The seconds at which it starts, since 1970; lines behind the head.
  void add_log(const std::string& host, int64_t start_s, const std::string& lines) {
    const std::string path = folder_.path() + "/links." + std::to_string(logs_.size()) + ".log";
    std::ofstream(path) << "lockstep link samples 2\nhost " << host << "\nboot b\npid 1\nstart " << start_s
                        << "000000000\n"
                        << lines;
    logs_.push_back(path);
  }
  std::vector<HostCounter> read() {
    std::vector<HostCounter> found;
    errors_ = visit_counters(logs_, [&](const HostCounter& counter) { found.push_back(counter); });
    return found;
  }
  static int64_t second(int64_t s) { return s * 1'000'000'000; }

  const test::TemporaryFolder folder_;
  std::vector<std::string> logs_;
  std::vector<Error> errors_;
};

TEST_F(LinkSamplesReader, CountersGrowFromZeroInBytesAndGaugesStayAsTheyAre) {
  add_log("b", 100,
          "counter 0 port mlx5_0/1 port_xmit_data\ncounter 1 port mlx5_0/1 out_of_buffer\n"
          "counter 2 port mlx5_0/1 rate\ncounter 3 port mlx5_0/1 symbol_error\n"
          "at 0 0=1000 1=4294967290 2=400000 3=-\nat 10000 0=1500 1=4\nat 20000 0=100 2=200000\nat 25000\n");
  const auto found = read();
  ASSERT_EQ(found.size(), 3u) << "a counter that could never be read has no values";
  EXPECT_EQ(found[0].name, "out_of_buffer");
  EXPECT_EQ(found[0].values, (Values{{second(100), 0}, {second(110), 10}})) << "it wrapped";
  EXPECT_EQ(found[1].name, "sent");
  EXPECT_EQ(found[1].unit, "bytes");
  EXPECT_EQ(found[1].values, (Values{{second(100), 0}, {second(110), 2000}, {second(120), 2400}}))
      << "it was cleared";
  EXPECT_TRUE(found[2].is_gauge);
  EXPECT_EQ(found[2].values, (Values{{second(100), 400000}, {second(120), 200000}}));
}

TEST_F(LinkSamplesReader, LogsOfAHostFollowEachOtherAndAreNotCountedTwice) {
  const std::string lines = "counter 0 net eth0 rx_bytes\nat 0 0=5\nat 10000 0=8\n";
  add_log("b", 200, lines);
  add_log("a", 100, lines);
  add_log("b", 100, lines);
  add_log("b", 105, lines);
  logs_.push_back(folder_.path() + "/missing");
  const auto found = read();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].host, "a");
  EXPECT_EQ(found[1].values, (Values{{second(100), 0}, {second(110), 3}, {second(210), 6}}));
  ASSERT_EQ(errors_.size(), 1u);
  EXPECT_NE(errors_[0].message().find("missing"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::readers::link_samples
