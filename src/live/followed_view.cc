// SPDX-License-Identifier: Apache-2.0
// A part has the newest operations of a process alone, but their numbers count all: what it called is known
// exactly, and what that moved is estimated from those that are there, as LiveTail does.
#include "live/followed_view.h"

#include <algorithm>

#include "base/hex.h"
#include "model/names/who.h"

namespace lockstep::live {
namespace {

using model::FollowedProcess;
using model::JobOps;
using model::kNoIndex;
using model::ProcessPart;

// Calls visit(first, count) with the collectives and each lane of a member.
template <class Visit>
void each_stream(const model::Member& member, Visit visit) {
  if (member.ops > 0) visit(member.first, member.ops);
  for (const model::Lane& lane : member.lanes)
    if (lane.ops > 0) visit(lane.first, lane.ops);
}

std::string comm_name(const ProcessPart& part, uint32_t comm) {
  if (comm >= part.comms.size()) return {};
  const std::string_view name = part.strings[part.comms[comm].name];
  return name.empty() && part.comms[comm].comm_id != 0 ? hex(part.comms[comm].comm_id) : std::string(name);
}

void keep_newest(const JobOps& ops, uint32_t op, SeenComm& comm, std::string_view func) {
  if (ops.seq[op] == kNoIndex) return;
  auto& newest = comm.functions[std::string(func)];
  if (newest.started_ns != 0 && newest.newest >= ops.seq[op]) return;
  newest = {.newest = ops.seq[op], .started_ns = ops.entered_ns(op)};
}

void keep_oldest(std::optional<SeenOp>& kept, SeenOp op) {
  if (!kept || op.age_ns > kept->age_ns) kept = std::move(op);
}

class Described {
 public:
  Described(const ProcessPart& part, SeenProcess& seen) : part_(part), ops_(part.process.ops), seen_(seen) {}

  void add(uint32_t number) {
    const model::Member& member = part_.members[number];
    const ProcessPart::Comm& of = part_.comms[number];
    SeenComm comm{.key = hex(of.comm_id),
                  .name = comm_name(part_, number),
                  .rank = member.rank,
                  .ranks = of.ranks,
                  .ended = member.end_ns != 0,
                  .functions = {}};
    // Older operations are not here, or are not counted: what is not named may have been called long ago.
    const uint32_t called = member.ops == 0 ? 0 : ops_.index[member.first + member.ops - 1] + 1;
    comm.from_start = member.counted && called == member.ops;
    for (uint32_t op = member.first; op < member.first + member.ops; ++op)
      keep_newest(ops_, op, comm, func(op));
    each_stream(member, [&](uint32_t first, uint32_t count) {
      for (uint32_t op = first; op < first + count; ++op) look_at(op, number);
    });
    // Nothing says who else is in one without an id.
    if (of.comm_id != 0) seen_.comms.push_back(std::move(comm));
  }
  void add_open() {
    for (const model::OpenCall& call : part_.process.open_calls)
      open({std::string(part_.strings[call.func]), comm_name(part_, call.member), {}, age(call.start_ns)});
    for (const model::OpenStep& step : part_.process.open_steps)
      open({step.is_send ? "network send" : "network receive",
            comm_name(part_, step.member),
            {},
            age(step.since_ns)});
  }

 private:
  std::string_view func(uint32_t op) const {
    return part_.strings[part_.signatures[ops_.signature[op]].func];
  }
  int64_t age(int64_t ns) const { return std::max<int64_t>(seen_.now_ns - ns, 0); }
  void open(SeenOp op) {
    ++seen_.open;
    keep_oldest(seen_.oldest_open, std::move(op));
  }
  void look_at(uint32_t op, uint32_t comm) {
    SeenOp one{std::string(func(op)), comm_name(part_, comm), std::nullopt, age(ops_.entered_ns(op))};
    if (ops_.seq[op] != kNoIndex) one.number = ops_.seq[op];
    if (ops_.gpu_start_ns[op] != 0 && ops_.gpu_end_ns[op] == 0) open(one);
    if (!seen_.last || one.age_ns < seen_.last->age_ns) seen_.last = std::move(one);
  }

  const ProcessPart& part_;
  const JobOps& ops_;
  SeenProcess& seen_;
};

}  // namespace

FollowedView::Counted FollowedView::counted(const FollowedProcess& process, const Counted& before) {
  const JobOps& ops = process.part->process.ops;
  Counted now{.seen_ns = process.seen_ns};
  uint64_t fresh = 0;
  double fresh_bytes = 0;
  for (const model::Member& member : process.part->members) {
    each_stream(member, [&](uint32_t first, uint32_t count) {
      now.ops += uint64_t{ops.index[first + count - 1]} + 1;
      for (uint32_t op = first; op < first + count; ++op) {
        now.newest_ns = std::max(now.newest_ns, ops.entered_ns(op));
        if (ops.entered_ns(op) <= before.newest_ns) continue;
        ++fresh;
        fresh_bytes += static_cast<double>(process.part->signatures[ops.signature[op]].bytes);
      }
    });
  }
  // Rates need two looks.
  if (before.seen_ns == 0 || fresh == 0 || now.ops <= before.ops) return now;
  const double seconds = static_cast<double>(now.seen_ns - before.seen_ns) / 1e9;
  now.ops_per_s = static_cast<double>(now.ops - before.ops) / seconds;
  now.bytes_per_s = now.ops_per_s * fresh_bytes / static_cast<double>(fresh);
  return now;
}

std::vector<SeenProcess> FollowedView::look(const std::vector<FollowedProcess>& processes) {
  int64_t newest_ns = 0;
  for (const FollowedProcess& process : processes) newest_ns = std::max(newest_ns, process.seen_ns);
  std::map<Key, Counted> counts;
  std::vector<SeenProcess> all;
  for (const FollowedProcess& process : processes) {
    const ProcessPart& part = *process.part;
    const model::Process& row = part.process.row;
    const model::Who who = model::who(row, part.strings);
    const Key key{who.host, who.boot_id, row.pid, row.start_ns};
    const auto known = counted_.find(key);
    const Counted before = known == counted_.end() ? Counted{} : known->second;
    const Counted& now = counts[key] = process.seen_ns > before.seen_ns ? counted(process, before) : before;
    SeenProcess& seen = all.emplace_back();
    seen.host = who.host;
    seen.boot_id = who.boot_id;
    seen.device = who.device;
    seen.pci = who.pci;
    seen.pid = row.pid;
    seen.start_ns = row.start_ns;
    seen.rank = row.rank;
    seen.world = row.world;
    seen.closed = process.closed;
    seen.liveness = process.liveness;
    // Of one that nobody looks at any more, the others tell how long ago its last sign of life was.
    const bool is_looked_at =
        process.closed || process.beats || process.liveness != model::Liveness::kUnknown;
    seen.now_ns = is_looked_at ? process.seen_ns : newest_ns;
    if (process.heartbeat_ns != 0)
      seen.heartbeat_age_ns = std::max<int64_t>(seen.now_ns - process.heartbeat_ns, 0);
    Described described(part, seen);
    for (uint32_t member = 0; member < part.members.size(); ++member) described.add(member);
    described.add_open();
    seen.ops_per_s = now.ops_per_s;
    seen.bytes_per_s = now.bytes_per_s;
    seen.dropped = part.process.lost;
  }
  counted_ = std::move(counts);
  return all;
}

}  // namespace lockstep::live
