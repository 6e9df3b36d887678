// SPDX-License-Identifier: Apache-2.0
#include "capture/api/api_test.h"
#include "tests/support/places.h"

namespace lockstep::test {
namespace {

using format::CommDef;
using format::Def;
using GroupsTest = ApiCapture;

TEST_F(GroupsTest, AreRecordedWithTheirMembers) {
  LksFile file = record([] { EXPECT_NE(declare_pair(), 0u); });
  auto comm = file.all<CommDef>(Def::kComm).at(0);
  EXPECT_STREQ(comm.name, "pair:2");
  EXPECT_EQ(comm.api_version, 0u);
  EXPECT_EQ(comm.ranks, 2);
  EXPECT_EQ(comm.rank, 1) << "global rank 5 is the second member";
  EXPECT_NE(comm.comm_id, 0u);
  EXPECT_EQ(members(file, 0), (std::vector<int32_t>{1, 5}));
  EXPECT_EQ(file.lost(), 0u);
  EXPECT_EQ(file.header().source, format::Source::kApi);
  EXPECT_NE(file.path().find(".api.lks"), std::string::npos);
}

TEST_F(GroupsTest, AProgressionIsTheSameGroupAsItsList) {
  LksFile file = record([] {
    const int32_t ranks[] = {1, 3, 5, 7};
    lockstep_group listed = lockstep_declare_group("tp:3", ranks, 4, -1);
    EXPECT_EQ(declare_progression("tp:3", 1, 2, 4), listed);
    EXPECT_EQ(lockstep_declare_group("tp:3", ranks, 4, 2), listed);
    EXPECT_NE(lockstep_declare_group("tp:4", ranks, 4, -1), listed);
    EXPECT_NE(lockstep_declare_group("tp:3", ranks, 3, -1), listed);
    EXPECT_NE(lockstep_declare_group("tp:3", ranks, 4, 0), listed) << "another thread may be another member";
  });
  EXPECT_EQ(file.count(Def::kComm), 4u);
  EXPECT_EQ(members(file, 0), (std::vector<int32_t>{1, 3, 5, 7}));
}

TEST_F(GroupsTest, TheIdIsEqualInAllProcesses) {
  auto declare = [] {
    declare_pair();
    declare_progression("0", 0, 1, 1000);
  };
  EXPECT_TRUE(run_child(settings(), declare).ok());
  EXPECT_TRUE(run_child({{"LOCKSTEP_LIBRARY", LOCKSTEP_LIB_DIR "/liblockstep.so"},
                         {"LOCKSTEP_DIR", run_.path()},
                         {"RANK", "1"}},
                        declare)
                  .ok());
  std::vector<std::string> paths = run_.files();
  ASSERT_EQ(paths.size(), 2u);
  auto one = LksFile(paths[0]).all<CommDef>(Def::kComm), other = LksFile(paths[1]).all<CommDef>(Def::kComm);
  ASSERT_EQ(one.size(), 2u);
  ASSERT_EQ(other.size(), 2u);
  EXPECT_EQ(one[0].comm_id, other[0].comm_id);
  EXPECT_EQ(one[1].comm_id, other[1].comm_id);
  EXPECT_NE(one[0].comm_id, one[1].comm_id);
  EXPECT_NE(one[0].rank, other[0].rank);
}

TEST_F(GroupsTest, OddOnesAreTakenAsFarAsTheyGo) {
  LksFile file = record([] {
    const int32_t irregular[] = {5, 0, 7};
    lockstep_declare_group("irregular", irregular, 3, -1);
    lockstep_declare_group(nullptr, irregular, 1, -1);
    declare_progression("unknown members", 0, -1, 3);
    declare_progression("beyond", INT32_MAX - 1, 2, 3);
    const int32_t far_apart[] = {INT32_MIN, INT32_MAX};
    lockstep_declare_group("far apart", far_apart, 2, -1);
    EXPECT_EQ(lockstep_declare_group("none", irregular, 0, 0), 0u);
    EXPECT_EQ(lockstep_declare_group("none", irregular, -1, 0), 0u);
    lockstep_group_info shorter = LOCKSTEP_GROUP_INFO_INIT;
    shorter.size = 8;
    shorter.count = 1;
    EXPECT_EQ(lockstep_declare_group_info(&shorter), 0u);
    EXPECT_EQ(lockstep_declare_group_info(nullptr), 0u);
  });
  auto comms = file.all<CommDef>(Def::kComm);
  ASSERT_EQ(comms.size(), 5u);
  EXPECT_EQ(members(file, 0), (std::vector<int32_t>{5, 0, 7}));
  EXPECT_EQ(comms[0].rank, 0);
  EXPECT_EQ(members(file, 1), (std::vector<int32_t>{5}));
  EXPECT_EQ(members(file, 2).size(), 0u);
  EXPECT_EQ(comms[2].rank, -1);
  EXPECT_EQ(members(file, 3).size(), 0u);
  EXPECT_EQ(members(file, 4), (std::vector<int32_t>{INT32_MIN, INT32_MAX}));
  EXPECT_EQ(file.lost(capture::kLoss_unknown_context), 4u);
}

using format::GroupDef;

TEST_F(GroupsTest, WhatWasSaidIsRecordedAsItWasSaid) {
  LksFile file = record([] {
    lockstep_group_info info = LOCKSTEP_GROUP_INFO_INIT;
    info.name = "3";
    info.description = "mesh_tp";
    info.start = 1;
    info.stride = 2;
    info.count = 4;
    const lockstep_group apart = lockstep_declare_group_info(&info);
    EXPECT_EQ(declare_progression("mesh_tp:3", 1, 2, 4), apart) << "both spellings are one group";
    info.description = "";
    EXPECT_EQ(declare_progression("3", 1, 2, 4), lockstep_declare_group_info(&info)) << "the name alone";
    declare_progression("irregular", 0, -1, 3);
  });
  const auto declared_as = file.all<GroupDef>(Def::kGroup);
  ASSERT_EQ(declared_as.size(), 3u);
  EXPECT_STREQ(declared_as[0].name, "3");
  EXPECT_STREQ(declared_as[0].description, "mesh_tp");
  EXPECT_EQ(declared_as[0].start, 1);
  EXPECT_EQ(declared_as[0].stride, 2);
  EXPECT_EQ(declared_as[0].rank, 2);
  EXPECT_STREQ(declared_as[1].name, "3");
  EXPECT_STREQ(declared_as[1].description, "");
  EXPECT_EQ(declared_as[2].start, 0);
  EXPECT_EQ(declared_as[2].stride, -1);
  const auto comms = file.all<CommDef>(Def::kComm);
  EXPECT_STREQ(comms[0].name, "mesh_tp:3");
  EXPECT_STREQ(comms[1].name, "3");
}

// As with PyTorch's macro, which gives the own rank with an all-reduce and the root's with a broadcast.
TEST_F(GroupsTest, ARankThatIsToldLaterIsThatOfTheSameMember) {
  LksFile file = record([] {
    const auto irregular = [](int32_t rank) { return declare_progression("experts", 0, -1, 3, rank); };
    const lockstep_group unknown = irregular(-1);
    EXPECT_EQ(irregular(2), unknown);
    EXPECT_EQ(irregular(2), unknown);
    EXPECT_EQ(irregular(-1), unknown);
    EXPECT_NE(irregular(1), unknown) << "a second member";
    const auto other = [](int32_t rank) { return declare_progression("others", 0, -1, 3, rank); };
    const lockstep_group known = other(1);
    EXPECT_EQ(other(-1), known);
  });
  const auto comms = file.all<CommDef>(Def::kComm);
  ASSERT_EQ(comms.size(), 3u);
  EXPECT_EQ(comms[0].rank, -1);
  EXPECT_EQ(comms[1].rank, 1);
  EXPECT_EQ(comms[2].rank, 1);
  const auto declared_as = file.all<GroupDef>(Def::kGroup);
  ASSERT_EQ(declared_as.size(), 4u);
  EXPECT_EQ(declared_as[1].head.id, 0u);
  EXPECT_EQ(declared_as[1].rank, 2);
}

// Structs grow at their end: a program that was compiled before has shorter ones.
TEST_F(GroupsTest, AnOlderCallersStructsAreTaken) {
  LksFile file = record([] {
    lockstep_group_info group = LOCKSTEP_GROUP_INFO_INIT;
    group.size = offsetof(lockstep_group_info, description);
    group.name = "tp:3";
    group.description = reinterpret_cast<const char*>(8);  // not there
    group.start = 0;
    group.stride = 1;
    group.count = 8;
    lockstep_op_info info = LOCKSTEP_OP_INFO_INIT;
    info.size = offsetof(lockstep_op_info, in_split);
    info.group = lockstep_declare_group_info(&group);
    info.collective = "allreduce";
    info.in_split = reinterpret_cast<const int64_t*>(8);
    info.in_splits = 100;
    EXPECT_NE(lockstep_begin_op(&info), 0u);
  });
  EXPECT_EQ(file.count(format::Kind::kApiOp), 1u);
  EXPECT_EQ(file.count(format::Kind::kSplits), 0u);
  EXPECT_EQ(file.lost(), 0u);
}

TEST_F(GroupsTest, ManyKeepTheirOwnNumbers) {
  constexpr int kGroups = 2000;
  LksFile file = record([] {
    std::vector<lockstep_group> groups;
    for (int i = 0; i < kGroups; ++i) groups.push_back(declare_progression("many", i, 1, 2));
    for (int i = 0; i < kGroups; ++i)
      EXPECT_EQ(declare_progression("many", i, 1, 2), groups[static_cast<size_t>(i)]);
  });
  EXPECT_EQ(file.count(Def::kComm), static_cast<size_t>(kGroups));
  EXPECT_EQ(file.lost(), 0u);
}

}  // namespace
}  // namespace lockstep::test
