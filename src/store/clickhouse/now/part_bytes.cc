// SPDX-License-Identifier: Apache-2.0
// The newest state of a process in few bytes, since every host sends it every two seconds. Numbers are
// varints; indexes, times and sequence numbers are distances from those before, which are short. One
// description of each row serves writing and reading (byte_archive.h). Whatever comes back may be damaged:
// counts are held against the bytes that are left, numbers against their types, and a part that is not
// plausible is refused as a whole.
#include "store/clickhouse/now/part_bytes.h"

#include <algorithm>
#include <tuple>

#include "model/limits.h"
#include "store/clickhouse/now/byte_archive.h"

namespace lockstep::store::clickhouse {
namespace {

using model::JobOps;
using model::kNoIndex;
using model::ProcessPart;

// Stores hold these bytes: a change of any order or meaning below takes a new number.
constexpr uint64_t kLayout = 1;

template <class Archive>
void layout(Archive& archive) {
  uint64_t number = kLayout;
  archive.number(number);
  if constexpr (Archive::kReads) {
    if (number != kLayout) archive.fail();
  }
}

// Calls visit(archive, thing) for each of a list.
template <class Archive, class List, class Visit>
void each(Archive& archive, List& list, size_t least_bytes, Visit visit) {
  if constexpr (Archive::kReads)
    list.resize(archive.count(least_bytes));
  else
    archive.number(list.size());
  for (auto& thing : list) visit(archive, thing);
}

template <class Archive, class Row>
void process_row(Archive& archive, Row& row) {
  model::Process::each_column(row, [&](std::string_view type, auto&&, auto&&, auto& field) {
    if constexpr (std::is_same_v<std::remove_const_t<std::remove_reference_t<decltype(field)>>,
                                 model::StringId>) {
      if (type == "StringId") return archive.text(field);
    }
    archive.number(field);
  });
}

template <class Archive, class Part>
void process_bytes(Archive& archive, Part& part) {
  layout(archive);
  auto& process = part.process;
  process_row(archive, process.row);
  archive.number(process.lost);
  archive.number(process.holes);
  archive.number(process.kernels);
  archive.number(process.graphs);
  archive.number(process.drives_others);
  archive.number(process.ops.gpu_reported_from_ns);
  each(archive, process.open_calls, 4, [](Archive& in, auto& call) {
    in.number(call.kind);
    in.number(call.member);
    in.text(call.func);
    in.number(call.start_ns);
  });
  each(archive, process.open_steps, 8, [](Archive& in, auto& step) {
    in.number(step.member);
    in.number(step.peer);
    in.number(step.channel);
    in.number(step.is_send);
    auto wait = static_cast<uint8_t>(step.wait);
    in.number(wait);
    in.number(step.step);
    in.number(step.steps);
    in.number(step.since_ns);
    if constexpr (Archive::kReads) {
      if (wait > static_cast<uint8_t>(model::StepWait::kPosted)) in.fail();
      step.wait = static_cast<model::StepWait>(wait);
    }
  });
  // Losses are a table of columns, which each() cannot go through: they pass through a list of rows.
  std::vector<model::Loss> losses;
  if constexpr (!Archive::kReads) {
    for (size_t i = 0; i < part.losses.size(); ++i) losses.push_back(part.losses.row(i));
  }
  each(archive, losses, 4, [](Archive& in, auto& loss) {
    in.text(loss.stage);
    in.text(loss.kind);
    in.number(loss.count);
    in.text(loss.detail);
  });
  if constexpr (Archive::kReads) {
    for (const model::Loss& loss : losses) part.losses.append(loss);
  }
}

// Numbers that fit their types and still would break what follows: ranks become sizes of lists, times are
// subtracted.
bool is_plausible(const ProcessPart& part) {
  const model::Process& row = part.process.row;
  const auto is_rank = [](int64_t rank) { return rank >= -1 && rank < model::kMostRanks; };
  const bool ranks = is_rank(row.rank) && is_rank(row.local_rank) && is_rank(row.node_rank) &&
                     is_rank(int64_t{row.world} - 1);
  const bool times =
      is_time(row.start_ns) && is_time(row.first_ns) && is_time(row.last_ns) && is_time(row.heartbeat_ns);
  const auto& calls = part.process.open_calls;
  const auto& steps = part.process.open_steps;
  return ranks && times &&
         std::all_of(calls.begin(), calls.end(), [](const auto& call) { return is_time(call.start_ns); }) &&
         std::all_of(steps.begin(), steps.end(), [](const auto& step) { return is_time(step.since_ns); });
}

// What of an operation is known, a bit each.
constexpr uint64_t kCalled = 1, kEnqueued = 2, kLaunched = 4, kBegun = 8, kEnded = 16, kSeq = 32, kId = 64,
                   kPlace = 128;
constexpr std::pair<uint64_t, lockstep::Column<int64_t> JobOps::*> kTimes[] = {
    {kCalled, &JobOps::called_ns},
    {kEnqueued, &JobOps::enqueued_ns},
    {kLaunched, &JobOps::launched_ns},
    {kBegun, &JobOps::gpu_start_ns},
    {kEnded, &JobOps::gpu_end_ns}};

// The operations of one bucket: numbers and times as distances from those before.
class OpWriter {
 public:
  OpWriter(const JobOps& ops, ByteWriter& out) : ops_(ops), out_(out) {}

