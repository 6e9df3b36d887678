// SPDX-License-Identifier: Apache-2.0
// Follows each process through its operations in the order of its calls, and splits the time up to each
// arrival: inside communication, on the host, on the GPU. The latest end of anything that was called before
// marks the moment from which the rank was on its own. An end that no GPU time shows is estimated by the last
// arrival of the members: nobody can have left before.
//
// Times of two hosts are compared only if their clocks agree to a millisecond. Beyond that, who was late is
// decided within each host.
#include "analysis/straggler/lateness/exclusive_times.h"

#include <algorithm>
#include <map>
#include <set>

#include "analysis/straggler/lateness/compute_segments.h"
#include "analysis/straggler/lateness/ends.h"
#include "analysis/straggler/median.h"
#include "job/match/match.h"

namespace lockstep::analysis::straggler {
namespace {

using model::Job;
using model::JobOps;
using model::Member;

constexpr int64_t kAlignedNs = 1'000'000;  // half-width of a clock that tells who was late
constexpr int64_t kRunning = -1;           // began on the GPU and did not end

// Host time -> reference time, with the offset looked up once for times that lie close together.
class CommonClock {
 public:
  CommonClock(const Job& job, uint32_t process) : job_(job), process_(process) {
    const model::HostClock& clock = job.hosts[job.processes[process].host].clock;
    fixed_ = clock.is_same() || !clock.known();
  }
  int64_t at(int64_t ns) {
    if (fixed_ || ns == 0) return ns;
    if (ns < from_ || ns >= from_ + kReach) {
      auto common = job_.common_ns(process_, ns);
      offset_ = ns - common->ns;
      half_width_ = common->half_width_ns;
      from_ = ns;
    }
    return ns - offset_;
  }
  // Of the time asked for last.
  int64_t half_width() const { return half_width_; }

 private:
  static constexpr int64_t kReach = 1'000'000;  // clocks drift by less than 1 us in it
  const Job& job_;
  uint32_t process_;
  bool fixed_;
  int64_t from_ = INT64_MIN / 2, offset_ = 0, half_width_ = 0;
};

bool is_aligned(const model::HostClock& clock) {
  if (!clock.known() || clock.is_same()) return clock.known();
  std::vector<int64_t> widths;
  for (const model::HostClock::Knot& knot : clock.knots()) widths.push_back(knot.high - knot.low);
  return upper_median(std::span(widths)) <= 2 * kAlignedNs;
}

bool drives_several_ranks(const Job& job, const model::JobProcess& process) {
  std::set<uint32_t> comms;
  for (uint32_t row : process.members) {
    if (job.comms[job.members[row].comm].comm_id == 0) continue;
    if (!comms.insert(job.members[row].comm).second) return true;
  }
  return false;
}

// Ends that are not known: the last arrival of the members; of a pair, the later call.
void estimate_ends(const Job& job, const model::JobProcess& process, const LastArrivals& last,
                   std::vector<int64_t>& ends) {
  const JobOps& ops = process.ops;
  for (uint32_t row : process.members) {
    const Member& member = job.members[row];
    const LastArrivals::Column& arrivals = last.of(row);
    for (uint32_t i = member.first; i < member.first + member.ops; ++i) {
      if (ends[i] == 0) ends[i] = arrivals.at(ops.index[i]);
    }
    for (const model::Lane& lane : member.lanes) {
      const Member* other = nullptr;
      const model::Lane* there = job::match::counterpart(job, member, lane, &other);
      if (there == nullptr || last.domain(job.processes[other->process]) != last.domain(process)) continue;
      CommonClock clock(job, other->process);
      const JobOps& other_ops = job.ops(*other);
      for (uint32_t i = 0; i < std::min(lane.ops, there->ops); ++i) {
        if (ends[lane.first + i] == 0) ends[lane.first + i] = clock.at(host_ns(other_ops, there->first + i));
      }
    }
  }
}

// A send or receive ends when the GPU of the other gets there, however early its host has called.
void find_unseen(const Job& job, const model::JobProcess& process, const LastArrivals& last,
                 ExclusiveTimes& times) {
  enum class Held : uint8_t { kNo, kUnseen, kByAll };
  std::vector<Held> held(process.ops.size());
  const auto mark = [&](uint32_t first, uint32_t count) {
    bool any = false;
    for (uint32_t i = first; i < first + count; ++i) {
      if (process.ops.is_placed(i)) continue;
      held[i] = Held::kUnseen;
      any = true;
    }
    return any;
  };
  bool any = false;
  for (uint32_t row : process.members) {
    const Member& member = job.members[row];
    if (last.holds_unseen(row)) any = mark(member.first, member.ops) || any;
    if (last.holds_all(row)) std::fill_n(held.begin() + member.first, member.ops, Held::kByAll);
    for (const model::Lane& lane : member.lanes)
      times.peers_unseen = mark(lane.first, lane.ops) || times.peers_unseen;
  }
  if (!any && !times.peers_unseen) return;
  times.unseen.resize(held.size());
  bool unseen = false;
  for (uint32_t op : times.order) {
    times.unseen[op] = unseen;
    if (held[op] != Held::kNo) unseen = held[op] == Held::kUnseen;
  }
}

// The first operation of each function on a communicator connects it: nobody's lateness.
void forget_first_uses(const Job& job, const model::JobProcess& process, ExclusiveTimes& times) {
  for (uint32_t row : process.members) {
    const Member& member = job.members[row];
    std::vector<model::StringId> seen;
    for (uint32_t i = member.first; i < member.first + member.ops; ++i) {
      model::StringId func = job.signatures[process.ops.signature[i]].func;
      if (std::find(seen.begin(), seen.end(), func) != seen.end()) continue;
      seen.push_back(func);
      times.host_own[i] = ExclusiveTimes::kUnknown;
    }
  }
}

class Follower {
 public:
  Follower(ExclusiveTimes& times, const std::vector<int64_t>& ends) : times_(times), ends_(ends) {}

