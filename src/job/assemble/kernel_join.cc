// SPDX-License-Identifier: Apache-2.0
// Gives kernels to operations. NCCL's plan names the launch before it on the same thread, and the launch's
// call encloses the kernel's own. Every link is checked against missing records, because a kernel that is
// given to the wrong operation shifts all GPU times after it. Without records of launches, kernels are joined
// by order alone if the counts agree, and that is counted as a loss of certainty.
#include "job/assemble/kernel_join.h"

#include <algorithm>
#include <tuple>

#include "job/assemble/enclosing_calls.h"
#include "job/assemble/loss.h"
#include "model/event_kind.h"

namespace lockstep::job::assemble {
namespace {

using model::EventKind;
using model::kNoRow;

uint64_t key_of(uint32_t group, uint32_t comm) { return uint64_t{group} << 32 | comm; }
uint32_t group_of(uint64_t key) { return static_cast<uint32_t>(key >> 32); }

}  // namespace

KernelJoin::KernelJoin(model::Trace& trace, const Launches& launches, const DeviceComms& device_comms,
                       KernelWorks& works)
    : trace_(trace), launches_(launches), device_comms_(device_comms), works_(works) {
  find_kernels();
  if (units_.empty()) {
    report();
    return;
  }
  const size_t calls = trace.calls.size();
  for (auto* flags : {&is_next_, &is_proven_, &fits_, &has_plan_, &is_doubtful_}) flags->resize(calls);
  task_unit_.assign(trace.tasks.size(), kNoRow);
  call_unit_.assign(calls, kNoRow);
  list_launches();
  list_parts();
  for_each_group([this](Parts parts) { check_plans(parts); });
  for (const Part& part : parts_) join_by_plan(part);
  for_each_group([this](Parts parts) {
    join_other_thread(parts);
    join_symmetric(parts);
  });
  join_plans();
  report();
}

std::span<const uint32_t> KernelJoin::of(uint32_t task, uint32_t call) const {
  uint32_t unit = kNoRow;
  if (task != kNoRow) {
    if (task < task_unit_.size()) unit = task_unit_[task];
  } else if (call < call_unit_.size()) {
    unit = call_unit_[call];
  }
  if (unit == kNoRow) return {};
  return std::span(kernels_).subspan(units_[unit].first, units_[unit].count);
}

bool KernelJoin::is_captured(uint32_t call) const {
  return (trace_.calls.flags[call] & model::kFlagGraphCaptured) != 0;
}

void KernelJoin::find_kernels() {
  const model::KernelTable& kernels = trace_.kernels;
  if (trace_.launches.size() == 0) return find_by_order();
  EnclosingCalls launch_calls(trace_, EventKind::kKernelLaunch), groups(trace_, EventKind::kGroupApi);
  std::vector<Found> found;
  for (uint32_t row = 0; row < kernels.size(); ++row) {
    if (kernels.graph[row] != 0 || !works_.is_nccl(row)) continue;
    const uint32_t launch = kernels.launch[row];
    if (launch == kNoRow) {
      ++without_launch_;
      continue;
    }
    if (device_comms_.is_replay(launch)) continue;
    uint32_t call = launch_calls.of_launch(launch);
    if (call == kNoRow) call = device_comms_.call_of(launch);
    if (call == kNoRow) call = groups.of_launch(launch);
    if (call == kNoRow)
      ++outside_;
    else
      found.push_back({call, row});
  }
  make_units(std::move(found));
}

// The n-th launch of the process is that of the n-th kernel, as correlations count.
void KernelJoin::find_by_order() {
  const model::KernelTable& kernels = trace_.kernels;
  const model::CallTable& calls = trace_.calls;
  std::vector<Found> found;
  for (uint32_t row = 0; row < kernels.size(); ++row) {
    if (kernels.graph[row] == 0 && works_.is_nccl(row)) found.push_back({kNoRow, row});
  }
  if (found.empty()) return;
  is_by_order_ = true;
  without_launch_ = found.size();
  std::sort(found.begin(), found.end(), [&](const Found& a, const Found& b) {
    return std::tie(kernels.correlation[a.kernel], a.kernel) <
           std::tie(kernels.correlation[b.kernel], b.kernel);
  });
  std::vector<uint32_t> order;
  for (uint32_t row = 0; row < calls.size(); ++row) {
    const bool captured = calls.parent[row] != kNoRow && is_captured(calls.parent[row]);
    if (calls.kind[row] == number(EventKind::kKernelLaunch) && !captured && !is_captured(row))
      order.push_back(row);
  }
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return std::tie(calls.start_ns[a], a) < std::tie(calls.start_ns[b], b);
  });
  // One launch or kernel that is not recorded shifts all that follow, so counts must agree to the last.
  if (order.size() != found.size()) return;
  for (size_t i = 0; i < order.size(); ++i) {
    const bool overlaps = i > 0 && calls.end_ns[order[i - 1]] > calls.start_ns[order[i]];
    // Launches of two threads at once have no order; a kernel before its launch shows that the order is
    // wrong.
    if (overlaps || kernels.start_ns[found[i].kernel] < calls.start_ns[order[i]]) return;
    found[i].call = order[i];
  }
  without_launch_ = 0;
  make_units(std::move(found));
}

