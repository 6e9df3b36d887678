// SPDX-License-Identifier: Apache-2.0
#include "verdict/link_checks.h"

#include <gtest/gtest.h>

#include <fstream>

#include "analysis/testing/job_builder.h"
#include "base/exit_codes.h"
#include "base/temporary_directory.h"

namespace lockstep::verdict {
namespace {

using analysis::Finding;
using analysis::FindingId;
using analysis::Severity;
using analysis::testing::JobBuilder;
using links::LinkFact;

constexpr const char* kGpu0 = "0000:13:00.0";
constexpr const char* kGpu1 = "0000:33:00.0";

LinkFact port_fact(int card, bool is_well) {
  LinkFact fact;
  fact.of = LinkFact::Of::kPort;
  fact.name = "mlx5_" + std::to_string(card);
  fact.device = fact.words = fact.name + "/1";
  fact.says = is_well ? "is active, at 400 Gb/s" : "runs at 200 Gb/s, its siblings at up to 400";
  if (is_well) return fact;
  fact.finding = FindingId::kSlowNicRate;
  fact.remedy = "Check the cable.";
  fact.lines = {"7: Rate: 200"};
  return fact;
}
LinkFact pair_fact(bool is_well) {
  LinkFact fact;
  fact.of = LinkFact::Of::kPair;
  fact.name = "GPU 0";
  fact.device = kGpu0;
  fact.to = kGpu1;
  fact.words = "GPU 0 to GPU 1";
  fact.says =
      is_well ? "moves 390.0 GB/s" : "moves 150.0 GB/s (write), the median of its 11 siblings 390.0 GB/s";
  if (is_well) return fact;
  fact.finding = FindingId::kSlowLinkSibling;
  fact.remedy = "Check the links.";
  fact.lines = {"25: 0 N/A 150.00"};
  return fact;
}

// Of two hosts with two ranks each.
class LinkChecks : public ::testing::Test {
 protected:
  LinkChecks() {
    JobBuilder builder(4, 2);
    builder.steps(builder.world(), 10, 10, 10);
    for (uint32_t rank = 0; rank < 4; ++rank) {
      builder.process(rank).row.pci = builder.text(rank % 2 == 0 ? kGpu0 : "00000000:33:00.0");
      builder.process(rank).row.uuid =
          builder.text("0" + std::to_string(rank) + "e3df8282f667b499534e63527e0e9d");
    }
    Evidence& evidence = evidence_.emplace_back();
    evidence.source = "capture files";
    evidence.job = builder.build();
    for (int32_t rank = 0; rank < 4; ++rank) evidence.hosts[rank] = rank < 2 ? "node0" : "node1";
  }

  LinkCheck& check(const std::string& file, const std::vector<LinkFact>& facts) {
    LinkCheck& added = checks_.emplace_back();
    added.tool = "ibstat";
    added.file = file;
    added.facts.facts = facts;
    for (const LinkFact& fact : facts) {
      if (!fact.is_trouble()) continue;
      Finding& finding = added.findings.emplace_back(*fact.finding);
      finding.severity = Severity::kWarning;
      finding.statement = fact.name + " " + fact.says;
    }
    return added;
  }
  Finding& finding(FindingId id, const std::vector<int32_t>& ranks, const std::vector<std::string>& hosts) {
    Finding& added = findings_.emplace_back(id);
    added.severity = Severity::kWarning;
    added.statement = "it is slow";
    added.ranks = ranks;
    added.hosts = hosts;
    added.sources = {"capture files"};
    return added;
  }
  void run() { add_link_checks(checks_, evidence_, findings_); }
  bool says(size_t of, const std::string& words) const {
    for (const std::string& line : findings_[of].evidence)
      if (line.find(words) != std::string::npos) return true;
    return false;
  }

