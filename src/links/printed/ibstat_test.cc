// SPDX-License-Identifier: Apache-2.0
#include "links/printed/ibstat.h"

#include <gtest/gtest.h>

#include "links/judge/judge.h"
#include "links/printed/printed.h"

namespace lockstep::links {
namespace {

std::string port_text(int number, const std::string& state = "Active", const std::string& physical = "LinkUp",
                      const std::string& rate = "400") {
  return "\tPort " + std::to_string(number) + ":\n\t\tState: " + state + "\n\t\tPhysical state: " + physical +
         "\n\t\tRate: " + rate +
         "\n\t\tBase lid: 17\n\t\tLMC: 0\n\t\tSM lid: 1\n\t\tCapability mask: 0xa751e848\n"
         "\t\tPort GUID: 0x946dae0300aabbcc\n\t\tLink layer: InfiniBand\n";
}
std::string card_text(int number, const std::string& ports, int count = 1,
                      const std::string& firmware = "28.39.1002") {
  return "CA 'mlx5_" + std::to_string(number) +
         "'\n\tCA type: MT4129\n\tNumber of ports: " + std::to_string(count) +
         "\n\tFirmware version: " + firmware +
         "\n\tHardware version: 0\n\tNode GUID: 0x946dae0300aabbcc\n"
         "\tSystem image GUID: 0x946dae0300aabbcc\n" +
         ports;
}
std::string well_text(int cards) {
  std::string text;
  for (int i = 0; i < cards; ++i) text += card_text(i, port_text(1));
  return text;
}

// Of what is no note.
std::vector<analysis::Finding> troubles(const std::string& text) {
  EXPECT_TRUE(is_ibstat(text));
  const auto record = parse_any(text, "ibstat.txt");
  EXPECT_TRUE(record) << record.error().message();
  if (!record) return {};
  std::vector<analysis::Finding> findings = judge(*record, nullptr);
  std::erase_if(findings, [](const auto& found) { return found.severity == analysis::Severity::kNote; });
  return findings;
}

TEST(Ibstat, OfPortsThatAreWellOnlySaysWhatItTellsOf) {
  EXPECT_TRUE(troubles(well_text(8)).empty());
  const auto record = parse_any(well_text(8), "ibstat.txt");
  ASSERT_TRUE(record);
  const Machine machine = machine_of(record->before.files, record->before.gpus);
  ASSERT_EQ(machine.nics.size(), 8u);
  EXPECT_EQ(machine.nics[3].type, "MT4129");
  EXPECT_EQ(machine.nics[3].firmware, "28.39.1002");
  EXPECT_EQ(machine.nics[3].ports[0].gigabits, 400);
  EXPECT_EQ(machine.nics[3].ports[0].link_layer, "InfiniBand");
  const auto findings = judge(*record, nullptr);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].statement, "ibstat shows only states, rates and firmware of ports");
}

TEST(Ibstat, NamesThePortThatIsNot) {
  struct Case {
    std::string text, id, says;
  };
  const Case cases[] = {
      {card_text(7, port_text(1, "Down", "Polling", "40")), "slow-nic.port",
       "mlx5_7 is not active: DOWN, Polling"},
      {card_text(7, port_text(1, "Initializing")), "slow-nic.port", "mlx5_7 is not active: INIT, LinkUp"},
      {card_text(7, port_text(1, "???")), "slow-nic.port", "mlx5_7 is not active: ???, LinkUp"},
      {card_text(7, port_text(1, "Active", "LinkErrorRecovery")), "slow-nic.port",
       "mlx5_7 is not active: ACTIVE, LinkErrorRecovery"},
      {card_text(7, port_text(1, "Active", "LinkUp", "200")), "slow-nic.rate",
       "mlx5_7 runs at 200 Gb/s, its siblings at up to 400"},
      {card_text(7, port_text(1) + port_text(2, "Active", "LinkUp", "100"), 2), "slow-nic.rate",
       "mlx5_7 port 2 runs at 100 Gb/s, its siblings at up to 400"},
  };
  for (const Case& of : cases) {
    const auto found = troubles(well_text(7) + of.text);
    ASSERT_EQ(found.size(), 1u) << of.text;
    EXPECT_EQ(id_text(found[0].id), of.id);
    EXPECT_EQ(found[0].statement, of.says);
  }
}

TEST(Ibstat, OnePortIsReadAsWell) {
  const auto found = troubles(
      "CA: 'mlx5_2'\nPort 1:\nState: Down\nPhysical state: Disabled\nRate: 10\nBase lid: 0\nLMC: 0\n"
      "SM lid: 0\nCapability mask: 0x00010000\nPort GUID: 0x946dae0300aabbcc\nLink layer: Ethernet\n");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].statement, "mlx5_2 is not active: DOWN, Disabled");
}

TEST(Ibstat, WhatIsCutOrForeignIsRefused) {
  const std::string text = well_text(2);
  const size_t second = text.find("CA 'mlx5_1'"), id = text.rfind("\t\tPort GUID:");
  for (size_t cut = second + 12; cut < id; ++cut)
    EXPECT_FALSE(parse_ibstat(text.substr(0, cut), "ibstat.txt")) << text.substr(second, cut - second);
  EXPECT_FALSE(parse_ibstat(card_text(0, port_text(1), 2), "ibstat.txt")) << "one of two ports";
  EXPECT_FALSE(parse_ibstat(card_text(0, ""), "ibstat.txt")) << "ibstat -s";
  EXPECT_FALSE(parse_ibstat(card_text(0, port_text(1) + port_text(1), 2), "ibstat.txt"));
  EXPECT_FALSE(parse_ibstat(well_text(1) + well_text(1), "ibstat.txt")) << "of two hosts";
  EXPECT_FALSE(parse_ibstat(card_text(0, port_text(1, "Active", "LinkUp", "fast")), "ibstat.txt"));
  EXPECT_FALSE(parse_ibstat(card_text(0, port_text(1, std::string(1000, 'x'))), "ibstat.txt"));
  EXPECT_FALSE(parse_ibstat("CA '../../etc'\n" + port_text(1), "ibstat.txt"));
  EXPECT_FALSE(is_ibstat("CA ''\n"));
  EXPECT_EQ(printed_format_of("{\"version\": 1}"), nullptr);
}

}  // namespace
}  // namespace lockstep::links