void KernelJoin::make_units(std::vector<Found> found) {
  const model::KernelTable& kernels = trace_.kernels;
  const auto earlier = [&](const Found& a, const Found& b) {
    return std::tuple(a.call, kernels.start_ns[a.kernel], a.kernel) <
           std::tuple(b.call, kernels.start_ns[b.kernel], b.kernel);
  };
  if (!std::is_sorted(found.begin(), found.end(), earlier)) std::sort(found.begin(), found.end(), earlier);
  for (const Found& of : found) {
    if (units_.empty() || units_.back().call != of.call)
      units_.push_back({.call = of.call, .first = static_cast<uint32_t>(kernels_.size()), .count = 0});
    ++units_.back().count;
    kernels_.push_back(of.kernel);
  }
}

KernelJoin::Unit* KernelJoin::unit_of(uint32_t call) {
  const auto at = std::lower_bound(units_.begin(), units_.end(), call,
                                   [](const Unit& unit, uint32_t wanted) { return unit.call < wanted; });
  return at != units_.end() && at->call == call ? &*at : nullptr;
}

void KernelJoin::list_launches() {
  const model::CallTable& calls = trace_.calls;
  std::vector<uint32_t> last(trace_.threads.size() + 1, kNoRow);  // launch or plan, by thread
  for (uint32_t row = 0; row < calls.size(); ++row) {
    const bool is_launch = calls.kind[row] == number(EventKind::kKernelLaunch);
    if (!is_launch && calls.kind[row] != number(EventKind::kGroup)) continue;
    uint32_t& before = last[std::min<size_t>(calls.thread[row], trace_.threads.size())];
    if (is_launch) {
      if (calls.parent[row] != kNoRow) group_launch_.push_back(row);
    } else if (launches_.of_plan(row) != kNoRow) {
      has_plan_[launches_.of_plan(row)] = true;
      is_next_[row] = before == launches_.of_plan(row);
    }
    before = row;
  }
  std::stable_sort(group_launch_.begin(), group_launch_.end(), [&](uint32_t a, uint32_t b) {
    return key_of(calls.parent[a], calls.comm[a]) < key_of(calls.parent[b], calls.comm[b]);
  });
}