  void write(uint32_t i, const std::vector<uint32_t>& signatures) {
    // 0 where nothing was forgotten between two operations, the usual case.
    out_.number(ops_.index[i] - next_);
    next_ = ops_.index[i] + 1;
    out_.number(signatures[ops_.signature[i]]);
    const uint64_t id = ops_.comms_id(i);
    const model::StringId place = ops_.place_of(i);
    uint64_t known = (ops_.seq[i] != kNoIndex ? kSeq : 0) | (id != 0 ? kId : 0) | (place != 0 ? kPlace : 0);
    for (const auto& [bit, column] : kTimes) known |= (ops_.*column)[i] != 0 ? bit : 0;
    out_.number(known);
    for (const auto& [bit, column] : kTimes) {
      if ((known & bit) == 0) continue;
      // Unsigned, because the difference of two times may overflow, and wraps back when it is read.
      const auto ns = static_cast<uint64_t>((ops_.*column)[i]);
      out_.signed_number(static_cast<int64_t>(ns - time_));
      time_ = ns;
    }
    if ((known & kSeq) != 0) {
      out_.signed_number(int64_t{ops_.seq[i]} - seq_);
      seq_ = ops_.seq[i];
    }
    if ((known & kId) != 0) out_.number(id);
    if ((known & kPlace) != 0) out_.text(place);
    out_.number(ops_.flags[i]);
    out_.number(ops_.gpu_source[i]);
    out_.number(ops_.gpu_error_ns[i]);
  }

 private:
  const JobOps& ops_;
  ByteWriter& out_;
  uint32_t next_ = 0;
  uint64_t time_ = 0;
  int64_t seq_ = 0;
};

class OpReader {
 public:
  static constexpr size_t kLeastBytes = 6;  // of an operation
  OpReader(JobOps& ops, ByteReader& in) : ops_(ops), in_(in) {}

  void read(size_t signatures, uint32_t first_signature) {
    const uint64_t distance = in_.unsigned_number(), signature = in_.unsigned_number(),
                   known = in_.unsigned_number();
    // Indexes must ascend and stay below kNoIndex, which means "none": binary searches rely on both.
    if (distance >= kNoIndex || next_ + distance >= kNoIndex || signature >= signatures) return in_.fail();
    ops_.index.push_back(static_cast<uint32_t>(next_ + distance));
    next_ += distance + 1;
    ops_.signature.push_back(static_cast<uint32_t>(first_signature + signature));
    for (const auto& [bit, column] : kTimes) {
      if ((known & bit) != 0) time_ += static_cast<uint64_t>(in_.signed_number());
      const auto ns = static_cast<int64_t>(time_);
      if (!is_time(ns)) in_.fail();
      (ops_.*column).push_back((known & bit) != 0 ? ns : 0);
    }
    // The remainder keeps the sum from overflowing; a number that was made here is never changed by it.
    if ((known & kSeq) != 0) seq_ += in_.signed_number() % int64_t{kNoIndex};
    if (seq_ < 0 || seq_ >= int64_t{kNoIndex}) return in_.fail();
    ops_.seq.push_back((known & kSeq) != 0 ? static_cast<uint32_t>(seq_) : kNoIndex);
    uint64_t id = 0;
    model::StringId place = 0;
    if ((known & kId) != 0) in_.number(id);
    if ((known & kPlace) != 0) in_.text(place);
    ops_.torch_comms_id.push_back(id);
    ops_.place.push_back(place);
    in_.number(ops_.flags.emplace_back());
    in_.number(ops_.gpu_source.emplace_back());
    in_.number(ops_.gpu_error_ns.emplace_back());
  }

