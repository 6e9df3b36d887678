// SPDX-License-Identifier: Apache-2.0
#include "analysis/straggler/lateness.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>

#include "analysis/straggler/company.h"
#include "analysis/straggler/group_comparer.h"
#include "analysis/straggler/own_times.h"
#include "base/parallel.h"

namespace lockstep::analysis::straggler {
namespace {

using model::Job;
using model::kNoRow;
using model::Member;

// The members of a communicator that can be compared.
std::vector<std::vector<uint32_t>> groups(const Job& job, const std::vector<OwnTimes>& times,
                                          const model::JobComm& comm) {
  std::map<uint32_t, std::vector<uint32_t>> by_clock;
  for (uint32_t row : comm.members) {
    if (row == kNoRow) continue;
    const Member& member = job.members[row];
    if (!is_matched(member) || !times[member.process].comparable) continue;
    by_clock[times[member.process].domain].push_back(row);
  }
  std::vector<std::vector<uint32_t>> out;
  for (auto& [clock, members] : by_clock) {
    if (members.size() > 1) out.push_back(std::move(members));
  }
  return out;
}

// Of all communicators, in their order.
std::vector<std::vector<uint32_t>> all_groups(const Job& job, const std::vector<OwnTimes>& times) {
  std::vector<std::vector<uint32_t>> out;
  for (const model::JobComm& comm : job.comms) {
    for (auto& members : groups(job, times, comm)) out.push_back(std::move(members));
  }
  return out;
}

std::vector<GroupLateness> compare_all(const Job& job, const std::vector<OwnTimes>& times,
                                       const std::vector<std::vector<uint32_t>>& groups,
                                       const GroupVisitor& visit) {
  std::vector<uint64_t> ops;
  uint64_t total = 0;
  for (const auto& members : groups) {
    uint64_t sum = 0;
    for (uint32_t row : members) sum += job.members[row].ops;
    ops.push_back(sum);
    total += sum;
  }
  std::vector<size_t> largest_first(groups.size());
  std::iota(largest_first.begin(), largest_first.end(), size_t{0});
  std::stable_sort(largest_first.begin(), largest_first.end(),
                   [&](size_t a, size_t b) { return ops[a] > ops[b]; });
  const Seats seats(job, times);
  const size_t threads = parallel_threads();
  // A group with more than a thread's part of the work keeps them all busy; together with others, the last one alone.
  std::vector<std::optional<GroupComparer>> comparers(groups.size());
  for (size_t i : largest_first) {
    if (threads == 1 || ops[i] * threads <= total) break;
    comparers[i].emplace(job, times, seats, groups[i]).compare(threads);
  }
  std::vector<GroupLateness> results(groups.size());
  std::mutex visiting;
  for_each_parallel(groups.size(), parallel_threads(), [&](size_t place) {
    const size_t i = largest_first[place];
    if (!comparers[i]) comparers[i].emplace(job, times, seats, groups[i]).compare(1);
    if (visit) {
      const std::lock_guard lock(visiting);
      visit({comparers[i]->members(), times});
    }
    results[i] = comparers[i]->settle();
    comparers[i].reset();
  });
  return results;
}

}  // namespace

void Waits::add(const Waits& other) {
  ops += other.ops;
  timed += other.timed;
  waiting_ns += other.waiting_ns;
  moving_ns += other.moving_ns;
  blamed_ns += other.blamed_ns;
  lateness.add(other.lateness);
}

Lateness measure(const Job& job, const GroupVisitor& visit) {
  Lateness out;
  out.comms.resize(job.comms.size());
  out.processes.resize(job.processes.size());
  out.late.resize(job.processes.size());
  std::vector<OwnTimes> times(job.processes.size());
  {
    LastArrivals last(job);
    for_each_parallel(times.size(), parallel_threads(),
                      [&](size_t i) { times[i] = own_times(job, static_cast<uint32_t>(i), last); });
  }
  for (const OwnTimes& own : times) {
    out.not_comparable += !own.comparable;
    out.domains.push_back(own.domain);
  }
  const auto groups = all_groups(job, times);
  const std::vector<GroupLateness> results = compare_all(job, times, groups, visit);
  std::map<uint32_t, std::pair<int64_t, int64_t>> spans;  // by domain: first and last arrival
  for (size_t i = 0; i < groups.size(); ++i) {
    const GroupLateness& result = results[i];
    const Member& any = job.members[groups[i][0]];
    const auto [span, added] = spans.try_emplace(times[any.process].domain, result.first_ns, result.last_ns);
    span->second = {std::min(span->second.first, result.first_ns),
                    std::max(span->second.second, result.last_ns)};
    for (size_t m = 0; m < groups[i].size(); ++m) {
      out.comms[any.comm].add(result.members[m]);
      out.processes[job.members[groups[i][m]].process].add(result.members[m]);
    }
    for (const LateOp& late : result.late) {
      const uint32_t process = job.members[late.member].process;
      out.processes[process].blamed_ns += static_cast<double>(late.blame_ns);
      out.comms[any.comm].blamed_ns += static_cast<double>(late.blame_ns);
      out.late[process].push_back(late);
    }
    out.compared += result.compared;
    out.timed += result.timed;
  }
  for (const auto& [domain, span] : spans) out.span_ns = std::max(out.span_ns, span.second - span.first);
  for_each_parallel(out.late.size(), parallel_threads(), [&](size_t i) {
    std::sort(out.late[i].begin(), out.late[i].end(), [](const LateOp& a, const LateOp& b) {
      return std::pair(a.host_ns, a.op) < std::pair(b.host_ns, b.op);
    });
  });
  return out;
}

}  // namespace lockstep::analysis::straggler
