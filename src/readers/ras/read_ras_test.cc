// SPDX-License-Identifier: Apache-2.0
#include "readers/ras/read_ras.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "readers/ras/ras.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::readers::ras {
namespace {

// As NCCL prints it; `comma`: of the releases that put it behind a missing rank's nvml_dev.
std::string rank_text(int rank, int all_reduces) {
  return "        {\n          \"rank\": " + std::to_string(rank) +
         ",\n          \"host\": \"192.0.2.1\",\n          \"pid\": " + std::to_string(100 + rank) +
         ",\n          \"cuda_dev\": " + std::to_string(rank) +
         ",\n          \"nvml_dev\": " + std::to_string(rank) +
         ",\n          \"status\": {\n            \"init_state\": 0,\n            \"async_error\": 6,\n"
         "            \"finalize_called\": false,\n            \"destroy_flag\": true,\n            "
         "\"abort_flag\": false\n"
         "          },\n          \"collective_counts\": {\n            \"Broadcast\": 2,\n            "
         "\"AllReduce\": " +
         std::to_string(all_reduces) + "\n          }\n        }";
}
std::string missing_text(int rank, bool comma) {
  return "        {\n          \"rank\": " + std::to_string(rank) +
         ",\n          \"host\": \"unknown\",\n          \"pid\": -1,\n          \"cuda_dev\": 3,\n"
         "          \"nvml_dev\": 3" +
         (comma ? "," : "") +
         "\n          \"status\": {\n            \"unresponsive\": true,\n            \"considered_dead\": "
         "false\n          }\n"
         "        }";
}
std::string snapshot_text(const std::string& time, int all_reduces, bool comma = false) {
  return "{\n  \"nccl_version\": \"2.28.9\",\n  \"cuda_runtime_version\": 13000,\n  \"cuda_driver_version\": "
         "13000,\n"
         "  \"timestamp\": \"" +
         time +
         "\",\n  \"communicators_count\": 1,\n  \"communicators\": [\n    {\n"
         "      \"hash\": \"0xabc\",\n      \"secondary_hash\": \"0x1:0x2\",\n      \"size\": 4,\n      "
         "\"ranks_count\": 2,\n"
         "      \"missing_ranks_count\": 2,\n      \"ranks\": [\n" +
         rank_text(0, all_reduces) + ",\n" + rank_text(1, all_reduces) +
         "\n      ],\n      \"missing_ranks\": [\n" + missing_text(2, comma) + ",\n" +
         missing_text(3, comma) +
         "\n      ]\n    }\n  ],\n  \"ras\": {\n    \"collection_time_sec\": 5.002,\n    \"timeouts_count\": "
         "1\n  }\n}\n";
}

class ReadRas : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }
  const test::TemporaryFolder folder_;
};

TEST_F(ReadRas, TakesAllThatASnapshotSays) {
  for (const bool comma : {false, true}) {
    auto model = read_ras({write("a", snapshot_text("2026-11-20 10:00:00", 8, comma))});
    ASSERT_TRUE(model) << model.error().message();
    ASSERT_EQ(model->snapshots.size(), 1u);
    const Snapshot& snapshot = model->snapshots[0];
    EXPECT_EQ(snapshot.nccl_version, "2.28.9");
    EXPECT_EQ(snapshot.timeouts, 1u);
    EXPECT_DOUBLE_EQ(snapshot.collection_s, 5.002);
    EXPECT_FALSE(snapshot.cut) << comma;
    ASSERT_EQ(snapshot.comms.size(), 1u);
    const Comm& comm = snapshot.comms[0];
    EXPECT_EQ(comm.hash, "0xabc");
    EXPECT_EQ(comm.size, 4);
    ASSERT_EQ(comm.ranks.size(), 2u);
    EXPECT_EQ(comm.ranks[1].host, "192.0.2.1");
    EXPECT_EQ(comm.ranks[1].pid, 101);
    EXPECT_EQ(comm.ranks[1].cuda_device, 1);
    EXPECT_EQ(comm.ranks[1].async_error, kRemoteError);
    EXPECT_TRUE(comm.ranks[1].destroyed);
    EXPECT_FALSE(comm.ranks[1].aborted);
    ASSERT_EQ(comm.ranks[1].launched.size(), 2u);
    EXPECT_EQ(comm.ranks[1].launched[1], (std::pair<std::string, uint64_t>("AllReduce", 8)));
    ASSERT_EQ(comm.missing.size(), 2u);
    EXPECT_EQ(comm.missing[0].rank, 2);
    EXPECT_EQ(comm.missing[0].pid, -1);
    EXPECT_TRUE(comm.missing[0].host.empty());
    EXPECT_TRUE(comm.missing[0].unresponsive);
    EXPECT_FALSE(comm.missing[0].considered_dead);
  }
}

