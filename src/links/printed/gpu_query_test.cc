// SPDX-License-Identifier: Apache-2.0
#include "links/printed/gpu_query.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "links/judge/facts.h"
#include "links/judge/judge.h"
#include "links/printed/printed.h"

namespace lockstep::links {
namespace {

// As the driver's release 550 prints it, of which some sections are left out.
std::string queried_gpu(int number) {
  return "\nGPU 00000000:" + std::to_string(number + 1) +
         "B:00.0\n"
         "    Product Name                          : NVIDIA H100 80GB HBM3\n"
         "    MIG Mode\n"
         "        Current                           : Disabled\n"
         "        Pending                           : Disabled\n"
         "    GPU UUID                              : GPU-5261e3df-0000-0000-0000-00000000000" +
         std::to_string(number) +
         "\n"
         "    PCI\n"
         "        Bus                               : 0x1B\n"
         "        GPU Link Info\n"
         "            PCIe Generation\n"
         "                Max                       : 5\n"
         "                Current                   : 1\n"
         "            Link Width\n"
         "                Max                       : 16x\n"
         "                Current                   : 16x\n"
         "        Replays Since Reset               : 0\n"
         "    Clocks Event Reasons\n"
         "        Idle                              : Active\n"
         "        SW Power Cap                      : Not Active\n"
         "        HW Slowdown                       : Not Active\n"
         "            HW Thermal Slowdown           : Not Active\n"
         "            HW Power Brake Slowdown       : Not Active\n"
         "        SW Thermal Slowdown               : Not Active\n"
         "    Utilization\n"
         "        Gpu                               : 0 %\n"
         "    ECC Errors\n"
         "        Volatile\n"
         "            DRAM Uncorrectable            : 7\n"
         "        Aggregate\n"
         "            SRAM Correctable              : 3\n"
         "            SRAM Uncorrectable Parity     : 0\n"
         "            DRAM Uncorrectable            : 0\n"
         "    Remapped Rows\n"
         "        Correctable Error                 : 0\n"
         "        Uncorrectable Error               : 0\n"
         "        Pending                           : No\n"
         "        Remapping Failure Occurred        : No\n"
         "        Bank Remap Availability Histogram\n"
         "            Max                           : 2560 bank(s)\n"
         "    Temperature\n"
         "        GPU Current Temp                  : 34 C\n"
         "    Clocks\n"
         "        SM                                : 1980 MHz\n"
         "    Fabric\n"
         "        State                             : Completed\n"
         "        Status                            : Success\n"
         "        Health\n"
         "            Bandwidth                     : N/A\n"
         "    Processes                             : None\n";
}
std::string query_text(int gpus) {
  std::string text =
      "\n==============NVSMI LOG==============\n\n"
      "Timestamp                                 : Sun Nov 29 10:00:00 2026\n"
      "Driver Version                            : 550.54.15\n\n"
      "Attached GPUs                             : " +
      std::to_string(gpus) + "\n";
  for (int i = 0; i < gpus; ++i) text += queried_gpu(i);
  return text;
}
// In the second GPU's part.
std::string query_with(const std::string& line, const std::string& to) {
  std::string text = query_text(4);
  const size_t at = text.find(line, text.find("GPU 00000000:2B"));
  EXPECT_NE(at, std::string::npos) << line;
  return text.replace(at, line.size(), to);
}

std::vector<std::string> query_troubles(const std::string& text) {
  EXPECT_TRUE(is_gpu_query(text));
  const auto record = parse_any(text, "smi.txt");
  EXPECT_TRUE(record) << record.error().message();
  std::vector<std::string> found;
  if (record)
    for (const analysis::Finding& finding : judge(*record, nullptr))
      if (finding.severity > analysis::Severity::kNote)
        found.push_back(std::string(id_text(finding.id)) + ": " + finding.statement);
  return found;
}

TEST(GpuQuery, OfGpusThatAreWell) {
  EXPECT_TRUE(query_troubles(query_text(4)).empty());
  const auto record = parse_any(query_text(4), "smi.txt");
  ASSERT_TRUE(record);
  ASSERT_EQ(record->before.gpus.gpus.size(), 4u);
  const Gpu& gpu = record->before.gpus.gpus[1];
  EXPECT_EQ(gpu.pci, "0000:2b:00.0");
  EXPECT_EQ(gpu.uuid, "GPU-5261e3df-0000-0000-0000-000000000001");
  EXPECT_EQ(gpu.name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(gpu.throttle_reasons, uint64_t{1});
  EXPECT_EQ(gpu.uncorrected_ecc, uint64_t{0}) << "since the driver was loaded is another sum";
  EXPECT_EQ(gpu.corrected_ecc, uint64_t{3});
  EXPECT_EQ(gpu.remap_pending, uint64_t{0});
  EXPECT_EQ(gpu.sm_clock_mhz, 1980u);
  EXPECT_EQ(gpu.temperature_celsius, 34u);
  EXPECT_EQ(gpu.fabric_state, 3u);
  EXPECT_EQ(record->before.gpus.driver, "550.54.15");
  const LinkFacts facts = facts_of(*record);
  ASSERT_EQ(facts.facts.size(), 4u);
  EXPECT_EQ(facts.facts[0].says, "was not slowed down when it was asked");
  EXPECT_EQ(facts.uuids.size(), 4u);
}

TEST(GpuQuery, NamesTheGpuThatIsNot) {
  using Lines = std::vector<std::string>;
  EXPECT_EQ(query_troubles(query_with("HW Thermal Slowdown           : Not Active",
                                      "HW Thermal Slowdown           : Active")),
            Lines{"gpu-late.throttled: GPU 1 (0000:2b:00.0) is slowed down: hardware thermal limit"});
  EXPECT_EQ(query_troubles(query_with("Current                   : 16x", "Current                   : 8x")),
            Lines{"slow-link.pcie: GPU 1 (0000:2b:00.0) has a PCIe link of 8 lanes where it can do 16"});
  EXPECT_EQ(query_troubles(query_with("Pending                           : No\n",
                                      "Pending                           : Yes\n")),
            Lines{"gpu-late.memory: GPU 1 (0000:2b:00.0) has memory that is remapped at the next reset"});
  EXPECT_EQ(
      query_troubles(query_with("Completed", "In Progress")),
      Lines{
          "misconfigured.fabric: GPU 1 (0000:2b:00.0) has not joined the NVLink fabric: its registration is "
          "in progress"});
  // At its power cap a GPU does what it should.
  EXPECT_TRUE(query_troubles(query_with("SW Power Cap                      : Not Active",
                                        "SW Power Cap                      : Active"))
                  .empty());
  EXPECT_TRUE(query_troubles(query_with("Completed", "N/A")).empty());
}

TEST(GpuQuery, AsAnH200OfDriver580PrintedIt) {
  std::ifstream file(LOCKSTEP_SOURCE_DIR "/tests/data/links/h200_smi_query.txt");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  EXPECT_TRUE(query_troubles(text).empty());
  const auto record = parse_any(text, "smi.txt");
  ASSERT_TRUE(record);
  ASSERT_EQ(record->before.gpus.gpus.size(), 1u);
  const Gpu& gpu = record->before.gpus.gpus[0];
  EXPECT_EQ(gpu.pci, "0000:00:06.0");
  EXPECT_EQ(gpu.name, "NVIDIA H200");
  EXPECT_EQ(gpu.throttle_reasons, uint64_t{1});
  EXPECT_EQ(gpu.uncorrected_ecc, uint64_t{0});
  EXPECT_EQ(gpu.corrected_ecc, uint64_t{0});
  EXPECT_EQ(gpu.remap_pending, uint64_t{0});
  EXPECT_EQ(gpu.sm_clock_mhz, 345u);
  EXPECT_EQ(gpu.most_sm_clock_mhz, 1980u);
  EXPECT_EQ(gpu.temperature_celsius, 32u);
  EXPECT_EQ(gpu.utilization_percent, 0u);
  EXPECT_FALSE(gpu.fabric_state) << "a machine whose GPUs have no fabric";
  EXPECT_EQ(record->before.gpus.driver, "580.159.04");
}

TEST(GpuQuery, ShowsTheLineThatAFactRestsOn) {
  const auto record = parse_any(query_with("HW Slowdown                       : Not Active",
                                           "HW Slowdown                       : Active"),
                                "smi.txt");
  ASSERT_TRUE(record);
  const LinkFacts facts = facts_of(*record);
  ASSERT_EQ(facts.facts.size(), 4u);
  EXPECT_EQ(facts.facts[1].says, "is slowed down: hardware slowdown");
  ASSERT_EQ(facts.facts[1].lines.size(), 1u);
  EXPECT_NE(facts.facts[1].lines[0].find(": HW Slowdown                       : Active"), std::string::npos)
      << facts.facts[1].lines[0];
}

TEST(GpuQuery, WhatIsCutOrForeignIsRefused) {
  const std::string text = query_text(4);
  const size_t last = text.find("GPU 00000000:4B");
  for (size_t cut = last - 700; cut < text.size() - 60; cut += 97)
    EXPECT_FALSE(parse_gpu_query(text.substr(0, cut), "f")) << text.substr(cut - 30, 30);
  EXPECT_FALSE(parse_gpu_query(text + text, "f")) << "of two hosts or moments";
  EXPECT_FALSE(parse_gpu_query(query_with("GPU 00000000:2B", "GPU 00000000:zz"), "f"));
  EXPECT_FALSE(parse_gpu_query(query_with("GPU 00000000:2B", "GPU 00000000:1B"), "f"));
  EXPECT_FALSE(parse_gpu_query("==============NVSMI LOG==============\n", "f"));
  EXPECT_FALSE(is_gpu_query("GPU 0: NVIDIA H100 (UUID: GPU-1)\n"));
  // One GPU that was asked for alone (-i).
  const size_t second = text.find("GPU 00000000:2B");
  EXPECT_TRUE(parse_gpu_query(text.substr(0, second), "f"));
}

}  // namespace
}  // namespace lockstep::links
