// SPDX-License-Identifier: Apache-2.0
#include "verdict/next_steps.h"

#include <gtest/gtest.h>

#include "analysis/testing/job_builder.h"

namespace lockstep::verdict {
namespace {

using analysis::Finding;
using analysis::FindingId;
using Texts = std::vector<std::string>;

// A verdict about operation 8 of a communicator of this name.
struct Case {
  std::string comm = "mesh_dp:1";
  Texts paths = {"runs/hang"};
  FindingId id = FindingId::kNeverJoined;
  model::Who who = {.rank = 5, .device = 1, .pid = 4259, .host = "node-001", .boot_id = "ab"};
  bool other_comm_has_its_name = false;
  std::vector<model::Who> more = {};
  bool has_operations = true;
};

Texts steps(const Case& of) {
  analysis::testing::JobBuilder builder(2);
  builder.world(of.comm);
  builder.world(of.other_comm_has_its_name ? of.comm : "other");
  DiagnosedRun run;
  Evidence& evidence = run.evidence.emplace_back();
  evidence.source = "capture files";
  evidence.paths = of.paths;
  if (of.has_operations) {
    evidence.job = builder.build();
    evidence.job->comms[0].comm_id = 0x12ab;
  }
  Finding finding(of.id);
  finding.who = {of.who};
  finding.who.insert(finding.who.end(), of.more.begin(), of.more.end());
  finding.comm_row = 0;
  finding.op_index = 8;
  finding.op_address = "8";
  finding.sources = {"capture files"};
  run.diagnosis.findings = {finding};
  run.diagnosis.verdict = 0;
  add_next_steps(of.paths, "cd", run);
  return run.diagnosis.findings[0].next;
}

TEST(NextSteps, AreReadyToRun) {
  EXPECT_EQ(steps({}),
            (Texts{"ssh node-001 py-spy dump --pid 4259", "lockstep show runs/hang --comm mesh_dp:1 --op 8",
                   "lockstep report runs/hang"}));
}

TEST(NextSteps, OfAProcessOnThisMachineNeedNoSsh) {
  Case of;
  of.who.boot_id = "c-d";
  EXPECT_EQ(steps(of)[0], "py-spy dump --pid 4259");
}

TEST(NextSteps, DoNotLookAtWhatHasEnded) {
  Case of;
  of.who.gone = true;
  EXPECT_EQ(steps(of)[0], "lockstep show runs/hang --comm mesh_dp:1 --op 8");
  of = {.id = FindingId::kNeverJoinedFinished};
  EXPECT_EQ(steps(of)[0], "lockstep show runs/hang --comm mesh_dp:1 --op 8");
}

TEST(NextSteps, LookAtWhatTheFindingIsAbout) {
  EXPECT_EQ(steps({.id = FindingId::kNeverJoinedStopped})[0], "ssh node-001 kill -CONT 4259");
  EXPECT_EQ(steps({.id = FindingId::kHostLate})[0],
            "ssh node-001 py-spy record --duration 10 --output rank-5.svg --pid 4259");
  Case of{.id = FindingId::kStuckInGpu};
  EXPECT_EQ(steps(of)[0], "ssh node-001 nvidia-smi -q -i 1");
  of.who.pci = "0000:1b:00.0";
  EXPECT_EQ(steps(of)[0], "ssh node-001 nvidia-smi -q -i 0000:1b:00.0");
}

TEST(NextSteps, LookAtAmdsGpusWithAmdsTools) {
  Case of{.id = FindingId::kStuckInGpu};
  of.who.is_amd = true;
  EXPECT_EQ(steps(of)[0], "ssh node-001 amd-smi metric");
  of.who.pci = "0000:1b:00.0";
  EXPECT_EQ(steps(of)[0], "ssh node-001 amd-smi metric -g 0000:1b:00.0");
  of.id = FindingId::kRankDead;
  EXPECT_EQ(steps(of)[0], "ssh node-001 dmesg -T | grep -iE 'out of memory|killed process|amdgpu'");
}

TEST(NextSteps, OfASnapshotAreReadyToRunToo) {
  EXPECT_EQ(steps({.id = FindingId::kNeverJoinedSnapshot})[0], "ssh node-001 py-spy dump --pid 4259");
  EXPECT_EQ(steps({.id = FindingId::kNeverJoinedStacks})[0], "ssh node-001 py-spy dump --pid 4259");
  EXPECT_EQ(steps({.id = FindingId::kRankUnreachableSnapshot})[0],
            "ssh node-001 ps -o pid,stat,etime,args -p 4259");
  EXPECT_EQ(steps({.id = FindingId::kAbortedError})[0],
            "ssh node-001 dmesg -T | grep -iE 'out of memory|killed process|xid'");
}

// Logs, snapshots, stacks and other texts: a report has no page about them but its first.
TEST(NextSteps, OfTextsOfferNoPages) {
  EXPECT_EQ(steps({.paths = {"log.txt"}, .has_operations = false}),
            (Texts{"ssh node-001 py-spy dump --pid 4259"}));
}

TEST(NextSteps, LookAtOneProcessOnce) {
  Case of{.id = FindingId::kRankDead};
  of.more = {{.rank = 6, .device = 2, .pid = 4260, .host = "node-001", .boot_id = "ab"}};
  const Texts texts = steps(of);
  EXPECT_EQ(texts[0], "ssh node-001 dmesg -T | grep -iE 'out of memory|killed process|xid'");
  EXPECT_EQ(texts[1], "lockstep show runs/hang --comm mesh_dp:1 --op 8");
}

TEST(NextSteps, QuoteWhatAShellWouldTakeForMore) {
  const Texts quoted = steps({.comm = "$(reboot); 'x'", .paths = {"my runs/a&b"}});
  EXPECT_EQ(quoted[1], R"(lockstep show 'my runs/a&b' --comm '$(reboot); '\''x'\''' --op 8)");
  EXPECT_EQ(quoted[2], "lockstep report 'my runs/a&b'");
  EXPECT_EQ(shell_word("-x"), "'./-x'");
  EXPECT_EQ(shell_word("a\nb"), std::nullopt);
  EXPECT_EQ(shell_word("a\x1b[2J"), std::nullopt);
  EXPECT_EQ(shell_word(""), std::nullopt);
}

TEST(NextSteps, NameNoHostThatIsNoPlainName) {
  for (const char* host : {"node 1", "a;reboot", "-oProxyCommand=reboot", "$(reboot)", "a\nb", ""}) {
    Case of;
    of.who.host = host;
    EXPECT_EQ(steps(of)[0], "lockstep show runs/hang --comm mesh_dp:1 --op 8") << host;
  }
}

TEST(NextSteps, NameTheCommunicatorByWhatIsItsAlone) {
  EXPECT_EQ(steps({.other_comm_has_its_name = true})[1], "lockstep show runs/hang --comm 0x12ab --op 8");
  EXPECT_EQ(steps({.comm = "-x"})[1], "lockstep show runs/hang --comm 0x12ab --op 8");
  EXPECT_EQ(steps({.comm = "a\nb"})[1], "lockstep show runs/hang --comm 0x12ab --op 8");
}

}  // namespace
}  // namespace lockstep::verdict
