// SPDX-License-Identifier: Apache-2.0
#include "store/clickhouse/now/part_bytes.h"

#include <gtest/gtest.h>

namespace lockstep::store::clickhouse {
namespace {

using model::ProcessPart;

constexpr int64_t kStart = 1'700'000'000'000'000'000;

void add_op(ProcessPart& part, uint32_t index, int64_t called_ns, bool ended) {
  model::JobOps& ops = part.process.ops;
  ops.signature.push_back(static_cast<uint32_t>(index % 2));
  ops.index.push_back(index);
  ops.seq.push_back(index == 7 ? model::kNoIndex : index * 3);
  ops.called_ns.push_back(called_ns);
  ops.enqueued_ns.push_back(called_ns + 5);
  ops.launched_ns.push_back(0);
  ops.gpu_start_ns.push_back(ended ? called_ns + 9 : 0);
  ops.gpu_end_ns.push_back(ended ? called_ns + 100 : 0);
  ops.gpu_error_ns.push_back(-1);
  ops.flags.push_back(3);
  ops.gpu_source.push_back(2);
  ops.torch_comms_id.push_back(index == 9 ? ~uint64_t{0} : 0);
  ops.place.push_back(index == 9 ? part.strings.intern("train.py:9") : 0);
}

ProcessPart a_part() {
  ProcessPart part;
  model::Process& row = part.process.row;
  row.host = part.strings.intern(std::string_view("node\0'1", 7));
  row.pid = 4000;
  row.rank = 3;
  row.world = 8;
  row.local_rank = -1;
  row.last_ns = kStart + 50;
  part.process.lost = 2;
  part.process.ops.gpu_reported_from_ns = model::JobOps::kNeverReported;
  part.process.open_calls = {
      {.kind = 1, .member = 1, .func = part.strings.intern("Send"), .start_ns = kStart}};
  part.process.open_steps = {{.member = 0,
                              .peer = 2,
                              .channel = 1,
                              .is_send = true,
                              .wait = model::StepWait::kPeer,
                              .step = 4,
                              .steps = -1,
                              .since_ns = 7}};
  part.losses.append({0, part.strings.intern("read"), part.strings.intern("cut"), 5, 0});
  part.signatures = {
      {.func = part.strings.intern("AllReduce"), .root = -1, .kind = 2, .count = 4, .bytes = 16},
      {.func = part.strings.intern("Send"), .kind = 3, .bytes = ~uint64_t{0}}};
  part.comms = {{.comm_id = 0xabc, .name = part.strings.intern("dp"), .ranks = 8, .nodes = 2},
                {.comm_id = 0, .ranks = -1, .declared = true}};
  for (const uint32_t index : {0u, 6u, 7u, 9u}) add_op(part, index, kStart + index * 1000, index < 7);
  add_op(part, 40, kStart - 3, false);
  part.members.resize(2);
  part.members[0].comm = 0;
  part.members[0].rank = 3;
  part.members[0].ops = 4;
  part.members[0].counted = true;
  part.members[0].lanes = {{.peer = 2, .is_send = true, .first = 4, .ops = 1}};
  part.members[1].comm = 1;
  part.members[1].end_ns = kStart;
  return part;
}

std::optional<ProcessPart> read_back(const std::string& process, const std::vector<std::string>& members) {
  ProcessPart part;
  const auto count = unpack_process(process, part);
  if (!count || *count != members.size()) return std::nullopt;
  for (const std::string& member : members)
    if (!unpack_member(member, part)) return std::nullopt;
  return part;
}

TEST(PartBytes, ComeBackAsTheyWere) {
  const ProcessPart part = a_part();
  const std::vector<std::string> members = {pack_member(part, 0), pack_member(part, 1)};
  const auto back = read_back(pack_process(part), members);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->strings[back->process.row.host], std::string_view("node\0'1", 7));
  EXPECT_EQ(back->process.row.local_rank, -1);
  EXPECT_EQ(back->process.lost, 2u);
  EXPECT_EQ(back->process.ops.gpu_reported_from_ns, model::JobOps::kNeverReported);
  EXPECT_EQ(back->strings[back->process.open_calls.at(0).func], "Send");
  EXPECT_EQ(back->process.open_steps.at(0).wait, model::StepWait::kPeer);
  EXPECT_EQ(back->losses.count[0], 5u);
  const model::JobOps &ops = part.process.ops, &got = back->process.ops;
  EXPECT_EQ(got.index, ops.index);
  EXPECT_EQ(got.seq, ops.seq);
  EXPECT_EQ(got.called_ns, ops.called_ns);
  EXPECT_EQ(got.launched_ns, ops.launched_ns);
  EXPECT_EQ(got.gpu_end_ns, ops.gpu_end_ns);
  EXPECT_EQ(got.gpu_error_ns, ops.gpu_error_ns);
  EXPECT_EQ(got.torch_comms_id, ops.torch_comms_id);
  EXPECT_EQ(back->strings[got.place[3]], "train.py:9");
  for (size_t i = 0; i < ops.size(); ++i) {
    const model::Signature &was = part.signatures[ops.signature[i]], &is = back->signatures[got.signature[i]];
    EXPECT_EQ(back->strings[is.func], part.strings[was.func]) << i;
    EXPECT_EQ(is.bytes, was.bytes) << i;
    EXPECT_EQ(is.root, was.root) << i;
  }
  ASSERT_EQ(back->members.size(), 2u);
  EXPECT_TRUE(back->members[0].counted);
  EXPECT_EQ(back->members[0].lanes.at(0).first, 4u);
  EXPECT_EQ(back->members[1].end_ns, kStart);
  EXPECT_TRUE(back->comms[1].declared);
  EXPECT_EQ(back->comms[0].comm_id, 0xabcu);
}

// Whatever a store gives back is a part whose numbers fit each other, or none.
TEST(PartBytes, MayBeAnything) {
  const ProcessPart part = a_part();
  const std::string process = pack_process(part), member = pack_member(part, 0);
  size_t taken = 0;
  const auto offer = [&](const std::string& as_process, const std::string& as_member) {
    const auto back = read_back(as_process, {as_member, pack_member(part, 1)});
    if (!back) return;
    ++taken;
    const model::Member& of = back->members[0];
    const size_t ops = back->process.ops.size();
    EXPECT_LE(size_t{of.first} + of.ops, ops);
    for (const model::Lane& lane : of.lanes) EXPECT_LE(size_t{lane.first} + lane.ops, ops);
    for (const uint32_t signature : back->process.ops.signature)
      EXPECT_LT(signature, back->signatures.size());
  };
  for (size_t at = 0; at < process.size(); ++at) offer(process.substr(0, at), member);
  for (size_t at = 0; at < member.size(); ++at) offer(process, member.substr(0, at));
  EXPECT_EQ(taken, 0u) << "what is cut is not whole";
  offer(process + '\0', member);
  offer(process, member + '\0');
  EXPECT_EQ(taken, 0u);
  for (const int change : {1, 0x40, 0x80, 0xff}) {
    for (size_t at = 0; at < process.size(); ++at) {
      std::string other = process;
      other[at] = static_cast<char>(other[at] ^ change);
      offer(other, member);
    }
    for (size_t at = 0; at < member.size(); ++at) {
      std::string other = member;
      other[at] = static_cast<char>(other[at] ^ change);
      offer(process, other);
    }
  }
}

}  // namespace
}  // namespace lockstep::store::clickhouse
