// SPDX-License-Identifier: Apache-2.0
// Measures how long the data of an operation moved: from the moment the last member had arrived. Waiting for
// a late rank is thereby not in the bandwidth. For operations with a root the time runs to the last end, so
// the clocks of two hosts matter; for all others the shortest duration of any member is the same time, free
// of clocks.
#include "analysis/bandwidth/rates.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <tuple>

#include "analysis/bandwidth/rate_sums.h"
#include "model/event_kind.h"
#include "model/names/operation_size.h"

namespace lockstep::analysis::bandwidth {
namespace {

using model::Job;
using model::JobOps;
using model::kNoRow;
using model::Member;

constexpr float kUnplacedNs = 1e18F;  // no difference of times is above it

// One operation over all members.
struct Meeting {
  int64_t last_start = 0, last_end = 0, shortest = INT64_MAX;
  uint32_t members = 0, timed = 0;
  float error_ns = 0;  // of last_end - last_start

  void add(const Job& job, const Member& member, uint32_t op) {
    const JobOps& ops = job.ops(member);
    ++members;
    if (ops.gpu_start_ns[op] == 0 || ops.gpu_end_ns[op] == 0) return;
    auto start = job.common_ns(member.process, ops.gpu_start_ns[op]);
    ++timed;
    const int64_t duration = ops.gpu_end_ns[op] - ops.gpu_start_ns[op];
    shortest = std::min(shortest, duration);
    // The start that counts and the end that counts may be of two members: both clocks' errors.
    const float error = ops.is_placed(op)
                            ? static_cast<float>(start->half_width_ns + std::max(ops.gpu_error_ns[op], 0))
                            : kUnplacedNs;
    error_ns = std::max(error_ns, 2 * error);
    last_start = std::max(last_start, start->ns);
    last_end = std::max(last_end, start->ns + duration);
  }
};

// How long the data of an operation that all members timed took, and how large it is.
struct Moving {
  uint64_t size = 0;
  double time_ns = 0, error_ns = 0;
  bool is_certain() const { return size > 0 && time_ns > error_ns; }
  double algbw() const { return static_cast<double>(size) / time_ns; }
};
Moving moving(const Job& job, const Meeting& meeting, const model::Signature& signature) {
  const std::string_view func = job.text(signature.func);
  const bool rooted = model::has_root(func);
  return {.size = model::operation_size(func, signature.bytes, meeting.members,
                                        signature.kind == model::number(model::EventKind::kApiOp)),
          .time_ns = static_cast<double>(rooted ? meeting.last_end - meeting.last_start : meeting.shortest),
          .error_ns = static_cast<double>(rooted ? meeting.error_ns : 0)};
}

// All of its members are in the run, with clocks that compare.
bool is_whole(const Job& job, uint32_t row) {
  const model::JobComm& comm = job.comms[row];
  return comm.members.size() >= 2 &&
         (comm.ranks <= 0 || comm.members.size() >= static_cast<size_t>(comm.ranks)) &&
         std::all_of(comm.members.begin(), comm.members.end(), [&](uint32_t of) {
           return of != kNoRow && job.members[of].alignment != Member::Alignment::kNone &&
                  job.hosts[job.processes[job.members[of].process].host].clock.known();
         });
}

class CommMeter {
 public:
  CommMeter(const Job& job, uint32_t comm, const std::function<void(const Moved&)>& each, Rates& out)
      : job_(job), comm_(comm), each_(each), out_(out) {}

  void run() {
    if (!is_whole(job_, comm_)) return;
    const model::JobComm& comm = job_.comms[comm_];
    std::set<uint32_t> hosts;
    std::set<uint32_t> processes;
    for (uint32_t row : comm.members) {
      hosts.insert(job_.processes[job_.members[row].process].host);
      processes.insert(job_.members[row].process);
    }
    const Member& first = job_.members[comm.members[0]];
    meetings_.resize(first.ops);
    for (uint32_t row : comm.members) meet(first, job_.members[row]);
    sort_out(comm.members[0]);
    // Between nodes the network carries the data. NCCL may count several nodes where the host is one.
    if (hosts.size() == 1 && comm.nodes <= 1) ceiling_ = lowest_ceiling(job_, processes);
    for (auto& [key, of] : kinds_) add(key, of, hosts.size());
    add_fits();
  }

 private:
  using Key =
      std::tuple<model::StringId, uint8_t, model::StringId, model::StringId>;  // func, bucket, algo, proto
  struct Kind {
    RateSums sums;
    double factor = 1;
    std::optional<Slowest> slowest;
  };