// What was called outside of captures.
void KernelJoin::list_parts() {
  const model::CallTable& calls = trace_.calls;
  const model::TaskTable& tasks = trace_.tasks;
  std::vector<bool> has_task(calls.size());
  const auto add = [&](uint32_t task, uint32_t call, uint32_t comm, uint32_t plan) {
    if (!is_captured(call) && calls.parent[call] != kNoRow)
      parts_.push_back({key_of(calls.parent[call], comm), task, call, plan});
  };
  for (uint32_t task = 0; task < tasks.size(); ++task) {
    const uint32_t call = tasks.call[task];
    if (call == kNoRow) continue;
    has_task[call] = true;
    if (tasks.kind[task] == number(EventKind::kColl) || tasks.kind[task] == number(EventKind::kP2p))
      add(task, call, tasks.comm[task], tasks.plan[task]);
  }
  for (uint32_t call = 0; call < calls.size(); ++call) {
    const uint8_t kind = calls.kind[call];
    if ((kind == number(EventKind::kCollApi) || kind == number(EventKind::kP2pApi)) && !has_task[call])
      add(kNoRow, call, calls.comm[call], kNoRow);
  }
  const auto by_key = [](const Part& a, const Part& b) {
    return std::tie(a.key, a.task, a.call) < std::tie(b.key, b.task, b.call);
  };
  if (!std::is_sorted(parts_.begin(), parts_.end(), by_key)) std::sort(parts_.begin(), parts_.end(), by_key);
}

template <class Visit>
void KernelJoin::for_each_group(Visit&& visit) const {
  for (size_t first = 0, end = 0; first < parts_.size(); first = end) {
    while (end < parts_.size() && parts_[end].key == parts_[first].key) ++end;
    visit(Parts(parts_).subspan(first, end - first));
  }
}

bool KernelJoin::may_run(const Unit& unit, const Part& part) {
  const uint32_t shape = part.task != kNoRow ? trace_.tasks.shape[part.task] : trace_.calls.shape[part.call];
  return works_.may_run(kernels_[unit.first], shape);
}

// A plan takes the launch before it on its thread. Where records are missing that may be another plan's: so
// nothing may lie between the two, the group of the launch must be that of a task, and no plan and no launch
// of the group be missing.
void KernelJoin::check_plans(Parts parts) {
  const model::CallTable& calls = trace_.calls;
  const Unit* const without_call = unit_of(group_of(parts.front().key));
  bool is_whole = without_call == nullptr || works_.is_symmetric(kernels_[without_call->first]);
  for (const Part& part : parts) {
    const bool is_coll = calls.kind[part.call] == number(EventKind::kCollApi);
    if (part.plan == kNoRow) {
      is_whole = is_whole && part.task == kNoRow && !is_coll;
      continue;
    }
    const uint32_t launch = launches_.of_plan(part.plan);
    if (launch == kNoRow) continue;
    if (key_of(calls.parent[launch], calls.comm[launch]) == part.key) is_proven_[part.plan] = true;
    if (Unit* unit = unit_of(launch)) {
      unit->has_ops = true;
      if (may_run(*unit, part)) fits_[part.plan] = true;
    }
  }
  if (is_whole) return;
  const auto at = std::lower_bound(
      group_launch_.begin(), group_launch_.end(), parts.front().key,
      [&](uint32_t launch, uint64_t key) { return key_of(calls.parent[launch], calls.comm[launch]) < key; });
  for (auto i = at; i != group_launch_.end(); ++i) {
    if (key_of(calls.parent[*i], calls.comm[*i]) != parts.front().key) break;
    is_doubtful_[*i] = true;
  }
}

void KernelJoin::give(const Part& part, const Unit& unit) {
  units_[static_cast<size_t>(&unit - units_.data())].is_given = true;
  const auto number = static_cast<uint32_t>(&unit - units_.data());
  (part.task != kNoRow ? task_unit_[part.task] : call_unit_[part.call]) = number;
}

void KernelJoin::join_by_plan(const Part& part) {
  if (part.plan == kNoRow || !is_next_[part.plan] || !is_proven_[part.plan] || !fits_[part.plan]) return;
  const uint32_t launch = launches_.of_plan(part.plan);
  if (!is_doubtful_[launch]) give(part, *unit_of(launch));
}

