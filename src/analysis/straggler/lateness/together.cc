// SPDX-License-Identifier: Apache-2.0
// Blames ranks that are late together, as all ranks of one host are when the host is slow. They wait for each
// other, so each of them looks early against the next. Where they meet other ranks, their own time since they
// last came as early as those is added up, and what has been blamed before, or is carried over, is taken off.
#include "analysis/straggler/lateness/together.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "analysis/straggler/lateness/op_finder.h"
#include "analysis/straggler/median.h"

namespace lockstep::analysis::straggler {
namespace {

using model::Job;
using model::JobOps;

class SharedDelay {
 public:
  SharedDelay(const Job& job, const std::vector<ExclusiveTimes>& times, const std::vector<MemberPast>& past,
              const CarriedLateness& carried)
      : job_(job),
        times_(times),
        past_(past),
        carried_(carried),
        runs_(past.size()),
        ops_(past.size()),
        before_(past.size()),
        own_(past.size()),
        awaited_(past.size()) {
    for (const MemberPast& of : past) finders_.emplace_back(job, job.members[of.member]);
  }

  std::vector<LateOp> look() {
    uint32_t from = 0;
    uint64_t until = UINT64_MAX, fewest = UINT64_MAX;
    for (const OpFinder& finder : finders_) {
      from = std::max(from, job_.oldest_index(finder.member()));
      until = std::min<uint64_t>(until, job_.next_index(finder.member()));
      fewest = std::min<uint64_t>(fewest, finder.member().ops);
    }
    if (until <= from || until - from > most_indexes(fewest)) return {};
    for (uint64_t index = from; index < until; ++index) look_at(static_cast<uint32_t>(index));
    return std::move(late_);
  }

 private:
  // Of a member, since it last came as early as the others.
  struct Run {
    bool is_known = false;
    uint32_t begin = 0,
             blamed = 0;  // positions in JobOps: where it came as early, and where it was blamed last
    float own = 0;        // its own time since then, beyond the others'
    float blamed_ns = 0, carried_ns = 0;  // in all; and what of it is still in its lateness
  };

  const ExclusiveTimes& own_of(size_t m) const { return times_[finders_[m].member().process]; }
  float lateness(size_t m) const { return past_[m].lateness[ops_[m] - finders_[m].member().first]; }
  float interval(size_t m) const { return past_[m].interval[ops_[m] - finders_[m].member().first]; }

  void look_at(uint32_t index) {
    if (!load(index)) {
      has_before_ = false;
      std::fill(runs_.begin(), runs_.end(), Run{});
      return;
    }
    look_at_exchanges();
    bool any = false;
    for (size_t m = 0; m < ops_.size(); ++m) any = any || lateness(m) + awaited_[m] > kTogetherNs;
    if (any && has_before_) {
      add_own(index);
      for (size_t m = 0; m < ops_.size(); ++m) judge(m);
    }
    for (size_t m = 0; m < ops_.size(); ++m) {
      if (lateness(m) + awaited_[m] <= kTogetherNs)
        runs_[m] = {.is_known = true, .begin = ops_[m], .blamed = ops_[m]};
    }
    before_ = ops_;
    has_before_ = true;
  }

  // Whether all members have it, with times that compare; not where it connects a communicator.
  bool load(uint32_t index) {
    for (size_t m = 0; m < finders_.size(); ++m) {
      const auto op = finders_[m].at(index);
      if (!op) return false;
      ops_[m] = *op;
      const ExclusiveTimes& own = own_of(m);
      if (own.busy.empty() || own.host_own[*op] < 0 || !job_.ops(finders_[m].member()).is_placed(*op) ||
          !std::isfinite(lateness(m)))
        return false;
    }
    return true;
  }

  // How long others waited for each member in exchanges, since the operation before.
  void look_at_exchanges() {
    std::fill(awaited_.begin(), awaited_.end(), 0.0f);
    if (!has_before_) return;
    for (size_t m = 0; m < ops_.size(); ++m) {
      const Column<int64_t>& exchanged = own_of(m).exchanged;
      if (exchanged.empty()) return std::fill(awaited_.begin(), awaited_.end(), 0.0f);
      awaited_[m] = static_cast<float>(exchanged[ops_[m]] - exchanged[before_[m]]);
    }
    values_ = awaited_;
    const float usual = lower_median(std::span(values_));
    for (float& awaited : awaited_) awaited = std::max(usual - awaited, 0.0f);
  }

  // Whatever members worked while this communicator's operation before waited for the last of them would not
  // be in their own time, and those for whom it did not wait would seem to have worked longer: where work
  // goes on beside it, that counts as well. Where the others came as soon as it was through, how long they
  // worked is not known: there counts by what a member came later than members usually do that had not to
  // wait, and all of its lateness is new.
  void add_own(uint32_t index) {
    std::vector<float>& values = values_;
    values.clear();
    for (size_t m = 0; m < ops_.size(); ++m) {
      const int64_t end = end_of(job_.ops(finders_[m].member()), own_of(m), before_[m]);
      values.push_back(static_cast<float>(own_of(m).arrival[ops_[m]] - end));
    }
    const bool at_once = lower_median(std::span(values)) <= kJitterNs;
    const auto beside = at_once ? BesideChanges::Answer::kNo : goes_on_beside(index);
    values.clear();
    float least_beside = std::numeric_limits<float>::max();
    for (size_t m = 0; m < ops_.size(); ++m) {
      const std::optional<uint32_t> anew = began_anew(m);
      if (anew) runs_[m] = {.is_known = true, .begin = before_[m], .blamed = before_[m]};
      own_[m] = static_cast<float>(own_of(m).busy[ops_[m]] - own_of(m).busy[anew.value_or(before_[m])]);
      values.push_back(beside == BesideChanges::Answer::kNo || anew ? own_[m] : own_beside(m));
      least_beside = std::min(least_beside, values.back() - own_[m]);
    }
    // Where it is not known, what is sure of each is held against the most that others may have worked.
    for (size_t m = 0; m < ops_.size(); ++m)
      own_[m] = beside == BesideChanges::Answer::kUnknown ? own_[m] + least_beside : values[m];
    const float usual = lower_median(std::span(values)), usual_interval = carried_.interval(index);
    for (size_t m = 0; m < ops_.size(); ++m) {
      float own = own_[m] - usual;
      Run& run = runs_[m];
      run.carried_ns *= carried_.share(index);
      if (at_once) {
        if (std::isfinite(interval(m)))
          own = std::min(own, std::isfinite(usual_interval) ? interval(m) - usual_interval : 0);
        if (!at_once_) run.own = 0;
        run.carried_ns = 0;
      }
      run.own += own;
    }
    at_once_ = at_once;
  }

