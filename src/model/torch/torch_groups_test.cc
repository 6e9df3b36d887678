// SPDX-License-Identifier: Apache-2.0
#include "model/torch/torch_groups.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "model/event_kind.h"

namespace lockstep::model {
namespace {

struct Numbered {
  int64_t seq;
  uint64_t id;
  bool operator==(const Numbered&) const = default;
};
constexpr Numbered kNone{0, 0};

class TorchGroupsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Process process{};
    process.rank = 3;
    process.world = 8;
    trace.processes.append(process);
    all_reduce = trace.intern_shape({trace.strings.intern("AllReduce"), 0, 0, 0, 0});
    broadcast = trace.intern_shape({trace.strings.intern("Broadcast"), 0, 0, 0, 0});
  }
  uint32_t comm(std::string_view name, int32_t ranks, uint64_t id = 0, int32_t rank = 0, int32_t api = 5) {
    Comm row{};
    row.name = trace.strings.intern(name);
    row.ranks = ranks;
    row.rank = rank;
    row.comm_id = id;
    row.api_version = api;
    row.init_ns = 1;
    indexes.emplace_back();
    return trace.comms.append(row);
  }
  uint32_t group() { return trace.calls.append(Call{}); }
  // A collective in a group of NCCL of its own, as PyTorch calls it.
  uint32_t coll(uint32_t comm, uint32_t in_group = kNoRow) {
    return op(comm, -1, in_group == kNoRow ? group() : in_group);
  }
  uint32_t pair(uint32_t comm, int32_t peer, uint32_t in_group = kNoRow) {
    return op(comm, peer, in_group == kNoRow ? group() : in_group);
  }
  uint32_t op(uint32_t comm, int32_t peer, uint32_t in_group) {
    Op row{};
    row.comm = comm;
    row.peer = peer;
    row.group = in_group;
    row.kind = number(peer >= 0 ? EventKind::kP2p : EventKind::kColl);
    row.index = indexes[comm][peer >= 0]++;
    row.seq = kNoSeq;
    row.shape = all_reduce;
    return trace.ops.append(row);
  }
  void number_all() {
    name_torch_groups(trace, members);
    number_torch_operations(trace);
  }
  Numbered at(uint32_t op) const { return {trace.ops.torch_seq[op], trace.ops.torch_comms_id[op]}; }
  static Numbered is(const CommsTuple& tuple) { return {tuple.seq, comms_id(tuple)}; }

  Trace trace;
  RunMembers members;
  std::vector<std::array<uint32_t, 2>> indexes;
  uint32_t all_reduce = 0, broadcast = 0;
};

TEST_F(TorchGroupsTest, CollectivesAndSendsCountApart) {
  const uint32_t c = comm("default_pg:0", 8);
  const uint32_t send = pair(c, 1), first = coll(c), second = coll(c), receive = pair(c, 2);
  number_all();
  EXPECT_EQ(at(send), is({"0", 1, true, 0, 1, 8}));
  EXPECT_EQ(at(first), is({"0", 1, false, 0, 1, 8}));
  EXPECT_EQ(at(second), is({"0", 2, false, 0, 1, 8}));
  EXPECT_EQ(at(receive), is({"0", 2, true, 0, 1, 8}));
}

