// SPDX-License-Identifier: Apache-2.0
// Collects the bounds on each clock's offset. No rank can leave an all-reduce before the last one has entered
// it, so an entry on one host and an exit on another bound their offset. Clocks become known outwards from
// the reference host, in rounds: a host without a common operation is reached through others. The scan of a
// communicator ends at its first difference, since behind it operations may be matched wrongly.
#include "job/clock/proofs.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "job/match/match.h"

namespace lockstep::job::clock {
namespace {

using model::JobOps;
using model::kNoRow;
using model::Member;

constexpr int64_t kMaxTime = int64_t{1} << 62;
constexpr size_t kBlock =
    256;  // operations that are looked at together: a block of every member stays in the cache

enum class Need : uint8_t { kNothing, kEverybody, kRoot, kByRoot };

// Whose entry a rank needs before it can leave. Of others nothing is assumed: a ring all-reduce waits for
// everybody, a reduce for nobody but at its root.
Need need_of(const model::Job& job, const model::Signature& s) {
  if (match::waits_for_all(job, s)) return Need::kEverybody;
  if (s.kind != model::number(model::EventKind::kColl)) return Need::kNothing;
  const std::string_view func = job.text(s.func);
  if (func == "Broadcast" || func == "Scatter") return Need::kRoot;
  return func == "Reduce" || func == "Gather" ? Need::kByRoot : Need::kNothing;
}

int64_t sane(int64_t ns) { return ns > 0 && ns < kMaxTime ? ns : 0; }
bool has_gpu_times(const JobOps& ops, size_t i) {
  return ops.gpu_error_ns[i] >= 0 && ops.gpu_source[i] != static_cast<uint8_t>(model::GpuTimeSource::kApi);
}

// 0 unknown
int64_t entered(const JobOps& ops, size_t i) {
  int64_t ns = std::max(ops.called_ns[i], ops.launched_ns[i]);
  // The latest of what is known to lie before the entry makes the sharpest bound that is still true.
  if (ops.is_replay(i)) ns = std::max(ns, ops.enqueued_ns[i]);
  if (ops.gpu_start_ns[i] > 0 && has_gpu_times(ops, i))
    ns = std::max(ns, ops.gpu_start_ns[i] - ops.gpu_error_ns[i]);
  return sane(ns);
}
int64_t left(const JobOps& ops, size_t i, const std::vector<bool>& ends_with_data) {
  if (ops.gpu_end_ns[i] <= 0 || !has_gpu_times(ops, i)) return 0;
  // That stamp may come before the data of others has: such an end proves nothing.
  if (ops.gpu_source[i] == static_cast<uint8_t>(model::GpuTimeSource::kKernelCh) &&
      !ends_with_data[ops.signature[i]])
    return 0;
  return sane(std::min(ops.gpu_end_ns[i], kMaxTime) + ops.gpu_error_ns[i]);
}

// The proven times of one operation on one clock; 0 unknown.
struct Times {
  int64_t entered = 0, left = 0;  // of the last rank to enter, of the first to leave
  void enter(int64_t ns) { entered = std::max(entered, ns); }
  void leave(int64_t ns) { left = left == 0 || (ns != 0 && ns < left) ? ns : left; }
};

class Prover {
 public:
  Prover(const model::Job& job, const std::vector<uint32_t>& unit_of_host, uint32_t units)
      : job_(job),
        unit_of_host_(unit_of_host),
        units_(units),
        span_(units),
        essence_(match::essences(job)),
        slot_of_(units, kNoClock) {
    for (const model::Signature& s : job.signatures) {
      need_.push_back(need_of(job, s));
      ends_with_data_.push_back(match::ends_with_data(job, s));
    }
    for (const model::JobProcess& process : job.processes) {
      bool timed = false;
      for (size_t i = 0; i < process.ops.size() && !timed; ++i)
        timed = left(process.ops, i, ends_with_data_) != 0;
      timed_.push_back(timed);
    }
    for (const Member& member : job.members) widen(member);
  }

