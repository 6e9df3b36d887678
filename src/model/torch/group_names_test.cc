// SPDX-License-Identifier: Apache-2.0
#include "model/torch/group_names.h"

#include <gtest/gtest.h>

#include "model/event_kind.h"

namespace lockstep::model {
namespace {

using Group = GroupNames::Group;

Group spaced(const std::string& name, int32_t ranks, int32_t start, int32_t stride) {
  return {.name = name, .ranks = ranks, .progression = {start, stride}, .listed = {}};
}
Group tensor_of(int32_t rank) { return spaced("tp:1", 4, rank / 4 * 4, 1); }
Group pipeline_of(int32_t rank) { return spaced("pp:2", 4, rank % 4, 4); }

// 16 ranks, four in each group of either kind: both have ids of their own, and the same size.
struct NamedJob {
  GroupNames names;
  std::vector<std::vector<GroupNames::Comm>> comms{16};
  std::vector<std::vector<Group>> groups{16};

  NamedJob() {
    for (int32_t rank = 0; rank < 16; ++rank) {
      comms[rank] = {{.comm_id = 100u + static_cast<unsigned>(rank / 4), .ranks = 4, .rank = rank % 4},
                     {.comm_id = 200u + static_cast<unsigned>(rank % 4), .ranks = 4, .rank = rank / 4}};
      groups[rank] = {tensor_of(rank), pipeline_of(rank)};
    }
  }
  GroupNames& finish() {
    for (int32_t rank = 0; rank < 16; ++rank) names.add(rank, comms[rank], groups[rank]);
    names.finish();
    return names;
  }
};

TEST(GroupNames, FollowEqualMembers) {
  NamedJob job;
  const GroupNames& names = job.finish();
  for (uint64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(names.of(100 + i, 4), "tp:1");
    EXPECT_EQ(names.of(200 + i, 4), "pp:2");
  }
  EXPECT_EQ(names.of(300, 4), "");
}

TEST(GroupNames, TwoGroupsOfTheSameMembersNameNothing) {
  NamedJob job;
  for (int32_t rank = 0; rank < 4; ++rank) job.groups[rank].push_back(spaced("dp:9", 4, 0, 1));
  const GroupNames& names = job.finish();
  EXPECT_EQ(names.of(100, 4), "");
  EXPECT_EQ(names.of(101, 4), "tp:1");
}

TEST(GroupNames, TwoCommunicatorsOfTheSameMembersGetNoName) {
  for (const bool is_named : {false, true}) {
    NamedJob job;
    for (int32_t rank = 0; rank < 4; ++rank)
      job.comms[rank].push_back({.comm_id = 300, .ranks = 4, .rank = rank, .is_named = is_named});
    const GroupNames& names = job.finish();
    EXPECT_EQ(names.of(100, 4), "");
    EXPECT_EQ(names.of(300, 4), "");
    EXPECT_EQ(names.of(200, 4), "pp:2");
  }
}

TEST(GroupNames, TheOrderOfMembersCounts) {
  NamedJob job;
  for (int32_t rank = 0; rank < 4; ++rank)
    job.groups[rank][0] = {.name = "tp:1", .ranks = 4, .progression = {}, .listed = {3, 2, 1, 0}};
  EXPECT_EQ(job.finish().of(100, 4), "");
  NamedJob turned;
  for (int32_t rank = 0; rank < 4; ++rank) {
    turned.groups[rank][0] = {.name = "tp:1", .ranks = 4, .progression = {}, .listed = {3, 2, 1, 0}};
    turned.comms[rank][0].rank = 3 - rank;
  }
  EXPECT_EQ(turned.finish().of(100, 4), "tp:1");
}

TEST(GroupNames, AMemberThatDeclaresNothingLeavesNoName) {
  NamedJob job;
  job.groups[2].clear();
  const GroupNames& names = job.finish();
  EXPECT_EQ(names.of(100, 4), "");
  EXPECT_EQ(names.of(202, 4), "");
  EXPECT_EQ(names.of(201, 4), "pp:2");
}

TEST(GroupNames, AMemberThatLeftNoFileTakesNone) {
  NamedJob job;
  job.groups[3].clear();
  job.comms[3].clear();
  EXPECT_EQ(job.finish().of(100, 4), "tp:1");
  // Rank 0 alone is the first of both.
  NamedJob lonely;
  for (const size_t rank : {1, 2, 3, 4, 8, 12}) lonely.comms[rank].clear(), lonely.groups[rank].clear();
  EXPECT_EQ(lonely.finish().of(100, 4), "");
}

TEST(GroupNames, AGroupThatThreadsDeclaredTwiceIsOne) {
  NamedJob job;
  for (int32_t rank = 0; rank < 4; ++rank) job.groups[rank].push_back(tensor_of(rank));
  EXPECT_EQ(job.finish().of(100, 4), "tp:1");
}

TEST(GroupNames, ARunThatClaimsTooManyIsLeftAlone) {
  NamedJob job;
  for (uint64_t i = 0; i <= GroupNames::kMostOfProcess; ++i)
    job.comms[9].push_back({.comm_id = 1000 + i, .ranks = 7, .rank = 0});
  EXPECT_EQ(job.finish().of(100, 4), "");
}

TEST(GroupNames, AnUnknownCommunicatorCouldBeAny) {
  NamedJob job;
  job.comms[1].push_back({.comm_id = 0, .ranks = 4, .rank = 1});
  const GroupNames& names = job.finish();
  EXPECT_EQ(names.of(100, 4), "");
  EXPECT_EQ(names.of(102, 4), "tp:1");
}

TEST(GroupNames, APairThatOnlySendsIsNoGroup) {
  for (const EventKind kind : {EventKind::kP2p, EventKind::kColl}) {
    GroupNames names;
    for (int32_t rank = 0; rank < 2; ++rank)
      names.add(rank, {{.comm_id = 5, .ranks = 2, .rank = rank}}, {spaced("tp:1", 2, 0, 1)});
    names.finish();
    Trace trace;
    trace.comms.append({.comm_id = 5, .rank = 0, .ranks = 2, .api_version = 5});
    trace.tasks.append({.comm = 0, .kind = number(kind)});
    name_unnamed_comms(trace, names);
    EXPECT_EQ(trace.strings[trace.comms.name[0]], kind == EventKind::kColl ? "tp:1" : "");
  }
}

}  // namespace
}  // namespace lockstep::model
