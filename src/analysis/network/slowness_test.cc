// SPDX-License-Identifier: Apache-2.0
// Which flows may be held against which, and what a rate alone does not make slow.
#include "analysis/network/slowness.h"

#include <gtest/gtest.h>

#include "analysis/testing/job_builder.h"
#include "model/event_kind.h"

namespace lockstep::analysis::network {
namespace {

using model::EventKind;
using model::Traffic;
using testing::JobBuilder;

Traffic of_kind(EventKind kind) {
  Traffic traffic;
  traffic.kind = model::number(kind);
  return traffic;
}
const Traffic kRing = of_kind(EventKind::kColl), kPairwise = of_kind(EventKind::kP2p);

struct Flow {
  uint32_t from, to;
  double us = 10;  // each of its transfers
  Traffic traffic = kRing;
  uint64_t bytes = 512 << 10;  // each
  uint16_t channel = 0;
  double late_share = 0, late_us = 0;  // so many transfers take so long instead
  double swing = 0;                    // by how much the rates of its parts go up and down in turn
};

class Slowness : public ::testing::Test {
 protected:
  explicit Slowness(uint32_t ranks = 24) : builder_(ranks, 1) { builder_.world(); }
  uint32_t comm(const std::vector<uint32_t>& ranks) {
    return builder_.comm("comm" + std::to_string(++comms_), ranks);
  }
  // Ranks of the communicator.
  void add(const Flow& flow, uint32_t comm = 0) { flows_.push_back({comm, flow}); }

  std::vector<std::pair<int32_t, int32_t>> slow() {
    model::Job job = builder_.build();
    for (const auto& [comm, flow] : flows_) add(job, comm, flow);
    std::vector<std::pair<int32_t, int32_t>> slow;
    for (const Comparison& of : compare(job, links(job))) {
      if (of.slow) slow.emplace_back(of.pair.source, of.pair.target);
    }
    return slow;
  }

 private:
  static void add(model::Job& job, uint32_t comm, const Flow& flow) {
    constexpr int kTransfers = 100;
    model::NetPair pair;
    pair.member = job.comms[comm].members[flow.from];
    pair.peer = static_cast<int32_t>(flow.to);
    pair.channel = flow.channel;
    pair.is_send = true;
    pair.traffic = flow.traffic;
    pair.steps = kTransfers;
    pair.bytes = kTransfers * flow.bytes;
    for (int i = 0; i < kTransfers; ++i) {
      const double ns = 1000 * (i < kTransfers * flow.late_share ? flow.late_us : flow.us);
      pair.wire.add(static_cast<float>(ns));
      pair.wire_ns += static_cast<int64_t>(ns);
      pair.wire_squares += ns * ns;
    }
    pair.busy_ns = pair.wire_ns;
    for (size_t i = 0; i < model::kRateParts; ++i) {
      const double rate = 1 + (i % 2 == 0 ? flow.swing : -flow.swing);
      pair.parts[i] = {static_cast<uint64_t>(1e9 * rate), 1'000'000};
    }
    job.processes[job.members[pair.member].process].net_pairs.push_back(pair);
  }

