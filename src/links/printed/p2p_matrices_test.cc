// SPDX-License-Identifier: Apache-2.0
#include "links/printed/p2p_matrices.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "links/judge/judge.h"

namespace lockstep::links {
namespace {

constexpr int kGpus = 4;

// As the program prints them; of `slow`, the rate from GPU 1 to GPU 2.
std::string matrix(const std::string& heading, const char* corner, double own, double other, double slow) {
  std::string text = heading + "\n   " + corner;
  char cell[32];
  for (int to = 0; to < kGpus; ++to) text += (std::snprintf(cell, sizeof cell, "%6d ", to), cell);
  text += "\n";
  for (int from = 0; from < kGpus; ++from) {
    text += (std::snprintf(cell, sizeof cell, "%6d ", from), cell);
    for (int to = 0; to < kGpus; ++to) {
      const double usual = from == to ? own : other * (1 + 0.001 * (from + to));
      std::snprintf(cell, sizeof cell, "%6.02f ", from == 1 && to == 2 ? slow : usual);
      text += cell;
    }
    text += "\n";
  }
  return text;
}

std::string printed(double slow, const std::string& access = "") {
  std::string text = "[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]\n";
  for (int gpu = 0; gpu < kGpus; ++gpu)
    text += "Device: " + std::to_string(gpu) + ", NVIDIA H100 80GB HBM3, pciBusID: " + std::to_string(gpu) +
            "b, pciDeviceID: 0, pciDomainID:0\n";
  text +=
      access +
      "\n***NOTE: In case a device doesn't have P2P access to other one, it falls back to normal "
      "memcopy procedure.\n\nP2P Connectivity Matrix\n     D\\D     0     1\n     0\t     1     1\n     1\t     1     1\n";
  text += matrix("Unidirectional P2P=Disabled Bandwidth Matrix (GB/s)", "D\\D", 2500, 40, 40);
  text += matrix("Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)", "D\\D", 2510, 390, slow);
  text += matrix("Bidirectional P2P=Enabled Bandwidth Matrix (GB/s)", "D\\D", 2520, 770, 770);
  text += matrix("P2P=Disabled Latency Matrix (us)", "GPU", 2, 20, 20) + "\n" +
          matrix("", "CPU", 2, 9, 9).substr(1);
  text += matrix("P2P=Enabled Latency (P2P Writes) Matrix (us)", "GPU", 2, 2.5, 2.5) + "\n" +
          matrix("", "CPU", 2, 3, 900).substr(1);
  return text + "\nNOTE: The CUDA Samples are not meant for performance measurements.\n";
}

std::vector<analysis::Finding> slow_links(const LinksRecord& record) {
  std::vector<analysis::Finding> findings = judge(record, nullptr);
  std::erase_if(findings, [](const auto& finding) {
    return class_of(finding.id) != analysis::FindingClass::kSlowLink;
  });
  return findings;
}

TEST(P2pMatrices, AreCellsOfPairsWithPeerAccess) {
  const std::string text = printed(390);
  EXPECT_TRUE(is_p2p_matrices(text));
  EXPECT_FALSE(is_p2p_matrices("{\"version\": 1}"));
  const auto record = parse_p2p_matrices(text, "p2p.txt");
  ASSERT_TRUE(record) << record.error().message();
  ASSERT_EQ(record->before.gpus.gpus.size(), size_t{kGpus});
  EXPECT_EQ(record->before.gpus.gpus[2].pci, "0000:2b:00.0");
  EXPECT_EQ(record->before.gpus.gpus[2].name, "NVIDIA H100 80GB HBM3");
  const auto count = [&](CellKind kind) {
    return std::count_if(record->traffic->cells.begin(), record->traffic->cells.end(),
                         [&](const Cell& cell) { return cell.kind == kind; });
  };
  EXPECT_EQ(count(CellKind::kWrite), kGpus * (kGpus - 1));
  EXPECT_EQ(count(CellKind::kBothWays), kGpus * (kGpus - 1));
  EXPECT_EQ(count(CellKind::kLatency), kGpus * (kGpus - 1)) << "the CPU's are no link's";
  for (const Cell& cell : record->traffic->cells) {
    const double usual = cell.kind == CellKind::kLatency ? 2500 : cell.kind == CellKind::kWrite ? 390 : 385;
    EXPECT_NEAR(cell.value(), usual, usual * 0.01);
  }
  EXPECT_TRUE(slow_links(*record).empty());
}

TEST(P2pMatrices, NameThePairThatIsSlow) {
  const auto record = parse_p2p_matrices(printed(150), "p2p.txt");
  ASSERT_TRUE(record);
  const auto found = slow_links(*record);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NE(found[0].statement.find("150.0 GB/s"), std::string::npos) << found[0].statement;
  EXPECT_NE(found[0].statement.find("GPU 1"), std::string::npos) << found[0].statement;
}

TEST(P2pMatrices, PairsWithoutPeerAccessAreNoSlowLinks) {
  const auto record = parse_p2p_matrices(printed(20, "Device=1 CANNOT Access Peer Device=2\n"), "p2p.txt");
  ASSERT_TRUE(record);
  EXPECT_TRUE(slow_links(*record).empty());
  EXPECT_EQ(record->traffic->notes,
            std::vector<std::string>{"0000:1b:00.0 has no peer access to 0000:2b:00.0"});
}

TEST(P2pMatrices, WhatIsCutOrForeignIsRefused) {
  const std::string text = printed(390);
  const size_t matrix = text.find("Bidirectional P2P=Enabled");
  EXPECT_TRUE(parse_p2p_matrices(text.substr(0, matrix), "p2p.txt"));
  for (size_t cut = matrix + 80; cut < matrix + 160; cut += 7)
    EXPECT_FALSE(parse_p2p_matrices(text.substr(0, cut), "p2p.txt")) << text.substr(cut - 20, 20);
  EXPECT_FALSE(parse_p2p_matrices("[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]\n", "p2p.txt"));
  std::string words = text;
  words.replace(words.find("pciBusID: 1b"), 12, "pciBusID: zz");
  EXPECT_FALSE(parse_p2p_matrices(words, "p2p.txt"));
  words = text;
  words.replace(words.find("390."), 4, "nan ");
  EXPECT_FALSE(parse_p2p_matrices(words, "p2p.txt"));
}

}  // namespace
}  // namespace lockstep::links
