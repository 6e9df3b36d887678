// SPDX-License-Identifier: Apache-2.0
#include "model/torch/process_group.h"

#include <gtest/gtest.h>

namespace lockstep::model {
namespace {

TEST(ProcessGroup, NameAndDescriptionMakeOneName) {
  EXPECT_EQ(process_group_name("0", "default_pg"), "default_pg");
  EXPECT_EQ(process_group_name("0", ""), "default_pg");
  EXPECT_EQ(process_group_name("5", "dp0"), "dp0 (group 5)");
  EXPECT_EQ(process_group_name("0", "mesh"), "mesh (group 0)");
  EXPECT_EQ(process_group_name("3", "undefined"), "group 3");
}

TEST(ProcessGroup, ListsOfRanks) {
  EXPECT_EQ(parse_ranks("[0, 1, 22]"), (std::vector<int32_t>{0, 1, 22}));
  EXPECT_EQ(parse_ranks("[]"), std::vector<int32_t>());
  EXPECT_EQ(parse_ranks("[0, 1, ..., 63]"), (std::vector<int32_t>{0, 1, 63}));
  EXPECT_EQ(parse_ranks("[99999999999, 5"), std::vector<int32_t>{5}) << "no rank is that large";
  EXPECT_EQ(members_text({4, 5, 6}), "4,5,6");
  EXPECT_EQ(members_text({}), "");
}

TEST(ProcessGroup, IdIsThatOfNameAndMembers) {
  EXPECT_EQ(process_group_id("dp", {0, 2}), process_group_id("dp", {0, 2}));
  EXPECT_NE(process_group_id("dp", {0, 2}), process_group_id("dp", {0, 3}));
  EXPECT_NE(process_group_id("dp", {0, 2}), process_group_id("tp", {0, 2}));
  EXPECT_EQ(process_group_id("dp", {}), 0u) << "whose members nobody knows";
}

TEST(ProcessGroup, NamesOfFilesTellARank) {
  EXPECT_EQ(rank_of_file_name("/a/b7/comm_lib_trace_rank_12"), 12);
  EXPECT_EQ(rank_of_file_name("rank3.json"), 3);
  EXPECT_EQ(rank_of_file_name("rank-3_of_8.json"), 3);
  EXPECT_EQ(rank_of_file_name("trace_5.json"), 5);
  EXPECT_EQ(rank_of_file_name("7.json"), 7);
  EXPECT_EQ(rank_of_file_name("dump"), -1);
  EXPECT_EQ(rank_of_file_name("resnet50.json"), -1);
  EXPECT_EQ(rank_of_file_name("llama_70b.json"), -1);
  EXPECT_EQ(rank_named_in("frank_4711.1760"), -1);
  EXPECT_EQ(rank_of_file_name("rank_99999999999"), -1);
}

TEST(ProcessGroup, VersionsOfNccl) {
  EXPECT_EQ(parse_nccl_version("2.28.9"), 22809);
  EXPECT_EQ(parse_nccl_version("2.30.7+cuda13"), 23007);
  EXPECT_EQ(parse_nccl_version("unknown"), 0);
  EXPECT_LT(parse_nccl_version("99999999999.9"), 10'000'000) << "does not overflow";
}

TEST(ProcessGroup, CountsThatAllRanksShare) {
  EXPECT_EQ(common_count("AllReduce", 8, 8), 8u);
  EXPECT_EQ(common_count("ReduceScatter", 64, 8), 8u);
  EXPECT_EQ(common_count("Scatter", 0, 8), 8u);
  EXPECT_EQ(common_count("Broadcast", 0, 8), 8u);
  EXPECT_EQ(common_count("Gather", 8, 0), 8u);
  EXPECT_EQ(common_count("AlltoAll", 8, 8), 0u) << "may differ";
}

TEST(GroupIndex, FollowsTheNumbersAndSharesThoseOfCoalescedOperations) {
  GroupIndex index;
  EXPECT_EQ(index.of(1), 0u);
  EXPECT_EQ(index.of(5), 4u) << "older ones are gone";
  EXPECT_EQ(index.of(6), 5u);
  EXPECT_EQ(index.of(6), 6u);
  EXPECT_EQ(index.of(7), 7u) << "the two that shared a number are two";
  EXPECT_EQ(index.of(-1), 8u);
  EXPECT_EQ(index.of(INT64_MAX), 9u) << "no job has so many";
}

TEST(ProcessGroups, NamesLeadBackToTheGroup) {
  for (const auto& [name, description] :
       {std::pair{"0", "default_pg"}, {"5", "dp0"}, {"7", ""}, {"1", "a (group 2) b"}}) {
    const std::string text = process_group_name(name, description);
    EXPECT_EQ(process_group_of(text).name, name) << text;
    EXPECT_EQ(process_group_of(text).description, description) << text;
  }
  EXPECT_EQ(process_group_of("my comm").name, "");
  EXPECT_EQ(process_group_of("dp (group 3").name, "");
  EXPECT_EQ(process_group_of("").name, "");
}

}  // namespace
}  // namespace lockstep::model