  JobBuilder builder_;
  uint32_t comms_ = 0;
  std::vector<std::pair<uint32_t, Flow>> flows_;
};

using Pairs = std::vector<std::pair<int32_t, int32_t>>;

TEST_F(Slowness, SmallExchangesAreNotHeldAgainstRings) {
  for (uint32_t i = 0; i < 8; ++i) add({.from = i, .to = (i + 1) % 8});
  add({.from = 8, .to = 9, .us = 40, .traffic = kPairwise});
  EXPECT_EQ(slow(), Pairs{});
}

TEST_F(Slowness, SmallExchangesAreHeldAgainstTheirLike) {
  for (uint32_t i = 0; i < 8; ++i) add({.from = i, .to = (i + 1) % 8});
  for (uint32_t i = 8; i < 16; i += 2)
    add({.from = i, .to = i + 1, .us = i == 8 ? 160.0 : 40.0, .traffic = kPairwise});
  EXPECT_EQ(slow(), (Pairs{{8, 9}}));
}

TEST_F(Slowness, CommunicatorsOfTwoAreHeldAgainstEachOtherByTraffic) {
  for (uint32_t i = 0; i < 8; i += 2) {
    const uint32_t data = comm({i, i + 1}), experts = comm({i + 8, i + 9});
    add({.from = 0, .to = 1}, data);
    add({.from = 0, .to = 1, .us = i == 0 ? 160.0 : 40.0, .traffic = kPairwise}, experts);
  }
  EXPECT_EQ(slow(), (Pairs{{8, 9}}));
}

// Each part of what a transfer belongs to decides how fast it may be.
TEST_F(Slowness, EveryPartOfTheTrafficSetsFlowsApart) {
  const auto changed = [](auto change) {
    Traffic traffic = kRing;
    change(traffic);
    return traffic;
  };
  const Traffic others[] = {
      changed([](Traffic& of) { of.func = 1; }),      changed([](Traffic& of) { of.algo = 1; }),
      changed([](Traffic& of) { of.proto = 1; }),     changed([](Traffic& of) { of.channels = 1; }),
      changed([](Traffic& of) { of.transfers = 1; }), changed([](Traffic& of) { of.size = 1; })};
  for (uint32_t i = 0; i < 8; ++i) add({.from = i, .to = (i + 1) % 8});
  for (uint32_t i = 0; i < std::size(others); ++i)
    add({.from = 8 + 2 * i, .to = 9 + 2 * i, .us = 40, .traffic = others[i]});
  EXPECT_EQ(slow(), Pairs{});
}

TEST_F(Slowness, WhatNothingIsKnownOfIsNotCompared) {
  for (uint32_t i = 0; i < 8; ++i)
    add({.from = i, .to = (i + 1) % 8, .us = i == 0 ? 40.0 : 10.0, .traffic = {}});
  EXPECT_EQ(slow(), Pairs{});
}

TEST_F(Slowness, LanesShareWhatACardMoves) {
  for (uint32_t i = 0; i < 8; ++i) add({.from = i, .to = (i + 1) % 8});
  for (const uint16_t channel : {uint16_t{0}, uint16_t{1}})
    add({.from = 8, .to = 9, .us = 40, .channel = channel});
  EXPECT_EQ(slow(), Pairs{});
}

// One that sends to three at once, or receives from three, has a third for each.
TEST_F(Slowness, FlowsOfOneCardShareWhatItMoves) {
  for (uint32_t i = 0; i < 8; ++i) add({.from = i, .to = (i + 1) % 8});
  for (uint32_t to : {9, 10, 11}) add({.from = 8, .to = to, .us = 30});
  for (uint32_t from : {13, 14, 15}) add({.from = from, .to = 12, .us = 30});
  EXPECT_EQ(slow(), Pairs{});
}

TEST_F(Slowness, ASlowOneOfThreeThatShareACardIsSlow) {
  for (uint32_t from : {0, 4}) {
    for (uint32_t to : {1, 2, 3}) add({.from = from, .to = from + to, .us = from + to == 5 ? 120.0 : 30.0});
  }
  EXPECT_EQ(slow(), (Pairs{{4, 5}}));
}

// As many transfers of less data in the same time each: that is start-up time, not a slow link.
TEST_F(Slowness, LessDataInTheSameTimeIsNotSlow) {
  for (uint32_t i = 0; i < 8; ++i)
    add({.from = i, .to = (i + 1) % 8, .bytes = i == 0 ? 300'000u : 512u << 10});
  EXPECT_EQ(slow(), Pairs{});
}

// Most of the mean is what a few transfers waited for a thread that had no CPU; three quarters are as fast as
// ever.
TEST_F(Slowness, AFewVeryLateTransfersAreNoSlowLink) {
  for (uint32_t i = 0; i < 8; ++i)
    add({.from = i, .to = (i + 1) % 8, .late_share = i == 0 ? 0.24 : 0, .late_us = 60});
  EXPECT_EQ(slow(), Pairs{});
}

TEST_F(Slowness, AQuarterOfTheTransfersLateIsASlowLink) {
  for (uint32_t i = 0; i < 8; ++i)
    add({.from = i, .to = (i + 1) % 8, .late_share = i == 0 ? 0.26 : 0, .late_us = 60});
  EXPECT_EQ(slow(), (Pairs{{0, 1}}));
}

// Half of the usual. Standard error of a mean of eight that differ by `swing` up and down: swing / root of 7.
TEST_F(Slowness, ARateThatGoesUpAndDownIsNotKnownAsWell) {
  for (uint32_t i = 0; i < 8; ++i)
    add({.from = i, .to = (i + 1) % 8, .us = i == 0 ? 20.0 : 10.0, .swing = i == 0 ? 0.6 : 0});
  EXPECT_EQ(slow(), (Pairs{{0, 1}})) << "0.5 x (1 + 3 x 0.227) is 0.84";
}

TEST_F(Slowness, ARateThatGoesUpAndDownMuchMayBeUsual) {
  for (uint32_t i = 0; i < 8; ++i)
    add({.from = i, .to = (i + 1) % 8, .us = i == 0 ? 20.0 : 10.0, .swing = i == 0 ? 0.64 : 0});
  EXPECT_EQ(slow(), Pairs{}) << "0.5 x (1 + 3 x 0.242) is 0.86";
}

TEST_F(Slowness, WhereTheOthersGoUpAndDownTheUsualIsNotKnownAsWell) {
  for (uint32_t i = 0; i < 8; ++i)
    add({.from = i, .to = (i + 1) % 8, .us = i == 0 ? 20.0 : 10.0, .swing = i == 0 ? 0 : 0.64});
  EXPECT_EQ(slow(), Pairs{});
}

TEST_F(Slowness, AWayThatIsWellForTransfersAsLargeIsNotSlow) {
  for (uint32_t i = 0; i < 8; ++i) {
    add({.from = i, .to = (i + 1) % 8, .us = i == 0 ? 40.0 : 10.0});
    add({.from = i, .to = (i + 1) % 8, .traffic = kPairwise, .bytes = i == 0 ? 512u << 10 : 300'000u});
  }
  EXPECT_EQ(slow(), Pairs{});
}

TEST_F(Slowness, SmallTransfersThatAreWellExcuseNothing) {
  for (uint32_t i = 0; i < 8; ++i) {
    add({.from = i, .to = (i + 1) % 8, .us = i == 0 ? 40.0 : 10.0});
    add({.from = i, .to = (i + 1) % 8, .traffic = kPairwise, .bytes = (512u << 10) - 1});
  }
  EXPECT_EQ(slow(), (Pairs{{0, 1}}));
}

}  // namespace
}  // namespace lockstep::analysis::network
