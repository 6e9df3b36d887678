// SPDX-License-Identifier: Apache-2.0
#include "verdict/gpu_evidence.h"

#include <gtest/gtest.h>

#include "analysis/testing/job_builder.h"

namespace lockstep::verdict {
namespace {

using analysis::Finding;
using analysis::FindingId;
using analysis::Severity;
using analysis::testing::at_ms;
using analysis::testing::JobBuilder;
using links::HostSamples;
using links::LinkTrouble;

constexpr const char *kFirstGpu = "0000:13:00.0", *kSecondGpu = "0000:33:00.0";

// Two hosts with two ranks each.
class GpuEvidence : public ::testing::Test {
 protected:
  GpuEvidence() : hosts_(2) {
    JobBuilder builder(4, 2);
    builder.steps(builder.world(), 10, 10, 10);
    for (uint32_t rank = 0; rank < 4; ++rank)
      builder.process(rank).row.pci = builder.text(rank % 2 == 0 ? kFirstGpu : "00000000:33:00.0");
    Evidence& evidence = evidence_.emplace_back();
    evidence.source = "capture files";
    evidence.job = builder.build();
    for (size_t i = 0; i < hosts_.size(); ++i) {
      hosts_[i].host = "node" + std::to_string(i);
      hosts_[i].sm_clocks = {{kFirstGpu, 1755}, {kSecondGpu, 1755}};
    }
  }

  static LinkTrouble trouble(FindingId id, const std::string& gpu, const std::string& says, double ms = 5000,
                             Severity severity = Severity::kWarning) {
    LinkTrouble trouble;
    trouble.id = id;
    trouble.device = gpu;
    trouble.severity = severity;
    trouble.says = says;
    trouble.remedy = "Mend it.";
    trouble.evidence = {gpu + ": proof"};
    trouble.times_ns = {at_ms(ms)};
    return trouble;
  }
  static LinkTrouble slowed(const std::string& gpu, double ms = 5000) {
    return trouble(FindingId::kGpuLateThrottled, gpu, "its clock was slowed down", ms);
  }
  static LinkTrouble xid(const std::string& gpu) {
    return trouble(FindingId::kAbortedXid, gpu,
                   "the driver reported Xid 79: the GPU can no longer be reached");
  }
  Finding& finding(FindingId id, std::vector<int32_t> ranks, std::vector<std::string> hosts) {
    Finding& added = findings_.emplace_back(id);
    added.severity = Severity::kWarning;
    added.advice = "Look at it.";
    added.ranks = std::move(ranks);
    added.hosts = std::move(hosts);
    added.sources = {"capture files"};
    return added;
  }
  void run() {
    std::vector<const HostSamples*> hosts;
    for (const HostSamples& host : hosts_) hosts.push_back(&host);
    add_gpu_evidence(hosts, evidence_, findings_);
  }
  bool says(const std::string& words) const {
    for (const std::string& line : findings_[0].evidence)
      if (line.find(words) != std::string::npos) return true;
    return false;
  }

