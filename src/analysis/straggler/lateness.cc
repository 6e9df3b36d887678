// SPDX-License-Identifier: Apache-2.0
#include "analysis/straggler/lateness.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <span>

#include "analysis/straggler/carry.h"
#include "analysis/straggler/company.h"
#include "analysis/straggler/own_times.h"
#include "analysis/straggler/parallel.h"

namespace lockstep::analysis::straggler {
namespace {

using model::Job;
using model::JobOps;
using model::kNoRow;
using model::Member;

constexpr float kCaughtUp = 0.25f;
constexpr size_t kEnoughChanges = 512;
constexpr uint32_t kBlock = 64;  // operations of a communicator that are compared together: whole cache lines

// The lower median: of two, the better one. Disturbs the order.
template <class Value>
Value median(std::vector<Value>& values) {
  auto middle = values.begin() + static_cast<ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Arrivals that compare.
struct Span {
  int64_t first = std::numeric_limits<int64_t>::max(), last = 0;
};

// What one member brings to one operation.
struct Entry {
  uint32_t op = kNoRow;
  int64_t arrival = 0, end = 0;  // end 0: unknown
  float host_own = 0, gpu_own = 0, cadence = 0, error = 0;
  bool timed = false;
};

class GroupComparer {
 public:
  GroupComparer(const Job& job, const std::vector<OwnTimes>& times, std::vector<uint32_t> members,
                Lateness& out)
      : job_(job),
        times_(times),
        members_(std::move(members)),
        all_(members_.size() == job.comms[job.members[members_[0]].comm].members.size()),
        out_(out),
        company_(job, times) {
    block_.resize(size_t{kBlock} * members_.size());
    for (uint32_t row : members_) {
      const std::vector<float> unknown(job.members[row].ops, std::numeric_limits<float>::quiet_NaN());
      past_.push_back({row, unknown, unknown, unknown});
    }
  }

  Span run() {
    uint32_t from = 0, until = model::kNoIndex;
    for (uint32_t row : members_) {
      from = std::max(from, job_.oldest_index(job_.members[row]));
      until = std::min(until, job_.next_index(job_.members[row]));
    }
    if (!all_) each_row(from, until, [this](Row row) { learn_moving(row); });
    each_row(from, until, [this](Row row) { compare(row); });
    settle();
    return span_;
  }

 private:
  using Row = std::span<const Entry>;

  template <class Use>
  void each_row(uint32_t from, uint32_t until, Use use) {
    for (uint64_t index = from; index < until; index += kBlock) {
      uint32_t count = static_cast<uint32_t>(std::min<uint64_t>(kBlock, until - index));
      load(static_cast<uint32_t>(index), count);
      for (uint32_t i = 0; i < count; ++i) use({&block_[i * members_.size()], members_.size()});
    }
  }

  static int64_t last_arrival(Row row) {
    int64_t last = 0;
    for (const Entry& entry : row) last = std::max(last, entry.arrival);
    return last;
  }
  uint32_t signature(Row row) const { return job_.ops(job_.members[members_[0]]).signature[row[0].op]; }

  void learn_moving(Row row) {
    if (!complete(row) || row[0].end == 0) return;
    const int64_t moving = std::max<int64_t>(row[0].end - last_arrival(row), 0);
    const auto [least, added] = least_moving_.try_emplace(signature(row), moving);
    if (!added) least->second = std::min(least->second, moving);
  }

  // Of all members, as far as the end tells.
  int64_t last_of_all(Row row) const {
    const int64_t last = last_arrival(row);
    if (all_ || row[0].end == 0) return last;
    return std::max(last, row[0].end - least_moving_.at(signature(row)));
  }

  void load(uint32_t first, uint32_t count) {
    for (size_t m = 0; m < members_.size(); ++m) {
      const Member& member = job_.members[members_[m]];
      const JobOps& ops = job_.ops(member);
      const OwnTimes& own = times_[member.process];
      for (uint32_t i = 0; i < count; ++i) block_[i * members_.size() + m].op = kNoRow;
      auto begin = ops.index.begin() + member.first, end = begin + member.ops;
      auto at = begin + std::min<ptrdiff_t>(first - *begin, end - begin);
      at = *begin <= first && at < end && *at == first ? at : std::lower_bound(begin, end, first);
      for (; at < end && *at < first + count; ++at) {
        size_t op = static_cast<size_t>(at - ops.index.begin());
        Entry& entry = block_[(*at - first) * members_.size() + m];
        entry = {
            .op = static_cast<uint32_t>(op),
            .arrival = own.arrival[op],
            .end = ops.gpu_end_ns[op] == 0 ? 0 : own.arrival[op] + ops.gpu_end_ns[op] - ops.gpu_start_ns[op],
            .host_own = own.host_own[op],
            .gpu_own = own.gpu_own[op],
            .cadence = own.cadence[op],
            .error = own.error[op],
            .timed = ops.gpu_start_ns[op] != 0};
      }
    }
  }

  // Arrivals on the host and on the GPU do not compare.
  static bool complete(Row row) {
    return std::all_of(row.begin(), row.end(), [&](const Entry& entry) {
      return entry.op != kNoRow && entry.timed == row[0].timed && entry.arrival != 0;
    });
  }

  void compare(Row row) {
    if (!complete(row)) {
      before_ = 0;
      return;
    }
    ++out_.compared;
    out_.timed += row[0].timed;
    const int64_t last = last_of_all(row);
    const int64_t usual = middle(
        row, [](const Entry& entry) { return entry.arrival; }, arrivals_);
    span_.first = std::min(span_.first, usual);
    span_.last = std::max(span_.last, last);
    Waits& comm = out_.comms[job_.members[members_[0]].comm];
    for (size_t m = 0; m < row.size(); ++m) {
      Waits& process = out_.processes[job_.members[members_[m]].process];
      const double waiting = static_cast<double>(last - row[m].arrival);
      const double moving = row[m].end > last ? static_cast<double>(row[m].end - last) : 0;
      for (Waits* waits : {&comm, &process}) {
        ++waits->ops;
        waits->timed += row[m].timed;
        waits->waiting_ns += waiting;
        waits->moving_ns += moving;
      }
      const float late = static_cast<float>(row[m].arrival - usual);
      process.lateness.add(late);
      const uint32_t at = row[m].op - job_.members[members_[m]].first;
      past_[m].lateness[at] = late;
      past_[m].waiting[at] = static_cast<float>(waiting);
      if (before_ != 0)
        past_[m].interval[at] =
            std::min(static_cast<float>(row[m].arrival - before_), row[m].host_own + row[m].gpu_own);
    }
    before_ = last;
    if (static_cast<float>(last - usual) > kJitterNs) blame(row, usual);
  }

  template <class Get, class Value>
  Value middle(Row row, Get get, std::vector<Value>& values) {
    values.clear();
    for (const Entry& entry : row) values.push_back(get(entry));
    return median(values);
  }

  void blame(Row row, int64_t usual) {
    for (const Entry& entry : row) {
      if (entry.host_own < 0) return;  // somebody's first use of it
    }
    const float own = middle(
        row, [](const Entry& e) { return e.host_own + e.gpu_own; }, values_);
    const bool nobody = std::all_of(row.begin(), row.end(), [&](const Entry& entry) {
      return std::min(static_cast<float>(entry.arrival - usual), entry.host_own + entry.gpu_own - own) <=
             kJitterNs;
    });
    if (nobody) return;
    const float host_own = middle(
        row, [](const Entry& e) { return e.host_own; }, values_);
    const float gpu_own = middle(
        row, [](const Entry& e) { return e.gpu_own; }, values_);
    const float cadence = middle(
        row, [](const Entry& e) { return e.cadence; }, values_);
    const float error = middle(
        row, [](const Entry& e) { return e.error; }, values_);
    for (size_t m = 0; m < row.size(); ++m) {
      const Entry& entry = row[m];
      const float late =
          std::min(static_cast<float>(entry.arrival - usual), entry.host_own + entry.gpu_own - own);
      if (late <= kJitterNs) continue;
      const float on_host = std::min(late, std::max(entry.host_own - host_own, 0.0f));
      const float on_gpu = std::min(late - on_host, std::max(entry.gpu_own - gpu_own, 0.0f));
      const float host_part = std::min(on_host, std::max(entry.cadence - cadence, 0.0f));
      if (host_part + on_gpu <= kJitterNs) continue;
      add(m, {.host_ns = 0,
              .member = members_[m],
              .op = entry.op,
              .blame_ns = host_part + on_gpu,
              .host_part_ns = host_part,
              .behind = own <= kJitterNs,
              .idle = times_[job_.members[members_[m]].process].idle[entry.op] != 0,
              .timed = entry.timed,
              .error_ns = error_of(row, m, error)});
    }
  }

  // Members of its own host are compared without the clock between hosts.
  float error_of(Row row, size_t m, float usual_error) {
    const Member& member = job_.members[members_[m]];
    const float across = row[m].error + usual_error;
    if (across <= kJitterNs) return across;
    const uint32_t host = job_.processes[member.process].host;
    const float late = row[m].host_own + row[m].gpu_own;
    float best = across;
    for (size_t other = 0; other < row.size(); ++other) {
      const uint32_t process = job_.members[members_[other]].process;
      if (other == m || job_.processes[process].host != host) continue;
      const float apart = static_cast<float>(row[m].arrival - row[other].arrival);
      const float own = late - row[other].host_own - row[other].gpu_own;
      if (std::min(apart, own) > kJitterNs)
        best =
            std::min(best, gpu_error(member, row[m]) + gpu_error(job_.members[members_[other]], row[other]));
    }
    return best;
  }
  float gpu_error(const Member& member, const Entry& entry) const {
    return static_cast<float>(std::max(job_.ops(member).gpu_error_ns[entry.op], 0));
  }

  void add(size_t m, LateOp late) {
    late.host_ns = times_[job_.members[late.member].process].host[late.op];
    late_.emplace_back(m, late);
  }

  void settle() {
    if (late_.empty()) return;
    const Carry carry(job_, past_);
    brought_.resize(past_.size());
    for (auto& [m, late] : late_) {
      const Member& member = job_.members[late.member];
      const uint32_t at = late.op - member.first;
      const uint32_t index = job_.ops(member).index[late.op];
      if (!late.timed) {
        const bool fresh = carry.starts_over(index) || (carry.alone() && fresh_by_calls());
        if (times_[member.process].peers_unseen && !fresh) continue;
        const float lateness = past_[m].lateness[at];
        float brings = fresh ? 0 : brought(m, at, carry);
        if (brings > 0) brings = std::min(brings, still_late(m, at, late.op));
        late.host_part_ns = std::min(late.host_part_ns, lateness - brings);
        if (late.host_part_ns <= kJitterNs) continue;
        late.host_part_ns = std::min(late.host_part_ns, company_.later_than_others(member, late.op));
        late.blame_ns = late.host_part_ns;
      }
      float on_gpu = late.blame_ns - late.host_part_ns;
      if (late.behind && std::isfinite(past_[m].interval[at]))
        on_gpu = std::min(on_gpu, past_[m].interval[at] - carry.interval(index));
      else if (at > 0 && !late.idle && past_[m].lateness[at - 1] > 0)
        on_gpu = std::min(on_gpu, past_[m].lateness[at] - past_[m].lateness[at - 1] * carry.share(index));
      if (on_gpu > kJitterNs) on_gpu = std::min(on_gpu, company_.longer_than_others(member, late.op));
      late.blame_ns = late.host_part_ns + std::max(on_gpu, 0.0f);
      if (late.blame_ns <= kJitterNs) continue;
      out_.processes[member.process].blamed_ns += static_cast<double>(late.blame_ns);
      out_.late[member.process].push_back(late);
    }
  }

  // What of its greatest lateness so far a host still has when it comes to an operation: hosts that do not wait for
  // anybody drift apart and together again, which costs nobody anything.
  float brought(size_t m, uint32_t at, const Carry& carry) {
    const Member& member = job_.members[members_[m]];
    const std::vector<uint32_t>& index = job_.ops(member).index;
    auto& [next, most] = brought_[m];
    for (; next < at; ++next) {
      const float late = past_[m].lateness[next];
      if (carry.starts_over(index[member.first + next])) most = 0;
      if (late > most) most = late;
    }
    return carry.starts_over(index[member.first + at]) ? 0 : most;
  }

  // The same as Carry::starts_over, by the collective that each member called before, on whichever communicator.
  bool fresh_by_calls() {
    if (fresh_) return *fresh_;
    std::vector<Change> changes;
    for (size_t m = 0; m < members_.size(); ++m) {
      const Member& member = job_.members[members_[m]];
      float before = Company::kUnbounded;
      for (uint32_t at = 0; at < member.ops && changes.size() < kEnoughChanges; ++at) {
        const float now = company_.late_before(member, member.first + at);
        if (at > 0 && before != Company::kUnbounded && now != Company::kUnbounded &&
            std::isfinite(past_[m].lateness[at]) && std::isfinite(past_[m].lateness[at - 1]))
          changes.push_back({now - before, past_[m].lateness[at] - past_[m].lateness[at - 1]});
        before = now;
      }
    }
    fresh_ = carried_share(changes).value_or(1) < Carry::kLeastShare;
    return *fresh_;
  }

  // A host that had caught up with the others at its last collective, whichever that was, brings nothing from before.
  float still_late(size_t m, uint32_t at, uint32_t op) {
    const float before = company_.late_before(job_.members[members_[m]], op);
    return before < past_[m].lateness[at] * kCaughtUp ? std::max(before, 0.0f) : Company::kUnbounded;
  }

  const Job& job_;
  const std::vector<OwnTimes>& times_;
  const std::vector<uint32_t> members_;
  const bool all_;  // of the communicator: the last of them is the last of all
  Lateness& out_;
  Company company_;
  std::optional<bool> fresh_;  // fresh_by_calls
  Span span_;
  // By signature, where some members cannot be compared: the least time from the last arrival of the others to the end.
  // What ends later than that had a later arrival that is not seen.
  std::map<uint32_t, int64_t> least_moving_;
  // By member: operations that were looked at, and the most of their lateness that is still there.
  std::vector<std::pair<uint32_t, float>> brought_;
  std::vector<Entry> block_;      // operation by operation
  std::vector<MemberPast> past_;  // by member
  int64_t before_ = 0;            // last arrival at the operation before; 0 unknown
  std::vector<std::pair<size_t, LateOp>>
      late_;  // of which member; before what was brought along is taken off
  std::vector<int64_t> arrivals_;
  std::vector<float> values_;
};

// The members of a communicator that can be compared.
std::vector<std::vector<uint32_t>> groups(const Job& job, const std::vector<OwnTimes>& times,
                                          const model::JobComm& comm) {
  std::map<uint32_t, std::vector<uint32_t>> by_clock;
  for (uint32_t row : comm.members) {
    if (row == kNoRow) continue;
    const Member& member = job.members[row];
    if (member.ops == 0 || member.alignment == Member::Alignment::kNone || !times[member.process].comparable)
      continue;
    by_clock[times[member.process].domain].push_back(row);
  }
  std::vector<std::vector<uint32_t>> out;
  for (auto& [clock, members] : by_clock) {
    if (members.size() > 1) out.push_back(std::move(members));
  }
  return out;
}

}  // namespace

Lateness measure(const Job& job) {
  Lateness out;
  out.comms.resize(job.comms.size());
  out.processes.resize(job.processes.size());
  out.late.resize(job.processes.size());
  std::vector<OwnTimes> times(job.processes.size());
  {
    LastArrivals last(job);
    for_each_parallel(times.size(),
                      [&](size_t i) { times[i] = own_times(job, static_cast<uint32_t>(i), last); });
  }
  for (const OwnTimes& own : times) {
    out.not_comparable += !own.comparable;
    out.domains.push_back(own.domain);
  }
  std::map<uint32_t, Span> spans;
  for (const model::JobComm& comm : job.comms) {
    for (auto& members : groups(job, times, comm)) {
      Span& span = spans[times[job.members[members[0]].process].domain];
      const Span of = GroupComparer(job, times, std::move(members), out).run();
      span = {std::min(span.first, of.first), std::max(span.last, of.last)};
    }
  }
  for (const auto& [domain, span] : spans) out.span_ns = std::max(out.span_ns, span.last - span.first);
  for (auto& late : out.late) {
    std::sort(late.begin(), late.end(), [](const LateOp& a, const LateOp& b) {
      return std::pair(a.host_ns, a.op) < std::pair(b.host_ns, b.op);
    });
  }
  return out;
}

}  // namespace lockstep::analysis::straggler
