// SPDX-License-Identifier: Apache-2.0
// What a link holds of what its two ends say, what a pair holds of its links, and from which rate on a pair
// is slow.
#include "analysis/network/links.h"

#include <gtest/gtest.h>

#include <functional>

#include "analysis/analysis.h"
#include "analysis/network/slowness.h"
#include "analysis/testing/job_builder.h"
#include "model/event_kind.h"

namespace lockstep::analysis::network {
extern const Analysis kAnalysis;
namespace {

using model::Job;
using model::NetPair;
using model::NetTransport;
using testing::JobBuilder;

// `transfers` that took so long, and no others.
void set_durations(NetPair& pair, double wire_ns, uint64_t transfers) {
  pair.wire = {};
  for (uint64_t i = 0; i < transfers; ++i) pair.wire.add(static_cast<float>(wire_ns));
}

NetPair end_of(uint32_t member, int32_t peer, bool is_send, uint16_t channel = 0, int32_t device = 0) {
  NetPair pair;
  pair.traffic.kind = model::number(model::EventKind::kColl);
  pair.member = member;
  pair.peer = peer;
  pair.channel = channel;
  pair.is_send = is_send;
  pair.device = device;
  pair.steps = 100;
  pair.bytes = 100 << 20;
  pair.gpu_ns = 11;
  pair.peer_ns = 12;
  pair.wire_ns = 13'000;
  pair.flush_ns = 14;
  pair.busy_ns = 15'000'000;
  pair.wire_squares = 2e6;
  pair.first_ns = testing::at_ms(10);
  pair.last_ns = testing::at_ms(20);
  return pair;
}

Job two_ranks(const std::vector<NetPair>& of_0, const std::vector<NetPair>& of_1 = {}) {
  JobBuilder builder(2, 1);
  builder.world();
  Job job = builder.build();
  job.processes[0].net_pairs = of_0;
  job.processes[1].net_pairs = of_1;
  return job;
}

TEST(NetworkLinks, ARowHoldsWhatEachOfItsEndsSays) {
  NetPair received = end_of(1, 0, false, 0, -1);
  received.gpu_ns = 21;
  received.wire_ns = 23'000;
  received.flush_ns = 24;
  received.steps = 99;
  received.bytes = 7;
  received.first_ns = testing::at_ms(1);
  received.last_ns = testing::at_ms(30);
  NetPair sent = end_of(0, 1, true);
  sent.transport = NetTransport::kIb;
  const std::vector<Link> rows = links(two_ranks({sent}, {received}));
  ASSERT_EQ(rows.size(), 1u);
  const Link& link = rows[0];
  EXPECT_EQ(link.source, 0);
  EXPECT_EQ(link.target, 1);
  EXPECT_EQ(link.source_process, 0u);
  EXPECT_EQ(link.target_process, 1u);
  EXPECT_EQ(link.transport, NetTransport::kIb);
  EXPECT_EQ(link.steps, 100u) << "the sender's";
  EXPECT_EQ(link.bytes, 100u << 20);
  EXPECT_EQ(link.gpu_wait_ns, 11);
  EXPECT_EQ(link.peer_wait_ns, 12);
  EXPECT_EQ(link.send_wait_ns, 13'000);
  EXPECT_EQ(link.busy_ns, 15'000'000);
  EXPECT_EQ(link.send_squares, 2e6);
  EXPECT_EQ(link.take_wait_ns, 21);
  EXPECT_EQ(link.receive_wait_ns, 23'000);
  EXPECT_EQ(link.flush_wait_ns, 24);
  EXPECT_EQ(link.first_ns, testing::at_ms(10));
  EXPECT_EQ(link.last_ns, testing::at_ms(20));
}

TEST(NetworkLinks, ChannelsAndDirectionsAreApartAndAPairAddsItsChannels) {
  NetPair second = end_of(0, 1, true, 1);
  second.first_ns = testing::at_ms(5);
  second.last_ns = testing::at_ms(15);
  const std::vector<Link> rows = links(
      two_ranks({end_of(0, 1, true), second, end_of(0, 1, false)},
                {end_of(1, 0, false), end_of(1, 0, false, 1), end_of(1, 0, true), end_of(1, 0, true, 0, 1)}));
  ASSERT_EQ(rows.size(), 4u) << "two channels one way, two devices the other";
  const std::vector<Link> sums = pairs(rows);
  ASSERT_EQ(sums.size(), 2u);
  const Link& there = sums[0];
  EXPECT_EQ(there.source, 0);
  EXPECT_EQ(there.lanes, 2u);
  EXPECT_EQ(there.steps, 200u);
  EXPECT_EQ(there.bytes, 200u << 20);
  EXPECT_EQ(there.gpu_wait_ns, 22);
  EXPECT_EQ(there.peer_wait_ns, 24);
  EXPECT_EQ(there.send_wait_ns, 26'000);
  EXPECT_EQ(there.receive_wait_ns, 26'000);
  EXPECT_EQ(there.flush_wait_ns, 28);
  EXPECT_EQ(there.take_wait_ns, 22);
  EXPECT_EQ(there.busy_ns, 30'000'000);
  EXPECT_EQ(there.send_squares, 4e6);
  EXPECT_EQ(there.first_ns, testing::at_ms(5));
  EXPECT_EQ(there.last_ns, testing::at_ms(20));
  EXPECT_EQ(sums[1].source, 1);
  EXPECT_EQ(sums[1].lanes, 2u);
}

TEST(NetworkLinks, AReceiverJoinsTheRowOfItsTraffic) {
  std::vector<NetPair> sent, received;
  for (const uint8_t size : {uint8_t{10}, uint8_t{20}}) {
    sent.push_back(end_of(0, 1, true));
    sent.back().traffic.size = size;
    received.push_back(end_of(1, 0, false));
    received.back().traffic.size = size;
    received.back().wire_ns = size;
  }
  const std::vector<Link> rows = links(two_ranks(sent, received));
  ASSERT_EQ(rows.size(), 2u);
  for (const Link& row : rows) EXPECT_EQ(row.receive_wait_ns, row.traffic.size);
  const std::vector<Link> apart = flows(rows), together = pairs(rows);
  ASSERT_EQ(apart.size(), 2u);
  ASSERT_EQ(together.size(), 1u);
  EXPECT_EQ(together[0].lanes, 1u) << "both go over one channel";
  EXPECT_EQ(together[0].steps, 200u);
}

TEST(NetworkLinks, WhatTheEndsKeptDifferentPartsOfCountsOnce) {
  NetPair received = end_of(1, 0, false);
  received.traffic.size = 9;
  const std::vector<Link> rows = links(two_ranks({end_of(0, 1, true)}, {received}));
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].steps, 100u);
  EXPECT_EQ(rows[0].receive_wait_ns, 13'000);
}

TEST(NetworkLinks, RanksAreThoseOfTheJobWhereTheyAreKnown) {
  JobBuilder builder(6, 1);
  builder.world();
  const uint32_t some = builder.comm("some", {5, 3, 4});
  builder.without(4);
  Job job = builder.build();
  const auto at = [&](uint32_t comm, size_t rank) { return job.comms[comm].members[rank]; };
  const uint32_t rank_5 = job.members[at(some, 0)].process;
  job.processes[rank_5].net_pairs = {end_of(at(some, 0), 1, true), end_of(at(some, 0), 2, true),
                                     end_of(at(some, 0), 7, true), end_of(at(some, 0), -1, true),
                                     end_of(at(0, 5), 4, true)};
  std::map<std::pair<int32_t, uint32_t>, int> targets;
  for (const Link& link : links(job)) {
    EXPECT_EQ(link.source, 5);
    ++targets[{link.target, link.comm}];
  }
  EXPECT_EQ(targets,
            (std::map<std::pair<int32_t, uint32_t>, int>{{{3, some}, 1}, {{-1, some}, 3}, {{4, 0}, 1}}))
      << "a rank that left no file is known in the world alone, where its number is the job's";
}

TEST(NetworkLinks, AnErrorNeedsTwoTransfers) {
  Link link;
  link.steps = 100;
  link.send_wait_ns = 100'000;
  link.send_squares = 100 * (1000.0 * 1000.0 + 500.0 * 500.0);
  EXPECT_NEAR(link.relative_error(), 0.05, 1e-9) << "a half of it, over the root of a hundred";
  link.steps = 2;
  link.send_wait_ns = 2000;
  link.send_squares = 2 * 1e6;
  EXPECT_EQ(link.relative_error(), 0) << "all alike";
  link.steps = 1;
  EXPECT_EQ(link.relative_error(), 1);
  link.steps = 2;
  link.send_wait_ns = 0;
  EXPECT_EQ(link.relative_error(), 1);
}

// A ring of ranks on hosts of their own. Rank 0's link is what `change` makes of it.
Job ring(uint32_t ranks, const std::function<void(NetPair&)>& change, double other_us = 10) {
  JobBuilder builder(ranks, 1);
  builder.world();
  Job job = builder.build();
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    NetPair pair = end_of(job.comms[0].members[rank], static_cast<int32_t>((rank + 1) % ranks), true);
    const auto wire = static_cast<int64_t>(other_us * 1000);
    pair.wire_ns = pair.busy_ns = wire * 100;
    pair.wire_squares = 100.0 * static_cast<double>(wire) * static_cast<double>(wire);
    set_durations(pair, other_us * 1000, 100);
    if (rank == 0) change(pair);
    job.processes[rank].net_pairs = {pair};
  }
  return job;
}
void lengthen(NetPair& pair, double factor, double scatter = 0) {
  const double wire = static_cast<double>(pair.wire_ns) / 100 * factor;
  pair.wire_ns = pair.busy_ns = static_cast<int64_t>(100 * wire);
  pair.wire_squares = 100 * wire * wire * (1 + scatter * scatter);
  set_durations(pair, wire, 100);
}
std::vector<Finding> findings_of(const Job& job) {
  std::vector<Finding> findings;
  kAnalysis.run(job, findings);
  return findings;
}
bool is_slow(uint32_t ranks, double factor, double scatter = 0) {
  return !findings_of(ring(ranks, [&](NetPair& pair) { lengthen(pair, factor, scatter); })).empty();
}

TEST(NetworkBounds, SlowIsBelowSevenTenthsOfTheUsual) {
  EXPECT_TRUE(is_slow(8, 1 / 0.69));
  EXPECT_FALSE(is_slow(8, 1 / 0.71));
}

// Three errors above it, a slow rate has to be below 85 hundredths of the usual: 0.5 x (1 + 3 x scatter /
// 10).
TEST(NetworkBounds, ARateThatMayBeUsualIsNotSlow) {
  EXPECT_TRUE(is_slow(8, 2, 2.2)) << "0.83";
  EXPECT_FALSE(is_slow(8, 2, 2.5)) << "0.875";
}

TEST(NetworkBounds, ThreeOthersAreEnough) {
  EXPECT_TRUE(is_slow(4, 4));
  EXPECT_FALSE(is_slow(3, 4));
}

TEST(NetworkBounds, FewOrSmallTransfersAreNotMeasured) {
  auto judged = [](uint64_t steps, uint64_t bytes, int64_t busy_ns = 0) {
    return !findings_of(ring(8, [&](NetPair& pair) {
              lengthen(pair, 4);
              pair.steps = steps;
              pair.bytes = bytes;
              pair.busy_ns = busy_ns != 0 ? busy_ns : static_cast<int64_t>(steps) * 40'000;
              pair.wire_ns = pair.busy_ns;
              pair.wire_squares = static_cast<double>(steps) * 40'000.0 * 40'000.0;
            })).empty();
  };
  EXPECT_TRUE(judged(16, 16 << 20));
  EXPECT_FALSE(judged(15, 15 << 20));
}

TEST(NetworkBounds, AMebibyteIsEnough) {
  auto judged = [](uint64_t bytes) {
    Job job = ring(8, [](NetPair& pair) { lengthen(pair, 4); });
    for (model::JobProcess& process : job.processes) process.net_pairs[0].bytes = bytes;
    return !findings_of(job).empty();
  };
  EXPECT_TRUE(judged(1 << 20));
  EXPECT_FALSE(judged((1 << 20) - 1));
}

TEST(NetworkBounds, WhatItLostIsItsOwnTimeBeyondTheUsual) {
  const std::vector<Finding> found = findings_of(ring(8, [](NetPair& pair) { lengthen(pair, 4, 0.5); }));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NEAR(found[0].weight, 8 * 4e6 * 0.75, 1) << "every rank of the ring waits for it";
  ASSERT_TRUE(found[0].effect);
  const double rate = (100 << 20) / 4e6;
  EXPECT_NEAR(found[0].effect->value, rate, 1e-3);
  EXPECT_NEAR(found[0].effect->low, rate / 1.1, 1e-3);
  EXPECT_NEAR(found[0].effect->high, rate * 1.1, 1e-3);
  EXPECT_EQ(found[0].evidence.at(0),
            "rank 0 to rank 1: 100 MiB in 100 transfers, 26.2 GB/s +- 10 % while sending (usual: 105 "
            "GB/s); waits: GPU 11 ns, peer 12 ns, send 4.00 ms, flush 0 ns");
}

TEST(NetworkBounds, SocketsAreSummedOverTheHostsThatFellBack) {
  Job job = ring(4, [](NetPair& pair) { pair.transport = NetTransport::kSocket; });
  for (const uint32_t rank : {1u, 2u}) job.processes[rank].net_pairs[0].transport = NetTransport::kIb;
  job.processes[3].net_pairs[0].transport = NetTransport::kSocket;
  const std::vector<Finding> found = findings_of(job);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].statement,
            "ranks 0 and 3 (node0 and others) send through sockets, while other hosts use "
            "InfiniBand or RoCE");
  EXPECT_EQ(found[0].weight, 2e6);
  ASSERT_TRUE(found[0].effect);
  EXPECT_EQ(found[0].effect->value, 200 << 20);
  EXPECT_EQ(found[0].evidence,
            std::vector<std::string>{"200 MiB sent through sockets, according to the network plugin"});
  for (model::JobHost& host : job.hosts) host.name = 0;
  EXPECT_EQ(findings_of(job).at(0).statement,
            "ranks 0 and 3 send through sockets, while other hosts use InfiniBand or RoCE");
}

}  // namespace
}  // namespace lockstep::analysis::network
