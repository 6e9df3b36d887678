// SPDX-License-Identifier: Apache-2.0
#include "verdict/link_evidence.h"

#include <gtest/gtest.h>

#include "analysis/testing/job_builder.h"
#include "base/exit_codes.h"

namespace lockstep::verdict {
namespace {

using analysis::Finding;
using analysis::FindingClass;
using analysis::FindingId;
using analysis::Severity;
using analysis::testing::at_ms;
using analysis::testing::JobBuilder;
using links::HostSamples;
using links::LinkTrouble;

constexpr const char* kCard0 = "pci0000:10/0000:10:01.0/0000:11:00.0/0000:15:00.0";
constexpr const char* kCard1 = "pci0000:30/0000:30:01.0/0000:31:00.0/0000:35:00.0";

// Two hosts with two GPUs and a card below the switch of each.
HostSamples host(const std::string& name) {
  HostSamples samples;
  samples.host = name;
  samples.first_ns = at_ms(-1000);
  samples.last_ns = at_ms(60'000);
  samples.watched = 2;
  samples.cards = {{"mlx5_0", kCard0}, {"mlx5_1", kCard1}};
  samples.gpus = {{"0000:13:00.0", "pci0000:10/0000:10:01.0/0000:11:00.0/0000:13:00.0"},
                  {"0000:33:00.0", "pci0000:30/0000:30:01.0/0000:31:00.0/0000:33:00.0"}};
  return samples;
}
LinkTrouble flapped(int card, double ms = 5000) {
  LinkTrouble trouble;
  trouble.id = FindingId::kTransportErrorLinkFlapped;
  trouble.device = "mlx5_" + std::to_string(card) + "/1";
  trouble.card = card == 0 ? kCard0 : kCard1;
  trouble.severity = Severity::kWarning;
  trouble.says = "the link went down and came back";
  trouble.remedy = "Check the cable.";
  trouble.evidence = {trouble.device + " link_downed: +1"};
  trouble.times_ns = {at_ms(ms)};
  trouble.moved_data = true;
  return trouble;
}

class LinkEvidence : public ::testing::Test {
 protected:
  LinkEvidence() : hosts_{host("node0"), host("node1")} {
    JobBuilder builder(4, 2);
    builder.steps(builder.world(), 10, 10, 10);
    for (uint32_t rank = 0; rank < 4; ++rank)
      builder.process(rank).row.pci = builder.text(rank % 2 == 0 ? "0000:13:00.0" : "00000000:33:00.0");
    Evidence& evidence = evidence_.emplace_back();
    evidence.source = "capture files";
    evidence.job = builder.build();
    evidence.span.first_ns = at_ms(0);
    evidence.span.last_ns = at_ms(50'000);
  }

  Finding& finding(FindingId id, const std::vector<int32_t>& ranks, const std::vector<std::string>& hosts) {
    Finding& added = findings_.emplace_back(id);
    added.severity = Severity::kWarning;
    added.statement = "it is slow";
    added.advice = "Look at it.";
    added.ranks = ranks;
    added.hosts = hosts;
    added.sources = {"capture files"};
    return added;
  }
  void run() { add_link_evidence(hosts_, evidence_, findings_); }
  bool says(size_t of, const std::string& words) const {
    for (const std::string& line : findings_[of].evidence)
      if (line.find(words) != std::string::npos) return true;
    return false;
  }

  std::vector<HostSamples> hosts_;
  std::vector<Evidence> evidence_;
  std::vector<Finding> findings_;
};

TEST_F(LinkEvidence, ACounterAloneIsPossible) {
  hosts_[1].troubles.push_back(flapped(1));
  run();
  ASSERT_EQ(findings_.size(), 1u);
  EXPECT_EQ(id_text(findings_[0].id), "transport-error.link-flapped");
  EXPECT_EQ(class_of(findings_[0].id), FindingClass::kTransportError);
  EXPECT_EQ(
      findings_[0].statement,
      "mlx5_1/1 of node1: the link went down and came back while the job ran, a possible cause of delays");
  EXPECT_EQ(findings_[0].hosts, std::vector<std::string>{"node1"});
  EXPECT_TRUE(findings_[0].ranks.empty());
  EXPECT_EQ(exit_code(analysis::in_order(findings_)), kExitFindings);
}

TEST_F(LinkEvidence, APortThatNobodyUsesIsANote) {
  hosts_[1].troubles.push_back(flapped(1));
  hosts_[1].troubles[0].moved_data = false;
  finding(FindingId::kSlowNicHost, {2, 3}, {"node1"});
  run();
  ASSERT_EQ(findings_.size(), 2u);
  EXPECT_EQ(findings_[1].severity, Severity::kNote);
  EXPECT_FALSE(says(0, "likely"));
}

TEST_F(LinkEvidence, TheCardOfASlowRankIsTheLikelyCause) {
  finding(FindingId::kSlowNic, {3}, {"node1"});
  hosts_[1].troubles.push_back(flapped(1));
  run();
  ASSERT_EQ(findings_.size(), 1u);
  EXPECT_TRUE(says(0, "link counters: likely: mlx5_1/1 of node1: the link went down and came back"));
  EXPECT_TRUE(says(0, "link_downed: +1"));
  EXPECT_EQ(findings_[0].advice, "Look at it. Check the cable.");
  EXPECT_EQ(findings_[0].sources, (std::vector<std::string>{"capture files", "link counters"}));
}

TEST_F(LinkEvidence, AFullLinkOnThePathIsSaidAndNotBlamed) {
  finding(FindingId::kSlowNic, {3}, {"node1"});
  LinkTrouble full = flapped(1);
  full.id = FindingId::kImbalanceLinkBound;
  full.severity = Severity::kNote;
  full.says = "sent as much as its link can carry";
  hosts_[1].uses = {full};
  hosts_[0].uses = {full};
  run();
  ASSERT_EQ(findings_.size(), 2u);
  EXPECT_TRUE(
      says(0, "link counters: not a link's fault: mlx5_1/1 of node1: sent as much as its link can carry"));
  EXPECT_TRUE(says(0, "no error counter rose"));
  EXPECT_EQ(findings_[1].severity, Severity::kNote);
  EXPECT_EQ(findings_[1].statement,
            "mlx5_1/1 of node0, mlx5_1/1 of node1: sent as much as its link can carry while the job ran");
  EXPECT_EQ(exit_code(analysis::in_order(findings_)), kExitFindings) << "of the slow card";
}

TEST_F(LinkEvidence, AnotherCardOrHostIsNot) {
  finding(FindingId::kSlowNic, {3}, {"node1"});
  hosts_[0].troubles.push_back(flapped(1));
  hosts_[1].troubles.push_back(flapped(0));
  run();
  ASSERT_EQ(findings_.size(), 2u);
  EXPECT_FALSE(says(0, "likely"));
  EXPECT_TRUE(says(0, "no error counter rose on the cards nearest to these GPUs"));
  EXPECT_EQ(
      findings_[1].statement,
      "mlx5_1/1 of node0, mlx5_0/1 of node1: the link went down and came back while the job ran, a possible "
      "cause of delays");
}

TEST_F(LinkEvidence, AHostAsAWholeHasAllItsCards) {
  finding(FindingId::kSlowNicHost, {2, 3}, {"node1"});
  hosts_[1].troubles.push_back(flapped(0));
  run();
  ASSERT_EQ(findings_.size(), 1u);
  EXPECT_TRUE(says(0, "likely: mlx5_0/1"));
}

TEST_F(LinkEvidence, WhereTheCardIsNotKnownNothingIsLikely) {
  finding(FindingId::kSlowNic, {3}, {"node1"});
  hosts_[1].gpus.clear();
  hosts_[1].troubles.push_back(flapped(1));
  run();
  ASSERT_EQ(findings_.size(), 2u);
  EXPECT_TRUE(says(0, "possible; which card is on the path is unknown: mlx5_1/1"));
  // With one card there is no choice.
  findings_.clear();
  finding(FindingId::kSlowNic, {3}, {"node1"});
  hosts_[1].cards.erase("mlx5_0");
  run();
  ASSERT_EQ(findings_.size(), 1u);
  EXPECT_TRUE(says(0, "likely: mlx5_1/1"));
}

TEST_F(LinkEvidence, WhatRoseLongBeforeIsNoCause) {
  Finding& stuck = finding(FindingId::kStuckInNetwork, {3}, {"node1"});
  stuck.severity = Severity::kCritical;
  stuck.since_ns = at_ms(200'000);
  hosts_[1].last_ns = at_ms(240'000);
  hosts_[1].troubles.push_back(flapped(1, 5000));
  run();
  ASSERT_EQ(findings_.size(), 2u);
  EXPECT_TRUE(says(0, "no error counter rose"));
  findings_.erase(findings_.begin() + 1, findings_.end());
  hosts_[1].troubles[0] = flapped(1, 190'000);
  run();
  ASSERT_EQ(findings_.size(), 1u);
  EXPECT_TRUE(says(0, "likely: mlx5_1/1"));
}

TEST_F(LinkEvidence, QuietCountersAreSaid) {
  finding(FindingId::kSlowLink, {1, 3}, {"node0", "node1"});
  finding(FindingId::kNeverJoined, {1}, {"node0"});
  hosts_.pop_back();
  run();
  ASSERT_EQ(findings_.size(), 2u);
  EXPECT_TRUE(says(0, "looked at 2 devices of node0 from "));
  EXPECT_TRUE(says(0, "no error counter rose"));
  EXPECT_TRUE(says(0, "none were sampled on node1"));
  EXPECT_TRUE(findings_[1].evidence.empty());
}

TEST_F(LinkEvidence, CountersThatCouldNotBeReadAreNotCalledQuiet) {
  finding(FindingId::kSlowNic, {3}, {"node1"});
  hosts_[1].watched = 0;
  run();
  EXPECT_TRUE(says(0, "none of node1 could be read"));
  EXPECT_FALSE(says(0, "no error counter rose"));
}

TEST_F(LinkEvidence, CongestionIsNoFault) {
  finding(FindingId::kSlowNic, {3}, {"node1"});
  hosts_[1].congestion = {"mlx5_1/1 port_xmit_wait: +1,000: data waits for the fabric to accept it"};
  run();
  ASSERT_EQ(findings_.size(), 1u);
  EXPECT_TRUE(says(0, "not a link's fault: mlx5_1/1 port_xmit_wait"));
  EXPECT_TRUE(says(0, "no error counter rose"));
}

TEST_F(LinkEvidence, ALineOfTheLogConfirms) {
  finding(FindingId::kSlowNic, {3}, {"node1"});
  Finding& log = finding(FindingId::kTransportErrorLinkDown, {3}, {"node1"});
  log.statement = "rank 3: a port of a network card lost its link (mlx5_1:1)";
  hosts_[1].troubles.push_back(flapped(1));
  run();
  ASSERT_EQ(findings_.size(), 2u);
  EXPECT_TRUE(says(0, "confirmed by the log: mlx5_1/1"));
  EXPECT_TRUE(says(1, "link counters: confirmed: mlx5_1/1 of node1"));
}

TEST_F(LinkEvidence, AConnectionThatGaveUpHasTheLinkAsItsLikelyCause) {
  Finding& log = finding(FindingId::kTransportErrorRetries, {3}, {"node1"});
  log.severity = Severity::kCritical;
  log.statement = "rank 3: a connection gave up (error 12)";
  hosts_[1].troubles.push_back(flapped(1));
  run();
  ASSERT_EQ(findings_.size(), 1u);
  EXPECT_TRUE(says(0, "likely: mlx5_1/1"));
}

TEST_F(LinkEvidence, ALineOfAnotherPortDoesNot) {
  Finding& log = finding(FindingId::kTransportErrorLinkDown, {3}, {"node1"});
  log.statement = "rank 3: a port of a network card lost its link (mlx5_11:1, mlx5_1:10, xmlx5_1:1)";
  hosts_[1].troubles.push_back(flapped(1));
  run();
  ASSERT_EQ(findings_.size(), 2u);
  EXPECT_FALSE(says(0, "mlx5_1/1"));
  EXPECT_EQ(id_text(findings_[1].id), "transport-error.link-flapped");
}

TEST_F(LinkEvidence, SamplesOfAnotherRunAreNotJudged) {
  finding(FindingId::kSlowNic, {3}, {"node1"});
  hosts_[1].troubles.push_back(flapped(1));
  for (HostSamples& samples : hosts_) {
    samples.first_ns -= 86'400'000'000'000;
    samples.last_ns -= 86'400'000'000'000;
  }
  run();
  ASSERT_EQ(findings_.size(), 2u);
  EXPECT_EQ(id_text(findings_[1].id), "evidence-missing.other-time");
  EXPECT_FALSE(says(0, "mlx5_1"));
}

TEST_F(LinkEvidence, ManyPortsAreOneFinding) {
  hosts_.clear();
  for (int i = 0; i < 6; ++i) {
    hosts_.push_back(host("n" + std::to_string(i)));
    hosts_.back().troubles = {flapped(0), flapped(1)};
  }
  run();
  ASSERT_EQ(findings_.size(), 1u);
  EXPECT_NE(findings_[0].statement.find("mlx5_1/1 of n1 and 8 others: "), std::string::npos)
      << findings_[0].statement;
  EXPECT_EQ(findings_[0].hosts.size(), 6u);
}

}  // namespace
}  // namespace lockstep::verdict
