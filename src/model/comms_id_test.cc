// SPDX-License-Identifier: Apache-2.0
#include "model/comms_id.h"

#include <gtest/gtest.h>

namespace lockstep::model {
namespace {

TEST(CommsId, NameHashIsThatOfLibstdcxx) {
  struct {
    std::string_view name;
    uint64_t hash;
  } const vectors[] = {
      {"", 6142509188972423790u},
      {"0", 2297668033614959926u},
      {"1", 10159970873491820195u},
      {"12", 11194622142508650503u},
      {"default_pg", 17483303525057187894u},
      {"deadbeef", 14043738894911345346u},
      {"abcdefghi", 13036955925923793583u},
      {"0123456789abcdef0123456789abcdef01234567", 3986413328666125409u},
  };
  for (const auto& v : vectors) EXPECT_EQ(pg_name_hash(v.name), v.hash) << v.name;
}

TEST(CommsId, IsPyTorchsBitForBit) {
  struct {
    CommsTuple tuple;
    uint64_t id;
  } const vectors[] = {
      {{"0", 1, false, 0, 1, 2}, 2297668046887139027u},
      {{"0", 1, true, 0, 1, 2}, 2297668046887139088u},
      {{"0", 2, false, 0, 1, 2}, 2297668046887139088u},  // the scheme collides: the tuple must be compared
      {{"0", 0, false, 0, 1, 8}, 2297668046887139358u},
      {{"0", 1, false, 0, 1, 8}, 2297668046887139419u},
      {{"0", 12, false, 0, 1, 8}, 2297668046887140139u},
      {{"0", 12, false, -1, -1, 1}, 2297668041578268081u},
      {{"0", 1, false, -1, -1, 1}, 2297668041578267361u},
      {{"0", 4242424242, false, 0, 1, 64}, 2297668321549156830u},
      {{"1", 1, false, 0, 2, 4}, 10159970886763999488u},
      {{"1", 1, false, 1, 2, 4}, 10159970886763999547u},
      {{"1", 1, true, 1, 2, 4}, 10159970886763999622u},
      {{"3", 7, false, 0, -1, 3}, 5586280276518943005u},
      {{"3", 5, false, 8, 1, 8}, 8248777784072093481u},
      {{"3", 5, false, 0, 8, 4}, 8248777784072093141u},
      {{"5", 3, true, 0, 0, 1}, 7995238608688664575u},
      {{"12", 1000000, false, 0, 8, 16}, 11194622155844113634u},
      {{"", 1, false, 0, 1, 2}, 6142509202244602891u},
      {{"9e107d9d372bb6826bd81d3542a419d6e4f9c0a1", 42, false, 4, 1, 4}, 6403073004632262056u},
  };
  for (const auto& v : vectors) EXPECT_EQ(comms_id(v.tuple), v.id) << to_text(v.tuple);
}

TEST(CommsId, TextNamesEveryField) {
  EXPECT_EQ(to_text({"0", 12, false, 0, 1, 8}), "(0, 12, coll, 0, 1, 8)");
}

TEST(CommsId, GroupNameOnlyInTorchsForm) {
  EXPECT_EQ(torch_group_name("default_pg:0"), "0");
  EXPECT_EQ(torch_group_name("mesh:tp:17"), "17");
  EXPECT_EQ(torch_group_name("undefined:9e107d9d372bb6826bd81d3542a419d6e4f9c0a1"),
            "9e107d9d372bb6826bd81d3542a419d6e4f9c0a1");
  for (const char* other :
       {"", "0", "default_pg", "tp:", "tp:x", "tp:1x", "host:9e107d9d372bb6826bd81d3542a419d6e4f9c0a"}) {
    EXPECT_EQ(torch_group_name(other), "") << other;
  }
}

class TorchGroupsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Process process;
    process.rank = 3;
    process.world = 8;
    trace.processes.append(process);
  }
  uint32_t comm(std::string_view name, int32_t ranks, std::string_view members = "") {
    Comm row;
    row.name = trace.strings.intern(name);
    row.ranks = ranks;
    row.members = trace.strings.intern(members);
    return trace.comms.append(row);
  }
  uint32_t op(uint32_t comm, uint32_t index, int32_t peer = -1, uint32_t group = kNoRow) {
    Op row;
    row.comm = comm;
    row.index = index;
    row.peer = peer;
    row.group = group;
    return trace.ops.append(row);
  }
  Trace trace;
};

TEST_F(TorchGroupsTest, DefaultGroupCountsFromOne) {
  uint32_t c = comm("default_pg:0", 8);
  uint32_t first = op(c, 0), second = op(c, 1);
  TorchGroups groups(trace);
  EXPECT_EQ(groups.next(first), (CommsTuple{"0", 1, false, 0, 1, 8}));
  EXPECT_EQ(groups.next(second), (CommsTuple{"0", 2, false, 0, 1, 8}));
}

TEST_F(TorchGroupsTest, DeclaredMembersGiveStartAndStride) {
  struct {
    const char* members;
    int32_t ranks, start, stride;
  } const cases[] = {{"1,3,5,7", 4, 1, 2}, {"4", 1, 4, 0}, {"0,1,3", 3, 0, -1}, {"3,2,1", 3, 3, -1}};
  for (const auto& c : cases) {
    uint32_t row = op(comm("mesh_tp:5", c.ranks, c.members), 0);
    TorchGroups groups(trace);
    EXPECT_EQ(groups.next(row), (CommsTuple{"5", 1, false, c.start, c.stride, c.ranks})) << c.members;
  }
}

TEST_F(TorchGroupsTest, SaysNothingWhereItCouldBeWrong) {
  uint32_t partial = op(comm("mesh_tp:5", 4), 0);        // members unknown
  uint32_t foreign = op(comm("my own name", 8), 0);      // not PyTorch's form
  uint32_t broken = op(comm("mesh_tp:6", 2, "1,x"), 0);  // unreadable list
  uint32_t late = op(comm("default_pg:0", 8), 7);        // the first ops are missing
  uint32_t c = comm("default_pg:0", 8);
  uint32_t p2p = op(c, 0, 1), after_p2p = op(c, 0);
  uint32_t d = comm("default_pg:0", 8);
  uint32_t one = op(d, 0, -1, 42), same_group = op(d, 1, -1, 42), later = op(d, 2);
  TorchGroups groups(trace);
  for (uint32_t row : {partial, foreign, broken, late, p2p, after_p2p}) EXPECT_FALSE(groups.next(row)) << row;
  EXPECT_TRUE(groups.next(one));
  EXPECT_FALSE(groups.next(same_group));
  EXPECT_FALSE(groups.next(later));
}

}  // namespace
}  // namespace lockstep::model
