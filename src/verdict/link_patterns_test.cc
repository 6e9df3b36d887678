// SPDX-License-Identifier: Apache-2.0
#include "verdict/link_patterns.h"

#include <gtest/gtest.h>

#include "analysis/testing/job_builder.h"
#include "verdict/link_evidence.h"

namespace lockstep::verdict {
namespace {

using analysis::Finding;
using analysis::FindingId;
using analysis::Severity;
using analysis::testing::at_ms;
using analysis::testing::Call;
using analysis::testing::JobBuilder;
using links::HostSamples;
using links::LinkTrouble;

constexpr uint64_t kGigabyte = 1'000'000'000;

std::string gpu(int number) { return "0000:" + std::to_string(number + 1) + "3:00.0"; }
std::string bridge(int number) {
  return "pci0000:" + std::to_string(number + 1) + "0/0000:" + std::to_string(number + 1) + "0:01.0/";
}

// A host with two GPUs, each with a card of its own below one bridge, and NVLinks.
HostSamples host_of(int number) {
  HostSamples host;
  host.host = "node" + std::to_string(number);
  host.first_ns = at_ms(-1000);
  host.last_ns = at_ms(60'000);
  host.watched = 2;
  for (int i = 0; i < 2; ++i) {
    const std::string card = "mlx5_" + std::to_string(i);
    host.cards[card] = bridge(i) + "0000:e" + std::to_string(i) + ":00.0";
    host.gpus[gpu(i)] = bridge(i) + gpu(i);
    host.sent[card] = 50 * kGigabyte;
    host.nvlink_moved[gpu(i)] = 5 * kGigabyte;
  }
  return host;
}

class LinkPatterns : public ::testing::Test {
 protected:
  LinkPatterns() {
    for (int i = 0; i < 3; ++i) hosts_.push_back(host_of(i));
  }

  static LinkTrouble loss(const std::string& device) {
    LinkTrouble trouble;
    trouble.id = FindingId::kTransportErrorLoss;
    trouble.device = device;
    trouble.severity = Severity::kWarning;
    trouble.says = "packets are lost";
    trouble.remedy = "Look.";
    trouble.evidence = {device + " packet_seq_err: +900"};
    trouble.times_ns = {at_ms(1)};
    trouble.moved_data = true;
    return trouble;
  }

  // Three hosts with two ranks each; each rank sends `gigabytes` to other hosts, and all reduce `reduced`
  // bytes twenty times.
  void job(uint64_t gigabytes, uint64_t reduced) {
    JobBuilder builder(6, 2);
    const uint32_t world = builder.world();
    for (int i = 0; i < 20; ++i)
      for (uint32_t rank = 0; rank < 6; ++rank)
        builder.call(rank, world, {.called_ms = 10.0 * i, .bytes = reduced});
    for (uint32_t rank = 0; rank < 6; ++rank) {
      builder.process(rank).row.pci = builder.text(gpu(static_cast<int>(rank % 2)));
      model::NetPair pair;
      pair.member = builder.member(world, rank);
      pair.is_send = true;
      pair.bytes = gigabytes * kGigabyte;
      builder.process(rank).net_pairs.push_back(pair);
    }
    Evidence& evidence = evidence_.emplace_back();
    evidence.source = "capture files";
    evidence.job = builder.build();
    evidence.span.first_ns = at_ms(0);
    evidence.span.last_ns = at_ms(50'000);
  }

  std::vector<Finding> findings() const {
    std::vector<Finding> found;
    add_link_evidence(hosts_, evidence_, found);
    return found;
  }
  std::string ids() const {
    std::string text;
    for (const Finding& finding : findings()) text += std::string(id_text(finding.id)) + ' ';
    return text;
  }

  std::vector<HostSamples> hosts_;
  std::vector<Evidence> evidence_;
};

TEST_F(LinkPatterns, OneCardOfEveryHostIsARail) {
  for (HostSamples& host : hosts_) host.troubles = {loss("mlx5_1/1")};
  const auto found = findings();
  ASSERT_EQ(found.size(), 1u) << ids();
  EXPECT_EQ(id_text(found[0].id), "transport-error.rail");
  EXPECT_EQ(
      found[0].statement,
      "mlx5_1/1 of all 3 hosts: packets are lost while the job ran, and no other card of theirs has that: "
      "a possible cause of delays");
  EXPECT_EQ(found[0].hosts, (std::vector<std::string>{"node0", "node1", "node2"}));
  EXPECT_EQ(found[0].evidence[0], "node0, mlx5_1/1 packet_seq_err: +900");
}

TEST_F(LinkPatterns, ACardOfSomeHostsOrAmongOthersIsNone) {
  for (size_t i = 0; i < 2; ++i) hosts_[i].troubles = {loss("mlx5_1/1")};
  EXPECT_EQ(ids(), "transport-error.loss ");
  for (HostSamples& host : hosts_) host.troubles = {loss("mlx5_1/1")};
  hosts_[2].troubles.push_back(loss("mlx5_0/1"));
  EXPECT_EQ(ids(), "transport-error.loss ");
  hosts_[2].troubles.pop_back();
  // The only card that is used says nothing about rails.
  for (HostSamples& host : hosts_) host.sent["mlx5_0"] = kGigabyte;
  EXPECT_EQ(ids(), "transport-error.loss ");
  hosts_.resize(2);
  EXPECT_EQ(ids(), "transport-error.loss ");
}

TEST_F(LinkPatterns, ANearestCardThatSentNothingIsLeftAside) {
  job(50, 1);
  EXPECT_EQ(ids(), "");
  hosts_[1].sent["mlx5_0"] = kGigabyte / 10;
  hosts_[1].sent["mlx5_1"] = 100 * kGigabyte;
  const auto found = findings();
  ASSERT_EQ(found.size(), 1u) << ids();
  EXPECT_EQ(id_text(found[0].id), "slow-nic.unused");
  EXPECT_EQ(found[0].ranks, std::vector<int32_t>{2});
  EXPECT_EQ(found[0].hosts, std::vector<std::string>{"node1"});
  EXPECT_TRUE(
      found[0].statement.starts_with("mlx5_0 of node1 sent 95.4 MiB while the job ran, though it is the "
                                     "nearest card to the GPU of rank 2, which sent "))
      << found[0].statement;
}

TEST_F(LinkPatterns, ACardIsNotLeftAsideIfTheRecordDoesNotProveIt) {
  job(50, 1);
  hosts_[1].sent["mlx5_0"] = kGigabyte;
  EXPECT_EQ(ids(), "") << "two percent are something";
  hosts_[1].sent["mlx5_0"] = 0;
  EXPECT_EQ(ids(), "slow-nic.unused ");
  const auto with = [this](const auto& change) {
    const auto hosts = hosts_;
    change();
    const std::string seen = ids();
    hosts_ = hosts;
    evidence_.clear();
    job(50, 1);
    return seen;
  };
  EXPECT_EQ(with([&] { hosts_[1].sent["mlx5_1"] = kGigabyte; }), "") << "no counter shows the job";
  EXPECT_EQ(with([&] { hosts_[1].sent.erase("mlx5_0"); }), "");
  EXPECT_EQ(with([&] { hosts_[1].cards["mlx5_9"] = bridge(0) + "0000:e9:00.0"; }), "") << "as near";
  EXPECT_EQ(with([&] { hosts_[1].gpus.erase(gpu(0)); }), "");
  EXPECT_EQ(with([&] { evidence_[0].job->processes[3].drives_others = true; }), "");
  EXPECT_EQ(
      with([&] { evidence_[0].job->processes[2].net_pairs[0].transport = model::NetTransport::kSocket; }),
      "");
  EXPECT_EQ(with([&] { evidence_[0].job->processes[2].net_pairs[0].bytes = kGigabyte; }), "");
}

TEST_F(LinkPatterns, NvlinksThatMovedNothingAreLeftAside) {
  job(0, 10 * kGigabyte);
  EXPECT_EQ(ids(), "");
  for (auto& [of, bytes] : hosts_[2].nvlink_moved) bytes = kGigabyte / 4;
  const auto found = findings();
  ASSERT_EQ(found.size(), 1u) << ids();
  EXPECT_EQ(id_text(found[0].id), "fallback.nvlink-unused");
  EXPECT_EQ(found[0].hosts, std::vector<std::string>{"node2"});
  EXPECT_EQ(
      found[0].statement,
      "the NVLinks of node2 moved 477 MiB while its 2 GPUs had to exchange 93.1 GiB or more: the data goes "
      "over PCIe or the host's memory");
}

TEST_F(LinkPatterns, NvlinksAreNotLeftAsideIfTheRecordDoesNotProveIt) {
  job(0, 10 * kGigabyte);
  for (auto& [of, bytes] : hosts_[2].nvlink_moved) bytes = 2 * kGigabyte;
  EXPECT_EQ(ids(), "");
  for (auto& [of, bytes] : hosts_[2].nvlink_moved) bytes = 0;
  EXPECT_EQ(ids(), "fallback.nvlink-unused ");
  // GPUs that are not in the communicator may be joined by other bridges.
  hosts_[2].nvlink_moved[gpu(5)] = 0;
  EXPECT_EQ(ids(), "");
  hosts_[2].nvlink_moved = {{gpu(0), 0}};
  EXPECT_EQ(ids(), "") << "the other one's could not be read";
  hosts_[2].nvlink_moved = {{gpu(0), 0}, {gpu(1), 0}};
  evidence_.clear();
  job(0, kGigabyte / 10);
  EXPECT_EQ(ids(), "") << "little to exchange";
}

TEST_F(LinkPatterns, NvlinksThatCarryMoreThanTheRunAreUsedByOthers) {
  job(0, kGigabyte);
  // Twenty reductions of 1 GB explain 240 GB at most.
  hosts_[1].nvlink_moved[gpu(1)] = 489 * kGigabyte;
  EXPECT_EQ(ids(), "");
  hosts_[1].nvlink_moved[gpu(1)] = 900 * kGigabyte;
  auto found = findings();
  ASSERT_EQ(found.size(), 1u) << ids();
  EXPECT_EQ(id_text(found[0].id), "slow-link.nvlink-others");
  EXPECT_EQ(found[0].severity, Severity::kNote);
  EXPECT_EQ(found[0].statement,
            "more than the recorded operations went over NVLinks: the NVLinks of 0000:23:00.0 of node1 moved "
            "838 GiB, of which the operations of this run explain 224 GiB at most");
  const auto slow = [this](FindingId id, std::vector<int32_t> ranks) {
    std::vector<Finding> all(1, Finding(id));
    all[0].ranks = std::move(ranks);
    add_link_evidence(hosts_, evidence_, all);
    return std::move(all[0].evidence);
  };
  // Rank 3 is the second of node1.
  EXPECT_EQ(slow(FindingId::kGpuLate, {3}).back(),
            "link counters: possible: the NVLinks of 0000:23:00.0 of node1 moved 838 GiB, of which the "
            "operations of this run explain 224 GiB at most");
  EXPECT_TRUE(slow(FindingId::kGpuLate, {2}).empty());
  EXPECT_TRUE(slow(FindingId::kImbalanceRotating, {}).empty()) << "of no host";
  EXPECT_TRUE(slow(FindingId::kRankDead, {3}).empty());
}

TEST_F(LinkPatterns, NothingIsSaidOfOthersWhereOperationsMayBeMissing) {
  const auto with = [this](const auto& change) {
    evidence_.clear();
    job(0, kGigabyte);
    hosts_[1].nvlink_moved[gpu(1)] = 900 * kGigabyte;
    change(*evidence_[0].job);
    return ids();
  };
  EXPECT_EQ(with([](model::Job&) {}), "slow-link.nvlink-others ");
  EXPECT_EQ(with([](model::Job& job) { job.processes[3].lost = 1; }), "");
  EXPECT_EQ(with([](model::Job& job) { job.processes[3].members.clear(); }), "");
  EXPECT_EQ(with([](model::Job& job) { job.signatures[0].bytes = 0; }), "") << "sizes are not known";
  const auto captured = [](model::Job& job) {
    job.processes[3].ops.flags[5] |= model::kFlagGraphCaptured;
    job.processes[3].ops.enqueued_ns[5] = 0;
  };
  EXPECT_EQ(with(captured), "") << "its replays are not in the record";
  EXPECT_EQ(with([](model::Job& job) { job.processes[3].row.window = 1; }), "");
  EXPECT_EQ(with([](model::Job& job) {
              job.processes[3].row.modes =
                  job.strings.intern("default 1760000000000000000, off 1760000001000000000");
            }),
            "");
  EXPECT_EQ(with([](model::Job& job) { job.processes[2].lost = 1; }), "slow-link.nvlink-others ");
}

}  // namespace
}  // namespace lockstep::verdict