  // The last call before its host first launched one when all that it had called had ended, since the
  // operation before: it had waited for whoever was late there, and brings nothing along.
  std::optional<uint32_t> began_anew(size_t m) const {
    const ExclusiveTimes& own = own_of(m);
    for (uint32_t place = own.place[before_[m]] + 1; place <= own.place[ops_[m]]; ++place) {
      if (own.idle[own.order[place]] != 0) return own.order[place - 1];
    }
    return std::nullopt;
  }

  // At the operation before, of anybody: they do the same.
  BesideChanges::Answer goes_on_beside(uint32_t index) const {
    for (size_t m = 0; m < ops_.size(); ++m) {
      if (is_seen_beside(m)) return BesideChanges::Answer::kYes;
    }
    return carried_.beside(index);
  }

  // Whether what it called after the operation before began while that was on.
  bool is_seen_beside(size_t m) const {
    const ExclusiveTimes& own = own_of(m);
    const uint32_t next = own.order[own.place[before_[m]] + 1];
    return next != ops_[m] && own.arrival[next] < end_of(job_.ops(finders_[m].member()), own, before_[m]);
  }

  // Its own time since its arrival at the operation before, which did not hold its work up.
  float own_beside(size_t m) const {
    const ExclusiveTimes& own = own_of(m);
    const JobOps& ops = job_.ops(finders_[m].member());
    int64_t until = own.arrival[before_[m]], sum = 0;
    for (uint32_t place = own.place[before_[m]] + 1; place <= own.place[ops_[m]]; ++place) {
      const uint32_t op = own.order[place];
      sum += std::max<int64_t>(own.arrival[op] - until, 0);
      until = std::max({until, own.arrival[op], end_of(ops, own, op)});
    }
    return static_cast<float>(sum);
  }

  void judge(size_t m) {
    Run& run = runs_[m];
    const float late = std::min(lateness(m) - run.carried_ns + awaited_[m], run.own);
    if (!run.is_known || late <= kTogetherNs) return;
    const ExclusiveTimes& its = own_of(m);
    const uint32_t op = ops_[m], longest = longest_own(its, run.blamed, op);
    const float host = std::max(its.host_own[longest], 0.0f), all = host + its.gpu_own[longest];
    late_.push_back({.host_ns = its.host[op],
                     .member = past_[m].member,
                     .op = op,
                     .blame_ns = late,
                     .host_part_ns = all > 0 ? late * host / all : 0,
                     .idle = its.idle[op] != 0,
                     .timed = true,
                     // What its lateness grows by is on its own clock.
                     .error_ns = run.blamed_ns > 0 ? 0 : its.error[op] + usual_error(),
                     .together = true,
                     .in_all_ns = run.blamed_ns + late,
                     .since_ns = its.host[run.begin],
                     .blamed_ns = its.host[run.blamed]});
    run.own -= late;
    run.carried_ns += std::max(late - awaited_[m], 0.0f);
    run.blamed_ns += late;
    run.blamed = op;
  }

  // Of the operations after `before`, up to `op`, in the order of their calls.
  static uint32_t longest_own(const ExclusiveTimes& own, uint32_t before, uint32_t op) {
    uint32_t longest = op;
    const auto time = [&](uint32_t of) { return std::max(own.host_own[of], 0.0f) + own.gpu_own[of]; };
    for (uint32_t place = own.place[before] + 1; place < own.place[op]; ++place) {
      if (time(own.order[place]) > time(longest)) longest = own.order[place];
    }
    return longest;
  }

  float usual_error() {
    values_.clear();
    for (size_t m = 0; m < ops_.size(); ++m) values_.push_back(own_of(m).error[ops_[m]]);
    return lower_median(std::span(values_));
  }

  const Job& job_;
  const std::vector<ExclusiveTimes>& times_;
  const std::vector<MemberPast>& past_;
  const CarriedLateness& carried_;
  std::vector<OpFinder> finders_;
  std::vector<Run> runs_;
  std::vector<uint32_t> ops_, before_;         // by member, of this operation and the one before
  bool has_before_ = false, at_once_ = false;  // at_once_: at the operation before
  std::vector<float> own_, awaited_, values_;
  std::vector<LateOp> late_;
};

}  // namespace

std::vector<LateOp> late_together(const Job& job, const std::vector<ExclusiveTimes>& times,
                                  const std::vector<MemberPast>& past, const CarriedLateness& carried) {
  const auto stage_of = [&](const MemberPast& of) { return times[job.members[of.member].process].stage; };
  const auto differs = [&](const MemberPast& of) { return stage_of(of) != stage_of(past[0]); };
  if (std::any_of(past.begin(), past.end(), differs)) return {};
  return SharedDelay(job, times, past, carried).look();
}

}  // namespace lockstep::analysis::straggler