TEST_F(TorchGroupsTest, MembersAreThoseThatAllRanksTell) {
  for (const int32_t rank : {0, 1, 2, 3}) members.add(77, 4, rank, 1 + 2 * rank);
  for (const int32_t rank : {0, 1, 3}) members.add(78, 4, rank, rank);
  for (const int32_t rank : {0, 1, 1}) members.add(79, 2, rank, 4 + rank);
  members.add(80, 2, 0, 0);
  members.add(80, 2, 1, 1);
  members.add(80, 2, 1, 2);
  members.add(81, 3, 0, 0);
  members.add(81, 3, 1, 1);
  members.add(81, 3, 2, 3);
  members.finish();
  const uint32_t whole = coll(comm("mesh_tp:5", 4, 77)), lacks_one = coll(comm("mesh_tp:6", 4, 78)),
                 twice = coll(comm("mesh_tp:7", 2, 79)), contradicted = coll(comm("mesh_tp:8", 2, 80)),
                 irregular = coll(comm("experts:9", 3, 81));
  number_all();
  EXPECT_EQ(at(whole), is({"5", 1, false, 1, 2, 4}));
  EXPECT_EQ(at(lacks_one), kNone);
  EXPECT_EQ(at(twice), is({"7", 1, false, 4, 1, 2}));
  EXPECT_EQ(at(contradicted), kNone);
  EXPECT_EQ(at(irregular), is({"9", 1, false, 0, -1, 3}));
}

TEST_F(TorchGroupsTest, WhatIsCoalescedIsOneNumberAndHasNoId) {
  const uint32_t c = comm("default_pg:0", 8), both = group();
  const uint32_t one = coll(c, both), other = coll(c, both), later = coll(c);
  number_all();
  EXPECT_EQ(at(one), kNone);
  EXPECT_EQ(at(other), kNone);
  EXPECT_EQ(at(later), is({"0", 2, false, 0, 1, 8}));
}

TEST_F(TorchGroupsTest, AnAllToAllIsACollective) {
  const uint32_t c = comm("default_pg:0", 8, 0, 3), all = group();
  std::vector<uint32_t> parts;
  for (int32_t peer = 0; peer < 8; ++peer) {
    parts.push_back(pair(c, peer, all));
    parts.push_back(pair(c, peer, all));
  }
  const uint32_t later = coll(c), send = pair(c, 1);
  number_all();
  for (const uint32_t part : parts) EXPECT_EQ(at(part), kNone) << "PyTorch records one operation";
  EXPECT_EQ(at(later), is({"0", 2, false, 0, 1, 8}));
  EXPECT_EQ(at(send), is({"0", 1, true, 0, 1, 8}));
}

// A batch of sends and receives is +1 among them, an all-to-all with nothing for oneself +1 among the
// collectives.
TEST_F(TorchGroupsTest, NothingIsKnownAfterWhatMayBeEither) {
  const uint32_t c = comm("default_pg:0", 8, 0, 3), batch = group();
  const uint32_t before = coll(c), one = pair(c, 1, batch), other = pair(c, 2, batch), after = coll(c),
                 send = pair(c, 1);
  number_all();
  EXPECT_EQ(at(before), is({"0", 1, false, 0, 1, 8}));
  for (const uint32_t op : {one, other, after, send}) EXPECT_EQ(at(op), kNone) << op;
}

TEST_F(TorchGroupsTest, AGroupOfNcclOverSeveralCommunicatorsEndsWhatIsKnown) {
  const uint32_t a = comm("default_pg:0", 8), b = comm("undefined:1", 8), both = group();
  const uint32_t one = coll(a, both), other = coll(b, both), later = coll(b);
  number_all();
  for (const uint32_t op : {one, other, later}) EXPECT_EQ(at(op), kNone) << op;
}

// PyTorch sends between two ranks on a communicator of the pair's own, under the name of the group.
TEST_F(TorchGroupsTest, APairsCommunicatorIsNoGroup) {
  members.add(5, 2, 0, 3);
  members.add(5, 2, 1, 4);
  members.finish();
  const uint32_t only_sends = pair(comm("undefined:4", 2, 5), 1);
  const uint32_t group = comm("default_pg:0", 8), own = comm("default_pg:0", 2, 5);
  const uint32_t send = pair(own, 1), reduce = coll(group);
  number_all();
  EXPECT_EQ(at(only_sends), kNone);
  EXPECT_EQ(at(send), kNone);
  EXPECT_EQ(at(reduce), is({"0", 1, false, 0, 1, 8}));
}

