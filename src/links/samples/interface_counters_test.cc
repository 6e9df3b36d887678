// SPDX-License-Identifier: Apache-2.0
#include "links/samples/interface_counters.h"

#include <gtest/gtest.h>
#include <linux/ethtool.h>

#include <cstring>

namespace lockstep::links {
namespace {

// Answers as the kernel does: with all that the driver has, whatever room it is told of.
struct Driver {
  std::vector<std::pair<std::string, uint64_t>> counters;
  bool is_gone = false;
  int readings = 0;

  bool answer(void* command) {
    uint32_t kind = 0;
    std::memcpy(&kind, command, sizeof kind);
    if (is_gone) return false;
    const auto count = static_cast<uint32_t>(counters.size());
    char* const at = static_cast<char*>(command);
    if (kind == ETHTOOL_GSSET_INFO) {
      std::memcpy(at + sizeof(ethtool_sset_info), &count, sizeof count);
    } else if (kind == ETHTOOL_GSTRINGS) {
      static_cast<ethtool_gstrings*>(command)->len = count;
      for (size_t i = 0; i < count; ++i)
        std::strncpy(at + sizeof(ethtool_gstrings) + i * ETH_GSTRING_LEN, counters[i].first.c_str(),
                     ETH_GSTRING_LEN);
    } else if (kind == ETHTOOL_GSTATS) {
      ++readings;
      static_cast<ethtool_stats*>(command)->n_stats = count;
      for (size_t i = 0; i < count; ++i)
        std::memcpy(at + sizeof(ethtool_stats) + i * sizeof(uint64_t), &counters[i].second, sizeof(uint64_t));
    }
    return true;
  }
};

class OfInterfaces : public ::testing::Test {
 protected:
  std::map<std::string, Driver> drivers_{
      {"ens1f0np0", {{{"rx_packets", 9}, {"rx_discards_phy", 5}, {"link_down_events_phy", 2}}}},
      {"ens2f0np0", {{{"link_down_events_phy", 0}}}},
      {"eth0", {{{"rx_queue_0_packets", 7}}}}};
  InterfaceCounters counters_{{"ens1f0np0", "ens2f0np0", "eth0", "gone0"},
                              [this](const std::string& interface, void* command) {
                                const auto driver = drivers_.find(interface);
                                return driver != drivers_.end() && driver->second.answer(command);
                              }};

  std::string read() {
    std::string all;
    counters_.read([&](size_t i, std::optional<uint64_t> value) {
      all += counters_.key(i).device + " " + counters_.key(i).name + " " +
             (value ? std::to_string(*value) : "-") + "\n";
    });
    return all;
  }
};

TEST_F(OfInterfaces, AreThoseThatShowFaults) {
  ASSERT_EQ(counters_.size(), 3u);
  EXPECT_EQ(
      read(),
      "ens1f0np0 link_down_events_phy 2\nens1f0np0 rx_discards_phy 5\nens2f0np0 link_down_events_phy 0\n");
  EXPECT_EQ(drivers_["eth0"].readings, 0) << "it has none of them";
  EXPECT_EQ(counters_.key(0).kind, DeviceKind::kNetDevice);
}

TEST_F(OfInterfaces, MoreQueuesMoveTheirPlaces) {
  auto& counters = drivers_["ens1f0np0"].counters;
  for (int i = 0; i < 5000; ++i)
    counters.insert(counters.begin(), {"rx" + std::to_string(i) + "_packets", 1});
  EXPECT_EQ(
      read(),
      "ens1f0np0 link_down_events_phy 2\nens1f0np0 rx_discards_phy 5\nens2f0np0 link_down_events_phy 0\n");
}

TEST_F(OfInterfaces, WhatIsGoneIsUnknownAndAskedAgain) {
  drivers_["ens1f0np0"].is_gone = true;
  EXPECT_EQ(
      read(),
      "ens1f0np0 link_down_events_phy -\nens1f0np0 rx_discards_phy -\nens2f0np0 link_down_events_phy 0\n");
  drivers_["ens1f0np0"].is_gone = false;
  EXPECT_EQ(read().substr(0, 33), "ens1f0np0 link_down_events_phy 2\n");
}

TEST(InterfaceCountersOfThisHost, AreAskedOfTheKernel) {
  InterfaceCounters counters({"lo", "no such interface", std::string(64, 'x')},
                             InterfaceCounters::of_this_host());
  counters.read([](size_t, std::optional<uint64_t>) { ADD_FAILURE() << "the loopback has none of them"; });
}

}  // namespace
}  // namespace lockstep::links
