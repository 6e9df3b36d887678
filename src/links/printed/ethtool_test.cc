// SPDX-License-Identifier: Apache-2.0
#include "links/printed/ethtool.h"

#include <gtest/gtest.h>

#include "links/judge/facts.h"
#include "links/judge/judge.h"
#include "links/printed/printed.h"

namespace lockstep::links {
namespace {

std::string block_of(const std::string& interface, const std::string& downs, const std::string& discards) {
  return (interface.empty() ? "" : "root@node3:~# ethtool -S " + interface + "\n") +
         "NIC statistics:\n     rx_packets: 5982014431\n     rx_bytes: 12\n     link_down_events_phy: " +
         downs + "\n     rx_discards_phy: " + discards +
         "\n     rx_corrected_bits_phy: 17750739\n     tx_prio3_pause: 2847\n";
}

LinkFacts ethtool_facts(const std::string& text) {
  EXPECT_TRUE(is_ethtool(text));
  const auto record = parse_any(text, "ethtool.txt");
  EXPECT_TRUE(record) << record.error().message();
  return record ? facts_of(*record) : LinkFacts();
}

TEST(Ethtool, CountersOfAnInterfaceAreFacts) {
  const LinkFacts all = ethtool_facts(block_of("ens1f0np0", "0", "0") + block_of("ens2f0np0", "4", "52847"));
  ASSERT_EQ(all.facts.size(), 2u);
  EXPECT_EQ(all.facts[0].words, "ens1f0np0");
  EXPECT_EQ(all.facts[0].says, "has counted no errors");
  EXPECT_FALSE(all.facts[0].is_trouble() || all.facts[0].has_state);
  EXPECT_EQ(all.facts[1].device, "ens2f0np0");
  EXPECT_EQ(all.facts[1].says,
            "has counted, at an unknown time: 4 link_down_events_phy, 52,847 rx_discards_phy");
  EXPECT_EQ(all.facts[1].finding, analysis::FindingId::kTransportErrorSinceBoot);
  EXPECT_FALSE(ethtool_facts(block_of("eth0", "0", "52847")).facts[0].is_trouble())
      << "a few are dropped anywhere";
  EXPECT_EQ(ethtool_facts(block_of("", "1", "0")).facts[0].words, "interface")
      << "its name is not in the text";
  const auto record = parse_any(block_of("eth0", "4", "0"), "ethtool.txt");
  ASSERT_TRUE(record);
  const auto findings = judge(*record, nullptr);
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0].statement, "1 error counter of links is not zero; when they rose is unknown");
  EXPECT_EQ(findings[0].evidence, (std::vector<std::string>{"eth0 link_down_events_phy: 4"}));
  EXPECT_EQ(findings[1].statement, "ethtool -S shows only counters of interfaces");
}

TEST(Ethtool, WhatRoseBetweenTwoReadingsIsAFinding) {
  const auto counted = [](const std::string& text) {
    const auto record = parse_ethtool(text, "f");
    return record ? counters_of(machine_of(record->before.files, record->before.gpus)) : Counters();
  };
  std::vector<analysis::Finding> findings;
  judge_increases(increases(counted(block_of("eth0", "4", "5")), counted(block_of("eth0", "5", "90005"))),
                  100, "h", findings);
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0].statement, "eth0: the link went down and came back");
  EXPECT_EQ(findings[1].statement, "eth0: the port drops packets that arrive");
}

TEST(Ethtool, WhatIsCutOrForeignIsRefused) {
  const std::string text = block_of("eth0", "0", "0");
  EXPECT_FALSE(parse_ethtool(text.substr(0, text.size() - 1), "f"));
  EXPECT_FALSE(parse_ethtool(text + text, "f")) << "of two moments";
  EXPECT_FALSE(parse_ethtool("NIC statistics:\n     a: 1\n     a: 2\n", "f"));
  EXPECT_FALSE(parse_ethtool("NIC statistics:\n     a: x\n", "f"));
  EXPECT_FALSE(parse_ethtool("NIC statistics:\nNIC statistics:\n     a: 1\n", "f"));
  EXPECT_FALSE(is_ethtool("NIC statistics:\n"));
  EXPECT_FALSE(is_ethtool("eth0: 5\n     a: 1\n"));
  // A file of another name, or outside of the copy, is never made.
  EXPECT_EQ(
      ethtool_facts("# ethtool -S ../../x\nNIC statistics:\n     ../../a: 1\n     link_down_events_phy: 2\n")
          .facts[0]
          .device,
      "interface");
}

}  // namespace
}  // namespace lockstep::links
