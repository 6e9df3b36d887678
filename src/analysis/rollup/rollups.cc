// SPDX-License-Identifier: Apache-2.0
// Sums a job up by minute, so that a fleet's store grows with the time of its jobs and not with their
// operations. A row is a kind of operations of one rank in one minute. Rows are made first, from the
// operations alone; lateness and bandwidth then add to them, as both analyses report operation by operation.
// Waiting and moving are thereby the numbers of the verdict.
#include "analysis/rollup/rollups.h"

#include <bit>
#include <cmath>
#include <iterator>
#include <map>

#include "analysis/bandwidth/rates.h"
#include "analysis/straggler/cost/delay_cost.h"
#include "analysis/straggler/lateness/lateness.h"
#include "model/event_kind.h"
#include "model/names/operation_size.h"

namespace lockstep::analysis::rollup {
namespace {

using model::Job;
using model::JobOps;
using model::Rollup;

constexpr int64_t kMinuteNs = 60'000'000'000;

// When an operation was there, on the reference host's clock if that is known.
int64_t minute_of(const Job& job, uint32_t process, size_t op) {
  const JobOps& ops = job.processes[process].ops;
  // An operation counts where its rank came to it. Without that the GPU's times still give the minute.
  int64_t ns = ops.entered_ns(op);
  if (ns == 0) ns = ops.gpu_start_ns[op] != 0 ? ops.gpu_start_ns[op] : ops.gpu_end_ns[op];
  const auto common = ns == 0 ? std::nullopt : job.common_ns(process, ns);
  return (common ? common->ns : ns) / kMinuteNs;
}

// The rows of one process, and which of them each of its operations is in.
class Rows {
 public:
  Rows(const Job& job, uint32_t process) : job_(job), process_(process) {
    const model::JobProcess& of = job.processes[process];
    row_of_.resize(of.ops.size());
    for (const uint32_t row : of.members) {
      const model::Member& member = job.members[row];
      add(member.comm, member.first, member.ops);
      for (const model::Lane& lane : member.lanes) add(member.comm, lane.first, lane.ops);
    }
    sort();
  }
  Rollup& of(size_t op) { return rows_[row_of_[op]]; }
  std::vector<Rollup>& all() { return rows_; }

 private:
  void add(uint32_t comm, uint32_t first, uint32_t count) {
    const JobOps& ops = job_.processes[process_].ops;
    for (uint32_t i = first; i < first + count; ++i) {
      const model::Signature& signature = job_.signatures[ops.signature[i]];
      const uint64_t size = size_of(comm, signature);
      Rollup row{.minute = minute_of(job_, process_, i),
                 .process = process_,
                 .comm = comm,
                 .kind = signature.kind,
                 .func = signature.func,
                 .algo = signature.algo,
                 .proto = signature.proto,
                 .size_bits = static_cast<uint8_t>(std::bit_width(size))};
      // Places in rows_ stay valid while it grows, as pointers would not.
      const auto [at, is_new] = known_.try_emplace(row.key(), static_cast<uint32_t>(rows_.size()));
      if (is_new) rows_.push_back(std::move(row));
      row_of_[i] = at->second;
      Rollup& into = rows_[at->second];
      ++into.ops;
      into.bytes += size;
      int64_t gpu_ns = 0;
      // Times of a damaged file may be anything: their difference must not overflow.
      if (ops.gpu_start_ns[i] == 0 ||
          __builtin_sub_overflow(ops.gpu_end_ns[i], ops.gpu_start_ns[i], &gpu_ns) || gpu_ns <= 0)
        continue;
      ++into.timed;
      into.gpu_ns += gpu_ns;
    }
  }

  uint64_t size_of(uint32_t comm, const model::Signature& signature) const {
    return model::operation_size(job_.text(signature.func), signature.bytes, job_.comms[comm].ranks,
                                 signature.kind == model::number(model::EventKind::kApiOp));
  }

  // rollups.h promises the order of keys; the places of operations follow their rows.
  void sort() {
    std::vector<Rollup> sorted;
    std::vector<uint32_t> place(rows_.size());
    for (const auto& [key, row] : known_) {
      place[row] = static_cast<uint32_t>(sorted.size());
      sorted.push_back(std::move(rows_[row]));
    }
    rows_ = std::move(sorted);
    for (uint32_t& row : row_of_) row = place[row];
    known_.clear();
  }

  const Job& job_;
  const uint32_t process_;
  std::vector<Rollup> rows_;
  Column<uint32_t> row_of_;
  std::map<decltype(Rollup().key()), uint32_t> known_;
};

void add_lateness(const Job& job, std::vector<Rows>& rows) {
  const auto visit = [&](const straggler::ComparedGroup& group) {
    for (const straggler::MemberPast& past : group.members) {
      const model::Member& member = job.members[past.member];
      for (uint32_t i = 0; i < past.lateness.size(); ++i) {
        if (std::isnan(past.lateness[i])) continue;
        const uint32_t op = member.first + i;
        Rollup& into = rows[member.process].of(op);
        ++into.compared;
        into.waited_ns += straggler::waited_ns(job.ops(member), op, static_cast<double>(past.waiting[i]));
        into.late_ns.add(static_cast<double>(past.lateness[i]));
      }
    }
  };
  const straggler::Lateness lateness = straggler::measure(job, visit);
  for (uint32_t process = 0; process < rows.size(); ++process) {
    for (const straggler::LateOp& late : lateness.late[process]) {
      // Blame within its uncertainty may be none, and sums over months would add it up.
      if (late.blame_ns <= late.error_ns || !straggler::costs_others(late)) continue;
      Rollup& into = rows[process].of(late.op);
      ++into.late_ops;
      into.blamed_ns += static_cast<double>(late.blame_ns);
    }
  }
}

void add_bandwidth(const Job& job, std::vector<Rows>& rows) {
  // An operation is counted on one rank alone: sums over ranks are sums over operations.
  bandwidth::measure(job, [&](const bandwidth::Moved& moved) {
    Rollup& into = rows[job.members[moved.member].process].of(moved.op);
    const double bus_bytes = static_cast<double>(moved.bytes) * moved.factor;
    ++into.moved_ops;
    into.bus_bytes += bus_bytes;
    into.moving_ns += moved.time_ns;
    into.busbw_mbps.add(bus_bytes / moved.time_ns * 1e3);
  });
}

}  // namespace

std::vector<Rollup> rollups(const Job& job) {
  std::vector<Rows> rows;
  for (uint32_t process = 0; process < job.processes.size(); ++process) rows.emplace_back(job, process);
  add_lateness(job, rows);
  add_bandwidth(job, rows);
  std::vector<Rollup> out;
  for (Rows& of : rows) {
    out.insert(out.end(), std::make_move_iterator(of.all().begin()), std::make_move_iterator(of.all().end()));
    // Each process's rows are freed as they are taken over, so that they are in memory once.
    of.all() = {};
  }
  return out;
}

}  // namespace lockstep::analysis::rollup
