// SPDX-License-Identifier: Apache-2.0
#include "readers/ras/text_snapshot.h"

#include <gtest/gtest.h>

namespace lockstep::readers::ras {
namespace {

// A report as the client lays it out: the table of the job, of its communicators, then what stands out.
std::string report(const std::string& status, const std::string& details, int size = 8,
                   const std::string& version = "2.26.2") {
  return "NCCL version " + version +
         "+cuda12.4 compiled with CUDA 12.4\nCUDA runtime version 12040, driver version 12040\n\n"
         "Job summary\n===========\n\n  Nodes  Processes         GPUs  Processes     GPUs\n"
         "(total)   per node  per process    (total)  (total)\n      1          8            1          8    "
         "    8\n\n"
         "Communicators... (0.00s)\n=============\n\n"
         "Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors\n"
         "    #  in group  per comm  per node  per comm  in group\n"
         "    0         1         1         " +
         std::to_string(size) + "         " + std::to_string(size) + "         8  " + status +
         "\n\nErrors\n======\n\n" + details;
}

Snapshot read(std::string_view text) {
  auto snapshot = next_report(text);
  EXPECT_TRUE(snapshot);
  return snapshot ? *std::move(snapshot) : Snapshot{};
}

TEST(RasText, RanksThatAreOnlyCountedAreAllTheOthers) {
  const Snapshot snapshot = read(report(
      " RUNNING  MISMATCH",
      "Warnings\n========\n\n#0-0 (cf264af53edbe986) MISMATCH\n"
      "  Communicator ranks have different AllReduce operation counts\n"
      "  7 ranks have launched up to operation 9\n"
      "  Rank 5 has launched up to operation 8 -- GPU 5 managed by process 105 on node 192.0.2.1\n\n"));
  EXPECT_EQ(snapshot.nccl_version, "2.26.2");
  EXPECT_TRUE(snapshot.is_text);
  ASSERT_EQ(snapshot.comms.size(), 1u);
  const Comm& comm = snapshot.comms[0];
  EXPECT_EQ(comm.hash, "0xcf264af53edbe986");
  EXPECT_EQ(comm.size, 8);
  EXPECT_TRUE(comm.is_summary);
  EXPECT_TRUE(comm.counted.empty());
  ASSERT_EQ(comm.ranks.size(), 8u);
  for (const Rank& rank : comm.ranks) {
    EXPECT_EQ(rank.global, rank.rank) << "a communicator of all GPUs";
    ASSERT_EQ(rank.launched.size(), 1u);
    EXPECT_EQ(rank.launched[0], (std::pair<std::string, uint64_t>("AllReduce", rank.rank == 5 ? 8 : 9)));
  }
  EXPECT_EQ(comm.ranks[5].host, "192.0.2.1");
  EXPECT_EQ(comm.ranks[5].pid, 105);
  EXPECT_EQ(comm.ranks[5].cuda_device, 5);
  EXPECT_EQ(comm.ranks[5].nvml_device, 5);
  EXPECT_TRUE(comm.ranks[4].host.empty());
}

TEST(RasText, WhoIsNeitherNamedNorAllTheOthersStaysUnknown) {
  const Snapshot snapshot =
      read(report(" RUNNING  MISMATCH",
                  "#0-0 (ab) MISMATCH\n  Communicator ranks have different AllReduce operation counts\n"
                  "  4 ranks have launched up to operation 9\n  4 ranks have not launched any operations\n"
                  "  Communicator ranks have different Broadcast operation counts\n"
                  "  7 ranks have launched up to operation 2\n"
                  "  Rank 1 has launched up to operation 3 -- [process information not found]\n"));
  ASSERT_EQ(snapshot.comms.size(), 1u);
  EXPECT_TRUE(snapshot.comms[0].ranks.empty());
  ASSERT_EQ(snapshot.comms[0].counted.size(), 4u);
  EXPECT_EQ(snapshot.comms[0].counted[1].launched, 0u);
  EXPECT_EQ(snapshot.comms[0].counted[1].ranks, 4u);
}

TEST(RasText, ListsFollowTheNumberThatTheyAreOf) {
  const Snapshot snapshot =
      read(report(" RUNNING  MISMATCH",
                  "#0-0 (ab) MISMATCH\n  Communicator ranks have different AllReduce operation counts\n"
                  "  6 ranks have launched up to operation 9\n  2 ranks have launched up to operation 7\n"
                  "  Rank 2 -- GPU 2 (NVML 6) managed by process 102 on node fe80::1\n"
                  "  Rank 6 -- [process information not found]\n"));
  const Comm& comm = snapshot.comms.at(0);
  ASSERT_EQ(comm.ranks.size(), 8u);
  EXPECT_EQ(comm.ranks[2].nvml_device, 6);
  EXPECT_EQ(comm.ranks[2].host, "fe80::1");
  EXPECT_EQ(comm.ranks[6].pid, -1);
  for (const Rank& rank : comm.ranks)
    EXPECT_EQ(rank.launched.at(0).second, rank.rank == 2 || rank.rank == 6 ? 7u : 9u) << rank.rank;
}

TEST(RasText, WhoDidNotAnswerIsMissingAndWhoIsGivenUpIsDead) {
  const Snapshot snapshot =
      read(report(" RUNNING  INCOMPLETE",
                  "DEAD\n  1 job process is considered dead (unreachable via the RAS network)\n"
                  "  Process 103 on node 192.0.2.1 managing GPU 3\n\n"
                  "#0-0 (ab) INCOMPLETE\n  Missing communicator data from 2 ranks\n"
                  "  Rank 3 -- GPU 3 managed by process 103 on node 192.0.2.1\n"
                  "  Rank 4 -- GPU 4 managed by process 104 on node 192.0.2.1\n\nWarnings\n========\n\n"
                  "TIMEOUT\n  Encountered 2 communication timeouts while gathering communicator data\n"));
  EXPECT_EQ(snapshot.timeouts, 2u);
  const Comm& comm = snapshot.comms.at(0);
  ASSERT_EQ(comm.missing.size(), 2u);
  EXPECT_TRUE(comm.missing[0].considered_dead);
  EXPECT_FALSE(comm.missing[1].considered_dead);
  EXPECT_TRUE(comm.missing[1].unresponsive);
}

TEST(RasText, TellsStatesAndErrors) {
  const Snapshot snapshot = read(report(
      " RUNNING  ERROR,MISMATCH",
      "#0-0 (ab) ERROR\n  Asynchronous errors on 3 ranks\n  2 ranks reported Remote process error\n"
      "  Rank 0 -- GPU 0 managed by process 100 on node h\n  Rank 1 -- GPU 1 managed by process 101 on node "
      "h\n"
      "  Rank 2 reported Unhandled CUDA error -- GPU 2 managed by process 102 on node h\n\n"
      "Warnings\n========\n\n#0-0 (ab) MISMATCH\n  Communicator ranks have different status\n"
      "  6 ranks have status RUNNING\n  Rank 6 has status ABORT -- GPU 6 managed by process 106 on node h\n"
      "  Rank 7 has status NOCOMM -- GPU 7 managed by process 107 on node h\n"));
  ASSERT_EQ(snapshot.comms.size(), 1u) << "both are of one communicator";
  const Comm& comm = snapshot.comms[0];
  ASSERT_EQ(comm.ranks.size(), 7u);
  EXPECT_EQ(comm.ranks[0].async_error, kRemoteError);
  EXPECT_EQ(comm.ranks[2].async_error, 1);
  EXPECT_EQ(comm.ranks[3].async_error, kSuccess);
  EXPECT_TRUE(comm.ranks[6].aborted);
  ASSERT_EQ(comm.missing.size(), 1u);
  EXPECT_FALSE(comm.missing[0].unresponsive);
}

TEST(RasText, OfRelease224MissingRanksAreAList) {
  const Snapshot snapshot =
      read(report("RUNNING  INCOMPLETE",
                  "#0-0 (ab) INCOMPLETE\n  Missing communicator data from 2 ranks\n  The missing "
                  "ranks: 1,6\n#0-0 (ab) MISMATCH\n"
                  "  Communicator ranks have different collective operation counts\n"
                  "  5 ranks have launched up to operation 9\n"
                  "  Rank 2 has launched up to operation 8 -- GPU 2 managed by process 9 on node h\n",
                  8, "2.24.3"));
  const Comm& comm = snapshot.comms.at(0);
  ASSERT_EQ(comm.missing.size(), 2u);
  EXPECT_EQ(comm.missing[1].rank, 6);
  EXPECT_EQ(comm.ranks.size(), 6u);
}

// NCCL knows of them no more than the number, one or several.
TEST(RasText, UnknownRanksAreMissing) {
  const auto status = [](const std::string& lines) {
    return read(report(" RUNNING  MISMATCH",
                       "Warnings\n========\n\n#0-0 (ab) MISMATCH\n"
                       "  Communicator ranks have different status\n" +
                           lines,
                       8, "2.24.3"));
  };
  const Snapshot one = status("  7 ranks have status RUNNING\n  Rank 7 has status UNKNOWN\n");
  EXPECT_FALSE(one.cut);
  ASSERT_EQ(one.comms.at(0).missing.size(), 1u);
  EXPECT_EQ(one.comms[0].missing[0].rank, 7);
  EXPECT_EQ(one.comms[0].ranks.size(), 7u);
  const Snapshot two =
      status("  6 ranks have status RUNNING\n  2 ranks have status UNKNOWN\n  The unknown ranks: 3,6\n");
  EXPECT_FALSE(two.cut);
  ASSERT_EQ(two.comms.at(0).missing.size(), 2u);
  EXPECT_EQ(two.comms[0].missing[1].rank, 6);
  EXPECT_EQ(two.comms[0].ranks.size(), 6u);
  EXPECT_TRUE(status("  6 ranks have status RUNNING\n  Rank 7 has status UNKNOWN\n").cut)
      << "rank 6 is not told";
  EXPECT_TRUE(status("  7 ranks have status RUNNING\n  Rank 7 has status UNKN").cut);
}

TEST(RasText, SeveralReportsAndOtherTextBetweenThem) {
  const std::string one = report(" RUNNING      OK", "Warnings\n========\n"),
                    noise = "[rank3]: something else: 7 ranks have\n";
  const std::string all = noise + one + noise + report(" RUNNING      OK", "", 4, "2.27.7");
  std::string_view text = all;
  EXPECT_TRUE(has_report(text));
  EXPECT_EQ(next_report(text)->nccl_version, "2.26.2");
  EXPECT_EQ(next_report(text)->nccl_version, "2.27.7");
  EXPECT_FALSE(next_report(text));
  EXPECT_TRUE(text.empty());
  EXPECT_FALSE(has_report("a Job summary\n===========\n"));
}

TEST(RasText, ReportsWithoutTheirReleaseEndWhereTheNextBegins) {
  const std::string one = "Job summary\n===========\n",
                    all = one + one + "NCCL version 2.27.7 compiled\n" + one;
  std::string_view text = all;
  EXPECT_EQ(next_report(text)->nccl_version, "");
  EXPECT_EQ(text.size(), all.size() - one.size());
  EXPECT_EQ(next_report(text)->nccl_version, "");
  EXPECT_EQ(next_report(text)->nccl_version, "2.27.7");
  EXPECT_FALSE(next_report(text));
}

TEST(RasText, OfACutOneNoRankIsGuessed) {
  const std::string text =
      report(" RUNNING  MISMATCH",
             "#0-0 (ab) MISMATCH\n  Communicator ranks have different AllReduce operation counts\n"
             "  6 ranks have launched up to operation 9\n  2 ranks have launched up to operation 7\n"
             "  Rank 2 -- GPU 2 managed by process 102 on node h\n"
             "  Rank 6 -- GPU 6 managed by process 106 on node h\n");
  const size_t last = text.find("  Rank 6");
  for (size_t length = text.find("Job summary"); length < last; length += 3) {
    std::string_view cut = std::string_view(text).substr(0, length);
    const auto snapshot = next_report(cut);
    if (!snapshot) continue;
    for (const Comm& comm : snapshot->comms) EXPECT_TRUE(comm.ranks.empty()) << length;
  }
}

TEST(RasText, OneThatEndsEarlyIsCut) {
  const std::string text =
      report(" RUNNING  MISMATCH",
             "Warnings\n========\n\n#0-0 (cf264af53edbe986) MISMATCH\n"
             "  Communicator ranks have different AllReduce operation counts\n"
             "  7 ranks have launched up to operation 9\n"
             "  Rank 5 has launched up to operation 8 -- GPU 5 managed by process 105 on node 192.0.2.1");
  EXPECT_FALSE(read(text).cut);
  for (size_t length = text.find("Job summary") + 11; length < text.find("GPU 5"); ++length)
    EXPECT_TRUE(read(std::string_view(text).substr(0, length)).cut) << text.substr(0, length);
  EXPECT_FALSE(read(report(" RUNNING      OK", "Warnings\n========\n\n")).cut);
  EXPECT_TRUE(read(report(" RUNNING      OK", "")).cut);
  EXPECT_FALSE(
      read(report(" RUNNING  INCOMPLETE",
                  "#0-0 (ab) INCOMPLETE\n  Missing communicator data from 2 ranks\n"
                  "  The missing ranks: 1,6\n\nWarnings\n========\n\n#0-0 (ab) MISMATCH\n"
                  "  Communicator ranks have different collective operation counts\n"
                  "  5 ranks have launched up to operation 9\n"
                  "  Rank 2 has launched up to operation 8 -- GPU 2 managed by process 9 on node h\n"))
          .cut);
}

TEST(RasText, NumbersThatCannotBeTakeNoMemory) {
  const Snapshot snapshot =
      read(report("RUNNING  MISMATCH",
                  "#0-0 (ab) MISMATCH\n  Communicator ranks have different AllReduce operation counts\n"
                  "  1999999999 ranks have launched up to operation 9\n"
                  "  Rank 5 has launched up to operation 8 -- GPU 5 managed by process 1 on node h\n",
                  2'000'000'000));
  EXPECT_TRUE(snapshot.comms.empty());
  EXPECT_EQ(snapshot.left_out, 1u);
}

}  // namespace
}  // namespace lockstep::readers::ras