 private:
  JobOps& ops_;
  ByteReader& in_;
  uint64_t next_ = 0, time_ = 0;
  int64_t seq_ = 0;
};

template <class Archive, class Comm, class Member>
void member_row(Archive& archive, Comm& comm, Member& member) {
  archive.number(comm.comm_id);
  archive.text(comm.name);
  archive.text(comm.members);
  archive.number(comm.ranks);
  archive.number(comm.nodes);
  archive.number(comm.declared);
  archive.number(comm.context);
  archive.number(member.rank);
  archive.number(member.init_ns);
  archive.number(member.end_ns);
  archive.number(member.numbered);
  archive.number(member.counted);
}

template <class Archive, class Signature>
void signature_row(Archive& archive, Signature& signature) {
  for (auto* text : {&signature.func, &signature.datatype, &signature.algo, &signature.proto})
    archive.text(*text);
  archive.number(signature.root);
  archive.number(signature.kind);
  archive.number(signature.channels);
  archive.number(signature.count);
  archive.number(signature.bytes);
}

void write_signatures(const ProcessPart& part, const model::Member& member, ByteWriter& out,
                      std::vector<uint32_t>& numbers) {
  // Only signatures that this communicator uses are sent, numbered in the order of their first use.
  numbers.assign(part.signatures.size(), model::kNoRow);
  std::vector<uint32_t> used;
  const auto use = [&](uint32_t first, uint32_t count) {
    for (uint32_t i = first; i < first + count; ++i) {
      const uint32_t signature = part.process.ops.signature[i];
      if (numbers[signature] != model::kNoRow) continue;
      numbers[signature] = static_cast<uint32_t>(used.size());
      used.push_back(signature);
    }
  };
  use(member.first, member.ops);
  for (const model::Lane& lane : member.lanes) use(lane.first, lane.ops);
  out.number(used.size());
  for (const uint32_t signature : used) signature_row(out, part.signatures[signature]);
}

}  // namespace

std::string pack_process(const ProcessPart& part) {
  ByteWriter out(part.strings);
  out.number(part.members.size());
  process_bytes(out, part);
  return out.take();
}

std::optional<uint64_t> unpack_process(std::string_view bytes, ProcessPart& part) {
  ByteReader in(bytes, part.strings);
  const uint64_t members = in.unsigned_number();
  process_bytes(in, part);
  return in.is_done() && is_plausible(part) ? std::optional(members) : std::nullopt;
}

std::string pack_member(const ProcessPart& part, uint32_t row) {
  const model::Member& member = part.members[row];
  ByteWriter out(part.strings);
  layout(out);
  member_row(out, part.comms[row], member);
  std::vector<uint32_t> numbers;
  write_signatures(part, member, out, numbers);
  const auto write = [&](uint32_t first, uint32_t count) {
    out.number(count);
    OpWriter bucket(part.process.ops, out);
    for (uint32_t i = first; i < first + count; ++i) bucket.write(i, numbers);
  };
  write(member.first, member.ops);
  out.number(member.lanes.size());
  for (const model::Lane& lane : member.lanes) {
    out.number(lane.peer);
    out.number(lane.is_send);
    write(lane.first, lane.ops);
  }
  return out.take();
}

bool unpack_member(std::string_view bytes, ProcessPart& part) {
  ByteReader in(bytes, part.strings);
  layout(in);
  model::Member member;
  member.comm = static_cast<uint32_t>(part.comms.size());
  member_row(in, part.comms.emplace_back(), member);
  const auto first_signature = static_cast<uint32_t>(part.signatures.size());
  // Four texts and five numbers take at least a byte each.
  const size_t signatures = in.count(9);
  for (size_t i = 0; i < signatures; ++i) signature_row(in, part.signatures.emplace_back());
  JobOps& ops = part.process.ops;
  const auto read = [&](uint32_t& first, uint32_t& count) {
    first = static_cast<uint32_t>(ops.size());
    count = static_cast<uint32_t>(in.count(OpReader::kLeastBytes));
    OpReader bucket(ops, in);
    for (uint32_t i = 0; i < count && !in.failed(); ++i) bucket.read(signatures, first_signature);
  };
  read(member.first, member.ops);
  // A peer, a direction and a count.
  member.lanes.resize(in.count(3));
  std::pair<int32_t, bool> before{-1, true};
  for (model::Lane& lane : member.lanes) {
    in.number(lane.peer);
    in.number(lane.is_send);
    // Others are looked for by bisection.
    if (std::pair(lane.peer, lane.is_send) <= before) in.fail();
    before = {lane.peer, lane.is_send};
    read(lane.first, lane.ops);
    if (lane.ops == 0) in.fail();
  }
  const model::ProcessPart::Comm& comm = part.comms.back();
  const bool is_known = member.rank >= -1 && comm.ranks >= -1 && comm.ranks <= model::kMostRanks &&
                        is_time(member.init_ns) && is_time(member.end_ns);
  part.members.push_back(std::move(member));
  return in.is_done() && is_known;
}

}  // namespace lockstep::store::clickhouse