  std::vector<ClockUnit> run() {
    // The first clock is the reference. Each round reaches clocks that share operations with those proven so
    // far, and the last finds none.
    units_.front().clock = model::HostClock::same();
    for (bool progress = true; progress;) {
      progress = false;
      fits_.assign(units_.size(), std::nullopt);
      for (const model::JobComm& comm : job_.comms) look_at(comm);
      for (size_t unit = 0; unit < units_.size(); ++unit) {
        if (!fits_[unit]) continue;
        OffsetFit::Proven proven = fits_[unit]->fit();
        if (proven.knots.empty()) continue;
        units_[unit].clock = model::HostClock(std::move(proven.knots));
        units_[unit].contradictions = std::move(proven.contradictions);
        progress = true;
      }
    }
    return std::move(units_);
  }

 private:
  struct Span {
    int64_t from = kMaxTime, until = 0;
  };
  struct Walker {
    const Member* member;
    const JobOps* ops;
    uint32_t slot;  // of the clocks in this communicator
    uint32_t next, end;
  };

  uint32_t unit_of(const Member& member) const { return unit_of_host_[job_.processes[member.process].host]; }

  void widen(const Member& member) {
    uint32_t unit = unit_of(member);
    if (unit == kNoClock) return;
    const JobOps& ops = job_.ops(member);
    auto look = [&](uint32_t first, uint32_t count) {
      if (count == 0) return;
      for (size_t i : {first, first + count - 1}) {
        for (int64_t ns : {entered(ops, i), left(ops, i, ends_with_data_)}) {
          if (ns == 0) continue;
          span_[unit].from = std::min(span_[unit].from, ns);
          span_[unit].until = std::max(span_[unit].until, ns);
        }
      }
    };
    look(member.first, member.ops);
    for (const model::Lane& lane : member.lanes) look(lane.first, lane.ops);
  }

  // Only communicators that join a proven clock with one that is not say anything new.
  void look_at(const model::JobComm& comm) {
    for (uint32_t unit : slots_) slot_of_[unit] = kNoClock;
    slots_.clear();
    std::vector<Walker> walkers;
    // Without a single proven end there are no bounds: whole jobs without GPU times are through here at once.
    bool any_timed = false;
    for (uint32_t row : comm.members) {
      if (row == kNoRow) continue;
      const Member& member = job_.members[row];
      uint32_t unit = unit_of(member);
      if (unit == kNoClock || member.alignment == Member::Alignment::kNone) continue;
      if (slot_of_[unit] == kNoClock) {
        slot_of_[unit] = static_cast<uint32_t>(slots_.size());
        slots_.push_back(unit);
      }
      walkers.push_back(
          {&member, &job_.ops(member), slot_of_[unit], member.first, member.first + member.ops});
      any_timed = any_timed || timed_[member.process];
    }
    auto known = [this](uint32_t unit) { return units_[unit].clock.known(); };
    if (!any_timed || std::none_of(slots_.begin(), slots_.end(), known) ||
        std::all_of(slots_.begin(), slots_.end(), known))
      return;
    for (const Walker& walker : walkers) {
      for (const model::Lane& lane : walker.member->lanes) look_at(*walker.member, lane);
    }
    while (look_at_block(walkers)) {
    }
  }

  void look_at(const Member& receiver, const model::Lane& lane) {
    if (lane.is_send || !timed_[receiver.process]) return;
    const Member* sender = nullptr;
    const model::Lane* sends = match::counterpart(job_, receiver, lane, &sender);
    if (sends == nullptr || !match::pairs_comparable(job_, receiver, *sender)) return;
    uint32_t from = unit_of(*sender), to = unit_of(receiver);
    if (from == kNoClock || from == to || units_[from].clock.known() == units_[to].clock.known()) return;
    for (uint32_t op = lane.first; op < lane.first + lane.ops; ++op) {
      const auto send = job_.op_at(*sender, *sends, job_.ops(receiver).index[op]);
      if (!send) continue;
      Times sent, received;
      sent.enter(entered(job_.ops(*sender), *send));
      received.leave(left(job_.ops(receiver), op, ends_with_data_));
      if (units_[from].clock.known())
        // A receive cannot end before its send was entered. That is one side only: a send may end early, into
        // a buffer.
        bound(to, received, on_reference(from, sent));
      else
        bound(from, sent, on_reference(to, received));
    }
  }

