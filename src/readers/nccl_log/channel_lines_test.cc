// SPDX-License-Identifier: Apache-2.0
// Rings, trees, connections, calls and hardware, as lines of many releases print them.
#include <gtest/gtest.h>

#include "readers/nccl_log/log_parser.h"

namespace lockstep::readers::nccl_log {
namespace {

// `lines` are of one thread of one process, but for those that begin with a head of their own.
LogModel parse(const std::vector<std::string>& lines) {
  LogParser parser;
  parser.begin_file("a.log");
  for (const std::string& line : lines)
    parser.feed((line.starts_with("n1:") ? line : "n1:5:5 [0] NCCL INFO " + line) + "\n");
  parser.end_file();
  return parser.take();
}

std::string begin(const std::string& pointer, int rank, int ranks, const std::string& id, int device = 0) {
  return "ncclCommInitRank comm " + pointer + " rank " + std::to_string(rank) + " nranks " +
         std::to_string(ranks) + " cudaDev " + std::to_string(device) + " nvmlDev " + std::to_string(device) +
         " busId 1b000 commId " + id + " - Init START";
}
std::string complete(const std::string& pointer, int rank, int ranks, const std::string& id) {
  std::string line = begin(pointer, rank, ranks, id);
  return line.replace(line.size() - 5, 5, "COMPLETE");
}

TEST(ChannelLines, RingsAndTreesAreOfTheCommunicatorBeingCreated) {
  const LogModel model = parse({begin("0x10", 1, 4, "0xa"), "Channel 00/02 :  0  3  2  1",
                                "Channel 01/02 :  0  1 ...", "Trees [0] 2/-1/-1->1->0 [1] -1/3/-1->1->2",
                                "Ring 00 : 2 -> 1 -> 0", "Tree 2 : -1 -> 1 -> 0/2/-1",
                                "4 coll channels, 4 collnet channels, 16 nvls channels, 4 p2p channels"});
  ASSERT_EQ(model.comms.size(), 1u);
  const CommPart& part = model.comms[0];
  EXPECT_EQ(part.rings, 2);
  EXPECT_EQ(part.nvls_channels, 16);
  ASSERT_EQ(part.orders.size(), 1u);  // the other one is cut
  EXPECT_EQ(part.orders[0], (std::vector<int32_t>{0, 3, 2, 1}));
  ASSERT_EQ(part.positions.size(), 3u);
  EXPECT_EQ(part.positions[0].ring_before, 2);
  EXPECT_EQ(part.positions[0].ring_behind, 0);
  EXPECT_EQ(part.positions[0].tree_up, 0);
  EXPECT_EQ(part.positions[1].tree_up, 2);
  EXPECT_EQ(part.positions[1].tree_down, (std::array<int32_t, 3>{-1, 3, -1}));
  EXPECT_EQ(part.positions[2].tree_down, (std::array<int32_t, 3>{0, 2, -1}));
}

TEST(ChannelLines, PlacesOfChannelsAreBoundedOverAllCommunicators) {
  std::vector<std::string> lines;
  for (size_t i = 0; i < LogModel::kOrdersMost / Connection::kLanesMost; ++i) {
    lines.push_back(begin("0x" + std::to_string(i + 10), 0, 2, "0x" + std::to_string(i + 10)));
    lines.emplace_back("Channel 127/128 :  0  1");
  }
  const LogModel model = parse(lines);
  EXPECT_GT(model.coverage.beyond, 0u);
  size_t places = 0;
  for (const CommPart& part : model.comms) places += part.orders.size();
  EXPECT_GT(places, 0u);
  EXPECT_LT(places, LogModel::kOrdersMost);
}

TEST(ChannelLines, BeforeTheFirstLineOfItsLifeTheyWaitForIt) {
  const LogModel model =
      parse({"Ring 00 : 1 -> 0 -> 1", "comm 0x10 rank 0 nranks 2 cudaDev 0 busId 1b000 - Init COMPLETE",
             "Ring 00 : 2 -> 0 -> 1", "comm 0x20 rank 0 nranks 3 cudaDev 0 busId 1b000 - Init COMPLETE"});
  ASSERT_EQ(model.comms.size(), 2u);
  ASSERT_EQ(model.comms[0].positions.size(), 1u);
  EXPECT_EQ(model.comms[0].positions[0].ring_before, 1);
  ASSERT_EQ(model.comms[1].positions.size(), 1u);
  EXPECT_EQ(model.comms[1].positions[0].ring_before, 2);
}

TEST(ChannelLines, ConnectionsFindTheirCommunicator) {
  const LogModel model =
      parse({begin("0x10", 0, 8, "0xa"), complete("0x10", 0, 8, "0xa"), begin("0x20", 0, 2, "0xb"),
             "Channel 00/0 : 0[0] -> 1[2] via P2P/CUMEM",  // of the one being created
             complete("0x20", 0, 2, "0xb"),
             "Channel 03/0 : 0[0] -> 5[5] [send] via NET/IB/2(4)/GDRDMA",  // only the first has a rank 5
             "Channel 04/0 : 0[0] -> 5[5] [send] via NET/IB/2(4)/GDRDMA",
             "Channel 04/1 : 0[0] -> 5[5] [send] via NET/IB/2(4)/GDRDMA",
             "Channel 00/0 : 0[0] -> 1[3] via P2P/CUMEM",  // what has rank 1 on device 3?
             "n1:6:6 [0] NCCL INFO " + begin("0x20", 1, 2, "0xb", 2),
             "n1:7:7 [0] NCCL INFO " + begin("0x10", 1, 8, "0xa", 3)});
  ASSERT_EQ(model.connections.size(), 3u);
  EXPECT_EQ(model.comms[model.connections[0].comm].group, "0xb");
  const Connection& far = model.connections[1];
  EXPECT_EQ(model.comms[far.comm].group, "0xa");
  EXPECT_EQ(far.card, 2);
  EXPECT_EQ(far.proxy, 4);
  EXPECT_EQ(far.channels, 3u);
  EXPECT_EQ(far.lanes.count(), 2u);
  EXPECT_TRUE(far.lanes.test(3) && far.lanes.test(4));
  ASSERT_NE(model.connections[2].comm, kNobody);
  EXPECT_EQ(model.comms[model.connections[2].comm].group, "0xa");
}

TEST(ChannelLines, CollectivesAreKeptInOrderWithoutSendsAndReceives) {
  const std::string rest = " datatype 7 op 0 root 0 comm 0x10 [nranks=2] stream 0x5";
  const LogModel model =
      parse({begin("0x10", 0, 2, "0xa"), "AllReduce: opCount a sendbuff 0x1 recvbuff 0x2 count 8" + rest,
             "Send: opCount b sendbuff 0x1 recvbuff (nil) count 8" + rest,
             "Broadcast: opCount b sendbuff 0x1 recvbuff 0x2 count 9 datatype 0 op 0 root 1 comm 0x10 "
             "[nranks=2] stream 0x5",
             "AllReduce: opCount c sendbuff 0x9 recvbuff 0x9 count 8" + rest});
  EXPECT_EQ(model.collectives, 4u);
  const CommPart& part = model.comms[0];
  ASSERT_EQ(part.calls.size(), 3u);
  EXPECT_EQ(part.first_call, 10u);
  EXPECT_EQ(part.calls[0].shape, part.calls[2].shape);
  EXPECT_EQ(model.call_shapes[part.calls[0].shape], "AllReduce of 8 float32, sum");
  EXPECT_EQ(model.call_shapes[part.calls[1].shape], "Broadcast of 9 int8, root 1");
  EXPECT_EQ(part.calls[1].line, 4u);
}

TEST(ChannelLines, DevicesHaveLinksAndPaths) {
  const LogModel model = parse({"=== System : maxBw 48.0 totalBw 370.8 ===", "CPU/0-0 (1/1/5)",
                                "+ PCI[48.0] - GPU/0-1b000 (0)", "              + NVL[185.4] - GPU/0-43000",
                                "              + NVL[185.4] - NVS/0-0", "+ PCI[48.0] - NIC/0-18000",
                                "                            + NET[50.0] - NET/0-0 (0/a1b2/1/50.000000)",
                                "+ SYS[40.0] - CPU/0-1", "              + NVL[999.0] - CPU/0-0",
                                "GPU/0-1b000 :GPU/0-1b000 (0/5000.0/LOC) GPU/0-43000 (1/185.4/NVL) CPU/0-0 "
                                "(2/48.0/PHB) NET/0-0 (3/48.0/PXB) "});
  ASSERT_EQ(model.topology.size(), 2u);
  const TopologyDevice& gpu = model.topology[0];
  EXPECT_EQ(gpu.name, "GPU/0-1b000");
  EXPECT_EQ(gpu.pci_gbps, 48);
  EXPECT_EQ(gpu.nvlink_gbps, 370.8);
  ASSERT_EQ(gpu.paths.size(), 3u);
  EXPECT_EQ(gpu.paths.at("GPU/0-43000").kind, "NVL");
  EXPECT_EQ(gpu.paths.at("NET/0-0").kind, "PXB");
  EXPECT_EQ(gpu.paths_at.line, 10u);
  EXPECT_EQ(model.topology[1].net_gbps, 50);
}

TEST(ChannelLines, LinksOfAmdsGpusAreTold) {
  const LogModel model = parse({"=== System : maxBw 48.0 totalBw 96.0 ===", "CPU/0 (1/2/-1)",
                                "+ PCI[24.0] - GPU/C000 (0)", "              + XGMI[48.0] - GPU/22000",
                                "              + XGMI[48.0] - GPU/38000", "+ PCI[24.0] - GPU/22000 (1)",
                                "GPU/C000 :GPU/C000 (0/5000/LOC) GPU/22000 (1/48/XGMI) CPU/0 (2/24/PHB) "});
  ASSERT_EQ(model.topology.size(), 2u);
  EXPECT_TRUE(model.topology[0].has_xgmi);
  EXPECT_EQ(model.topology[0].nvlink_gbps, 96);
  EXPECT_EQ(model.topology[0].pci_gbps, 24);
  EXPECT_EQ(model.topology[0].paths.at("GPU/22000").kind, "XGMI");
  EXPECT_FALSE(model.topology[1].has_xgmi);
}

TEST(ChannelLines, CostsAreOfTheAlgorithmsNamedAbove) {
  const LogModel model =
      parse({"  Algorithm   |   Tree   |  Ring   |", "  Protocol    |  LL |  LL128 | Simple |",
             "    AllReduce | 1.0/ 2.0 | 1.0/ 3.0 | 1.0/ 4.0 | 1.0/ 5.0 | 1.0/ 0.0 | 1.0/ 7.0 | 9.0/ 9.0 |"});
  const auto& rows = model.of(LineKind::kCostRow);
  ASSERT_EQ(rows.size(), 6u);  // more columns than algorithms are left out
  EXPECT_EQ(model.facts[rows[4]].values, (std::vector<std::string>{"Ring", "LL128", "0.0"}));
}

TEST(ChannelLines, AFileWithHolesSaysSo) {
  LogParser parser;
  parser.begin_file("a.log");
  parser.feed(std::string(100, '\0') + "n1:5:5 [0] NCCL INFO Using network IB\n");
  parser.end_file();
  EXPECT_EQ(parser.take().coverage.zero_bytes, 100u);
}

}  // namespace
}  // namespace lockstep::readers::nccl_log