TEST_F(TorchGroupsTest, TwoCommunicatorsOfOneGroupAtOnceShareItsNumbers) {
  const uint32_t a = coll(comm("default_pg:0", 8)), b = coll(comm("default_pg:0", 8));
  number_all();
  EXPECT_EQ(at(a), kNone);
  EXPECT_EQ(at(b), kNone);
}

TEST_F(TorchGroupsTest, AGroupThatIsMadeAgainCountsFromOne) {
  const uint32_t first = comm("default_pg:0", 8), again = comm("default_pg:0", 8);
  trace.comms.end_ns[first] = 10;
  trace.comms.init_ns[again] = 20;
  const uint32_t a = coll(first), b = coll(again);
  number_all();
  EXPECT_EQ(at(a), at(b));
  EXPECT_EQ(at(b), is({"0", 1, false, 0, 1, 8}));
}

// NCCL's own numbers, by function, show what a ring or a full disk has lost.
TEST_F(TorchGroupsTest, AGapInNcclsNumbersEndsWhatIsKnown) {
  const uint32_t c = comm("default_pg:0", 8);
  uint32_t ops[5];
  const uint64_t seqs[] = {0, 0, 1, kNoSeq, 4};
  for (int i = 0; i < 5; ++i) {
    ops[i] = coll(c);
    trace.ops.seq[ops[i]] = seqs[i];
    if (i == 1) trace.ops.shape[ops[i]] = broadcast;
  }
  const uint32_t ring = comm("undefined:1", 8);
  const uint32_t cut = coll(ring);
  trace.ops.seq[cut] = 100;
  number_all();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(at(ops[i]).seq, i + 1);
  EXPECT_EQ(at(ops[4]), kNone) << "3 came, or two that had no number";
  EXPECT_EQ(at(cut), kNone);
}

TEST_F(TorchGroupsTest, SendsHaveNoNumberThatTellsALoss) {
  const uint32_t c = comm("default_pg:0", 8);
  const uint32_t send = pair(c, 1), reduce = coll(c);
  trace.lose(0, "capture", "no_chunk", 1, "");
  number_all();
  EXPECT_EQ(at(send), kNone);
  EXPECT_EQ(at(reduce).seq, 1);
}

TEST_F(TorchGroupsTest, SaysNothingWhereTheNameIsNotPyTorchs) {
  const uint32_t own = coll(comm("my own name", 8)), empty = coll(comm("", 8)),
                 partial = coll(comm("mesh_tp:5", 4));
  number_all();
  for (const uint32_t op : {own, empty, partial}) EXPECT_EQ(at(op), kNone) << op;
}

TEST_F(TorchGroupsTest, DeclaredOperationsHaveTheNumberThatWasSaid) {
  const uint32_t c = comm("aiter_custom_ar", 3, 0, 0, 0);
  trace.comms.group_name[c] = trace.strings.intern("aiter_custom_ar");
  trace.comms.rank_start[c] = 0;
  trace.comms.rank_stride[c] = -1;
  const uint32_t reduce = op(c, -1, kNoRow), send = op(c, 1, kNoRow), zero = op(c, -1, kNoRow);
  for (const uint32_t row : {reduce, send, zero}) trace.ops.kind[row] = number(EventKind::kApiOp);
  trace.ops.seq[reduce] = 4;
  trace.ops.seq[send] = 8;
  trace.ops.flags[send] = kFlagP2p;
  trace.ops.seq[zero] = kNoSeq;
  number_all();
  EXPECT_EQ(at(reduce), is({"aiter_custom_ar", 5, false, 0, -1, 3}));
  EXPECT_EQ(at(send), is({"aiter_custom_ar", 9, true, 0, -1, 3}));
  EXPECT_EQ(at(zero), is({"aiter_custom_ar", 0, false, 0, -1, 3}));
}

}  // namespace
}  // namespace lockstep::model