TEST_F(ReadRas, PutsSnapshotsInTheOrderOfTime) {
  auto model = read_ras(
      {write("b", snapshot_text("2026-11-20 10:00:09", 9) + "--\n" + snapshot_text("2026-11-20 10:00:03", 8)),
       write("c", snapshot_text("2026-11-20 10:00:05", 8))});
  ASSERT_TRUE(model);
  ASSERT_EQ(model->snapshots.size(), 3u);
  EXPECT_EQ(model->snapshots[0].time, "2026-11-20 10:00:03");
  EXPECT_EQ(model->snapshots[2].time, "2026-11-20 10:00:09");
  EXPECT_TRUE(model->snapshots[1].file.ends_with("c"));
}

TEST_F(ReadRas, OfACutSnapshotTheRanksBeforeStay) {
  const std::string text = snapshot_text("2026-11-20 10:00:00", 8);
  for (size_t length = 0; length < text.size(); length += 7) {
    auto model = read_ras({write("a", text.substr(0, length))});
    if (!model) {
      EXPECT_LT(length, text.find("\"communicators\": [") + 20);
      continue;
    }
    const Snapshot& snapshot = model->snapshots[0];
    EXPECT_TRUE(snapshot.cut);
    const size_t first_ends = text.find("},\n        {", text.find("\"collective_counts\""));
    EXPECT_EQ(!snapshot.comms.empty(), length > first_ends) << length;
    if (length > text.find("\"missing_ranks\"")) {
      EXPECT_EQ(snapshot.comms[0].ranks.size(), 2u);
    }
  }
}

TEST_F(ReadRas, ACutSnapshotTakesNoneWithIt) {
  const std::string early = snapshot_text("2026-11-20 10:00:00", 8),
                    late = snapshot_text("2026-11-20 10:00:09", 9);
  auto model = read_ras({write("a", early.substr(0, early.size() / 2) + late + late)});
  ASSERT_TRUE(model);
  ASSERT_EQ(model->snapshots.size(), 3u);
  EXPECT_TRUE(model->snapshots[0].cut);
  EXPECT_FALSE(model->snapshots[1].cut);
  EXPECT_EQ(model->snapshots[2].time, "2026-11-20 10:00:09");
  EXPECT_FALSE(model->snapshots[2].cut);
}

TEST_F(ReadRas, TakesNothingThatCannotBe) {
  std::string text = snapshot_text("2026-11-20 10:00:00", 8);
  text.replace(text.find("\"rank\": 1"), 9, "\"rank\": 9");
  text.replace(text.find("\"rank\": 3"), 9, "\"rank\": 2");
  text.replace(text.find("\"pid\": 100"), 10, "\"pid\": \"x\"");
  auto model = read_ras({write("a", text)});
  ASSERT_TRUE(model);
  EXPECT_EQ(model->snapshots[0].bad_ranks, 2u);
  EXPECT_EQ(model->snapshots[0].comms[0].ranks.size(), 1u);
  EXPECT_EQ(model->snapshots[0].comms[0].missing.size(), 1u);
  EXPECT_EQ(model->snapshots[0].comms[0].ranks[0].pid, -1);
}

TEST_F(ReadRas, ACommunicatorLargerThanAnyIsCounted) {
  std::string text = snapshot_text("2026-11-20 10:00:00", 8);
  text.replace(text.find("\"size\": 4"), 9, "\"size\": 5000000");
  const auto model = read_ras({write("a", text)});
  ASSERT_TRUE(model);
  EXPECT_TRUE(model->snapshots.at(0).comms.empty());
  EXPECT_EQ(model->snapshots.at(0).left_out, 4u);
}

TEST_F(ReadRas, PassesOverWhatNewerReleasesAdd) {
  std::string text = snapshot_text("2026-11-20 10:00:00", 8, true);
  text.replace(text.find("\"size\""), 6,
               "\"ranks_by_host\": [{\"ranks\": [{\"rank\": 0}]}], \"note\": null, \"size\"");
  auto model = read_ras({write("a", text)});
  ASSERT_TRUE(model);
  EXPECT_EQ(model->snapshots[0].comms[0].ranks.size(), 2u);
}

TEST_F(ReadRas, SaysWhatToAskFor) {
  const std::string path = write("a", "NCCL version 2.28.9 compiled with CUDA 13.0\n");
  auto model = read_ras({path});
  ASSERT_FALSE(model);
  EXPECT_NE(model.error().text.find("ncclras -v"), std::string::npos);
  auto both = read_ras({path, write("b", snapshot_text("2026-11-20 10:00:00", 8))});
  ASSERT_TRUE(both);
  EXPECT_EQ(both->unreadable_files.size(), 1u);
}

TEST(RasFormat, IsRecognisedByItsContent) {
  auto sniffed = [](std::string_view text) { return kFormat.sniff(std::as_bytes(std::span(text))); };
  EXPECT_TRUE(sniffed(snapshot_text("2026-11-20 10:00:00", 8)));
  EXPECT_TRUE(
      sniffed("NCCL version 2.28.9 compiled with CUDA 13.0\nCUDA runtime version 13000\n\nJob "
              "summary\n===========\n"));
  for (const char* other : {"", "{}", "NCCL version 2.28.9+cuda13.0\n", "{\"comm_lib_version\": \"2.28.9\"}"})
    EXPECT_FALSE(sniffed(other)) << other;
}

}  // namespace
}  // namespace lockstep::readers::ras
