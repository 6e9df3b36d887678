// SPDX-License-Identifier: Apache-2.0
// Adds up the straggler analysis in columns of time, in one pass over the operations, so that memory follows
// the columns and not the operations. The worst operations of each cell are kept whole, so that a click has
// something to show.
#include "report/waits.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/parallel.h"

namespace lockstep::report {

namespace straggler = analysis::straggler;
using model::JobOps;
using model::Member;

namespace {

constexpr size_t kLateOfCell = 2;
// With more processes, memory would grow with what nobody looks at.
constexpr size_t kProcessesInFull = 256;

struct Span {
  int64_t first = INT64_MAX, last = INT64_MIN;
  void add(int64_t ns) {
    first = std::min(first, ns);
    last = std::max(last, ns);
  }
};

// As exclusive_times.h has it, in its place.
int64_t arrival_of(const ReportContext& context, uint32_t process, const JobOps& ops, size_t op) {
  const int64_t host = straggler::host_ns(ops, op);
  const int64_t at = host == 0 ? 0 : context.placed_ns(process, host);
  return ops.is_placed(op) ? std::max(context.placed_ns(process, ops.gpu_start_ns[op]), at) : at;
}

float waited(const JobOps& ops, uint32_t op, const straggler::MemberPast& past, uint32_t at) {
  return static_cast<float>(straggler::waited_ns(ops, op, static_cast<double>(past.waiting[at])));
}

// From the first arrival of a process' operations to the last.
Span span_of(const ReportContext& context, uint32_t process) {
  const JobOps& ops = context.job().processes[process].ops;
  Span own, placed;
  for (size_t op = 0; op < ops.size(); ++op) {
    const int64_t host = straggler::host_ns(ops, op);
    const int64_t arrival = ops.is_placed(op) ? std::max(ops.gpu_start_ns[op], host) : host;
    if (arrival > 0) own.add(arrival);
  }
  if (own.first > own.last) return placed;
  for (const int64_t ns : {own.first, own.last}) placed.add(context.placed_ns(process, ns));
  return placed;
}

}  // namespace

WaitTable::WaitTable(const ReportContext& context, const std::set<OperationKey>& wanted, size_t worst)
    : context_(context), job_(context.job()), wanted_(wanted), worst_most_(worst) {
  set_columns();
  const size_t cells = job_.processes.size() * columns_;
  // Rows of larger jobs are groups of ranks, which have enough with the worst of each.
  kept_ = job_.processes.size() <= kProcessesInFull ? kLateOfCell : 1;
  cells_.resize(cells);
  worst_.resize(cells * (kept_ + 1));
  lateness_ = straggler::measure(job_, [this](const Group& group) { add(group); });
  add_blame();
  // What was kept as the worst of one group may not be among the worst of all.
  for (const auto& [key, waits] : operations_) worst_operations_.push_back(key);
  std::stable_sort(worst_operations_.begin(), worst_operations_.end(),
                   [&](const OperationKey& a, const OperationKey& b) {
                     return operations_.at(a).lost_ns > operations_.at(b).lost_ns;
                   });
  std::erase_if(worst_operations_, [&](const OperationKey& key) { return operations_.at(key).lost_ns <= 0; });
  if (worst_operations_.size() > worst_most_) worst_operations_.resize(worst_most_);
}

void WaitTable::set_columns() {
  std::vector<Span> spans(job_.processes.size());
  for_each_parallel(spans.size(), parallel_threads(),
                    [&](size_t i) { spans[i] = span_of(context_, static_cast<uint32_t>(i)); });
  Span all;
  for (const Span& span : spans) {
    if (span.first > span.last) continue;
    all.add(span.first);
    all.add(span.last);
  }
  if (all.first > all.last) return;
  begin_ns_ = all.first;
  // A damaged file may hold any time; the number of columns stays bounded and the sum below does not
  // overflow.
  const int64_t length = std::min(difference(all.last, all.first), INT64_MAX - 1);
  // Rounded up, so that there are never more than kColumnsMost columns.
  width_ns_ = std::max<int64_t>(1, length / kColumnsMost + 1);
  columns_ = static_cast<uint32_t>(length / width_ns_) + 1;
}

uint32_t WaitTable::column_at(int64_t ns) const {
  if (ns <= begin_ns_) return 0;
  return static_cast<uint32_t>(std::min<int64_t>(difference(ns, begin_ns_) / width_ns_, columns_ - 1));
}

void WaitTable::add(const Group& group) {
  if (columns_ == 0) return;
  for (const straggler::MemberPast& past : group.members)
    add_cells(past, group.times[job_.members[past.member].process]);
  keep_operations(group);
}

void WaitTable::add_cells(const straggler::MemberPast& past, const straggler::ExclusiveTimes& own) {
  const Member& member = job_.members[past.member];
  const JobOps& ops = job_.ops(member);
  for (uint32_t i = 0; i < member.ops; ++i) {
    // Not compared with others (MemberPast), so that its lateness is not known.
    if (std::isnan(past.waiting[i])) continue;
    const uint32_t op = member.first + i;
    const int64_t arrival = context_.placed_common_ns(member.process, own.arrival[op]);
    const size_t at = size_t{member.process} * columns_ + column_at(arrival);
    WaitCell& cell = cells_[at];
    const float late = past.lateness[i], waiting = waited(ops, op, past, i);
    cell.waiting_ns += static_cast<double>(waiting);
    cell.late_ns = cell.ops == 0 ? late : std::max(cell.late_ns, late);
    ++cell.ops;
    WorstOp* worst = &worst_[at * (kept_ + 1)];
    WorstOp one{member.comm, ops.index[op], late, waiting, arrival};
    if (waiting > worst[kept_].waiting_ns) worst[kept_] = one;
    // Sorted by insertion into at most two places, the latest first.
    for (size_t k = 0; k < kept_ && one.late_ns > 0; ++k) {
      if (worst[k].waiting_ns < 0 || one.late_ns > worst[k].late_ns) std::swap(worst[k], one);
    }
  }
}

void WaitTable::keep(const Group& group, OperationKey key) {
  for (const straggler::MemberPast& past : group.members) {
    const Member& member = job_.members[past.member];
    const auto op = job_.op_at(member, key.second);
    if (!op || std::isnan(past.waiting[*op - member.first])) continue;
    const straggler::ExclusiveTimes& own = group.times[member.process];
    const float waiting = waited(job_.ops(member), *op, past, *op - member.first);
    const int64_t end = straggler::end_of(job_.ops(member), own, *op), arrival = own.arrival[*op];
    const double inside = static_cast<double>(difference(end, arrival));
    OperationWaits& waits = operations_[key];
    waits.lost_ns += static_cast<double>(waiting);
    waits.members.push_back(
        {.member = past.member,
         .late_ns = past.lateness[*op - member.first],
         .waiting_ns = waiting,
         .moving_ns =
             end == 0 ? -1 : static_cast<float>(std::max(inside - static_cast<double>(waiting), 0.0)),
         .arrival_ns = context_.placed_common_ns(member.process, arrival)});
  }
}

void WaitTable::keep_operations(const Group& group) {
  const uint32_t comm = job_.members[group.members[0].member].comm;
  uint32_t from = model::kNoIndex, until = 0;
  uint64_t ops = 0;
  for (const straggler::MemberPast& past : group.members) {
    from = std::min(from, job_.oldest_index(job_.members[past.member]));
    until = std::max(until, job_.next_index(job_.members[past.member]));
    ops += job_.members[past.member].ops;
  }
  // Numbers of a damaged file would make the table below as large as they say.
  if (until <= from || until - from > straggler::most_indexes(ops)) return;
  std::vector<float> lost(until - from);
  for (const straggler::MemberPast& past : group.members) {
    const Member& member = job_.members[past.member];
    const JobOps& own = job_.ops(member);
    for (uint32_t i = 0; i < member.ops; ++i) {
      const uint32_t op = member.first + i;
      if (!std::isnan(past.waiting[i])) lost[own.index[op] - from] += waited(own, op, past, i);
    }
  }
  std::vector<uint32_t> order(lost.size());
  std::iota(order.begin(), order.end(), 0u);
  const size_t most = std::min(worst_most_, order.size());
  // O(n log k) for k kept of n operations; the index decides between equals, so that runs repeat.
  std::partial_sort(order.begin(), order.begin() + static_cast<ptrdiff_t>(most), order.end(),
                    [&](uint32_t a, uint32_t b) { return lost[a] != lost[b] ? lost[a] > lost[b] : a < b; });
  std::set<uint32_t> kept;
  for (size_t i = 0; i < most && lost[order[i]] > 0; ++i) kept.insert(order[i] + from);
  for (auto at = wanted_.lower_bound({comm, from}); at != wanted_.end() && *at < OperationKey(comm, until);
       ++at)
    kept.insert(at->second);
  for (uint32_t index : kept) keep(group, {comm, index});
}

void WaitTable::add_blame() {
  if (columns_ == 0) return;
  for (uint32_t process = 0; process < lateness_.late.size(); ++process) {
    const JobOps& ops = job_.processes[process].ops;
    for (const straggler::LateOp& late : lateness_.late[process]) {
      const uint32_t column = column_at(arrival_of(context_, process, ops, late.op));
      cells_[size_t{process} * columns_ + column].blamed_ns += static_cast<double>(late.blame_ns);
    }
  }
}

}  // namespace lockstep::report
