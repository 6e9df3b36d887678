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
    lockstep_group_info shorter = {8, 0, nullptr, nullptr, 0, 0, 0, 0};
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
