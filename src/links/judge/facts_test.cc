// SPDX-License-Identifier: Apache-2.0
#include "links/judge/facts.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "links/judge/judge.h"
#include "links/printed/printed.h"
#include "links/testing/healthy_machine.h"

namespace lockstep::links {
namespace {

using testing::gpu_address;
using testing::healthy_record;
using testing::set;

std::vector<LinkFact> troubles_of(const LinksRecord& record) {
  std::vector<LinkFact> facts = facts_of(record).facts;
  std::erase_if(facts, [](const LinkFact& fact) { return !fact.is_trouble(); });
  return facts;
}

TEST(LinkFacts, OfAHealthyHostAllAreWell) {
  const LinkFacts of = facts_of(healthy_record());
  EXPECT_FALSE(of.host.empty());
  EXPECT_TRUE(troubles_of(healthy_record()).empty());
  const auto count = [&](LinkFact::Of kind) {
    return std::count_if(of.facts.begin(), of.facts.end(), [&](const auto& fact) { return fact.of == kind; });
  };
  EXPECT_EQ(count(LinkFact::Of::kPort), 8);
  EXPECT_EQ(count(LinkFact::Of::kNvlinks), 8);
  EXPECT_GE(count(LinkFact::Of::kPair), 56);
  ASSERT_EQ(of.nearest.count(gpu_address(0)), 1u);
  EXPECT_LT(of.nearest.at(gpu_address(0)).size(), 8u) << "only those below its switch";
}

TEST(LinkFacts, AreTroublesWhereTheJudgeReportsThem) {
  LinksRecord record = healthy_record();
  set(record.before.files, "/sys/class/infiniband/mlx5_3/ports/1/state", "1: DOWN");
  set(record.before.files, "/sys/class/infiniband/mlx5_5/ports/1/rate", "200 Gb/sec (2X NDR)");
  record.before.gpus.gpus[2].links[4].is_up = false;
  record.before.gpus.gpus[6].links[1].errors["replay"] = 7;
  for (Cell& cell : record.traffic->cells)
    if (cell.kind == CellKind::kWrite && cell.from == gpu_address(1) && cell.to == gpu_address(4))
      cell.samples = cell.again = {100};
  const auto found = troubles_of(record);
  ASSERT_EQ(found.size(), 5u);
  EXPECT_EQ(found[0].device, "mlx5_3/1");
  EXPECT_EQ(found[1].says, "runs at 200 Gb/s, its siblings at up to 400");
  EXPECT_EQ(found[2].words, "GPU 2");
  EXPECT_EQ(found[3].says, "has counted errors of NVLinks, at an unknown time: 7 replay");
  EXPECT_EQ(found[4].words, "GPU 1 to GPU 4");
  const auto judged = judge(record, nullptr);
  for (const LinkFact& fact : found)
    EXPECT_TRUE(std::any_of(judged.begin(), judged.end(), [&](const auto& finding) {
      return finding.id == fact.finding;
    })) << fact.words;
}

TEST(LinkFacts, PortsOfOneCardAreSiblingsForTheJudgeAsWell) {
  LinksRecord record = healthy_record();
  const std::string card = "/sys/class/infiniband/mlx5_0";
  set(record.before.files, card + "/hca_type", "MT0001");
  for (const auto& [file, text] : {std::pair("state", "4: ACTIVE"), std::pair("phys_state", "5: LinkUp"),
                                   std::pair("rate", "100 Gb/sec (1X NDR)")})
    set(record.before.files, card + "/ports/2/" + file, text);
  const auto found = troubles_of(record);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].device, "mlx5_0/2");
  const auto judged = judge(record, nullptr);
  const auto slow = std::find_if(judged.begin(), judged.end(), [](const auto& finding) {
    return finding.id == analysis::FindingId::kSlowNicRate;
  });
  ASSERT_NE(slow, judged.end());
  EXPECT_EQ(slow->statement, "mlx5_0 port 2 runs at 100 Gb/s, its siblings at up to 400");
}

TEST(LinkFacts, CiteTheLinesOfATool) {
  const auto record = parse_any(
      "CA 'mlx5_0'\n\tCA type: MT4129\n\tNumber of ports: 1\n\tPort 1:\n\t\tState: Down\n"
      "\t\tPhysical state: Polling\n\t\tRate: 10\n\t\tPort GUID: 0x1\n",
      "ibstat.txt");
  ASSERT_TRUE(record);
  const LinkFacts of = facts_of(*record);
  EXPECT_TRUE(of.host.empty());
  ASSERT_EQ(of.facts.size(), 1u);
  EXPECT_EQ(of.facts[0].says, "is not active: DOWN, Polling");
  EXPECT_EQ(of.facts[0].lines,
            (std::vector<std::string>{"5: State: Down", "6: Physical state: Polling", "7: Rate: 10"}));
}

TEST(LinkFacts, ErrorsThatRoseBetweenTwoChecksAreTroubles) {
  const LinksRecord before = healthy_record();
  LinksRecord after = before;
  after.before.time_ns += 60'000'000'000;
  set(after.before.files, "/sys/class/infiniband/mlx5_2/ports/1/counters/symbol_error", "148");
  EXPECT_TRUE(is_earlier(before, after));
  EXPECT_FALSE(is_earlier(after, before));
  const std::vector<LinkFact> facts = facts_of(after, &before).facts;
  ASSERT_TRUE(facts[0].is_trouble());
  EXPECT_EQ(facts[0].device, "mlx5_2/1");
  EXPECT_EQ(facts[0].finding, analysis::FindingId::kTransportErrorSignal);
  EXPECT_EQ(facts[0].says,
            "has errors that rose since an earlier check: symbols arrive damaged (symbol_error: +148)");
  EXPECT_FALSE(facts[1].is_trouble());
  // One symbol an hour is what a good cable has.
  set(after.before.files, "/sys/class/infiniband/mlx5_2/ports/1/counters/symbol_error", "1");
  EXPECT_FALSE(facts_of(after, &before).facts[0].is_trouble());
  set(after.before.files, "/proc/sys/kernel/random/boot_id", "another");
  EXPECT_FALSE(is_earlier(before, after));
}

TEST(LinkFacts, TwoPrintedListsOfErrorsAreInTheOrderOfTheirCounts) {
  const auto printed_errors = [](const std::string& replays, const std::string& uuid = "a") {
    return *parse_any(
        "GPU 0: NVIDIA H100 (UUID: GPU-" + uuid + ")\n\t Link 0: Replay Errors: " + replays + "\n",
        "nvlink.txt");
  };
  const LinksRecord few = printed_errors("2"), many = printed_errors("9");
  EXPECT_TRUE(is_earlier(few, many));
  EXPECT_FALSE(is_earlier(many, few));
  EXPECT_FALSE(is_earlier(few, few));
  EXPECT_FALSE(is_earlier(few, printed_errors("9", "b"))) << "another GPU";
  const std::vector<LinkFact> facts = facts_of(many, &few).facts;
  EXPECT_EQ(facts[0].finding, analysis::FindingId::kTransportErrorNvlink);
  EXPECT_EQ(facts[0].words, "GPU 0");
  EXPECT_NE(facts[0].says.find("NVLink had to resend data (nvlink_replay: +7)"), std::string::npos)
      << facts[0].says;
}

}  // namespace
}  // namespace lockstep::links