  std::vector<LinkCheck> checks_;
  std::vector<Evidence> evidence_;
  std::vector<Finding> findings_;
};

TEST_F(LinkChecks, ThePortNearestToASlowRankSupportsIt) {
  finding(FindingId::kSlowNic, {3}, {"node1"});
  check("links-node1.json", {port_fact(0, true), port_fact(1, false)}).facts.nearest = {{kGpu0, {"mlx5_0"}},
                                                                                        {kGpu1, {"mlx5_1"}}};
  run();
  ASSERT_EQ(findings_.size(), 1u);
  EXPECT_TRUE(says(0, "link checks: ibstat supports this: mlx5_1/1 of node1 runs at 200 Gb/s"));
  EXPECT_TRUE(says(0, "link checks: links-node1.json, line 7: Rate: 200"));
  EXPECT_EQ(findings_[0].advice, "Check the cable.");
  EXPECT_EQ(findings_[0].sources, (std::vector<std::string>{"capture files", "link checks"}));
}

TEST_F(LinkChecks, APortElsewhereDoesNot) {
  finding(FindingId::kSlowNic, {3}, {"node1"});
  check("links-node1.json", {port_fact(0, false), port_fact(1, true)}).facts.nearest = {{kGpu0, {"mlx5_0"}},
                                                                                        {kGpu1, {"mlx5_1"}}};
  run();
  ASSERT_EQ(findings_.size(), 2u);
  EXPECT_TRUE(says(0, "ibstat shows no fault: of node1 the port is active"));
  EXPECT_EQ(id_text(findings_[1].id), "slow-nic.rate");
  EXPECT_EQ(findings_[1].severity, Severity::kNote) << "storage is often slower";
  EXPECT_EQ(exit_code(analysis::in_order({findings_[1]})), kExitOk);
}

TEST_F(LinkChecks, WhereThePortIsNotKnownItMayExplain) {
  finding(FindingId::kSlowNic, {3}, {"node1"});
  check("ibstat-node1.txt", {port_fact(0, true), port_fact(1, false)});
  run();
  ASSERT_EQ(findings_.size(), 1u);
  EXPECT_TRUE(says(0, "ibstat may explain this, if the job uses that port: mlx5_1/1"));
  EXPECT_TRUE(findings_[0].advice.empty());
}

TEST_F(LinkChecks, ThePortThatTheLogNamesIsTheOne) {
  Finding& log = finding(FindingId::kTransportErrorRetries, {3}, {"node1"});
  log.statement = "rank 3: a connection over mlx5_1:1 gave up";
  check("ibstat-node1.txt", {port_fact(0, true), port_fact(1, false)});
  run();
  EXPECT_TRUE(says(0, "ibstat supports this: mlx5_1/1"));
}

TEST_F(LinkChecks, TheHostIsThatOfTheFileName) {
  finding(FindingId::kSlowNic, {3}, {"node1"});
  check("ibstat-node0.txt", {port_fact(0, false)});
  check("ibstat-node10.txt", {port_fact(1, false)});
  run();
  ASSERT_EQ(findings_.size(), 3u);
  EXPECT_TRUE(findings_[0].evidence.empty());
  EXPECT_EQ(findings_[1].hosts, std::vector<std::string>{"node0"});
  EXPECT_TRUE(findings_[2].hosts.empty());
  EXPECT_TRUE(says(2, "it names no host of the job"));
}

TEST_F(LinkChecks, OneHostIsTheOneOfItsDomain) {
  const auto says_of = [&](std::initializer_list<const char*> hosts, const char* checked) {
    evidence_[0].hosts.clear();
    for (const char* host : hosts) evidence_[0].hosts[static_cast<int32_t>(evidence_[0].hosts.size())] = host;
    findings_.clear();
    checks_.clear();
    finding(FindingId::kSlowNic, {0}, {*hosts.begin()});
    check("x", {port_fact(0, false)}).facts.host = checked;
    run();
    return says(0, "link checks");
  };
  EXPECT_TRUE(says_of({"node0", "node1"}, "node0.cluster"));
  EXPECT_TRUE(says_of({"node0.cluster", "node1.cluster"}, "node0"));
  EXPECT_FALSE(says_of({"node0.east"}, "node0.west"));
  EXPECT_FALSE(says_of({"192.0.2.1"}, "192.0.2.7"));
  EXPECT_FALSE(says_of({"node0.east", "node0.west"}, "node0")) << "it may be either";
  EXPECT_TRUE(says_of({"node0", "node0.west"}, "node0"));
}

TEST_F(LinkChecks, AnyOtherHostOfARecordIsNone) {
  finding(FindingId::kSlowNic, {3}, {"node1"});
  check("links-node1.json", {port_fact(0, false)}).facts.host = "login7";
  check("links.json", {port_fact(0, false)}).facts.host = "node1.cluster";
  run();
  ASSERT_EQ(findings_.size(), 2u);
  EXPECT_TRUE(says(0, "ibstat supports this: mlx5_0/1 of node1"));
  EXPECT_TRUE(findings_[1].hosts.empty());
}

TEST_F(LinkChecks, APairOfTheSlowRanksSupportsOrSpeaksAgainst) {
  finding(FindingId::kSlowLinkIntraHost, {0, 1}, {"node0"});
  check("nvbandwidth-node0.txt", {pair_fact(false)}).tool = "nvbandwidth";
  run();
  ASSERT_EQ(findings_.size(), 1u);
  EXPECT_TRUE(says(0, "nvbandwidth supports this: GPU 0 to GPU 1 of node0 moves 150.0 GB/s"));
  EXPECT_TRUE(says(0, "nvbandwidth-node0.txt, line 25: 0 N/A 150.00"));
  checks_.clear();
  findings_[0].evidence.clear();
  check("nvbandwidth-node0.txt", {pair_fact(true)}).tool = "nvbandwidth";
  run();
  ASSERT_EQ(findings_.size(), 1u);
  EXPECT_TRUE(says(0, "nvbandwidth contradicts a slow link: between these GPUs of node0"));
}

TEST_F(LinkChecks, NvlinksAreFoundByTheirUuids) {
  finding(FindingId::kSlowLinkIntraHost, {2, 3}, {"node1"});
  LinkFact fact;
  fact.of = LinkFact::Of::kNvlinks;
  fact.name = fact.words = "GPU 1";
  fact.device = "GPU-03E3DF82-82f6-67b4-9953-4e63527e0e9d";
  fact.says = "has 2 NVLinks of 18 down, its siblings 0";
  fact.finding = FindingId::kSlowLinkNvlinkDown;
  check("nvlink.txt", {fact}).tool = "nvidia-smi nvlink";
  run();
  ASSERT_EQ(findings_.size(), 1u);
  EXPECT_TRUE(says(0, "nvidia-smi nvlink supports this: GPU 1 of node1 has 2 NVLinks of 18 down"));
}

LinkFact gpu_fact(FindingId id, const std::string& says) {
  LinkFact fact;
  fact.of = LinkFact::Of::kGpu;
  fact.device = kGpu1;
  fact.name = "GPU 1";
  fact.words = "GPU 1 (0000:33:00.0)";
  fact.says = says;
  if (id == FindingId::kGpuLate) return fact;  // it is well
  fact.finding = id;
  fact.remedy = "Check cooling.";
  fact.lines = {"31: HW Slowdown : Active"};
  return fact;
}

TEST_F(LinkChecks, ASlowedGpuSupportsThatItsRankIsLate) {
  finding(FindingId::kGpuLate, {3}, {"node1"});
  finding(FindingId::kStuckInGpu, {3}, {"node1"});
  finding(FindingId::kGpuLate, {2}, {"node1"});
  LinkCheck& query =
      check("smi.txt", {gpu_fact(FindingId::kGpuLateThrottled, "is slowed down: hardware slowdown")});
  query.tool = "nvidia-smi -q";
  query.facts.uuids = {"GPU-03e3df82-82f6-67b4-9953-4e63527e0e9d"};
  run();
  ASSERT_EQ(findings_.size(), 3u);
  EXPECT_TRUE(says(
      0, "nvidia-smi -q supports this: GPU 1 (0000:33:00.0) of node1 is slowed down: hardware slowdown"));
  EXPECT_TRUE(says(0, "smi.txt, line 31: HW Slowdown : Active"));
  EXPECT_EQ(findings_[0].advice, "Check cooling.");
  EXPECT_TRUE(findings_[1].evidence.empty()) << "a low clock stops nothing";
  EXPECT_TRUE(findings_[2].evidence.empty()) << "of another GPU";
  EXPECT_EQ(link_checks_sentence(checks_), "nvidia-smi -q (1 GPU)");
}

TEST_F(LinkChecks, AGpuThatIsWellIsSaidToBe) {
  finding(FindingId::kGpuLate, {3}, {"node1"});
  finding(FindingId::kSlowLinkIntraHost, {2, 3}, {"node1"});
  check("smi-node1.txt", {gpu_fact(FindingId::kGpuLate, "was not slowed down when it was asked")});
  run();
  ASSERT_EQ(findings_.size(), 2u);
  EXPECT_TRUE(says(0, "shows no fault: GPU 1 (0000:33:00.0) of node1 was not slowed down when it was asked"));
  EXPECT_TRUE(findings_[1].evidence.empty()) << "nothing of its links";
}

TEST_F(LinkChecks, CountersAloneSayNothingOfStates) {
  finding(FindingId::kSlowNic, {3}, {"node1"});
  LinkFact fact = port_fact(0, true);
  fact.has_state = false;
  fact.says = "has counted no errors";
  check("rdma-node1.txt", {fact}).tool = "rdma statistic";
  run();
  ASSERT_EQ(findings_.size(), 1u);
  EXPECT_TRUE(says(0, "rdma statistic: mlx5_0/1 of node1 has counted no errors; it does not show states"));
  EXPECT_FALSE(says(0, "is active"));
}

TEST_F(LinkChecks, ASlowPairThatNoTransferShowsIsPossible) {
  check("nvbandwidth-node0.txt", {pair_fact(false)}).tool = "nvbandwidth";
  run();
  ASSERT_EQ(findings_.size(), 1u);
  EXPECT_EQ(findings_[0].statement.find("node0: GPU 0 moves 150.0 GB/s"), 0u) << findings_[0].statement;
  EXPECT_TRUE(says(0, "only possible: no slow transfer points to it"));
  EXPECT_EQ(exit_code(analysis::in_order(findings_)), kExitFindings);
}

TEST_F(LinkChecks, AloneTheyAreJudgedAsTheyAre) {
  evidence_.clear();
  check("ibstat.txt", {port_fact(0, false)});
  run();
  ASSERT_EQ(findings_.size(), 1u);
  EXPECT_EQ(findings_[0].severity, Severity::kWarning);
  EXPECT_EQ(findings_[0].statement, "ibstat.txt: mlx5_0 runs at 200 Gb/s, its siblings at up to 400");
  EXPECT_EQ(link_checks_sentence(checks_), "ibstat (1 port)");
}

TEST(LinkChecksOfFiles, AreReadByTheirText) {
  const auto directory = TemporaryDirectory::make();
  ASSERT_TRUE(directory);
  const auto port = [](int card, const std::string& state) {
    return "CA 'mlx5_" + std::to_string(card) +
           "'\n\tCA type: MT4129\n\tNumber of ports: 1\n\tPort 1:\n\t\tState: " + state +
           "\n\t\tPhysical state: LinkUp\n\t\tRate: 400\n\t\tPort GUID: 0x1\n";
  };
  std::ofstream(directory->path() + "/anything.txt") << port(0, "Active") << port(1, "Initializing");
  const auto run = diagnose({directory->path()}, [](double) {});
  ASSERT_TRUE(run) << run.error().message();
  ASSERT_NE(run->verdict(), nullptr);
  EXPECT_EQ(run->verdict()->statement, "anything.txt: mlx5_1 is not active: INIT, LinkUp");
  EXPECT_EQ(run->evidence[0].content, "ibstat (2 ports)");
  // Half a listing is no evidence that the rest is well.
  std::ofstream(directory->path() + "/anything.txt")
      << port(0, "Active") << "CA 'mlx5_1'\n\tNumber of ports: 1\n";
  EXPECT_FALSE(diagnose({directory->path()}, [](double) {}));
}

}  // namespace
}  // namespace lockstep::verdict