  std::vector<HostSamples> hosts_;
  std::vector<Evidence> evidence_;
  std::vector<Finding> findings_;
};

TEST_F(GpuEvidence, ASlowedClockIsTheLikelyCauseOfItsRanksLateness) {
  finding(FindingId::kGpuLate, {3}, {"node1"});
  hosts_[1].gpu_troubles.push_back(slowed(kSecondGpu));
  hosts_[1].sm_clocks[kSecondGpu] = 1200;
  run();
  ASSERT_EQ(findings_.size(), 1u);
  EXPECT_TRUE(says("GPU counters: likely: 0000:33:00.0 of node1: its clock was slowed down"));
  EXPECT_TRUE(says("GPU counters: 0000:33:00.0: proof"));
  EXPECT_TRUE(
      says("likely: 0000:33:00.0 of node1: its SM clock was 1200 MHz (median), the others' 1755 MHz"));
  EXPECT_EQ(findings_[0].advice, "Look at it. Mend it.");
  EXPECT_EQ(findings_[0].sources, (std::vector<std::string>{"capture files", "GPU counters"}));
  EXPECT_EQ(findings_[0].ranks, std::vector<int32_t>{3}) << "clocks name nobody";
}

TEST_F(GpuEvidence, OfAnotherGpuOrHostIsNot) {
  finding(FindingId::kGpuLate, {3}, {"node1"});
  hosts_[1].gpu_troubles.push_back(slowed(kFirstGpu));
  hosts_[0].gpu_troubles.push_back(slowed(kSecondGpu));
  run();
  ASSERT_EQ(findings_.size(), 2u);
  EXPECT_FALSE(says("likely"));
  EXPECT_TRUE(
      says("0000:33:00.0 of node1: not slowed down; its SM clock was 1755 MHz (median), the others' 1755"));
  EXPECT_EQ(findings_[1].id, FindingId::kGpuLateThrottled);
  EXPECT_EQ(findings_[1].severity, Severity::kWarning);
  EXPECT_EQ(findings_[1].statement,
            "GPU 0000:33:00.0 of node0, 0000:13:00.0 of node1: its clock was slowed down while the job ran");
  EXPECT_TRUE(findings_[1].ranks.empty());
}

TEST_F(GpuEvidence, ALowClockWithoutAReasonIsCited) {
  finding(FindingId::kGpuLate, {2}, {"node1"});
  hosts_[1].sm_clocks[kFirstGpu] = 1667;  // 0.9499 of the other's
  run();
  EXPECT_TRUE(says("likely: 0000:13:00.0 of node1: its SM clock was 1667 MHz"));
  EXPECT_NE(findings_[0].advice.find("nvidia-smi -q -d CLOCK"), std::string::npos);
}

TEST_F(GpuEvidence, AsHighAsTheOthersIsSaid) {
  finding(FindingId::kGpuLate, {2}, {"node1"});
  hosts_[1].sm_clocks[kFirstGpu] = 1668;
  run();
  EXPECT_FALSE(says("likely"));
  EXPECT_TRUE(says("not slowed down"));
  EXPECT_EQ(findings_[0].advice, "Look at it.");
}

TEST_F(GpuEvidence, WhatEndedLongBeforeIsNotTheCause) {
  finding(FindingId::kGpuLate, {3}, {"node1"}).since_ns = at_ms(100'000);
  hosts_[1].gpu_troubles.push_back(slowed(kSecondGpu, 39'999));
  run();
  EXPECT_EQ(findings_.size(), 2u);
  findings_.clear();
  finding(FindingId::kGpuLate, {3}, {"node1"}).since_ns = at_ms(100'000);
  hosts_[1].gpu_troubles = {slowed(kSecondGpu, 40'000)};
  run();
  EXPECT_EQ(findings_.size(), 1u);
}

TEST_F(GpuEvidence, ClocksExplainNoStuckGpuAndNoHost) {
  finding(FindingId::kStuckInGpu, {3}, {"node1"});
  finding(FindingId::kHostLate, {3}, {"node1"});
  hosts_[1].gpu_troubles.push_back(slowed(kSecondGpu));
  run();
  ASSERT_EQ(findings_.size(), 3u);
  EXPECT_TRUE(findings_[0].evidence.empty());
  EXPECT_TRUE(findings_[1].evidence.empty());
}

TEST_F(GpuEvidence, AXidExplainsWhatIsStuckOrDead) {
  for (const FindingId of : {FindingId::kStuckInGpu, FindingId::kRankDead, FindingId::kAbortedGil}) {
    findings_.clear();
    finding(of, {3}, {"node1"});
    hosts_[1].gpu_troubles = {xid(kSecondGpu)};
    run();
    ASSERT_EQ(findings_.size(), 1u);
    EXPECT_TRUE(says("likely: 0000:33:00.0 of node1: the driver reported Xid 79"));
  }
}

TEST_F(GpuEvidence, TheKernelsLogAndTheDriverSayItOnce) {
  Finding& of_log = finding(FindingId::kAbortedXid, {}, {"node1"});
  of_log.statement = "a GPU reported Xid 79 (PCI 0000:33:00)";
  hosts_[1].gpu_troubles = {xid(kSecondGpu)};
  run();
  ASSERT_EQ(findings_.size(), 1u);
  EXPECT_TRUE(says("confirmed: 0000:33:00.0 of node1"));
  findings_.clear();
  Finding& another = finding(FindingId::kAbortedXid, {}, {"node1"});
  another.statement = "a GPU reported Xid 7 (PCI 0000:33:00)";
  run();
  EXPECT_EQ(findings_.size(), 2u);
}

TEST_F(GpuEvidence, AShortSlowdownThatNobodyNoticedIsANote) {
  hosts_[0].gpu_troubles.push_back(
      trouble(FindingId::kGpuLateThrottled, kFirstGpu, "its clock was slowed down", 5, Severity::kNote));
  run();
  ASSERT_EQ(findings_.size(), 1u);
  EXPECT_EQ(findings_[0].severity, Severity::kNote);
  EXPECT_FALSE(says("possible"));
}

TEST_F(GpuEvidence, AGpuThatTheRunDoesNotUseIsANote) {
  hosts_[0].gpu_troubles.push_back(xid("0000:53:00.0"));
  run();
  ASSERT_EQ(findings_.size(), 1u);
  EXPECT_EQ(findings_[0].severity, Severity::kNote);
  EXPECT_TRUE(says("only a note: no process of this run uses it"));
  EXPECT_FALSE(says("possible"));
}

TEST_F(GpuEvidence, WhereItIsNotKnownWhichGpusAreUsedItMayBeAny) {
  evidence_[0].job->processes[1].row.pci = {};
  hosts_[0].gpu_troubles.push_back(xid("0000:53:00.0"));
  hosts_[1].gpu_troubles.push_back(xid("0000:53:00.0"));
  run();
  ASSERT_EQ(findings_.size(), 2u);
  EXPECT_EQ(findings_[0].hosts, std::vector<std::string>{"node1"});
  EXPECT_EQ(findings_[0].severity, Severity::kNote);
  EXPECT_EQ(findings_[1].severity, Severity::kWarning);
}

TEST_F(GpuEvidence, WhatTwoFindingsAreAboutExplainsBoth) {
  finding(FindingId::kGpuLate, {3}, {"node1"});
  finding(FindingId::kGpuLateWindow, {3}, {"node1"});
  hosts_[1].gpu_troubles.push_back(slowed(kSecondGpu));
  run();
  ASSERT_EQ(findings_.size(), 2u);
  for (const Finding& each : findings_) {
    ASSERT_FALSE(each.evidence.empty());
    EXPECT_EQ(each.evidence[0].find("GPU counters: likely: 0000:33:00.0"), 0u) << each.evidence[0];
    for (const std::string& line : each.evidence)
      EXPECT_EQ(line.find("not slowed down"), std::string::npos) << line;
  }
}

TEST_F(GpuEvidence, AClockThatWasSlowedBeforeIsNotSaidToBeWell) {
  finding(FindingId::kGpuLate, {3}, {"node1"}).since_ns = at_ms(100'000);
  hosts_[1].gpu_troubles.push_back(slowed(kSecondGpu, 30'000));
  run();
  EXPECT_FALSE(says("not slowed down"));
  EXPECT_TRUE(says("its SM clock was 1755 MHz (median), the others' 1755 MHz"));
}

TEST_F(GpuEvidence, WhatIsOnlyANoteIsNoLikelyCause) {
  finding(FindingId::kRankDead, {3}, {"node1"});
  hosts_[1].gpu_troubles.push_back(trouble(FindingId::kAbortedXid, kSecondGpu,
                                           "the driver reported Xid 45: what was left is dropped", 5,
                                           Severity::kNote));
  run();
  ASSERT_EQ(findings_.size(), 1u);
  EXPECT_TRUE(says("possible: 0000:33:00.0 of node1: the driver reported Xid 45"));
  EXPECT_FALSE(says("likely"));
  EXPECT_EQ(findings_[0].advice, "Look at it.");
}

// A GPU that idles, or that another job drives, has any clock.
TEST_F(GpuEvidence, ClocksAreComparedAmongTheGpusOfTheRun) {
  finding(FindingId::kGpuLate, {3}, {"node1"});
  hosts_[1].sm_clocks = {
      {kFirstGpu, 1400}, {kSecondGpu, 1400}, {"0000:53:00.0", 1980}, {"0000:73:00.0", 1980}};
  run();
  EXPECT_FALSE(says("likely"));
  EXPECT_TRUE(says("its SM clock was 1400 MHz (median), the others' 1400 MHz"));
}

TEST_F(GpuEvidence, WhereItIsNotKnownWhichGpusAreUsedNoClockIsCompared) {
  finding(FindingId::kGpuLate, {3}, {"node1"});
  evidence_[0].job->processes[2].row.pci = {};
  hosts_[1].sm_clocks[kSecondGpu] = 1200;
  run();
  EXPECT_FALSE(says("likely"));
  EXPECT_TRUE(says("not slowed down; its SM clock was 1200 MHz (median), and no other GPU is known"));
}

TEST_F(GpuEvidence, TheKernelsLogConfirmsTheGpuThatItNames) {
  finding(FindingId::kAbortedXid, {}, {"node1"}).statement = "a GPU reported Xid 79 (PCI 0000:33:00)";
  hosts_[1].gpu_troubles = {xid(kFirstGpu)};
  run();
  EXPECT_FALSE(says("confirmed"));
  EXPECT_EQ(findings_.size(), 2u);
}

}  // namespace
}  // namespace lockstep::verdict
