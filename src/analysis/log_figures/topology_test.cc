// SPDX-License-Identifier: Apache-2.0
#include "analysis/log_figures/topology.h"

#include <gtest/gtest.h>

#include <fstream>
#include <tuple>

#include "analysis/log_figures/log_figures.h"
#include "readers/nccl_log/read_logs.h"
#include "readers/reader.h"
#include "tests/support/places.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::analysis::log_figures {
namespace {

readers::nccl_log::LogModel model_at(const std::string& path) {
  auto inputs = readers::sort({path});
  EXPECT_TRUE(inputs);
  auto model = readers::nccl_log::read_logs(inputs->formats.back().files);
  EXPECT_TRUE(model);
  return std::move(*model);
}
readers::nccl_log::LogModel model_of(const std::string& name) {
  return model_at(LOCKSTEP_SOURCE_DIR "/tests/data/logs/" + name);
}

std::vector<CommWiring> wirings_of(const std::string& name) { return comm_wirings(model_of(name), SIZE_MAX); }

TEST(Topology, RingsGoThroughHosts) {
  const auto comms = wirings_of("eight_ranks");
  ASSERT_EQ(comms.size(), 7u);
  const CommWiring& world = comms[0];
  EXPECT_EQ(world.ranks, 8);
  EXPECT_EQ(world.members, (std::vector<int32_t>{0, 1, 2, 3, 4, 5, 6, 7}));
  ASSERT_EQ(world.rings.size(), 1u);
  EXPECT_EQ(world.rings[0].text, "0 3 2 1 | 4 7 6 5");
  EXPECT_EQ(channels_text(world.rings[0].channels), "channels 0 and 1");
  ASSERT_EQ(world.trees.size(), 2u);
  EXPECT_EQ(world.trees[0].text, "0 (1 (2 (3)) 4 (5 (6 (7))))");
  EXPECT_EQ(world.trees[1].text, "4 (5 (6 (7)) 0 (1 (2 (3))))");
  EXPECT_EQ(world.nvls, "off: NCCL_NVLS_ENABLE=0");
  ASSERT_EQ(world.pairs.size(), 2u);
  EXPECT_EQ(world.pairs[0].via, "NET/Socket");
  EXPECT_FALSE(world.pairs[0].gdr);
  EXPECT_EQ(world.pairs[0].cards, std::set<int32_t>{0});
  EXPECT_EQ(pairs_text(world.pairs[0], world.ranks), "0>4 4>0");
}

TEST(Topology, ConnectionsThatFitSeveralCommunicatorsAreToldByTheirChannels) {
  const auto comms = wirings_of("eight_ranks");
  const CommWiring& pair = comms[3];
  EXPECT_EQ(pair.members, (std::vector<int32_t>{0, 1}));
  ASSERT_EQ(pair.pairs.size(), 1u);
  EXPECT_EQ(pair.pairs[0].via, "P2P/CUMEM");
  EXPECT_EQ(pair.pairs[0].most_channels, 24u);
}

TEST(Topology, WhatNotAllRanksTellIsLeftOut) {
  const auto comms = wirings_of("two_hosts");  // ranks 0 and 4
  EXPECT_EQ(comms[0].members, (std::vector<int32_t>{0, 4}));
  EXPECT_FALSE(comms[0].rings.empty());  // rank 0 reports all
  EXPECT_TRUE(comms[0].trees.empty());
}

// Four ranks, and who comes behind each in the ring.
readers::nccl_log::LogModel neighbours(const std::vector<int32_t>& behind) {
  readers::nccl_log::LogModel model;
  for (int32_t rank = 0; rank < 4; ++rank) {
    model.processes.emplace_back().rank = rank;
    auto& part = model.comms.emplace_back();
    part.process = static_cast<uint32_t>(rank);
    part.rank = rank;
    part.ranks = 4;
    part.group = "0xab";
    part.positions.emplace_back().ring_behind = behind[static_cast<size_t>(rank)];
  }
  return model;
}

TEST(Topology, WhatDoesNotCloseIsNoRing) {
  EXPECT_EQ(comm_wirings(neighbours({1, 2, 3, 0}), 1)[0].rings.at(0).text, "0 1 2 3");
  EXPECT_TRUE(comm_wirings(neighbours({1, 2, 1, 0}), 1)[0].rings.empty());
  EXPECT_TRUE(comm_wirings(neighbours({1, 2, 3, 3}), 1)[0].rings.empty());
  auto model = neighbours({1, 2, 1, 0});
  model.comms[0].orders = {{0, 1, 1, 3}};
  EXPECT_TRUE(comm_wirings(model, 1)[0].rings.empty());
  model.comms[0].orders = {{0, 2, 1, 3}};
  EXPECT_EQ(comm_wirings(model, 1)[0].rings.at(0).text, "0 2 1 3");
}

TEST(Topology, ARankBelowTwoOthersIsInNoTree) {
  auto model = neighbours({1, 2, 3, 0});
  const std::pair<int32_t, std::array<int32_t, 3>> kTree[] = {
      {-1, {1, 2, -1}}, {0, {-1, -1, -1}}, {0, {3, -1, -1}}, {2, {-1, -1, -1}}};
  for (size_t rank = 0; rank < 4; ++rank)
    std::tie(model.comms[rank].positions[0].tree_up, model.comms[rank].positions[0].tree_down) = kTree[rank];
  EXPECT_EQ(comm_wirings(model, 1)[0].trees.at(0).text, "0 (1 2 (3))");
  model.comms[2].positions[0].tree_down[0] = 1;
  EXPECT_TRUE(comm_wirings(model, 1)[0].trees.empty());
}

TEST(Topology, PairsInWords) {
  PairGroup group;
  for (int32_t from = 0; from < 4; ++from) {
    for (int32_t to = 0; to < 4; ++to) {
      if (from != to) group.pairs.emplace(from, to);
    }
  }
  EXPECT_EQ(pairs_text(group, 4), "every rank to every other");
  group.pairs.emplace(0, 4);
  EXPECT_EQ(pairs_text(group, 5), "0>1 0>2 0>3 0>4 1>0 1>2 1>3 2>0 2>1 2>3 3>0 3>1 and 1 other");
}

TEST(Topology, HardwareOfAHost) {
  const auto hosts = host_hardware(model_of("every_subsystem"));
  ASSERT_EQ(hosts.size(), 1u);
  EXPECT_EQ(hosts[0].host, "vm");
  EXPECT_EQ(hosts[0].text,
            "8 GPUs, NVLink 370.8 GB/s each, PCIe 48.0 GB/s; from GPU to GPU NVL (NVLink or NVSwitch); 1 "
            "network card of 1.2 GB/s, from the GPUs PHB (the CPU)");
}

TEST(Topology, HardwareAndSettingsOfAnAmdHost) {
  const test::TemporaryFolder folder;
  std::ofstream(folder / "rccl.log") << R"(mi1:11:31 [0] NCCL INFO RCCL_MSCCL_ENABLE set by environment to 0.
mi1:11:31 [0] NCCL INFO NCCL_ALGO set by environment to Ring
mi1:11:31 [0] NCCL INFO === System : maxBw 48.0 totalBw 48.0 ===
mi1:11:31 [0] NCCL INFO + PCI[24.0] - GPU/C000 (0)
mi1:11:31 [0] NCCL INFO               + XGMI[48.0] - GPU/22000
mi1:11:31 [0] NCCL INFO + PCI[24.0] - GPU/22000 (1)
mi1:11:31 [0] NCCL INFO               + XGMI[48.0] - GPU/C000
mi1:11:31 [0] NCCL INFO GPU/C000 :GPU/C000 (0/5000/LOC) GPU/22000 (1/48/XGMI) CPU/0 (2/24/PHB)
)";
  const auto model = model_at(folder / "rccl.log");
  const auto hosts = host_hardware(model);
  ASSERT_EQ(hosts.size(), 1u);
  EXPECT_EQ(hosts[0].text, "2 GPUs, xGMI 48.0 GB/s each, PCIe 24.0 GB/s; from GPU to GPU XGMI (AMD's links)");
  const auto settings = setting_rows(model);
  ASSERT_EQ(settings.size(), 2u);
  EXPECT_EQ(settings[0].name, "NCCL_ALGO");
  EXPECT_EQ(settings[1].name, "RCCL_MSCCL_ENABLE");
  EXPECT_EQ(settings[1].value, "0");
}

}  // namespace
}  // namespace lockstep::analysis::log_figures
