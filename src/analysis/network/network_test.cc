// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <initializer_list>
#include <map>
#include <set>
#include <vector>

#include "analysis/analysis.h"
#include "analysis/network/links.h"
#include "analysis/testing/job_builder.h"
#include "model/event_kind.h"

namespace lockstep::analysis::network {
extern const Analysis kAnalysis;
namespace {

using model::NetTransport;
using testing::JobBuilder;

constexpr uint64_t kStepBytes = 512 << 10;

// 100 of them, to or from a rank of the communicator.
model::NetPair transfers(uint32_t peer, bool is_send, double step_us) {
  constexpr uint64_t kSteps = 100;
  auto wire = static_cast<int64_t>(step_us * 1000);
  model::NetPair pair;
  pair.peer = static_cast<int32_t>(peer);
  pair.is_send = is_send;
  pair.traffic.kind = model::number(model::EventKind::kColl);
  for (uint64_t i = 0; i < kSteps; ++i) pair.wire.add(static_cast<float>(wire));
  pair.steps = kSteps;
  pair.bytes = kSteps * kStepBytes;
  pair.gpu_ns = 5'000'000;
  pair.wire_ns = pair.busy_ns = wire * static_cast<int64_t>(kSteps);
  // Durations scatter by a tenth.
  pair.wire_squares =
      static_cast<double>(kSteps) * static_cast<double>(wire) * static_cast<double>(wire) * 1.01;
  pair.first_ns = testing::at_ms(0);
  pair.last_ns = testing::at_ms(100);
  return pair;
}

// A ring over hosts: every rank sends to the same rank of the next one; 100 steps of each way, `step_us` long
// where a pair is not made slower.
class Ring {
 public:
  explicit Ring(uint32_t ranks, uint32_t per_host = 1)
      : builder_(ranks, per_host), ranks_(ranks), next_(ranks), step_us_(ranks, 10) {
    builder_.world();
    for (uint32_t rank = 0; rank < ranks; ++rank) next_[rank] = (rank + per_host) % ranks;
  }
  // Instead, hosts 0 and 1, 2 and 3, ... send to each other.
  void in_twos(uint32_t per_host) {
    for (uint32_t rank = 0; rank < ranks_; ++rank)
      next_[rank] = rank / per_host % 2 == 0 ? rank + per_host : rank - per_host;
  }
  void slow(uint32_t source, double factor) { step_us_[source] *= factor; }
  void transport(uint32_t rank, NetTransport transport) { transports_[rank] = transport; }
  void without(uint32_t rank) { builder_.without(rank); }
  // Nothing is known of what it sends.
  void hide(uint32_t source) { hidden_.insert(source); }

  model::Job build() {
    model::Job job = builder_.build();
    for (uint32_t rank = 0; rank < ranks_; ++rank) {
      if (!hidden_.contains(rank)) add(job, rank, next_[rank], true, step_us_[rank]);
      add(job, next_[rank], rank, false, step_us_[rank]);
    }
    return job;
  }

 private:
  void add(model::Job& job, uint32_t rank, uint32_t peer, bool is_send, double step_us) const {
    model::NetPair pair = transfers(peer, is_send, step_us);
    pair.member = job.comms[0].members[rank];
    if (pair.member == model::kNoRow) return;
    if (transports_.contains(rank)) pair.transport = transports_.at(rank);
    job.processes[job.members[pair.member].process].net_pairs.push_back(pair);
  }

  JobBuilder builder_;
  uint32_t ranks_;
  std::vector<uint32_t> next_;   // by source
  std::vector<double> step_us_;  // by source
  std::map<uint32_t, NetTransport> transports_;
  std::set<uint32_t> hidden_;
};

std::vector<Finding> findings_of(const model::Job& job) {
  std::vector<Finding> findings;
  kAnalysis.run(job, findings);
  return findings;
}

TEST(Network, JoinsBothEndsOfALink) {
  std::vector<Link> rows = links(Ring(4).build());
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0].source, 0);
  EXPECT_EQ(rows[0].target, 1);
  EXPECT_EQ(rows[0].bytes, 100 * kStepBytes);
  EXPECT_EQ(rows[0].gpu_wait_ns, 5'000'000);
  EXPECT_EQ(rows[0].take_wait_ns, 5'000'000);
  EXPECT_EQ(rows[0].send_wait_ns, 1'000'000);
  EXPECT_EQ(rows[0].receive_wait_ns, 1'000'000);
  EXPECT_NEAR(rows[0].rate(), 52.4e9, 0.1e9);
  EXPECT_NEAR(rows[0].relative_error(), 0.01, 0.001);
}

