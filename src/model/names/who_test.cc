// SPDX-License-Identifier: Apache-2.0
#include "model/names/who.h"

#include <gtest/gtest.h>

namespace lockstep::model {
namespace {

TEST(Who, SaysRankGpuHostAndPid) {
  Who who{.rank = 51, .local_rank = 3, .device = 3, .pid = 4259, .host = "node-006", .pci = "0000:1b:00.0"};
  EXPECT_EQ(who.text(), "rank 51 (GPU 3 of node-006, pid 4259)");
  EXPECT_EQ(who.name(), "rank 51");
  who.device = -1;
  EXPECT_EQ(who.text(), "rank 51 (GPU 0000:1b:00.0 of node-006, pid 4259)");
  who.pci.clear();
  EXPECT_EQ(who.text(), "rank 51 (local rank 3 of node-006, pid 4259)");
}

TEST(Who, LeavesOutWhatIsUnknown) {
  EXPECT_EQ((Who{.rank = 5}).text(), "rank 5");
  EXPECT_EQ((Who{.rank = 5, .host = "a"}).text(), "rank 5 (a)");
  EXPECT_EQ((Who{.rank = 5, .device = 2}).text(), "rank 5 (GPU 2)");
  EXPECT_EQ((Who{.rank = 5, .pid = 7}).text(), "rank 5 (pid 7)");
  EXPECT_EQ((Who{.rank = 5, .pid = 7, .host = "a"}).text(), "rank 5 (a, pid 7)");
  EXPECT_EQ((Who{.pid = 7, .host = "a"}).text(), "pid 7 on a");
  EXPECT_EQ((Who{.device = 2, .pid = 7, .host = "a"}).text(), "pid 7 on a (GPU 2)");
}

TEST(Who, ShowsNoMoreOfANameThanATerminalTakes) {
  const Who who{.rank = 5, .device = 1, .pid = 7, .host = "a\x1b[2J\n\u202e" + std::string(2'000'000, 'x')};
  EXPECT_LT(who.text().size(), 200u);
  EXPECT_EQ(who.text().find_first_of("\x1b\n"), std::string::npos);
  EXPECT_EQ(who.text().find("\u202e"), std::string::npos);
}

TEST(Who, CountsGpusAsTheHostDoes) {
  EXPECT_EQ(host_device(3, ""), 3);
  EXPECT_EQ(host_device(0, "5"), 5);
  EXPECT_EQ(host_device(1, "4,6,7"), 6);
  EXPECT_EQ(host_device(3, "4,6,7"), -1) << "it sees three";
  EXPECT_EQ(host_device(0, "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6"), -1);
  EXPECT_EQ(host_device(0, "MIG-GPU-8932f937/1/0"), -1);
  EXPECT_EQ(host_device(0, "4x"), -1);
  EXPECT_EQ(host_device(-1, "4,5"), -1);
}

TEST(Who, AGpuIsAmdsByItsClockOrItsModel) {
  StringPool strings;
  const auto is_amds = [&](GpuClock clock, std::string_view model) {
    Process process{};
    process.gpu_clock = static_cast<uint8_t>(clock);
    process.gpu_model = strings.intern(model);
    return is_amd(process, strings);
  };
  EXPECT_TRUE(is_amds(GpuClock::kAmdTicks, "Arcturus GL-XL"));
  EXPECT_FALSE(is_amds(GpuClock::kNvidiaNs, "NVIDIA H200"));
  for (const char* model : {"AMD Instinct MI300X", "PCI 1002:74a1", "gfx942"})
    EXPECT_TRUE(is_amds(GpuClock::kUnknown, model)) << model;
  EXPECT_FALSE(is_amds(GpuClock::kUnknown, "NVIDIA H200"));
  EXPECT_FALSE(is_amds(GpuClock::kUnknown, ""));
}

TEST(Who, IsCalledByWhatIsKnown) {
  EXPECT_EQ((Who{.device = 3, .pid = 4711}.label()), "pid 4711");
  EXPECT_EQ((Who{.device = 3, .pid = -1}.label()), "GPU 3");
  EXPECT_EQ((Who{.device = 3, .pid = -1, .host = "node-006"}.name()), "GPU 3 on node-006");
  EXPECT_EQ(Who{}.label(), "a process");
}

}  // namespace
}  // namespace lockstep::model
