// SPDX-License-Identifier: Apache-2.0
#include "links/printed/nvbandwidth.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <functional>
#include <map>

#include "links/judge/judge.h"
#include "links/printed/printed.h"

namespace lockstep::links {
namespace {

constexpr int kGpusOfTest = 4;

std::string table(const std::string& name, const std::string& title, int rows,
                  const std::function<double(int, int)>& value) {
  std::string text = title + "\n          ";
  char cell[32];
  for (int to = 0; to < kGpusOfTest; ++to)
    text += (std::snprintf(cell, sizeof cell, "%2d        ", to), cell);
  text += "\n";
  for (int row = 0; row < rows; ++row) {
    text += (std::snprintf(cell, sizeof cell, "%2d", row), cell);
    for (int to = 0; to < kGpusOfTest; ++to) {
      if (rows > 1 && row == to)
        std::snprintf(cell, sizeof cell, "%10s", "N/A");
      else
        std::snprintf(cell, sizeof cell, "%10.2f", value(row, to));
      text += cell;
    }
    text += "\n";
  }
  return text + "\nSUM " + name + " 1234.50\nCOEFFICIENT_OF_VARIATION " + name + " 0.00\n\n";
}

// Of `slow`, the rate at which GPU 1 writes to GPU 2; of `slow_host`, from the host to GPU 3.
std::string bandwidths(double slow = 390, double slow_host = 55) {
  std::string text =
      "nvbandwidth Version: v0.8\nBuilt from Git version: v0.8\n\nCUDA Runtime Version: 12080\n"
      "CUDA Driver Version: 12080\nDriver Version: 570.86.10\n\nnode7\n";
  for (int gpu = 0; gpu < kGpusOfTest; ++gpu)
    text += "Device " + std::to_string(gpu) + ": NVIDIA H100 80GB HBM3 (00000000:" + std::to_string(gpu) +
            "b:00)\n";
  text += "\nRunning host_to_device_memcpy_ce.\n" +
          table("host_to_device_memcpy_ce", "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)", 1,
                [&](int, int to) { return to == 3 ? slow_host : 55.1; });
  text += "Running device_to_device_memcpy_read_ce.\n" +
          table("device_to_device_memcpy_read_ce", "memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)",
                kGpusOfTest, [](int row, int to) { return 380 + row + 0.1 * to; });
  text += "Running device_to_device_memcpy_write_ce.\n" +
          table("device_to_device_memcpy_write_ce", "memcpy CE GPU(row) <- GPU(column) bandwidth (GB/s)",
                kGpusOfTest, [&](int row, int to) { return row == 1 && to == 2 ? slow : 390.25; });
  return text + "Running device_to_device_latency_sm.\n" +
         table("device_to_device_latency_sm", "Device to Device Latency SM GPU(row) <-> GPU(column) (ns)",
               kGpusOfTest, [](int, int) { return 700; }) +
         "NOTE: The reported results may not reflect the full capabilities of the platform.\n";
}

std::vector<analysis::Finding> slow_links_of(const std::string& text) {
  const auto record = parse_any(text, "nvbandwidth.txt");
  EXPECT_TRUE(record) << record.error().message();
  if (!record) return {};
  std::vector<analysis::Finding> findings = judge(*record, nullptr);
  std::erase_if(findings, [](const auto& found) { return found.severity == analysis::Severity::kNote; });
  return findings;
}

TEST(Nvbandwidth, AreCellsByTheNameOfTheTest) {
  ASSERT_TRUE(is_nvbandwidth(bandwidths()));
  const auto record = parse_nvbandwidth(bandwidths(), "nvbandwidth.txt");
  ASSERT_TRUE(record) << record.error().message();
  EXPECT_EQ(record->before.gpus.gpus[2].pci, "0000:2b:00.0");
  EXPECT_EQ(record->before.gpus.gpus[2].name, "NVIDIA H100 80GB HBM3");
  std::map<CellKind, int> counts;
  for (const Cell& cell : record->traffic->cells) {
    ++counts[cell.kind];
    EXPECT_NE(cell.from, cell.to);
    if (cell.kind == CellKind::kRead && cell.from == "0000:3b:00.0" && cell.to == "0000:1b:00.0") {
      EXPECT_NEAR(cell.value(), 381.3, 1e-9) << "GPU 1 reads from GPU 3: row 1, column 3";
    }
    EXPECT_EQ(cell.from == "host", cell.kind == CellKind::kToGpu);
  }
  constexpr int kPairs = kGpusOfTest * (kGpusOfTest - 1);
  EXPECT_EQ(counts,
            (std::map<CellKind, int>{
                {CellKind::kToGpu, kGpusOfTest}, {CellKind::kRead, kPairs}, {CellKind::kWrite, kPairs}}));
  EXPECT_TRUE(slow_links_of(bandwidths()).empty());
}

TEST(Nvbandwidth, NamesThePairAndTheGpuThatAreSlow) {
  auto found = slow_links_of(bandwidths(150));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NE(found[0].statement.find("150.0 GB/s"), std::string::npos) << found[0].statement;
  EXPECT_LT(found[0].statement.find("GPU 1"), found[0].statement.find(" to GPU 2")) << found[0].statement;
  found = slow_links_of(bandwidths(390, 12));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NE(found[0].statement.find("GPU 3"), std::string::npos) << found[0].statement;
}

TEST(Nvbandwidth, WhatIsCutOrForeignIsRefused) {
  const std::string text = bandwidths();
  const size_t matrix = text.find("memcpy CE GPU(row) <- "), end = text.find("\nSUM", matrix);
  EXPECT_TRUE(parse_nvbandwidth(text.substr(0, matrix), "nvbandwidth.txt"));
  for (size_t cut = matrix + 60; cut + 20 < end; cut += 5)
    EXPECT_FALSE(parse_nvbandwidth(text.substr(0, cut), "nvbandwidth.txt"))
        << text.substr(matrix, cut - matrix);
  const auto with = [&](const std::string& old, const std::string& now) {
    std::string changed = text;
    changed.replace(changed.find(old), old.size(), now);
    return parse_nvbandwidth(changed, "nvbandwidth.txt");
  };
  EXPECT_TRUE(with("390.25", "390.26"));
  EXPECT_FALSE(with(" (00000000:2b:00)", "")) << "an old release";
  EXPECT_FALSE(with("00000000:2b:00", "00000000:zz:00"));
  EXPECT_FALSE(with("Device 2:", "Device 1:"));
  EXPECT_FALSE(with("390.25", "nan"));
  EXPECT_FALSE(with("390.25", "-1"));
  EXPECT_FALSE(with("Device 0: ", "Process 0 (node7): device 0: ")) << "of several hosts";
  EXPECT_FALSE(parse_nvbandwidth("nvbandwidth Version: v0.8\n", "nvbandwidth.txt"));
}

}  // namespace
}  // namespace lockstep::links
