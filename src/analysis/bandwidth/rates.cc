// SPDX-License-Identifier: Apache-2.0
#include "analysis/bandwidth/rates.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <tuple>

#include "analysis/bandwidth/rate_sums.h"
#include "model/event_kind.h"
#include "model/operation_size.h"

namespace lockstep::analysis::bandwidth {
namespace {

using model::Job;
using model::JobOps;
using model::kNoRow;
using model::Member;

constexpr uint32_t kMostIndexes = uint32_t{1} << 26;  // of a communicator; more is a damaged file's

constexpr float kUnplacedNs = 1e18F;  // no difference of times is above it

// One operation over all members.
struct Meeting {
  int64_t last_start = 0, last_end = 0, shortest = INT64_MAX;
  uint32_t members = 0, timed = 0;
  float error_ns = 0;  // of last_end - last_start
};

class CommMeter {
 public:
  CommMeter(const Job& job, uint32_t comm, const std::function<void(const Moved&)>& each, Rates& out)
      : job_(job), comm_(comm), each_(each), out_(out) {}

  void run() {
    const model::JobComm& comm = job_.comms[comm_];
    std::set<uint32_t> hosts;
    std::set<uint32_t> processes;
    for (uint32_t row : comm.members) {
      if (row == kNoRow) return;
      const Member& member = job_.members[row];
      const uint32_t host = job_.processes[member.process].host;
      if (member.alignment == Member::Alignment::kNone || !job_.hosts[host].clock.known()) return;
      hosts.insert(host);
      processes.insert(member.process);
    }
    if (comm.members.size() < 2 || (comm.ranks > 0 && comm.members.size() < static_cast<size_t>(comm.ranks)))
      return;
    for (uint32_t row : comm.members) meet(job_.members[row]);
    sort_out(comm.members[0]);
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
  };

  void meet(const Member& member) {
    const uint32_t next = std::min(job_.next_index(member), kMostIndexes);
    if (meetings_.size() < next) meetings_.resize(next);
    const JobOps& ops = job_.ops(member);
    for (uint32_t i = member.first; i < member.first + member.ops; ++i) {
      if (ops.index[i] >= next) break;
      Meeting& meeting = meetings_[ops.index[i]];
      ++meeting.members;
      if (ops.gpu_start_ns[i] == 0 || ops.gpu_end_ns[i] == 0) continue;
      auto start = job_.common_ns(member.process, ops.gpu_start_ns[i]);
      ++meeting.timed;
      const int64_t duration = ops.gpu_end_ns[i] - ops.gpu_start_ns[i];
      meeting.shortest = std::min(meeting.shortest, duration);
      // The start that counts and the end that counts may be of two members: both clocks' errors.
      const float error = ops.is_placed(i)
                              ? static_cast<float>(start->half_width_ns + std::max(ops.gpu_error_ns[i], 0))
                              : kUnplacedNs;
      meeting.error_ns = std::max(meeting.error_ns, 2 * error);
      meeting.last_start = std::max(meeting.last_start, start->ns);
      meeting.last_end = std::max(meeting.last_end, start->ns + duration);
    }
  }

  void sort_out(uint32_t first_row) {
    const Member& first = job_.members[first_row];
    const JobOps& ops = job_.ops(first);
    const uint32_t members = static_cast<uint32_t>(job_.comms[comm_].members.size());
    for (uint32_t i = first.first; i < first.first + first.ops; ++i) {
      if (ops.index[i] >= meetings_.size()) break;
      const Meeting& meeting = meetings_[ops.index[i]];
      if (meeting.members != members) continue;
      ++out_.ops;
      if (meeting.timed != members) {
        ++out_.untimed;
        continue;
      }
      const model::Signature& s = job_.signatures[ops.signature[i]];
      const uint64_t size = model::operation_size(job_.text(s.func), s.bytes, members,
                                                  s.kind == model::number(model::EventKind::kApiOp));
      if (size == 0) continue;
      Kind& kind = kinds_[{s.func, static_cast<uint8_t>(std::bit_width(size)), s.algo, s.proto}];
      kind.factor = model::bus_factor(job_.text(s.func), members);
      const bool rooted = model::has_root(job_.text(s.func));
      const int64_t moving = rooted ? meeting.last_end - meeting.last_start : meeting.shortest;
      const float error_ns = rooted ? meeting.error_ns : 0;
      const double time = static_cast<double>(moving);
      kind.sums.add(size, time, static_cast<double>(error_ns));
      if (time <= static_cast<double>(error_ns)) continue;
      sizes_[{s.func, size}].push_back(static_cast<float>(time));
      if (each_) each_({comm_, s.func, members, size, time, kind.factor, first_row, i});
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
    out_.rates.push_back(rate);
  }

  void add_fits() {
    std::map<model::StringId, std::vector<Point>> points;
    for (auto& [key, times] : sizes_)
      points[key.first].push_back(
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
  std::vector<Meeting> meetings_;  // by index
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

}  // namespace lockstep::analysis::bandwidth