TEST(Network, AReceiverAloneStillHasARow) {
  model::Job job = Ring(4).build();
  job.processes[0].net_pairs.clear();
  std::vector<Link> rows = links(job);
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0].bytes, 100 * kStepBytes);
  EXPECT_EQ(rows[0].rate(), 0);
}

TEST(Network, EqualPairsHaveNoFinding) { EXPECT_TRUE(findings_of(Ring(8).build()).empty()); }

TEST(Network, NamesTheSlowLink) {
  Ring ring(8);
  ring.slow(3, 4);
  auto findings = findings_of(ring.build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(id_text(findings[0].id), "slow-link");
  EXPECT_EQ(findings[0].ranks, (std::vector<int32_t>{3, 4}));
  EXPECT_EQ(
      findings[0].statement,
      "the path from rank 3 to rank 4 carries 13.1 GB/s per channel, while 7 similar pairs carry 52.4 GB/s");
}

// `lockstep summary` has the rate over all transfers of a pair.
TEST(Network, ARateOfOneKindOfTransfersSaysSo) {
  Ring ring(8);
  ring.slow(3, 4);
  model::Job job = ring.build();
  const model::StringId all_reduce = job.strings.intern("AllReduce"),
                        all_gather = job.strings.intern("AllGather");
  for (model::JobProcess& process : job.processes) {
    const std::vector<model::NetPair> pairs = process.net_pairs;
    for (model::NetPair& pair : process.net_pairs) pair.traffic.func = all_reduce;
    for (model::NetPair pair : pairs) {
      pair.traffic.func = all_gather;
      pair.bytes /= 4;
      process.net_pairs.push_back(pair);
    }
  }
  const auto findings = findings_of(job);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].statement,
            "the path from rank 3 to rank 4 carries 13.1 GB/s per channel in AllReduce transfers of about "
            "512 KiB, while 7 similar pairs carry 52.4 GB/s");
}

// Groups of two whose ranks are 1 and 8 apart, as those of a pipeline and of experts: another share of the
// cards is left to each.
TEST(Network, GroupsOfAnotherDimensionAreNoMeasure) {
  for (const uint32_t distance : {1U, 8U}) {
    JobBuilder builder(16, 1);
    std::vector<uint32_t> comms;
    for (uint32_t rank = 0; rank < 16; rank += 2) comms.push_back(builder.comm("pipeline", {rank, rank + 1}));
    for (const uint32_t rank : {1U, 3U}) comms.push_back(builder.comm("expert", {rank, rank + distance}));
    model::Job job = builder.build();
    for (size_t i = 0; i < comms.size(); ++i) {
      for (const uint32_t rank : {0U, 1U}) {
        for (const bool is_send : {true, false}) {
          model::NetPair pair = transfers(1 - rank, is_send, i < 8 ? 10 : 30);
          pair.member = job.comms[comms[i]].members[rank];
          job.processes[job.members[pair.member].process].net_pairs.push_back(pair);
        }
      }
    }
    EXPECT_EQ(findings_of(job).empty(), distance == 8);
  }
}

TEST(Network, ALittleSlowerIsNotSlow) {
  Ring ring(8);
  ring.slow(3, 1.3);
  EXPECT_TRUE(findings_of(ring.build()).empty());
}

TEST(Network, WherePairsScatterAnywayALowOneIsNotSlow) {
  Ring ring(4);
  ring.slow(0, 3.4);
  ring.slow(1, 2.4);
  ring.slow(2, 1.9);
  EXPECT_TRUE(findings_of(ring.build()).empty());
}

TEST(Network, TwoPairsCannotBeCompared) {
  Ring ring(2);
  ring.slow(0, 4);
  EXPECT_TRUE(findings_of(ring.build()).empty());
}