  // In the order of the calls.
  void follow(uint32_t op, bool timed) {
    const int64_t arrival = times_.arrival[op], host = times_.host[op];
    int64_t left = all_.latest_until(arrival);
    if (!timed && previous_host_ <= arrival) left = std::max(left, previous_host_);
    if (left != 0 && previous_host_ != 0) {
      const int64_t launched = std::clamp(host, left, arrival);
      times_.host_own[op] = static_cast<float>(launched - left);
      times_.gpu_own[op] = static_cast<float>(arrival - launched);
      times_.idle[op] = latest_end_ <= host;
      const int64_t since = times_.idle[op] ? std::max(previous_host_, latest_end_) : previous_host_;
      times_.cadence[op] = static_cast<float>(std::max<int64_t>(host - since, 0));
    }
    previous_host_ = host;
    const int64_t end = known_end(ends_[op], arrival);
    if (end != kNoEnd) latest_end_ = std::max(latest_end_, end);
    all_.add(end);
  }

 private:
  ExclusiveTimes& times_;
  const std::vector<int64_t>& ends_;
  Ends all_;
  int64_t previous_host_ = 0, latest_end_ = 0;
};

// In the order of the calls, by GPU times.
void sum_exchanges(const Job& job, const model::JobProcess& process, ExclusiveTimes& times) {
  std::vector<bool> is_exchange(process.ops.size());
  bool any = false;
  for (uint32_t row : process.members) {
    const Member& member = job.members[row];
    if (member.lanes.empty() || !exchanges_with_all(job, member)) continue;
    any = true;
    for (const model::Lane& lane : member.lanes)
      std::fill_n(is_exchange.begin() + lane.first, lane.ops, true);
  }
  if (!any) return;
  times.exchanged.resize(process.ops.size());
  int64_t sum = 0, until = 0;
  for (uint32_t op : times.order) {
    times.exchanged[op] = sum;
    const int64_t end = is_exchange[op] ? end_of(process.ops, times, op) : 0;
    if (end == 0) continue;
    sum += std::max<int64_t>(end - std::max(times.arrival[op], until), 0);
    until = std::max(until, end);
  }
}

}  // namespace

int64_t host_ns(const JobOps& ops, size_t op) {
  if (ops.launched_ns[op] != 0) return ops.launched_ns[op];
  return ops.enqueued_ns[op] != 0 ? ops.enqueued_ns[op] : ops.called_ns[op];
}

// The operations of each communicator and lane lie in order already: those runs are merged.
Column<uint32_t> call_order(const JobOps& ops) {
  using Key = std::pair<int64_t, uint32_t>;
  PassingColumn<Key> keys(ops.size());
  std::vector<size_t> runs = {0};  // where they begin, and the end
  for (uint32_t i = 0; i < keys.size(); ++i) {
    keys[i] = {host_ns(ops, i), i};
    if (i > 0 && keys[i] < keys[i - 1]) runs.push_back(i);
  }
  runs.push_back(keys.size());
  auto at = [&](size_t run) { return keys.begin() + static_cast<ptrdiff_t>(runs[run]); };
  while (runs.size() > 2) {
    std::vector<size_t> merged;
    for (size_t run = 0; run + 1 < runs.size(); run += 2) {
      merged.push_back(runs[run]);
      if (run + 2 < runs.size()) std::inplace_merge(at(run), at(run + 1), at(run + 2));
    }
    merged.push_back(keys.size());
    runs = std::move(merged);
  }
  Column<uint32_t> order(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) order[i] = keys[i].second;
  return order;
}

LastArrivals::LastArrivals(const Job& job) : column_of_(job.members.size()) {
  for (uint32_t host = 0; host < job.hosts.size(); ++host)
    domains_.push_back(is_aligned(job.hosts[host].clock) ? 0 : host + 1);
  assign_columns(job);
  find_holds(job);
  for (uint32_t row = 0; row < job.members.size(); ++row) {
    const Member& member = job.members[row];
    if (!is_matched(member)) continue;
    const JobOps& ops = job.ops(member);
    CommonClock clock(job, member.process);
    Column& column = columns_[column_of_[row]];
    for (uint32_t i = member.first; i < member.first + member.ops; ++i) {
      if (!column.has(ops.index[i])) continue;
      int64_t& at = column.last_[ops.index[i] - column.base_];
      at = std::max(at, clock.at(host_ns(ops, i)));
    }
  }
}

// What a member has that would make its column too long finds no room in it.
void LastArrivals::assign_columns(const Job& job) {
  struct Extent {
    uint32_t oldest = 0, newest = 0;
    uint64_t ops = 0;  // of all members
  };
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> columns;  // by communicator and domain
  std::vector<Extent> extents(1);                             // by column
  for (uint32_t row = 0; row < job.members.size(); ++row) {
    const Member& member = job.members[row];
    if (!is_matched(member)) continue;
    const auto next = static_cast<uint32_t>(extents.size());
    const auto [at, added] = columns.try_emplace({member.comm, domain(job.processes[member.process])}, next);
    column_of_[row] = at->second;
    if (added) extents.push_back({job.oldest_index(member), job.oldest_index(member)});
    extents[at->second].ops += member.ops;
  }
  for (uint32_t row = 0; row < job.members.size(); ++row) {
    const Member& member = job.members[row];
    if (!is_matched(member)) continue;
    Extent& extent = extents[column_of_[row]];
    const uint32_t oldest = std::min(job.oldest_index(member), extent.oldest);
    const uint32_t newest = std::max(job.next_index(member) - 1, extent.newest);
    if (newest - oldest < most_indexes(extent.ops)) extent.oldest = oldest, extent.newest = newest;
  }
  columns_.resize(extents.size());
  for (size_t i = 1; i < extents.size(); ++i) {
    columns_[i].base_ = extents[i].oldest;
    columns_[i].last_.resize(size_t{extents[i].newest} - extents[i].oldest + 1);
  }
}

void LastArrivals::find_holds(const Job& job) {
  std::map<uint32_t, std::set<int32_t>> ranks;  // by domain
  std::set<int32_t> all_ranks;
  for (uint32_t i = 0; i < job.processes.size(); ++i) {
    const int32_t known = job.processes[i].row.rank, rank = known >= 0 ? known : -1 - static_cast<int32_t>(i);
    ranks[domain(job.processes[i])].insert(rank);
    all_ranks.insert(rank);
  }
  holds_.assign(job.members.size(), Holds::kSeen);
  for (const model::JobComm& comm : job.comms) {
    std::map<uint32_t, size_t> members;  // by domain
    for (uint32_t row : comm.members) {
      if (row != model::kNoRow) ++members[domain(job.processes[job.members[row].process])];
    }
    const size_t all = std::max(comm.members.size(), static_cast<size_t>(std::max(comm.ranks, 0)));
    for (uint32_t row : comm.members) {
      if (row == model::kNoRow) continue;
      const uint32_t at = domain(job.processes[job.members[row].process]);
      if (all >= all_ranks.size())
        holds_[row] = Holds::kAll;
      else if (members[at] < all && members[at] < ranks[at].size())
        holds_[row] = Holds::kUnseen;
    }
  }
}

ExclusiveTimes exclusive_times(const Job& job, uint32_t process_row, const LastArrivals& last) {
  const model::JobProcess& process = job.processes[process_row];
  const JobOps& ops = process.ops;
  ExclusiveTimes times;
  times.comparable = !drives_several_ranks(job, process);
  if (!times.comparable) return times;
  times.arrival.resize(ops.size());
  times.host.resize(ops.size());
  times.error.resize(ops.size());
  times.host_own.assign(ops.size(), ExclusiveTimes::kUnknown);
  times.gpu_own.assign(ops.size(), 0);
  times.cadence.assign(ops.size(), 0);
  times.idle.assign(ops.size(), 0);
  times.domain = last.domain(process);
  std::vector<int64_t> ends(ops.size());
  CommonClock clock(job, process_row);
  bool has_gpu_times = false;
  for (size_t i = 0; i < ops.size(); ++i) {
    times.host[i] = clock.at(host_ns(ops, i));
    const bool timed = ops.is_placed(i);
    has_gpu_times = has_gpu_times || timed;
    times.arrival[i] = timed ? std::max(clock.at(ops.gpu_start_ns[i]), times.host[i]) : times.host[i];
    times.error[i] = static_cast<float>(clock.half_width() + (timed ? std::max(ops.gpu_error_ns[i], 0) : 0));
    if (timed) ends[i] = ops.gpu_end_ns[i] != 0 ? clock.at(ops.gpu_end_ns[i]) : kRunning;
  }
  estimate_ends(job, process, last, ends);
  Follower follower(times, ends);
  times.order = call_order(ops);
  times.place.resize(ops.size());
  if (has_gpu_times) times.busy.resize(ops.size());
  int64_t busy = 0, until = 0;  // until: what came before is counted, or was communication
  for (uint32_t at = 0; at < times.order.size(); ++at) {
    const uint32_t op = times.order[at];
    times.place[op] = at;
    follower.follow(op, ops.is_placed(op));
    if (times.busy.empty()) continue;
    if (until != 0) busy += std::max<int64_t>(times.arrival[op] - until, 0);
    until = std::max({until, times.arrival[op], ends[op]});
    times.busy[op] = busy;
  }
  find_unseen(job, process, last, times);
  if (has_gpu_times) sum_exchanges(job, process, times);
  add_compute_segments(job, process, ends, times);
  forget_first_uses(job, process, times);
  return times;
}

}  // namespace lockstep::analysis::straggler