  // False after the last block, or the first difference: behind it nothing is known to belong together.
  bool look_at_block(std::vector<Walker>& walkers) {
    // Blocks follow the smallest place that is left, so that gaps of all members are jumped over.
    uint64_t begin = UINT64_MAX;
    for (const Walker& w : walkers) {
      if (w.next < w.end) begin = std::min<uint64_t>(begin, w.ops->index[w.next]);
    }
    if (begin == UINT64_MAX) return false;
    times_.assign(kBlock * slots_.size(), {});
    std::fill_n(block_essence_, kBlock, kNoRow);
    size_t agreed = kBlock;
    for (Walker& w : walkers) {
      for (; w.next < w.end && w.ops->index[w.next] < begin + kBlock; ++w.next)
        take(w, static_cast<size_t>(w.ops->index[w.next] - begin), &agreed);
    }
    for (size_t k = 0; k < agreed; ++k) bound_all(&times_[k * slots_.size()]);
    return agreed == kBlock;
  }

  void take(const Walker& w, size_t k, size_t* agreed) {
    const JobOps& ops = *w.ops;
    uint32_t signature = ops.signature[w.next];
    uint32_t& essence = block_essence_[k];
    if (essence == kNoRow) essence = essence_[signature];
    // Members differ here. This place and all behind it bound nothing.
    if (essence != essence_[signature]) *agreed = std::min(*agreed, k);
    Need need = need_[signature];
    if (need == Need::kNothing) return;
    bool is_root = w.member->rank == job_.signatures[signature].root;
    Times& times = times_[k * slots_.size() + w.slot];
    // Whose entry counts: everybody's, the root's, or that of all but the root; below, whose leaving does.
    if (need == Need::kEverybody || is_root == (need == Need::kRoot)) times.enter(entered(ops, w.next));
    if (need == Need::kEverybody || is_root == (need == Need::kByRoot))
      times.leave(left(ops, w.next, ends_with_data_));
  }

  // `times`: by slot.
  void bound_all(const Times* times) {
    Times reference;
    for (size_t slot = 0; slot < slots_.size(); ++slot) {
      if (!units_[slots_[slot]].clock.known()) continue;
      Times known = on_reference(slots_[slot], times[slot]);
      reference.enter(known.entered);
      reference.leave(known.left);
    }
    if (reference.entered == 0 && reference.left == 0) return;
    for (size_t slot = 0; slot < slots_.size(); ++slot) {
      if (!units_[slots_[slot]].clock.known()) bound(slots_[slot], times[slot], reference);
    }
  }

  // On the reference clock, as early as the entry and as late as the leaving can have been.
  Times on_reference(uint32_t unit, Times times) const {
    const model::HostClock& clock = units_[unit].clock;
    if (clock.is_same()) return times;
    if (times.entered != 0) {
      auto offset = *clock.offset(times.entered);
      times.entered = sane(times.entered - offset.ns - offset.half_width_ns);
    }
    if (times.left != 0) {
      auto offset = *clock.offset(times.left);
      times.left = sane(times.left - offset.ns + offset.half_width_ns);
    }
    return times;
  }

  void bound(uint32_t unit, const Times& here, const Times& reference) {
    bool least = here.entered != 0 && reference.left != 0, most = here.left != 0 && reference.entered != 0;
    if (!least && !most) return;
    if (!fits_[unit]) fits_[unit].emplace(span_[unit].from, span_[unit].until, buckets());
    if (least) fits_[unit]->at_least(here.entered, here.entered - reference.left);
    if (most) fits_[unit]->at_most(here.left, here.left - reference.entered);
  }

  // 64 MiB over all clocks.
  size_t buckets() const { return std::clamp<size_t>((1u << 21) / units_.size(), 512, 8192); }

  const model::Job& job_;
  const std::vector<uint32_t>& unit_of_host_;
  std::vector<ClockUnit> units_;
  std::vector<Span> span_;                      // by unit
  std::vector<uint32_t> essence_;               // by signature
  std::vector<Need> need_;                      // by signature
  std::vector<bool> ends_with_data_;            // by signature
  std::vector<bool> timed_;                     // by process: some operation is known to have ended
  std::vector<std::optional<OffsetFit>> fits_;  // by unit; those that are not proven yet

  // Of the communicator and block at hand.
  std::vector<uint32_t> slots_;    // units
  std::vector<uint32_t> slot_of_;  // by unit; kNoClock
  std::vector<Times> times_;       // by operation, slot
  uint32_t block_essence_[kBlock];
};

}  // namespace

std::vector<ClockUnit> prove(const model::Job& job, const std::vector<uint32_t>& unit_of_host,
                             uint32_t units) {
  return Prover(job, unit_of_host, units).run();
}

}  // namespace lockstep::job::clock