TEST(Network, NamesTheCardThroughWhichAllIsSlow) {
  Ring ring(8);
  ring.slow(3, 4);
  ring.slow(2, 4);
  auto findings = findings_of(ring.build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(id_text(findings[0].id), "slow-nic");
  EXPECT_EQ(findings[0].ranks, std::vector<int32_t>{3});
  EXPECT_EQ(findings[0].hosts, std::vector<std::string>{"node3"});
}

TEST(Network, NamesTheHostOfThree) {
  Ring ring(12, 4);
  for (uint32_t rank = 0; rank < 8; ++rank) ring.slow(rank, 4);
  auto findings = findings_of(ring.build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(id_text(findings[0].id), "slow-nic.host");
  EXPECT_EQ(findings[0].ranks, (std::vector<int32_t>{4, 5, 6, 7}));
  EXPECT_EQ(findings[0].hosts, std::vector<std::string>{"node1"});
}

TEST(Network, NamesTheRail) {
  Ring ring(12, 4);
  for (uint32_t rank = 1; rank < 12; rank += 4) ring.slow(rank, 4);
  auto findings = findings_of(ring.build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(id_text(findings[0].id), "slow-nic.rail");
  EXPECT_EQ(findings[0].ranks, (std::vector<int32_t>{1, 5, 9}));
}

TEST(Network, BlamesTheWayWhereAHostIsSeenWithOneOtherOnly) {
  Ring ring(8, 2);
  ring.in_twos(2);
  for (uint32_t rank : {0, 1, 2, 3}) ring.slow(rank, 4);
  auto findings = findings_of(ring.build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(id_text(findings[0].id), "slow-link.hosts");
  EXPECT_EQ(class_of(findings[0].id), FindingClass::kSlowLink);
  EXPECT_EQ(findings[0].ranks, (std::vector<int32_t>{0, 1, 2, 3}));
  EXPECT_EQ(findings[0].statement,
            "the path between node0 and node1 (4 pairs of ranks) carries 13.1 GB/s per channel, while 4 "
            "similar pairs carry 52.4 GB/s");
}

TEST(Network, BlamesTheWayWhereARankIsSeenWithOneOtherOnly) {
  Ring ring(8, 2);
  ring.in_twos(2);
  for (uint32_t rank : {1, 3}) ring.slow(rank, 4);
  auto findings = findings_of(ring.build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(id_text(findings[0].id), "slow-link");
  EXPECT_EQ(findings[0].ranks, (std::vector<int32_t>{1, 3}));
}

// Of a job in which hosts have no names; each finding names none.
std::string statement_without_hosts(model::Job job) {
  for (model::JobHost& host : job.hosts) host.name = 0;
  for (model::JobProcess& process : job.processes) process.row.host = 0;
  const std::vector<Finding> findings = findings_of(job);
  EXPECT_EQ(findings.size(), 1u);
  for (const Finding& finding : findings) EXPECT_TRUE(finding.hosts.empty()) << finding.statement;
  return findings.empty() ? "" : findings[0].statement.substr(0, findings[0].statement.find(" carries"));
}

TEST(Network, HostsWithoutNamesAreToldByTheirRanks) {
  Ring card(8), host(12, 4), way(8, 2), link(8);
  card.slow(3, 4);
  card.slow(2, 4);
  EXPECT_EQ(statement_without_hosts(card.build()), "the network card of rank 3");
  for (uint32_t rank = 0; rank < 8; ++rank) host.slow(rank, 4);
  EXPECT_EQ(statement_without_hosts(host.build()), "the network of the host of ranks 4-7");
  way.in_twos(2);
  for (uint32_t rank : {0, 1, 2, 3}) way.slow(rank, 4);
  EXPECT_EQ(statement_without_hosts(way.build()),
            "the path between the hosts of ranks 0-3 (4 pairs of ranks)");
  link.slow(0, 4);
  EXPECT_EQ(statement_without_hosts(link.build()), "the path from rank 0 to rank 1");
}

TEST(Network, FasterPairsDoNotExcuseASlowOne) {
  Ring ring(8);
  ring.slow(0, 4);
  for (uint32_t rank : {1, 2, 3}) ring.slow(rank, 0.25);
  auto findings = findings_of(ring.build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].ranks, (std::vector<int32_t>{0, 1}));
}

TEST(Network, NamesTheHostThatFellBackToSockets) {
  Ring ring(6);
  for (uint32_t rank = 0; rank < 6; ++rank)
    ring.transport(rank, rank == 2 ? NetTransport::kSocket : NetTransport::kIb);
  ring.slow(1, 5);
  ring.slow(2, 5);
  auto findings = findings_of(ring.build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(id_text(findings[0].id), "fallback.sockets");
  EXPECT_EQ(findings[0].ranks, std::vector<int32_t>{2});
}

TEST(Network, SocketsEverywhereAreNoFallback) {
  Ring ring(6);
  for (uint32_t rank = 0; rank < 6; ++rank) ring.transport(rank, NetTransport::kSocket);
  EXPECT_TRUE(findings_of(ring.build()).empty());
}

// 16 ranks on 4 hosts; the even ones and the odd ones have a communicator each, in which every rank sends to
// the same one of the next host. The odd ones' transfers are all alike, and longer than the even ones' usual.
class TwoRings {
 public:
  TwoRings() : builder_(16, 4) {
    for (const uint32_t first : {0u, 1u}) {
      std::vector<uint32_t> ranks;
      for (uint32_t rank = first; rank < 16; rank += 2) ranks.push_back(rank);
      builder_.comm(first == 0 ? "even" : "odd", ranks);
    }
  }
  void without(std::initializer_list<uint32_t> ranks) {
    for (uint32_t rank : ranks) builder_.without(rank);
  }
  void slow(uint32_t source) { slow_ = source; }

  model::Job build() {
    model::Job job = builder_.build();
    for (uint32_t rank = 0; rank < 16; ++rank) {
      const uint32_t comm = rank % 2, next = (rank + 4) % 16;
      model::NetPair pair = transfers(next / 2, true, rank == slow_ ? 60 : comm == 0 ? 6 : 11);
      pair.member = job.comms[comm].members[rank / 2];
      if (pair.member != model::kNoRow)
        job.processes[job.members[pair.member].process].net_pairs.push_back(pair);
    }
    return job;
  }

 private:
  JobBuilder builder_;
  uint32_t slow_ = 16;
};

// Two pairs of rail 1 have both ends; to the ranks that left no file go three others, which are as fast.
TEST(Network, WhatGoesToARankWithoutAFileClearsARail) {
  TwoRings rings;
  rings.without({5, 7, 15});
  EXPECT_TRUE(findings_of(rings.build()).empty());
}

TEST(Network, TheSlowLinkToARankWithoutAFileIsNamed) {
  TwoRings rings;
  rings.slow(2);
  rings.without({5, 6, 7, 15});
  const auto findings = findings_of(rings.build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(id_text(findings[0].id), "slow-link");
  EXPECT_EQ(findings[0].ranks, std::vector<int32_t>{2});
  EXPECT_EQ(
      findings[0].statement,
      "the path from rank 2 to rank 3 of even, who left no file, carries 8.74 GB/s per channel, while 6 "
      "similar pairs carry 87.4 GB/s");
}

TEST(Network, ARailIsNotBlamedBesideACommunicatorWhoseMembersAreMissing) {
  TwoRings rings;
  rings.without({3, 7, 11, 15, 2});
  const auto findings = findings_of(rings.build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(id_text(findings[0].id), "evidence-missing.pairs");
  EXPECT_TRUE(findings[0].ranks.empty());
  EXPECT_FALSE(findings[0].needed_evidence.empty());
}

TEST(Network, ARailIsBlamedBesideAWholeCommunicator) {
  TwoRings rings;
  rings.without({3, 7, 11, 15});
  const auto findings = findings_of(rings.build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(id_text(findings[0].id), "slow-nic.rail");
  EXPECT_EQ(findings[0].ranks, (std::vector<int32_t>{1, 5, 9, 13}));
}

TEST(Network, TheCardThatAllPairsOfARailHaveInCommonIsNamed) {
  Ring ring(16, 4);
  for (uint32_t rank : {1, 5}) ring.slow(rank, 4);
  for (uint32_t rank : {9, 13}) ring.hide(rank);
  const auto findings = findings_of(ring.build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(id_text(findings[0].id), "slow-nic");
  EXPECT_EQ(findings[0].ranks, std::vector<int32_t>{5});
}

// The path to rank 5 is slow as well; it may be on the host that is named.
TEST(Network, WhatALargerCauseMayExplainIsNotReportedAgain) {
  Ring card(12, 3), sockets(12, 3);
  for (Ring* ring : {&card, &sockets}) {
    for (uint32_t rank = 0; rank < 6; ++rank) ring->slow(rank, 5);
    ring->without(5);
  }
  for (uint32_t rank = 0; rank < 12; ++rank)
    sockets.transport(rank, rank == 3 || rank == 4 ? NetTransport::kSocket : NetTransport::kIb);
  const auto of_card = findings_of(card.build()), of_sockets = findings_of(sockets.build());
  ASSERT_EQ(of_card.size(), 1u);
  EXPECT_EQ(id_text(of_card[0].id), "slow-nic.host");
  EXPECT_EQ(of_card[0].ranks, (std::vector<int32_t>{3, 4}));
  ASSERT_EQ(of_sockets.size(), 1u);
  EXPECT_EQ(id_text(of_sockets[0].id), "fallback.sockets");
}

// Ranks without a file count as an other end, each once.
TEST(Network, ACardIsToldByARankWithoutAFileToo) {
  for (const bool other_is_seen : {true, false}) {
    TwoRings rings;
    rings.without({6});
    model::Job job = rings.build();
    for (model::JobProcess& process : job.processes) {
      if (process.row.rank != 2 && process.row.rank != 14) continue;
      if (process.row.rank == 14 && !other_is_seen) process.net_pairs.clear();
      for (model::NetPair& pair : process.net_pairs) {
        const uint32_t member = pair.member;
        pair = transfers(static_cast<uint32_t>(pair.peer), true, 60);
        pair.member = member;
      }
    }
    const auto findings = findings_of(job);
    ASSERT_EQ(findings.size(), 1u);
    EXPECT_EQ(id_text(findings[0].id), other_is_seen ? "slow-nic" : "slow-link");
    EXPECT_EQ(findings[0].ranks, std::vector<int32_t>{2});
  }
}

}  // namespace
}  // namespace lockstep::analysis::network
