// SPDX-License-Identifier: Apache-2.0
#include "verdict/wanted_checks.h"

#include <gtest/gtest.h>

#include "analysis/testing/job_builder.h"
#include "verdict/link_evidence.h"

namespace lockstep::verdict {
namespace {

using analysis::Finding;
using analysis::FindingId;
using analysis::Severity;

Finding slow(FindingId id, const std::vector<std::string>& hosts) {
  Finding finding(id);
  finding.severity = Severity::kWarning;
  finding.statement = "it is slow";
  finding.hosts = hosts;
  finding.sources = {"capture files"};
  return finding;
}
std::string wanted(Finding finding, const std::vector<Evidence>& evidence = {}) {
  std::vector<Finding> findings = {std::move(finding)};
  add_wanted_checks(evidence, findings);
  return findings[0].needed_evidence;
}

TEST(WantedChecks, NameTheCommandsOfTheNamedHosts) {
  EXPECT_EQ(
      wanted(slow(FindingId::kSlowLinkIntraHost, {"node0"})),
      "the state of these links, which was not recorded: run `nvidia-smi nvlink -s` and `nvidia-smi nvlink "
      "-e` on node0 to see whether one is down or has errors, and `lockstep links` to see how fast they are");
  const std::string ports = wanted(slow(FindingId::kSlowNicHost, {"n0", "n1", "n2", "n3", "n4"}));
  EXPECT_TRUE(ports.starts_with(
      "the counters of these ports, which were not recorded: run `ibstat` on n0, n1, n2 and 2 others to see "))
      << ports;
  EXPECT_NE(wanted(slow(FindingId::kStuckInNetwork, {})), "");
}

TEST(WantedChecks, OfAmdGpusAreThoseOfRocm) {
  analysis::testing::JobBuilder builder(2);
  builder.steps(builder.world(), 1, 10, 10);
  for (uint32_t rank = 0; rank < 2; ++rank)
    builder.process(rank).row.gpu_model = builder.text("AMD Instinct MI300X");
  std::vector<Evidence> evidence(1);
  evidence[0].job = builder.build();
  EXPECT_NE(wanted(slow(FindingId::kSlowLinkIntraHost, {"node0"}), evidence)
                .find("`rocm-smi --showxgmierr` on node0"),
            std::string::npos);
}

TEST(WantedChecks, WhatWasLookedAtOrIsSettledWantsNone) {
  Finding finding = slow(FindingId::kSlowNic, {"node0"});
  finding.sources.emplace_back(kLinkCounters);
  EXPECT_EQ(wanted(finding), "");
  finding = slow(FindingId::kSlowNic, {"node0"});
  finding.needed_evidence = "something else";
  EXPECT_EQ(wanted(finding), "something else");
  finding = slow(FindingId::kSlowNic, {"node0"});
  finding.severity = Severity::kNote;
  EXPECT_EQ(wanted(finding), "");
  EXPECT_EQ(wanted(slow(FindingId::kTransportErrorRetries, {"node0"})), "");
  EXPECT_EQ(wanted(slow(FindingId::kHostLate, {"node0"})), "");
}

}  // namespace
}  // namespace lockstep::verdict
