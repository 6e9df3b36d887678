// SPDX-License-Identifier: Apache-2.0
#include "verdict/join/join.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "analysis/testing/job_builder.h"

namespace lockstep::verdict::join {
namespace {

using analysis::FindingId;

analysis::Finding finding(FindingId id, std::vector<int32_t> ranks, std::string comm = "world") {
  analysis::Finding made(id);
  made.severity = analysis::Severity::kCritical;
  made.weight = 1;
  made.statement = std::string(id_text(made.id)) + " says " + std::to_string(ranks.empty() ? -1 : ranks[0]);
  made.ranks = std::move(ranks);
  made.comm = std::move(comm);
  made.func = "AllReduce";
  made.op_index = 8;
  made.evidence = {"one", "two"};
  return made;
}

EvidenceSource evidence(std::string source, std::vector<int32_t> ranks,
                        std::vector<analysis::Finding> findings) {
  EvidenceSource made;
  made.source = std::move(source);
  for (const int32_t rank : ranks) made.hosts.emplace(rank, "");
  made.findings = std::move(findings);
  return made;
}

const std::vector<int32_t> kAll = {0, 1, 2, 3, 4, 5, 6, 7};

bool has_line(const analysis::Finding& finding, const std::string& part) {
  return std::any_of(finding.evidence.begin(), finding.evidence.end(),
                     [&](const std::string& line) { return line.find(part) != std::string::npos; });
}

TEST(Join, OneKindStaysAsItIs) {
  const Joined joined = join({evidence("dumps", kAll, {finding(FindingId::kNeverJoined, {5})})});
  ASSERT_EQ(joined.diagnosis.findings.size(), 1u);
  EXPECT_EQ(joined.diagnosis.findings[0].evidence, (std::vector<std::string>{"one", "two"}));
  EXPECT_EQ(joined.diagnosis.findings[0].sources, std::vector<std::string>{"dumps"});
}

TEST(Join, FindingsOfOneTroubleBecomeOneThatCitesAll) {
  EvidenceSource logs = evidence("logs", kAll, {finding(FindingId::kRankDead, {5}, "")});
  logs.hosts[5] = "node1";
  const Joined joined = join({evidence("capture files", kAll, {finding(FindingId::kNeverJoined, {5})}),
                              evidence("dumps", kAll, {finding(FindingId::kNeverJoined, {5})}), logs});
  ASSERT_EQ(joined.diagnosis.findings.size(), 1u);
  const analysis::Finding& verdict = joined.diagnosis.findings[0];
  EXPECT_EQ(id_text(verdict.id), "rank-dead") << "it explains that the rank never joined";
  EXPECT_EQ(verdict.sources, (std::vector<std::string>{"logs", "capture files", "dumps"}));
  EXPECT_EQ(verdict.hosts, std::vector<std::string>{"node1"});
  EXPECT_TRUE(has_line(verdict, "logs: one"));
  EXPECT_TRUE(has_line(verdict, "capture files: never-joined says 5"));
  EXPECT_TRUE(has_line(verdict, "dumps: two"));
}

TEST(Join, OtherRanksAreOtherTrouble) {
  const Joined joined =
      join({evidence("capture files", {0, 1, 2, 3}, {finding(FindingId::kNeverJoined, {1}, "tp")}),
            evidence("dumps", {4, 5, 6, 7}, {finding(FindingId::kNeverJoined, {6}, "dp")})});
  EXPECT_EQ(joined.diagnosis.findings.size(), 2u);
}

TEST(Join, ContradictionsAreNamed) {
  const Joined joined = join({evidence("capture files", kAll, {finding(FindingId::kNeverJoined, {5})}),
                              evidence("dumps", kAll, {finding(FindingId::kNeverJoined, {3})})});
  ASSERT_EQ(joined.diagnosis.findings.size(), 3u);
  const analysis::Finding& disagreement = joined.diagnosis.findings[2];
  EXPECT_EQ(id_text(disagreement.id), "evidence-missing.disagreement");
  EXPECT_EQ(disagreement.sources, (std::vector<std::string>{"capture files", "dumps"}));
  EXPECT_TRUE(has_line(disagreement, "dumps: never-joined says 3"));
  EXPECT_EQ(joined.diagnosis.findings[*joined.diagnosis.verdict].ranks, std::vector<int32_t>{5});

  const Joined stuck = join({evidence("capture files", kAll, {finding(FindingId::kStuckInGpu, kAll)}),
                             evidence("dumps", kAll, {finding(FindingId::kNeverJoined, {5})})});
  EXPECT_EQ(id_text(stuck.diagnosis.findings.back().id), "evidence-missing.disagreement")
      << "all have called it, or one has not: not both";
}

TEST(Join, WhatOneKindCannotTellAnotherSettles) {
  analysis::Finding doubt = finding(FindingId::kEvidenceMissingFiles, {5, 6, 7});
  doubt.severity = analysis::Severity::kWarning;
  const Joined joined = join({evidence("capture files", {0, 1, 2, 3, 4}, {doubt}),
                              evidence("dumps", {3, 4, 5, 6, 7}, {finding(FindingId::kNeverJoined, {5})})});
  ASSERT_EQ(joined.diagnosis.findings.size(), 1u);
  EXPECT_EQ(id_text(joined.diagnosis.findings[0].id), "never-joined");
  EXPECT_TRUE(has_line(joined.diagnosis.findings[0], "capture files: evidence-missing.files says 5"));
}

// Who left neither kind is only to blame for one wait where both mention that one.
TEST(Join, SuspectsOfDifferentWaitsStayApart) {
  for (const bool same : {true, false}) {
    analysis::Finding a = finding(FindingId::kRankUnreachable, {4, 5});
    analysis::Finding b = finding(FindingId::kRankUnreachable, {5, 6});
    if (!same) b.op_index = 9;
    const Joined joined = join(
        {evidence("capture files", {0, 1, 2, 3, 6, 7}, {a}), evidence("dumps", {0, 1, 2, 3, 4, 7}, {b})});
    EXPECT_EQ(joined.diagnosis.findings.size(), same ? 1u : 2u);
    const bool accused = joined.diagnosis.findings[0].statement.find("left neither") != std::string::npos;
    EXPECT_EQ(accused, same) << joined.diagnosis.findings[0].statement;
  }
}

TEST(Join, ASuspectIsWhoIsAbsentEverywhere) {
  analysis::Finding a = finding(FindingId::kRankUnreachable, {4, 5});
  analysis::Finding b = finding(FindingId::kEvidenceMissingFiles, {0, 1, 5, 6, 7});
  b.severity = analysis::Severity::kWarning;
  const Joined joined =
      join({evidence("capture files", {0, 1, 2, 3, 6, 7}, {a}), evidence("dumps", {2, 3, 4}, {b})});
  ASSERT_EQ(joined.diagnosis.findings.size(), 1u);
  const analysis::Finding& verdict = joined.diagnosis.findings[0];
  EXPECT_EQ(id_text(verdict.id), "rank-unreachable");
  EXPECT_EQ(verdict.ranks, std::vector<int32_t>{5});
  EXPECT_EQ(verdict.statement,
            "rank 5 left neither capture files nor dumps; others wait in operation 8 of world (AllReduce)");
  EXPECT_EQ(verdict.sources.size(), 2u);
}

TEST(Join, RanksKnownFromElsewhereAreNotMissed) {
  analysis::Finding absent = finding(FindingId::kEvidenceMissingFiles, {6, 7}, "");
  absent.severity = analysis::Severity::kWarning;
  absent.op_index.reset();
  const model::Job operations;
  const auto with = [&](std::vector<int32_t> dumps, const model::Job* job) {
    EvidenceSource others = evidence("dumps", std::move(dumps), {});
    others.job = job;
    return join({evidence("capture files", {0, 1, 2, 3, 4, 5}, {absent}), others}).diagnosis;
  };
  EXPECT_FALSE(with(kAll, &operations).verdict);
  EXPECT_TRUE(with({0, 6}, &operations).verdict) << "rank 7 is known of nowhere";
  EXPECT_TRUE(with(kAll, nullptr).verdict) << "a log that mentions a rank does not tell what it called";
}

TEST(Join, WhoReportsADeathIsNotDead) {
  std::vector<int32_t> others = {1, 2, 3, 4, 5, 6, 7};
  const Joined agreed = join({evidence("capture files", kAll, {finding(FindingId::kRankDead, {0})}),
                              evidence("logs", kAll, {finding(FindingId::kRankDeadRas, others, "")})});
  for (const analysis::Finding& finding : agreed.diagnosis.findings)
    EXPECT_NE(id_text(finding.id), "evidence-missing.disagreement");
  EXPECT_EQ(agreed.diagnosis.findings[0].ranks, std::vector<int32_t>{0});

  const Joined cited =
      join({evidence("capture files", kAll, {finding(FindingId::kNeverJoined, {0})}),
            evidence("logs", kAll, {finding(FindingId::kTransportErrorCompletion, kAll, "")})});
  ASSERT_EQ(cited.diagnosis.findings.size(), 1u);
  EXPECT_EQ(id_text(cited.diagnosis.findings[0].id), "never-joined");
  EXPECT_EQ(cited.diagnosis.findings[0].ranks, std::vector<int32_t>{0});
}

// Rank 1 prints that another process of its host has ended.
TEST(Join, WhoNoticedThatAnotherEndedIsNotBlamed) {
  const auto noticed = [] { return finding(FindingId::kRankDeadRas, {1}, ""); };
  const Joined alone = join({evidence("logs", kAll, {noticed()})});
  ASSERT_EQ(alone.diagnosis.findings.size(), 1u);
  EXPECT_TRUE(alone.diagnosis.findings[0].ranks.empty());
  EXPECT_TRUE(alone.diagnosis.findings[0].who.empty());
  for (const bool is_first : {true, false}) {
    EvidenceSource logs = evidence("logs", kAll, {noticed()});
    EvidenceSource dumps = evidence("dumps", kAll, {finding(FindingId::kNeverJoined, {1})});
    const Joined both = is_first ? join({logs, dumps}) : join({dumps, logs});
    ASSERT_EQ(both.diagnosis.findings.size(), 1u);
    EXPECT_EQ(id_text(both.diagnosis.findings[0].id), "never-joined") << "what rank 1 itself did not do";
    EXPECT_EQ(both.diagnosis.findings[0].ranks, std::vector<int32_t>{1});
  }
}

TEST(Join, MoreEvidenceMakesNothingWeaker) {
  analysis::Finding unsure = finding(FindingId::kNeverJoined, {5});
  unsure.severity = analysis::Severity::kWarning;
  unsure.weight = 3;
  analysis::Finding sure = finding(FindingId::kNeverJoinedWatchdog, {5}, "");
  const Joined joined = join({evidence("capture files", kAll, {unsure}), evidence("logs", kAll, {sure})});
  ASSERT_EQ(joined.diagnosis.findings.size(), 1u);
  EXPECT_EQ(joined.diagnosis.findings[0].severity, analysis::Severity::kCritical);
  EXPECT_EQ(joined.diagnosis.findings[0].weight, 3);
}

TEST(Join, AnAddressIsNoOtherHostThanAName) {
  analysis::testing::JobBuilder builder(8);
  model::Job job = builder.build();
  const model::Who known = job.who(5);
  analysis::Finding behind = finding(FindingId::kNeverJoinedSnapshot, {5});
  model::Who as_ras_says{.rank = 5};
  as_ras_says.pid = known.pid;
  as_ras_says.host = "192.0.2.1";
  behind.who = {as_ras_says};
  EvidenceSource files = evidence("capture files", kAll, {});
  files.job = &job;
  const auto boot_of = [&](const analysis::Finding& of) {
    return join({files, evidence("RAS snapshots", kAll, {of})}).diagnosis.findings[0].who[0].boot_id;
  };
  ASSERT_GT(known.pid, 0);
  ASSERT_FALSE(known.boot_id.empty());
  EXPECT_EQ(boot_of(behind), known.boot_id);
  behind.who[0].host = "another-host";
  EXPECT_EQ(boot_of(behind), "") << "a name is";
}

TEST(Join, FilesOfAnotherRunAreNotJoined) {
  EvidenceSource today = evidence("capture files", kAll, {finding(FindingId::kNeverJoined, {5})});
  EvidenceSource before = evidence("dumps", kAll, {finding(FindingId::kNeverJoined, {5})});
  today.span.first_ns = 2'000'000'000'000'000'000;
  today.span.last_ns = today.span.first_ns + 60'000'000'000;
  before.span.first_ns = today.span.first_ns - 2 * 86'400'000'000'000;
  before.span.last_ns = before.span.first_ns + 60'000'000'000;
  const Joined joined = join({today, before});
  ASSERT_EQ(joined.diagnosis.findings.size(), 3u);
  EXPECT_EQ(id_text(joined.diagnosis.findings[2].id), "evidence-missing.other-time");
  EXPECT_EQ(
      joined.diagnosis.findings[2].statement,
      "the capture files and the dumps are more than a day apart, so probably of different runs: each was judged by itself");
  EXPECT_EQ(joined.diagnosis.findings[2].evidence[1], "dumps: newest record of 2033-05-16 03:34:20 UTC");
}

TEST(Join, WhatAnotherRunKnowsSettlesNothing) {
  EvidenceSource today =
      evidence("capture files", kAll,
               {finding(FindingId::kRankUnreachable, {5}), finding(FindingId::kFallbackP2p, {})});
  EvidenceSource before = evidence("dumps", kAll, {finding(FindingId::kFallbackP2p, {})});
  before.hosts[5] = "node-of-then";
  today.hosts.erase(5);
  const auto joined_at = [&](int64_t first_ns, int64_t zone_ns) {
    today.span = {2'000'000'000'000'000'000, 2'000'000'060'000'000'000};
    before.span = {first_ns, first_ns + 60'000'000'000, zone_ns};
    return join({today, before}).diagnosis.findings;
  };
  constexpr int64_t kHour = 3'600'000'000'000;
  const auto apart = joined_at(2'000'000'000'000'000'000 - 407 * 24 * kHour, 0);
  ASSERT_EQ(apart.size(), 4u);
  EXPECT_EQ(id_text(apart[0].id), "rank-unreachable") << "that it was reached another day says nothing";
  EXPECT_TRUE(apart[0].hosts.empty());
  EXPECT_EQ(joined_at(2'000'000'000'000'000'000, 0).size(), 2u);
  // A snapshot's local time may be hours off.
  EXPECT_EQ(joined_at(2'000'000'000'000'000'000 - 9 * kHour, 14 * kHour).size(), 2u);
}

TEST(Join, ADoubtIsNotSettledByWhatNamesNobody) {
  analysis::Finding doubt = finding(FindingId::kEvidenceMissingGpuTimes, {}, "");
  doubt.severity = analysis::Severity::kWarning;
  analysis::Finding gave_up = finding(FindingId::kAbortedWatchdog, {}, "");
  const Joined joined = join({evidence("capture files", kAll, {doubt}), evidence("logs", kAll, {gave_up})});
  EXPECT_EQ(joined.diagnosis.findings.size(), 2u);
}

TEST(Join, SettingsThatTwoKindsTellOfAreSaidOnce) {
  const Joined joined =
      join({evidence("capture files", kAll, {finding(FindingId::kFallbackNetSocket, {0}, "")}),
            evidence("logs", kAll,
                     {finding(FindingId::kFallbackNetSocket, {0, 4}, ""),
                      finding(FindingId::kFallbackP2pDisabled, {0}, "")})});
  EXPECT_EQ(joined.diagnosis.findings.size(), 2u);
}

// Two jobs that are one: the same ranks and operations, other names.
model::Job job_of(const std::vector<std::pair<std::string, std::vector<uint32_t>>>& comms,
                  const std::vector<int>& operations) {
  static uint64_t made = 0;
  analysis::testing::JobBuilder builder(4, 4);
  for (size_t i = 0; i < comms.size(); ++i) {
    const uint32_t comm = builder.comm(comms[i].first, comms[i].second);
    for (int n = 0; n < operations[i]; ++n) {
      for (const uint32_t rank : comms[i].second)
        builder.call(
            rank, comm,
            {.func = i % 2 == 0 ? "AllReduce" : "AllGather", .called_ms = 10.0 * n + static_cast<double>(i)});
    }
  }
  model::Job job = builder.build();
  for (model::JobComm& comm : job.comms) comm.comm_id = ++made;  // each tool has numbers of its own
  return job;
}

TEST(Links, CommunicatorsAreFoundByNameMembersAndOperations) {
  std::vector<EvidenceSource> both = {evidence("a", {}, {}), evidence("b", {}, {})};
  const model::Job a =
      job_of({{"tp:3", {0, 1}}, {"", {0, 1, 2, 3}}, {"", {2, 3}}, {"", {2, 3}}}, {4, 9, 6, 6});
  const model::Job b = job_of(
      {{"tp (group 3)", {0, 1}}, {"default_pg", {0, 1, 2, 3}}, {"dp", {2, 3}}, {"ep", {2, 3}}}, {4, 9, 6, 6});
  both[0].job = &a;
  both[1].job = &b;
  const std::vector<CommLink> links = link_comms(both);
  ASSERT_EQ(links.size(), 4u);
  EXPECT_EQ(links[0].by, CommLink::By::kName);
  for (const CommLink& link : links) {
    EXPECT_EQ(link.a_comm, link.b_comm);
    EXPECT_EQ(link.agreeing, link.compared);
    EXPECT_GT(link.compared, 0u);
  }
  EXPECT_EQ(links[1].by, CommLink::By::kMembers);
  EXPECT_EQ(links[2].by, CommLink::By::kOperations);
  EXPECT_EQ(links[3].by, CommLink::By::kOperations);
}

// The capture lacks rank 3; the dumps have the ranks that are given, each with so many operations.
Joined with_suspect(const std::vector<int>& capture_calls, const std::vector<int>& dump_calls,
                    bool pair = false) {
  const auto job = [](const std::vector<int>& calls) {
    analysis::testing::JobBuilder builder(4, 4);
    const uint32_t world = builder.world();
    for (uint32_t rank = 0; rank < 4; ++rank) {
      for (int n = 0; n < calls[rank]; ++n) builder.call(rank, world, {.called_ms = 10.0 * n});
      if (calls[rank] == 0) builder.without(rank);
    }
    return builder.build();
  };
  const model::Job capture = job(capture_calls), dumps = job(dump_calls);
  analysis::Finding doubt = finding(FindingId::kRankUnreachable, {3}, capture.comm_name(0));
  doubt.comm_row = 0;
  if (pair) doubt.func = "Send";
  EvidenceSource a = evidence("capture files", {0, 1, 2}, {doubt}), b = evidence("dumps", {}, {});
  a.job = &capture;
  b.job = &dumps;
  for (int32_t rank = 0; rank < 4; ++rank) {
    if (dump_calls[static_cast<size_t>(rank)] > 0) b.hosts.emplace(rank, "");
  }
  return join({a, b});
}

TEST(Join, ASuspectIsJudgedByWhatItLeftElsewhere) {
  // The doubt is about the 9th operation.
  analysis::Finding guilty = with_suspect({9, 9, 9, 0}, {9, 0, 0, 8}).diagnosis.findings[0];
  EXPECT_EQ(id_text(guilty.id), "never-joined");
  EXPECT_EQ(guilty.ranks, std::vector<int32_t>{3});
  EXPECT_EQ(guilty.sources, (std::vector<std::string>{"capture files", "dumps"}));
  EXPECT_TRUE(has_line(guilty, "dumps: rank 3 has called 8 operations"));

  const analysis::Finding cleared = with_suspect({9, 9, 9, 0}, {9, 0, 0, 9}).diagnosis.findings[0];
  EXPECT_EQ(id_text(cleared.id), "evidence-missing.files");
  EXPECT_TRUE(cleared.ranks.empty()) << cleared.statement;
  EXPECT_LT(cleared.severity, analysis::Severity::kCritical);

  const analysis::Finding earlier = with_suspect({9, 9, 9, 0}, {5, 0, 0, 5}).diagnosis.findings[0];
  EXPECT_EQ(id_text(earlier.id), "evidence-missing.files") << "the dumps were taken before the wait began";
  EXPECT_EQ(id_text(with_suspect({9, 9, 9, 0}, {9, 0, 0, 8}, true).diagnosis.findings[0].id),
            "evidence-missing.files")
      << "sends are counted by pair";
}

TEST(Links, WhatCannotBeToldApartIsNotLinked) {
  std::vector<EvidenceSource> both = {evidence("a", {}, {}), evidence("b", {}, {})};
  const model::Job a = job_of({{"", {2, 3}}}, {6});
  const model::Job b = job_of({{"dp", {2, 3}}, {"", {0}}, {"ep", {2, 3}}}, {6, 1, 6});
  both[0].job = &a;
  both[1].job = &b;
  EXPECT_TRUE(link_comms(both).empty());
}

TEST(Links, OfOneNameThoseWithTheSameMembersAreOne) {
  std::vector<EvidenceSource> both = {evidence("a", {}, {}), evidence("b", {}, {})};
  const model::Job a = job_of({{"tp", {0, 1}}, {"tp", {2, 3}}, {"dp", {0, 2}}}, {5, 5, 5});
  const model::Job b = job_of({{"tp", {2, 3}}, {"tp", {0, 1}}, {"dp", {1, 3}}}, {5, 5, 5});
  both[0].job = &a;
  both[1].job = &b;
  std::set<std::pair<uint32_t, uint32_t>> pairs;
  for (const CommLink& link : link_comms(both)) {
    EXPECT_EQ(link.by, CommLink::By::kName);
    pairs.emplace(link.a_comm, link.b_comm);
  }
  EXPECT_EQ(pairs, (std::set<std::pair<uint32_t, uint32_t>>{{0, 1}, {1, 0}})) << "dp has other members";
}

TEST(Links, OfManyWithTheSameMembersThoseThatDifferAreFound) {
  std::vector<std::pair<std::string, std::vector<uint32_t>>> comms(1600, {"", {0, 1}});
  std::vector<int> operations(1600, 3);
  operations[700] = 40;
  std::vector<EvidenceSource> both = {evidence("a", {}, {}), evidence("b", {}, {})};
  const model::Job a = job_of(comms, operations);
  std::swap(operations[700], operations[702]);
  const model::Job b = job_of(comms, operations);
  both[0].job = &a;
  both[1].job = &b;
  const std::vector<CommLink> links = link_comms(both);
  ASSERT_EQ(links.size(), 1u) << "the others are told apart by nothing";
  EXPECT_EQ(links[0].by, CommLink::By::kOperations);
  EXPECT_EQ(links[0].a_comm, 700u);
  EXPECT_EQ(links[0].b_comm, 702u);
}

TEST(Join, EqualNamesAreNotOneCommunicator) {
  const model::Job a = job_of({{"tp", {0, 1}}, {"tp", {1, 2}}}, {5, 5});
  const model::Job b = job_of({{"tp", {0, 1}}, {"tp", {1, 2}}}, {5, 5});
  const auto about = [&](uint32_t a_row, uint32_t b_row) {
    analysis::Finding left = finding(FindingId::kNeverJoined, {1}, "tp"), right = left;
    left.comm_row = a_row;
    right.comm_row = b_row;
    EvidenceSource x = evidence("capture files", kAll, {left}), y = evidence("dumps", kAll, {right});
    x.job = &a;
    y.job = &b;
    return join({x, y}).diagnosis.findings.size();
  };
  EXPECT_EQ(about(1, 1), 1u);
  EXPECT_EQ(about(0, 1), 2u) << "rank 1 is behind in both";
}

analysis::Finding doubt(FindingId id, std::vector<int32_t> ranks, std::string comm = "world") {
  analysis::Finding made = finding(id, std::move(ranks), std::move(comm));
  made.severity = analysis::Severity::kWarning;
  return made;
}
analysis::Finding moment(FindingId id, std::vector<int32_t> ranks, std::string comm) {
  analysis::Finding made = finding(id, std::move(ranks), std::move(comm));
  made.severity = analysis::Severity::kWarning;
  made.needed_evidence = "a second look";
  made.op_index.reset();
  return made;
}

TEST(Join, OfAPartOfTheRanksLinesOfWatchdogsClearNobody) {
  const Joined joined =
      join({evidence("dumps", {0, 2, 3, 4}, {finding(FindingId::kRankUnreachable, {1, 5, 6, 7})}),
            evidence("logs", {0, 5, 6, 7}, {doubt(FindingId::kEvidenceMissingWatchdog, {1, 2, 3, 4})})});
  EXPECT_EQ(joined.diagnosis.findings.front().ranks, (std::vector<int32_t>{1, 5, 6, 7}));
}

TEST(Join, DoubtsAboutTwoOperationsLeaveNobody) {
  analysis::Finding other = doubt(FindingId::kEvidenceMissingWatchdog, {1, 2});
  other.op_index = 9;
  const Joined joined = join({evidence("dumps", {0}, {finding(FindingId::kRankUnreachable, {1, 5})}),
                              evidence("logs", {0}, {other})});
  for (const analysis::Finding& finding : joined.diagnosis.findings)
    EXPECT_NE(finding.ranks, std::vector<int32_t>{1});
}

TEST(Join, AWatchdogMakesCertainWhatOneMomentShows) {
  for (const FindingId id : {FindingId::kNeverJoinedSnapshot, FindingId::kNeverJoinedStacks}) {
    const Joined joined = join({evidence("snapshots", kAll, {moment(id, {5}, "0xab")}),
                                evidence("logs", {1}, {doubt(FindingId::kEvidenceMissingWatchdog, {}, "")})});
    ASSERT_EQ(joined.diagnosis.findings.size(), 1u) << id_text(id);
    EXPECT_EQ(joined.diagnosis.findings[0].id, id);
    EXPECT_EQ(joined.diagnosis.findings[0].severity, analysis::Severity::kCritical);
    EXPECT_EQ(joined.diagnosis.findings[0].needed_evidence, "");
    EXPECT_EQ(joined.diagnosis.findings[0].sources, (std::vector<std::string>{"snapshots", "logs"}));
  }
}

TEST(Join, AWatchdogOfTheRankItselfOrOfOtherSuspectsDoesNot) {
  for (const auto& [known, suspects] :
       {std::pair(std::vector<int32_t>{5}, std::vector<int32_t>{}), {{1}, {3, 4}}, {{5}, {3}}}) {
    const Joined joined =
        join({evidence("snapshots", kAll, {moment(FindingId::kNeverJoinedStacks, {5}, "")}),
              evidence("logs", known, {doubt(FindingId::kEvidenceMissingWatchdog, suspects, "")})});
    for (const analysis::Finding& finding : joined.diagnosis.findings)
      EXPECT_LT(finding.severity, analysis::Severity::kCritical) << finding.statement;
  }
}

}  // namespace
}  // namespace lockstep::verdict::join
