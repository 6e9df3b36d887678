// SPDX-License-Identifier: Apache-2.0
#include "links/printed/nvlink.h"

#include <gtest/gtest.h>

#include <functional>

#include "links/judge/judge.h"
#include "links/printed/printed.h"

namespace lockstep::links {
namespace {

constexpr int kGpusPrinted = 4, kLinksPrinted = 6;

std::string gpu_head(int gpu) {
  return "GPU " + std::to_string(gpu) + ": NVIDIA A100-SXM4-80GB (UUID: GPU-" + std::to_string(gpu) +
         "1e3df82-82f6-67b4-9953-4e63527e0e9d)\n";
}
std::string link_states(const std::function<bool(int, int)>& is_up = [](int, int) { return true; }) {
  std::string text;
  for (int gpu = 0; gpu < kGpusPrinted; ++gpu) {
    text += gpu_head(gpu);
    for (int link = 0; link < kLinksPrinted; ++link)
      text += "\t Link " + std::to_string(link) + (is_up(gpu, link) ? ": 25 GB/s\n" : ": <inactive>\n");
  }
  return text;
}
// Of link 3 of GPU 2, `replays`.
std::string link_errors(int replays = 0) {
  std::string text;
  for (int gpu = 0; gpu < kGpusPrinted; ++gpu) {
    text += gpu_head(gpu);
    for (int link = 0; link < kLinksPrinted; ++link) {
      const std::string start = "\t Link " + std::to_string(link) + ": ";
      text += start + "Replay Errors: " + std::to_string(gpu == 2 && link == 3 ? replays : 0) + "\n" + start +
              "Recovery Errors: 0\n" + start + "CRC Errors: 0\n\n";
    }
  }
  return text;
}

std::vector<analysis::Finding> of_links(const std::string& text) {
  EXPECT_TRUE(is_nvlink(text));
  const auto record = parse_any(text, "nvlink.txt");
  EXPECT_TRUE(record) << record.error().message();
  if (!record) return {};
  std::vector<analysis::Finding> findings = judge(*record, nullptr);
  std::erase_if(findings,
                [](const auto& found) { return found.id == analysis::FindingId::kEvidenceMissingLinks; });
  return findings;
}

TEST(PrintedNvlink, LinksThatAreWellAreNoFinding) {
  EXPECT_TRUE(of_links(link_states()).empty());
  EXPECT_TRUE(of_links(link_errors()).empty());
  EXPECT_TRUE(of_links(link_states() + link_errors()).empty());
  // A board leaves links out: all GPUs have them down.
  EXPECT_TRUE(of_links(link_states([](int, int link) { return link < 4; })).empty());
}

TEST(PrintedNvlink, NamesTheGpuWhoseLinkIsDown) {
  const auto found = of_links(link_states([](int gpu, int link) { return gpu != 1 || link != 4; }));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(id_text(found[0].id), "slow-link.nvlink-down");
  EXPECT_EQ(found[0].statement,
            "GPU 1 (GPU-11e3df82-82f6-67b4-9953-4e63527e0e9d) has 1 link of 6 down (4); its siblings have 0");
}

TEST(PrintedNvlink, ErrorsAreOfAnyTime) {
  const auto found = of_links(link_states() + link_errors(148));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(id_text(found[0].id), "transport-error.since-boot");
  EXPECT_EQ(found[0].severity, analysis::Severity::kNote);
  EXPECT_EQ(found[0].evidence[0], "GPU-21e3df82-82f6-67b4-9953-4e63527e0e9d nvlink_replay: 148");
}

TEST(PrintedNvlink, KeepsTheLinesThatTellOfTrouble) {
  const auto record = parse_any(link_errors(148), "nvlink.txt");
  ASSERT_TRUE(record);
  const auto of = record->lines_of.find("GPU-21e3df82-82f6-67b4-9953-4e63527e0e9d");
  ASSERT_NE(of, record->lines_of.end());
  ASSERT_EQ(of->second.size(), 1u);
  EXPECT_EQ(record->lines.at(of->second[0]), "Link 3: Replay Errors: 148");
}

TEST(PrintedNvlink, WhatIsCutOrForeignIsRefused) {
  const std::string text = link_states();
  const size_t last = text.rfind("GPU 3");
  for (size_t cut = text.find('\n', last) + 1; cut + 3 < text.size(); ++cut)
    EXPECT_FALSE(parse_nvlink(text.substr(0, cut), "nvlink.txt")) << text.substr(last, cut - last);
  const std::string counted = link_errors();
  EXPECT_FALSE(parse_nvlink(counted.substr(0, counted.rfind("\t Link 5: CRC")), "nvlink.txt"));
  EXPECT_FALSE(parse_nvlink(text + text, "nvlink.txt")) << "the states twice";
  EXPECT_FALSE(parse_nvlink("\t Link 0: 25 GB/s\n", "nvlink.txt")) << "of no GPU";
  EXPECT_FALSE(parse_nvlink(gpu_head(0) + "\t Link 0: nan GB/s\n", "nvlink.txt"));
  EXPECT_FALSE(parse_nvlink(gpu_head(0) + "\t Link 0: Replay Errors: -1\n", "nvlink.txt"));
  EXPECT_FALSE(is_nvlink(gpu_head(0) + gpu_head(1))) << "nvidia-smi -L";
  EXPECT_FALSE(is_nvlink(gpu_head(0) + "\t Link 0: Remote Device 00000000:C2:00.0: Link 15\n")) << "-p";
  EXPECT_FALSE(is_nvlink(gpu_head(0) + "\t Link 99999999999: 25 GB/s\n"));
}

}  // namespace
}  // namespace lockstep::links