  // What the first member does not have, not all have.
  void meet(const Member& first, const Member& member) {
    const Column<uint32_t>& numbers = job_.ops(first).index;
    const Column<uint32_t>& its = job_.ops(member).index;
    uint32_t at = 0;
    for (uint32_t i = member.first; i < member.first + member.ops; ++i) {
      // Both are ascending, so one walk over the two suffices. Tables by number would be as large as a
      // damaged number.
      while (at < first.ops && numbers[first.first + at] < its[i]) ++at;
      if (at == first.ops) break;
      if (numbers[first.first + at] == its[i]) meetings_[at].add(job_, member, i);
    }
  }

  void sort_out(uint32_t first_row) {
    const Member& first = job_.members[first_row];
    const JobOps& ops = job_.ops(first);
    const uint32_t members = static_cast<uint32_t>(job_.comms[comm_].members.size());
    for (uint32_t i = first.first; i < first.first + first.ops; ++i) {
      const Meeting& meeting = meetings_[i - first.first];
      if (meeting.members != members) continue;
      ++out_.ops;
      if (meeting.timed != members) {
        ++out_.untimed;
        continue;
      }
      const model::Signature& s = job_.signatures[ops.signature[i]];
      const Moving data = moving(job_, meeting, s);
      if (data.size == 0) continue;
      Kind& kind = kinds_[{s.func, static_cast<uint8_t>(std::bit_width(data.size)), s.algo, s.proto}];
      kind.factor = model::bus_factor(job_.text(s.func), members);
      kind.sums.add(data.size, data.time_ns, data.error_ns);
      // A fit through times of uncertain operations would measure the clocks.
      if (!data.is_certain()) continue;
      sizes_[{s.func, data.size}].push_back(static_cast<float>(data.time_ns));
      if (const double busbw = data.algbw() * kind.factor; !kind.slowest || busbw < kind.slowest->busbw)
        kind.slowest = {ops.index[i], busbw};
      if (each_) each_({comm_, s.func, members, data.size, data.time_ns, kind.factor, first_row, i});
    }
  }

  void add(const Key& key, Kind& kind, size_t hosts) {
    auto [func, bucket, algo, proto] = key;
    Rate rate;
    rate.comm = comm_;
    rate.func = func;
    rate.algo = algo;
    rate.proto = proto;
    rate.ranks = static_cast<int32_t>(job_.comms[comm_].members.size());
    rate.hosts = static_cast<uint32_t>(hosts);
    rate.set_bucket(bucket);
    kind.sums.fill(kind.factor, rate);
    rate.ceiling = ceiling_;
    rate.slowest = kind.slowest;
    out_.rates.push_back(rate);
  }

  void add_fits() {
    std::map<model::StringId, std::vector<Point>> points;
    for (auto& [key, times] : sizes_)
      points[key.first].push_back(
          // Medians, as one stall would tilt the line.
          {static_cast<double>(key.second), quantile(times, 0.5), static_cast<double>(times.size())});
    for (const auto& [func, of] : points) {
      Fit line;
      line.comm = comm_;
      line.func = func;
      if (fit(of, line)) out_.fits.push_back(line);
    }
  }

  const Job& job_;
  const uint32_t comm_;
  const std::function<void(const Moved&)>& each_;
  Rates& out_;
  std::optional<Ceiling> ceiling_;
  std::vector<Meeting> meetings_;  // by position after the first member's Member::first
  std::map<Key, Kind> kinds_;
  std::map<std::pair<model::StringId, uint64_t>, Column<float>> sizes_;  // ns, by function and S
};

}  // namespace

void Rate::set_bucket(int bits) {
  size_from = bits == 0 ? 0 : uint64_t{1} << (bits - 1);
  size_to = bits >= 64 ? UINT64_MAX : uint64_t{1} << bits;
}

Rates measure(const Job& job, const std::function<void(const Moved&)>& each) {
  Rates out;
  for (uint32_t comm = 0; comm < job.comms.size(); ++comm) {
    CommMeter(job, comm, each, out).run();
    measure_pairs(job, comm, each, out);
  }
  return out;
}

std::optional<double> operation_busbw(const Job& job, uint32_t comm, uint32_t index) {
  if (!is_whole(job, comm)) return std::nullopt;
  Meeting meeting;
  const model::Signature* signature = nullptr;
  for (uint32_t row : job.comms[comm].members) {
    const Member& member = job.members[row];
    const std::optional<uint32_t> op = job.op_at(member, index);
    if (!op) return std::nullopt;
    meeting.add(job, member, *op);
    if (signature == nullptr) signature = &job.signatures[job.ops(member).signature[*op]];
  }
  if (meeting.timed != meeting.members) return std::nullopt;
  const Moving data = moving(job, meeting, *signature);
  if (!data.is_certain()) return std::nullopt;
  return data.algbw() * model::bus_factor(job.text(signature->func), meeting.members);
}

}  // namespace lockstep::analysis::bandwidth
