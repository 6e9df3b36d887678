// SPDX-License-Identifier: Apache-2.0
// Runs the comparison over all groups and attributes each lateness once. A lateness that several ranks share
// is kept only if no other rank that they met explains it, and if their whole host shares it: with fewer
// ranks, who waited for whom stays unproven. Large groups use all threads, small ones a thread each; the
// result does not depend on how many there are.
#include "analysis/straggler/lateness/lateness.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <tuple>

#include "analysis/straggler/lateness/exclusive_times.h"
#include "analysis/straggler/lateness/group_comparer.h"
#include "analysis/straggler/lateness/peer_comparison.h"
#include "base/parallel.h"

namespace lockstep::analysis::straggler {
namespace {

using model::Job;
using model::kNoRow;
using model::Member;

constexpr size_t kMostMet = 64;     // members of a communicator that are looked at
constexpr float kOfAnother = 0.5f;  // of a rank's lateness, that another explains

// The members of a communicator that can be compared.
std::vector<std::vector<uint32_t>> groups(const Job& job, const std::vector<ExclusiveTimes>& times,
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
std::vector<std::vector<uint32_t>> all_groups(const Job& job, const std::vector<ExclusiveTimes>& times) {
  std::vector<std::vector<uint32_t>> out;
  for (const model::JobComm& comm : job.comms) {
    for (auto& members : groups(job, times, comm)) out.push_back(std::move(members));
  }
  return out;
}

std::vector<GroupLateness> compare_all(const Job& job, const std::vector<ExclusiveTimes>& times,
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
  const MemberTable table(job, times);
  const size_t threads = parallel_threads();
  // A group with more than a thread's part of the work keeps them all busy; together with others, the last
  // one alone.
  std::vector<std::optional<GroupComparer>> comparers(groups.size());
  for (size_t i : largest_first) {
    if (threads == 1 || ops[i] * threads <= total) break;
    comparers[i].emplace(job, times, table, groups[i]).compare(threads);
  }
  std::vector<GroupLateness> results(groups.size());
  std::mutex visiting;
  for_each_parallel(groups.size(), parallel_threads(), [&](size_t place) {
    const size_t i = largest_first[place];
    if (!comparers[i]) comparers[i].emplace(job, times, table, groups[i]).compare(1);
    if (visit) {
      const std::lock_guard lock(visiting);
      visit({comparers[i]->members(), times});
    }
    results[i] = comparers[i]->finish();
    comparers[i].reset();
  });
  return results;
}

// From one launch to another.
std::span<const LateOp> window_of(const std::vector<LateOp>& late, int64_t after_ns, int64_t until_ns) {
  const auto is_after = [](int64_t ns, const LateOp& at) { return ns < at.host_ns; };
  const auto first = std::upper_bound(late.begin(), late.end(), after_ns, is_after);
  return {first, std::upper_bound(first, late.end(), until_ns, is_after)};
}

// What a process is blamed for alone.
float blamed_alone(const std::vector<LateOp>& late, int64_t after_ns, int64_t until_ns) {
  float sum = 0;
  for (const LateOp& of : window_of(late, after_ns, until_ns)) sum += of.together ? 0 : of.blame_ns;
  return sum;
}

// Whether a rank that came late together with others met one since who is to blame for it alone: it waited.
bool has_waited(const Job& job, const Lateness& lateness, uint32_t process, const LateOp& late) {
  // They meet late, too: it shows where each meets others.
  const auto until = late.host_ns + static_cast<int64_t>(late.blame_ns);
  for (uint32_t row : job.processes[process].members) {
    const uint32_t comm = job.members[row].comm;
    if (comm == job.members[late.member].comm || job.comms[comm].members.size() > kMostMet) continue;
    for (uint32_t other : job.comms[comm].members) {
      if (other == kNoRow || job.members[other].process == process) continue;
      const uint32_t met = job.members[other].process;
      if (lateness.domains[met] == lateness.domains[process] &&
          blamed_alone(lateness.late[met], late.since_ns, until) >= kOfAnother * late.in_all_ns)
        return true;
    }
  }
  return false;
}

// Whether all processes of its host came late with it: of fewer, who waited for whom is not known for
// certain.
bool is_whole_host(const Job& job, const Lateness& lateness, uint32_t process, const LateOp& late) {
  const auto until = late.host_ns + static_cast<int64_t>(late.blame_ns);
  uint32_t others = 0;
  for (uint32_t i = 0; i < job.processes.size(); ++i) {
    if (i == process || job.processes[i].host != job.processes[process].host) continue;
    if (lateness.processes[i].ops == 0) continue;
    float sum = 0;
    for (const LateOp& of : window_of(lateness.late[i], late.since_ns, until)) sum += of.blame_ns;
    if (sum < kOfAnother * late.in_all_ns) return false;
    ++others;
  }
  return others > 0;
}

// Of what a rank was late by together with others, it is not blamed again for what it is blamed for alone.
void blame_once(std::vector<LateOp>* late) {
  size_t kept = 0;
  for (LateOp& of : *late) {
    if (of.together) {
      float blamed = 0;
      for (size_t i = kept; i-- > 0 && (*late)[i].host_ns > of.blamed_ns;)
        blamed += (*late)[i].together ? 0 : (*late)[i].blame_ns;
      if (of.has_waited || of.blame_ns - blamed <= kJitterNs) continue;
      of.host_part_ns *= (of.blame_ns - blamed) / of.blame_ns;
      of.blame_ns -= blamed;
    }
    (*late)[kept++] = of;
  }
  late->resize(kept);
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

Lateness measure(const Job& job, const GroupVisitor& visit, std::vector<ExclusiveTimes>* kept) {
  Lateness out;
  out.comms.resize(job.comms.size());
  out.processes.resize(job.processes.size());
  out.late.resize(job.processes.size());
  std::vector<ExclusiveTimes> times(job.processes.size());
  {
    LastArrivals last(job);
    for_each_parallel(times.size(), parallel_threads(),
                      [&](size_t i) { times[i] = exclusive_times(job, static_cast<uint32_t>(i), last); });
  }
  for (const ExclusiveTimes& own : times) {
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
    for (const LateOp& late : result.late) out.late[job.members[late.member].process].push_back(late);
    out.compared += result.compared;
    out.timed += result.timed;
  }
  for (const auto& [domain, span] : spans) out.span_ns = std::max(out.span_ns, span.second - span.first);
  for_each_parallel(out.late.size(), parallel_threads(), [&](size_t i) {
    std::sort(out.late[i].begin(), out.late[i].end(), [](const LateOp& a, const LateOp& b) {
      return std::tuple(a.host_ns, a.op, a.together) < std::tuple(b.host_ns, b.op, b.together);
    });
  });
  for_each_parallel(out.late.size(), parallel_threads(), [&](size_t i) {
    for (LateOp& late : out.late[i])
      late.has_waited = late.together && (has_waited(job, out, static_cast<uint32_t>(i), late) ||
                                          !is_whole_host(job, out, static_cast<uint32_t>(i), late));
  });
  for_each_parallel(out.late.size(), parallel_threads(), [&](size_t i) { blame_once(&out.late[i]); });
  for (size_t i = 0; i < out.late.size(); ++i) {
    for (const LateOp& late : out.late[i]) {
      out.processes[i].blamed_ns += static_cast<double>(late.blame_ns);
      out.comms[job.members[late.member].comm].blamed_ns += static_cast<double>(late.blame_ns);
    }
  }
  if (kept != nullptr) *kept = std::move(times);
  return out;
}

}  // namespace lockstep::analysis::straggler
