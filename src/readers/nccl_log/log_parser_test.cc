// SPDX-License-Identifier: Apache-2.0
#include "readers/nccl_log/log_parser.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include "readers/nccl_log/testing/parse.h"

namespace lockstep::readers::nccl_log {
namespace {

TEST(LogParser, FactsAreKeptOnceWithTheirPlace) {
  const LogModel model = parse(
      "words of the job\n"
      "n1:5:5 [0] NCCL INFO NCCL_IB_TIMEOUT set by environment to 22.\n"
      "n1:5:6 [0] NCCL INFO NCCL_IB_TIMEOUT set by environment to 22.\n"
      "n1:9:9 [1] NCCL INFO NET/IB : No device found.\n");
  ASSERT_EQ(model.processes.size(), 2u);
  const Fact* setting = only(model, LineKind::kEnvironment);
  ASSERT_NE(setting, nullptr);
  EXPECT_EQ(setting->values, (std::vector<std::string>{"IB_TIMEOUT", "22"}));
  EXPECT_EQ(setting->count, 2u);
  EXPECT_EQ(setting->first.line, 2u);
  EXPECT_EQ(setting->process, 0u);
  ASSERT_NE(only(model, LineKind::kIbAbsent), nullptr);
  EXPECT_EQ(only(model, LineKind::kIbAbsent)->process, 1u);
  EXPECT_EQ(model.coverage.lines, 4u);
  EXPECT_EQ(model.coverage.headed, 3u);
}

TEST(LogParser, CommunicatorsOfManyReleases) {
  struct {
    const char* start;
    const char* complete;
    const char* group;
  } const cases[] = {{"[Rank 0] ncclCommInitRankConfig comm 0x10 rank 0 nranks 4 cudaDev 0 nvmlDev 0 busId "
                      "1b000 commId 0xab - Init START",
                      "ncclCommInitRankConfig comm 0x10 rank 0 nranks 4 cudaDev 0 nvmlDev 0 busId 1b000 "
                      "commId 0xab - Init COMPLETE",
                      "0xab"},
                     {"comm 0x10 rank 0 nranks 4 cudaDev 0 nvmlDev 0 busId 1b000 commId 0xab - Init START",
                      "comm 0x10 rank 0 nranks 4 cudaDev 0 busId 1b000 localSize 9 used 5 bytes on core 3 "
                      "commId 0xab - Init COMPLETE",
                      "0xab"},
                     {"comm 0x10 rank 0 nranks 4 cudaDev 0 busId 1b000 - Init COMPLETE",
                      "comm 0x10 rank 0 nranks 4 cudaDev 0 busId 1b000 - Destroy COMPLETE", ""}};
  for (const auto& expected : cases) {
    const std::string head = "n1:5:5 [0] NCCL INFO ";
    const LogModel model = parse(head + expected.start + "\n" + head + expected.complete + "\n");
    ASSERT_EQ(model.comms.size(), 1u) << expected.start;
    const CommPart& part = model.comms[0];
    EXPECT_EQ(part.group, expected.group);
    EXPECT_EQ(part.rank, 0);
    EXPECT_EQ(part.ranks, 4);
    EXPECT_EQ(part.bus_id, 0x1b000u);
    EXPECT_TRUE(part.completed);
  }
}

TEST(LogParser, SplitsAreNamedAfterTheirParent) {
  const LogModel model = parse(
      "n1:5:5 [0] NCCL INFO ncclCommInitRank comm 0x10 rank 3 nranks 8 cudaDev 0 nvmlDev 0 busId 1b000 "
      "commId 0xab - Init START\n"
      "n1:5:5 [0] NCCL INFO ncclCommSplit comm 0x20 rank 1 nranks 2 cudaDev 0 nvmlDev 0 busId 1b000 parent "
      "0x10 splitCount 2 "
      "color 7 key 1- Init START\n"
      "n1:5:5 [0] NCCL INFO comm 0x20 rank 1 nRanks 2 nNodes 2 localRanks 1 localRank 0 MNNVL 0\n"
      "n1:5:5 [0] NCCL INFO 16 coll channels, 16 collnet channels, 0 nvls channels, 16 p2p channels, 2 p2p "
      "channels per peer\n");
  ASSERT_EQ(model.comms.size(), 2u);
  EXPECT_EQ(model.comms[1].group, "0xab/2.7");
  EXPECT_EQ(model.comms[1].nodes, 2);
  EXPECT_EQ(model.comms[1].coll_channels, 16);
  EXPECT_EQ(model.processes[0].rank, 3);
}

TEST(LogParser, ACommunicatorsEndIsNotedOnceItIsOver) {
  const std::string head = "n1:5:5 [0] NCCL INFO comm 0x10 rank 0 nranks 4 cudaDev 0 busId 1b000 - ";
  auto part = [&](const std::vector<std::string>& events) {
    std::string text;
    for (const std::string& event : events) text += head + event + "\n";
    const LogModel model = parse(text);
    EXPECT_EQ(model.comms.size(), 1u);
    return model.comms.at(0);
  };
  EXPECT_FALSE(part({"Init COMPLETE"}).ended);
  EXPECT_FALSE(part({"Init COMPLETE", "Destroy START"}).ended);
  EXPECT_TRUE(part({"Init COMPLETE", "Destroy COMPLETE"}).ended);
  EXPECT_FALSE(part({"Init COMPLETE", "Destroy COMPLETE"}).aborted);
  EXPECT_TRUE(part({"Init COMPLETE", "Abort START"}).aborted);
  EXPECT_FALSE(part({"Init COMPLETE", "Abort START"}).ended);
  const CommPart aborted = part({"Init COMPLETE", "Abort START", "Abort COMPLETE"});
  EXPECT_TRUE(aborted.ended);
  EXPECT_EQ(aborted.abort.line, 2u) << "where it began";
  EXPECT_TRUE(parse(head + "Destroy COMPLETE\n").comms.empty()) << "of one whose life was not seen";
}

TEST(LogParser, APointerUsedAgainIsAnotherCommunicator) {
  const std::string head =
      "n1:5:5 [0] NCCL INFO ncclCommInitRank comm 0x10 rank 0 nranks 4 cudaDev 0 nvmlDev 0 busId 1 commId ";
  const LogModel model =
      parse(head + "0xa - Init START\n" + head + "0xa - Init COMPLETE\n" + head + "0xb - Init START\n");
  ASSERT_EQ(model.comms.size(), 2u);
  EXPECT_TRUE(model.comms[0].completed);
  EXPECT_FALSE(model.comms[1].completed);
}

TEST(LogParser, ConnectionsOfManyReleases) {
  const LogModel model = parse(
      "n1:5:5 [0] NCCL INFO Channel 00/0 : 0[0] -> 9[1] [send] via NET/IB/2(4)/GDRDMA/Shared\n"
      "n1:5:5 [0] NCCL INFO Channel 01/0 : 0[0] -> 9[1] [send] via NET/IB/2(4)/GDRDMA/Shared\n"
      "n1:5:5 [0] NCCL INFO Channel 01 : 1[1] -> 2[2] via SHM/direct/direct\n"
      "n1:5:5 [0] NCCL INFO Channel 03/0 : 2[c9000] -> 3[cf000] via P2P/IPC comm 0x5581 nRanks 08\n"
      "n1:5:5 [0] NCCL INFO Ring 00 : 3 -> 4 [receive] via NET/Socket/0\n"
      "n1:5:5 [0] NCCL INFO Channel 00/16 :  0  7  6  5\n");
  ASSERT_EQ(model.connections.size(), 4u);
  EXPECT_EQ(model.connections[0].channels, 2u);
  EXPECT_TRUE(model.connections[0].gdr);
  EXPECT_EQ(model.connections[0].to, 9);
  EXPECT_EQ(model.connections[1].transport, Transport::kShm);
  EXPECT_EQ(model.connections[2].via, "P2P/IPC");
  EXPECT_EQ(model.connections[2].from_device, "c9000");
  EXPECT_TRUE(model.connections[3].is_receive);
  EXPECT_EQ(model.connections[3].from, 3);
}

TEST(LogParser, AlgorithmsByNameOrNumber) {
  const LogModel model = parse(
      "n1:5:5 [0] NCCL INFO AllReduce: 52428800 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..15}\n"
      "n1:5:5 [0] NCCL INFO AllReduce: 1024 Bytes -> Algo 1 proto 2 time 40.5\n");
  ASSERT_EQ(model.algorithms.size(), 1u);
  const auto& [use, figures] = *model.algorithms.begin();
  EXPECT_EQ(use, "AllReduce RING SIMPLE");
  EXPECT_EQ(figures.count, 2u);
  EXPECT_EQ(figures.least_bytes, 1024u);
  EXPECT_EQ(figures.most_bytes, 52428800u);
}

TEST(LogParser, TornAndUnknownLinesAreCounted) {
  const LogModel model = parse(
      "n2:7:7 [1] NCCL INFO RAS thread started\n"
      "n1:5:5 [0] NCCL INFO Using netn2:7:7 [1] NCCL INFO Using network IB\n"
      "n1:5:5 [0] NCCL ININFO 10-24\n"
      "n1:5:5 [0] NCCL INFO a new thing 12 that nobody knows\n"
      "n1:5:5 [0] NCCL WARN a new thing 13 that nobody knows\n");
  EXPECT_EQ(model.coverage.torn, 2u);
  ASSERT_EQ(model.of(LineKind::kNetworkUsed).size(), 1u);
  EXPECT_EQ(model.processes[model.facts[model.of(LineKind::kNetworkUsed)[0]].process].host, "n2");
  ASSERT_TRUE(model.unknown.contains("a new thing N"));
  EXPECT_EQ(model.unknown.at("a new thing N").count, 2u);
  EXPECT_TRUE(model.unknown.at("a new thing N").is_warning);
}

TEST(LogParser, NothingReachesATerminalThatMovesIt) {
  EXPECT_EQ(printable("a\x07"
                      "b\x08\tc\x7F"
                      "d\xC2\x9B"
                      "e\xFF\xC3\xA4"),
            "a?b?\tc?d??e?\xC3\xA4");
  const LogModel model = parse(
      "n1:5:5 [0] NCCL INFO Using network I\x08"
      "B\n");
  ASSERT_NE(only(model, LineKind::kNetworkUsed), nullptr);
  EXPECT_EQ(only(model, LineKind::kNetworkUsed)->value(0), "I?B");
  EXPECT_EQ(only(model, LineKind::kNetworkUsed)->first.text, "n1:5:5 [0] NCCL INFO Using network I?B");
}

TEST(LogParser, RemarksWithoutEndAreBounded) {
  std::string text;
  for (int i = 0; i < 200; ++i)
    text += "n1:5:5 [0] NCCL INFO NCCL_X" + std::to_string(i) + " set by environment to 1\n";
  const LogModel model = parse(text);
  EXPECT_EQ(model.facts.size(), LogModel::kFactsOfKindMost);
  EXPECT_EQ(model.coverage.beyond, 200 - LogModel::kFactsOfKindMost);
}

// As where a log is cut before it.
TEST(LogParser, AnAbortTellsOfACommunicatorThatNothingElseNames) {
  const LogModel model = parse(
      "h1:9:11 [0] NCCL INFO comm 0x7f10 rank 2 nranks 4 cudaDev 0 busId 3b000 - Abort COMPLETE\n"
      "h1:9:11 [0] NCCL INFO comm 0x7f20 rank 1 nranks 2 cudaDev 0 busId 3b000 - Destroy COMPLETE\n");
  ASSERT_EQ(model.comms.size(), 1u);
  EXPECT_TRUE(model.comms[0].aborted);
  EXPECT_TRUE(model.comms[0].ended);
  EXPECT_EQ(model.processes[0].rank, 2);
}

// Its parts are looked at one after the other.
TEST(LogParser, AHostileLineOfMarksTakesNoStack) {
  std::string line;
  while (line.size() < LineSplitter::kLineMost - 16) line += "[rank1]:[";
  line += " NCCL\n";
  LogModel model;
  auto read = [&] { model = parse(line); };
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 512 << 10);
  pthread_t thread{};
  ASSERT_EQ(pthread_create(
                &thread, &small,
                [](void* of) -> void* {
                  (*static_cast<decltype(read)*>(of))();
                  return nullptr;
                },
                &read),
            0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&small);
  EXPECT_EQ(model.coverage.lines, 1u);
}

}  // namespace
}  // namespace lockstep::readers::nccl_log