// Where no launches are reported, a unit's call is the plan.
void KernelJoin::join_plans() {
  const model::TaskTable& tasks = trace_.tasks;
  const auto unit_of_task = [&](uint32_t task) {
    const uint32_t plan = tasks.plan[task];
    const bool has_own = plan != kNoRow && launches_.of_plan(plan) == kNoRow;
    return has_own ? unit_of(plan) : nullptr;
  };
  for (uint32_t task = 0; task < tasks.size(); ++task) {
    if (Unit* const unit = unit_of_task(task)) {
      unit->has_ops = true;
      if (works_.may_run(kernels_[unit->first], tasks.shape[task])) fits_[tasks.plan[task]] = true;
    }
  }
  for (uint32_t task = 0; task < tasks.size(); ++task) {
    const Unit* const unit = unit_of_task(task);
    if (unit == nullptr || !fits_[tasks.plan[task]] || unit->count != 1) continue;
    units_[static_cast<size_t>(unit - units_.data())].is_given = true;
    task_unit_[task] = static_cast<uint32_t>(unit - units_.data());
  }
}

// A callback thread of CUDA reports the plan where live graphs made NCCL take that way; the launch stays with
// the caller.
void KernelJoin::join_other_thread(Parts parts) {
  const model::CallTable& calls = trace_.calls;
  const uint32_t plan = parts.front().plan;
  for (const Part& part : parts) {
    if (part.plan == kNoRow || part.plan != plan || launches_.of_plan(plan) != kNoRow) return;
  }
  const auto at = std::lower_bound(
      group_launch_.begin(), group_launch_.end(), parts.front().key,
      [&](uint32_t launch, uint64_t key) { return key_of(calls.parent[launch], calls.comm[launch]) < key; });
  const auto has_key = [&](auto i) {
    return i != group_launch_.end() && key_of(calls.parent[*i], calls.comm[*i]) == parts.front().key;
  };
  if (!has_key(at) || has_key(at + 1) || has_plan_[*at] || calls.thread[plan] == calls.thread[*at]) return;
  Unit* const unit = unit_of(*at);
  if (unit == nullptr) return;
  unit->has_ops = true;
  const bool fits =
      std::any_of(parts.begin(), parts.end(), [&](const Part& part) { return may_run(*unit, part); });
  for (const Part& part : parts) {
    if (fits) give(part, *unit);
  }
}

void KernelJoin::join_symmetric(Parts parts) {
  const Part& only = parts.front();
  if (parts.size() != 1 || only.task != kNoRow) return;
  Unit* const unit = unit_of(group_of(only.key));
  if (unit == nullptr || unit->count != 1) return;
  unit->has_ops = true;
  if (works_.is_symmetric(kernels_[unit->first]) && may_run(*unit, only)) give(only, *unit);
}

void KernelJoin::report() {
  uint64_t unknown = 0, misnamed = 0;
  for (const Unit& unit : units_) {
    if (!unit.is_given) (unit.has_ops ? misnamed : unknown) += unit.count;
  }
  if (is_by_order_ && unknown + misnamed > 0) {
    without_launch_ = kernels_.size();
    unknown = misnamed = 0;
    units_.clear();
    task_unit_.clear();
    call_unit_.clear();
  }
  if (is_by_order_) {
    lose(trace_, "kernel_joined_by_order", units_.empty() ? 0 : kernels_.size(),
         "NCCL kernels matched to operations by order only: no record of the calls that launched them");
  }
  lose(trace_, "kernel_without_launch", without_launch_,
       "NCCL kernels without a record of the call that launched them: their operations keep other GPU "
       "times, or none");
  lose(trace_, "kernel_launched_outside", outside_,
       "NCCL kernels launched outside anything its profiler reported: not joined to operations");
  lose(trace_, "kernel_without_op", unknown,
       "NCCL kernels whose launch has unknown or missing operations: not joined to operations");
  lose(
      trace_, "kernel_name_mismatch", misnamed,
      "NCCL kernels whose name fits no operation of their launch, or whose launch lacks records: not joined");
}

}  // namespace lockstep::job::assemble
