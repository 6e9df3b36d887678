// SPDX-License-Identifier: Apache-2.0
#include "run/missing_processes.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/temporary_folder.h"

namespace lockstep::run {
namespace {

ProcessFile file(int64_t pid, int64_t rank, int64_t world) {
  ProcessFile file;
  file.process.host = "h";
  file.process.pid = pid;
  file.process.start_ticks = static_cast<uint64_t>(pid) * 10;
  file.rank = rank;
  file.world = world;
  file.valid = true;
  return file;
}
SeenProcess seen(int64_t pid, int64_t parent, int64_t rank, bool maps_nccl = false) {
  return {pid,   parent, static_cast<uint64_t>(pid) * 10, {"python", "train.py"}, rank, 2, maps_nccl,
          false, false};
}
CensusReport census(std::vector<SeenProcess> processes) {
  CensusReport report;
  report.launcher.host = "h";
  report.launcher.pid = 1;
  report.processes = std::move(processes);
  return report;
}

TEST(MissingProcesses, NoneInAWholeRun) {
  // A starter that maps NCCL, two ranks, and a data loader of each.
  auto losses =
      missing_processes({file(11, 0, 2), file(12, 1, 2)},
                        {census({seen(10, 1, -1, true), seen(11, 10, 0, true), seen(12, 10, 1, true),
                                 seen(21, 11, 0, true), seen(22, 12, 1, true)})});
  EXPECT_TRUE(losses.empty());
}

TEST(MissingProcesses, ARankWithoutFileIsReportedOnce) {
  auto losses = missing_processes(
      {file(11, 0, 2)}, {census({seen(10, 1, -1), seen(11, 10, 0), seen(12, 10, 1), seen(22, 12, 1)})});
  ASSERT_EQ(losses.size(), 1u);
  EXPECT_EQ(losses[0].kind, "never_loaded");
  EXPECT_NE(
      losses[0].detail.find("rank 1 on host h never loaded the capture library (pid 12: python train.py)"),
      std::string::npos)
      << losses[0].detail;
}

TEST(MissingProcesses, RanksThatNeverLoadedShareALineWithoutTheirStarter) {
  std::vector<SeenProcess> processes = {seen(9, 1, -1),
                                        seen(10, 9, -1, true)};  // a shell, and torchrun in it
  for (int64_t rank = 0; rank < 8; ++rank) processes.push_back(seen(11 + rank, 10, rank, true));
  CensusReport other = census({seen(10, 1, -1, true), seen(11, 10, 9, true)});
  other.launcher.host = "i";
  auto losses = missing_processes({}, {census(processes), other});
  ASSERT_EQ(losses.size(), 1u);
  EXPECT_EQ(losses[0].count, 9u);
  EXPECT_NE(
      losses[0].detail.find("ranks 0-7, 9 on hosts h, i never loaded the capture library (first pid 11: "
                            "python train.py)"),
      std::string::npos)
      << losses[0].detail;
}

TEST(MissingProcesses, WhoCapturedHasLostItsFile) {
  // Of rank 1 a shell, and the program in it; rank 2 has loaded nothing.
  CensusReport report =
      census({seen(10, 1, -1), seen(11, 10, 0), seen(12, 10, 1), seen(22, 12, 1), seen(13, 10, 2)});
  report.processes[3].captures = true;
  auto losses = missing_processes({file(11, 0, 3)}, {report});
  ASSERT_EQ(losses.size(), 2u);
  EXPECT_EQ(losses[0].kind, "never_loaded");
  EXPECT_TRUE(losses[0].detail.starts_with("rank 2 on host h never loaded")) << losses[0].detail;
  EXPECT_EQ(losses[1].kind, "file_gone");
  EXPECT_TRUE(losses[1].detail.starts_with(
      "rank 1 on host h loaded the capture library, and its file is gone (pid 12: python train.py); "))
      << losses[1].detail;
}

TEST(MissingProcesses, WhoHadAFileWhenTheRunEndedHasCaptured) {
  // Rank 3 was gone before it was seen at all.
  CensusReport report = census({seen(10, 1, -1), seen(11, 10, 0), seen(12, 10, 1), seen(13, 10, 2)});
  note_captured(report, {file(11, 0, 4), file(12, 1, 4), file(14, 3, 4)});
  const auto losses = missing_processes({file(11, 0, 4)}, {report});
  ASSERT_EQ(losses.size(), 2u);
  EXPECT_TRUE(losses[0].detail.starts_with("rank 2 on host h never loaded")) << losses[0].detail;
  EXPECT_TRUE(losses[1].detail.starts_with(
      "ranks 1, 3 on host h loaded the capture library, and their files are gone"))
      << losses[1].detail;
}

TEST(MissingProcesses, EqualCommandsWithoutRankShareALine) {
  auto losses = missing_processes({}, {census({seen(10, 1, -1, true), seen(11, 1, -1, true)})});
  ASSERT_EQ(losses.size(), 1u);
  EXPECT_EQ(losses[0].count, 2u);
  EXPECT_NE(losses[0].detail.find("2 processes on host h"), std::string::npos) << losses[0].detail;
}

TEST(MissingProcesses, NcclWithoutRankOrFile) {
  auto losses = missing_processes({}, {census({seen(10, 1, -1, true)})});
  ASSERT_EQ(losses.size(), 1u);
  EXPECT_EQ(losses[0].kind, "never_loaded");
}

TEST(MissingProcesses, RanksThatNobodySaw) {
  auto losses = missing_processes({file(11, 1, 4)}, {});
  ASSERT_EQ(losses.size(), 1u);
  EXPECT_EQ(losses[0].kind, "missing_rank");
  EXPECT_EQ(losses[0].count, 3u);
  EXPECT_NE(losses[0].detail.find("ranks 0, 2-3 of 4"), std::string::npos) << losses[0].detail;
}

TEST(MissingProcesses, AReusedPidIsAnotherProcess) {
  ProcessFile old = file(12, -1, -1);
  old.process.start_ticks = 5;
  EXPECT_EQ(missing_processes({old}, {census({seen(12, 1, 1)})}).size(), 1u);
}

TEST(MissingProcesses, HostileWorldSizeIsBounded) {
  auto losses = missing_processes({file(11, 0, INT64_MAX)}, {});
  ASSERT_EQ(losses.size(), 1u);
  EXPECT_LT(losses[0].detail.size(), 400u);
}

// Only where our library was asked for, and not of a starter that maps the runtime alone.
TEST(MissingProcesses, AmdsRuntimeThatNeverCalledOurLibraryIsReported) {
  std::vector<SeenProcess> processes = {seen(10, 1, -1), seen(11, 10, 0), seen(12, 10, 1)};
  for (SeenProcess& process : processes) process.maps_hsa = true;
  CensusReport report = census(processes);
  std::vector<ProcessFile> files = {file(11, 0, 2), file(12, 1, 2), file(12, 1, 2)};
  files[2].is_hsa = true;
  EXPECT_TRUE(missing_processes(files, {report}).empty());
  report.expects_hsa = true;
  const auto losses = missing_processes(files, {report});
  ASSERT_EQ(losses.size(), 1u);
  EXPECT_EQ(losses[0].kind, "hsa_never_called");
  EXPECT_NE(losses[0].detail.find("AMD kernels of rank 0 were not recorded"), std::string::npos)
      << losses[0].detail;
  files[1].is_hsa = files[0].is_hsa = true;
  EXPECT_TRUE(missing_processes(files, {report}).empty());
}

TEST(MissingProcesses, OfFoldersOfHostsAreMissedAsOfOne) {
  const test::TemporaryFolder root;
  for (const int64_t rank : {0, 1}) {
    const std::string folder = root / ("host" + std::to_string(rank));
    std::filesystem::create_directory(folder);
    CensusReport report = census({seen(11 + rank, 1, rank, true)});
    report.launcher.host = "h" + std::to_string(rank);
    ASSERT_TRUE(write_census(folder, report));
  }
  const auto losses = missing_processes(root.path());
  ASSERT_EQ(losses.size(), 1u);
  EXPECT_EQ(losses[0].kind, "never_loaded");
  EXPECT_NE(losses[0].detail.find("ranks 0-1"), std::string::npos) << losses[0].detail;
}

}  // namespace
}  // namespace lockstep::run
