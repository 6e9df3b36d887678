// SPDX-License-Identifier: Apache-2.0
// The shortest time that any member is in a collective is the collective's own; what another is in it for
// longer, it waits. Both are read on one host's clock, so that offsets do not matter. A rank that waits in
// one and again in the next has come first again: it worked meanwhile, at most as long as it waited before,
// and gained at most what it waits after. Or its work starts over with each, and another works longer. Work
// that went on shows: it is done when the collective is, or the sooner after it, the longer that lasted.
#include "analysis/straggler/cost/hidden_work.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "analysis/straggler/lateness/lateness.h"

namespace lockstep::analysis::straggler {
namespace {

constexpr int64_t kNobody = std::numeric_limits<int64_t>::max();

}  // namespace

HiddenWork::HiddenWork(const model::Job& job, std::span<const ExclusiveTimes> times)
    : job_(job), times_(times), comms_(job.comms.size()) {
  for (size_t i = 0; i < comms_.size(); ++i) {
    find_shortest(job.comms[i], comms_[i]);
    if (!comms_[i].shortest_ns.empty()) look_beside(job.comms[i], comms_[i]);
    comms_[i].hides.resize(comms_[i].shortest_ns.size());
  }
  for (uint32_t process = 0; process < times.size(); ++process) {
    if (!times[process].comparable) continue;
    const std::vector<float> hidden = of(process);
    for (const uint32_t row : job.processes[process].members) {
      const model::Member& member = job.members[row];
      for (uint32_t op = member.first; op < member.first + member.ops; ++op) {
        if (hidden[op] > kJitterNs) comms_[member.comm].hides[column_of(member, op)] = true;
      }
    }
  }
}

std::vector<bool> HiddenWork::near(uint32_t process) const {
  const model::JobProcess& its = job_.processes[process];
  std::vector<bool> out(its.ops.size());
  for (const uint32_t row : its.members) {
    const model::Member& member = job_.members[row];
    const std::vector<bool>& hides = comms_[member.comm].hides;
    for (uint32_t op = member.first; op < member.first + member.ops; ++op) {
      const uint64_t at = column_of(member, op);
      out[op] = is_matched(member) && at < hides.size() && hides[at];
    }
  }
  return out;
}

template <class Visit>
void HiddenWork::for_each_pair(const model::Member& member, const Visit& visit) const {
  const ExclusiveTimes& times = times_[member.process];
  for (uint32_t op = member.first + 1; op < member.first + member.ops; ++op) {
    const uint32_t at = times.place[op];
    if (at != 0 && times.order[at - 1] == op - 1) visit(op, op - 1);
  }
}

int64_t HiddenWork::length_ns(const model::Member& member, uint32_t op) const {
  const model::JobOps& ops = job_.ops(member);
  return ops.is_placed(op) && ops.gpu_end_ns[op] != 0 ? ops.gpu_end_ns[op] - ops.gpu_start_ns[op] : 0;
}

int64_t HiddenWork::wait_ns(const model::Member& member, uint32_t op) const {
  const Comm& comm = comms_[member.comm];
  const int64_t length = length_ns(member, op);
  const uint64_t at = column_of(member, op);
  return length == 0 || at >= comm.shortest_ns.size() ? 0 : length - comm.shortest_ns[at];
}

int64_t HiddenWork::gap_ns(const model::Member& member, uint32_t before, uint32_t op) const {
  const model::JobOps& ops = job_.ops(member);
  return std::max<int64_t>(ops.gpu_start_ns[op] - ops.gpu_end_ns[before], 0);
}

void HiddenWork::find_shortest(const model::JobComm& of, Comm& comm) const {
  uint64_t ops = 0, next = 0;
  comm.oldest = std::numeric_limits<uint32_t>::max();
  for (const uint32_t row : of.members) {
    if (row == model::kNoRow || !is_matched(job_.members[row])) continue;
    ops += job_.members[row].ops;
    comm.oldest = std::min(comm.oldest, job_.oldest_index(job_.members[row]));
    next = std::max<uint64_t>(next, job_.next_index(job_.members[row]));
  }
  if (ops == 0 || next - comm.oldest > most_indexes(ops)) return;
  comm.shortest_ns.assign(next - comm.oldest, kNobody);
  for (const uint32_t row : of.members) {
    if (row == model::kNoRow || !is_matched(job_.members[row])) continue;
    const model::Member& member = job_.members[row];
    for (uint32_t op = member.first; op < member.first + member.ops; ++op) {
      const uint64_t at = column_of(member, op);
      const int64_t length = length_ns(member, op);
      if (length != 0 && at < comm.shortest_ns.size())
        comm.shortest_ns[at] = std::min(comm.shortest_ns[at], length);
    }
  }
}

void HiddenWork::look_beside(const model::JobComm& of, Comm& comm) const {
  struct Round {
    int64_t lasted = 0, until_next = 0;
  };
  for (const uint32_t row : of.members) {
    if (row == model::kNoRow || !is_matched(job_.members[row])) continue;
    const model::Member& member = job_.members[row];
    if (!times_[member.process].comparable) continue;
    const model::JobOps& ops = job_.ops(member);
    if (comm.beside.empty()) {
      const std::vector<uint32_t> sequence(ops.signature.begin() + member.first,
                                           ops.signature.begin() + member.first + member.ops);
      comm.rounds = Rounds(sequence, job_.oldest_index(member));
      comm.beside.resize(comm.rounds.length());
    }
    std::vector<std::optional<Round>> rounds(comm.beside.size());
    for_each_pair(member, [&](uint32_t op, uint32_t before) {
      const std::optional<size_t> place = comm.rounds.place(ops.index[op]);
      if (!place) return;
      std::optional<Round>& then = rounds[*place];
      const Round now{length_ns(member, before), gap_ns(member, before, op)};
      if (now.lasted == 0 || length_ns(member, op) == 0 || static_cast<float>(now.until_next) <= kJitterNs)
        return;
      if (then)
        comm.beside[*place].add(static_cast<double>(now.lasted - then->lasted),
                                static_cast<double>(then->until_next - now.until_next));
      then = now;
    });
  }
}

std::vector<float> HiddenWork::of(uint32_t process) const {
  const model::JobProcess& its = job_.processes[process];
  std::vector<float> hidden(its.ops.size());
  for (const uint32_t row : its.members) {
    const model::Member& member = job_.members[row];
    const Comm& comm = comms_[member.comm];
    if (!is_matched(member)) continue;
    for_each_pair(member, [&](uint32_t op, uint32_t before) {
      const int64_t wait = std::min(wait_ns(member, before), wait_ns(member, op));
      if (wait <= 0) return;
      const bool is_through = static_cast<float>(gap_ns(member, before, op)) <= kJitterNs;
      const std::optional<size_t> place = comm.rounds.place(its.ops.index[op]);
      if (is_through || (place && comm.beside[*place].answer() == BesideChanges::Answer::kYes))
        hidden[op] = static_cast<float>(wait);
    });
  }
  return hidden;
}

}  // namespace lockstep::analysis::straggler
