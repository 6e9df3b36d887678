// SPDX-License-Identifier: Apache-2.0
// Decides what a step is. The program's own marks are trusted first. Without them, the sequence of operations
// is searched for its period with the failure function of Knuth, Morris and Pratt, which is linear; the end
// of the run may hold up to 64 operations that belong to no step. If nothing repeats, the run is cut into
// equal parts, so that "since when" can still be answered roughly.
#include "analysis/straggler/lateness/steps.h"

#include <algorithm>

#include "analysis/straggler/lateness/exclusive_times.h"
#include "analysis/straggler/lateness/units.h"

namespace lockstep::analysis::straggler {
namespace {

// Parts of a run in which nothing repeats: fine enough to tell since when somebody is late.
constexpr size_t kLeastSlices = 16, kMostSlices = 128, kOpsOfSlice = 16;
constexpr size_t kRepeats = 3;
// What a program does after its last step: a barrier, an evaluation.
constexpr size_t kMostAfter = 64;
// Where the operations of so many do not repeat, those of the others hardly do.
constexpr size_t kMostAsked = 16;

// The longest end of `sequence` without its last `after` items that repeats. Knuth-Morris-Pratt on the
// reversed sequence: a prefix of n items with a border of b has the period n - b.
Period period_before(const std::vector<uint32_t>& sequence, size_t after) {
  const size_t size = sequence.size() - after;
  auto item = [&](size_t i) { return sequence[size - 1 - i]; };
  std::vector<uint32_t> border(size);
  Period best;
  for (size_t i = 1; i < size; ++i) {
    uint32_t k = border[i - 1];
    while (k > 0 && item(i) != item(k)) k = border[k - 1];
    border[i] = k + (item(i) == item(k));
    const size_t length = i + 1 - border[i];
    if (length * kRepeats > i + 1) continue;
    best = {.begin = 0, .length = length, .repeats = (i + 1) / length};
  }
  best.begin = size - best.length * best.repeats;
  return best;
}

std::vector<uint32_t> program(const model::Job& job, const model::JobProcess& process,
                              const Column<uint32_t>& order) {
  // The same operation on two communicators is two items, whatever algorithm NCCL chose.
  const model::JobOps& ops = process.ops;
  std::vector<uint32_t> bucket(ops.size());
  uint32_t buckets = 0;
  for (uint32_t row : process.members) {
    const model::Member& member = job.members[row];
    std::fill_n(bucket.begin() + member.first, member.ops, buckets++);
    for (const model::Lane& lane : member.lanes)
      std::fill_n(bucket.begin() + lane.first, lane.ops, buckets++);
  }
  std::vector<uint32_t> items;
  items.reserve(order.size());
  for (uint32_t op : order) {
    const model::Signature& s = job.signatures[ops.signature[op]];
    uint64_t hash = (uint64_t{bucket[op]} << 32 | s.func) * 0x9e3779b97f4a7c15u;
    hash = (hash ^ s.bytes ^ uint64_t{s.datatype} << 48) * 0xff51afd7ed558ccdu;
    items.push_back(static_cast<uint32_t>(hash >> 32));
  }
  return items;
}

// On the host's own clock.
int64_t arrival_ns(const model::JobOps& ops, uint32_t op) {
  return ops.is_placed(op) ? std::max(ops.gpu_start_ns[op], host_ns(ops, op)) : host_ns(ops, op);
}

}  // namespace

int64_t common_or_own_ns(const model::Job& job, uint32_t process, int64_t ns) {
  const auto time = job.common_ns(process, ns);
  return time ? time->ns : ns;
}

size_t Steps::at(int64_t ns) const {
  auto after = std::upper_bound(begin_ns.begin(), begin_ns.end(), ns);
  return after == begin_ns.begin() ? 0 : static_cast<size_t>(after - begin_ns.begin()) - 1;
}

Period find_period(const std::vector<uint32_t>& sequence) {
  Period best;
  for (size_t after = 0; after <= kMostAfter && after * 4 <= sequence.size();
       after = after == 0 ? 1 : after * 2) {
    if (sequence.size() - after < 2 * kRepeats) break;
    Period period = period_before(sequence, after);
    if (period.length * period.repeats > best.length * best.repeats) best = period;
  }
  return best;
}

Steps find_steps(const model::Job& job, uint32_t process_row) {
  const model::JobProcess& process = job.processes[process_row];
  Steps steps;
  steps.process = process_row;
  const auto common = [&](int64_t ns) { return common_or_own_ns(job, process_row, ns); };
  for (const model::Mark& mark : process.marks) {
    steps.begin_ns.push_back(common(mark.time_ns));
    steps.number.push_back(mark.value);
  }
  if (steps.size() >= kRepeats && std::is_sorted(steps.begin_ns.begin(), steps.begin_ns.end())) {
    steps.source = Steps::Source::kMarks;
    return steps;
  }
  steps.begin_ns.clear();
  steps.number.clear();
  const Column<uint32_t> order = call_order(process.ops);
  if (order.empty() || host_ns(process.ops, order[order.size() - 1]) == 0)
    return steps;  // no host time at all
  auto begin = [&](size_t place) {
    steps.number.push_back(static_cast<int64_t>(steps.size()));
    steps.begin_ns.push_back(common(host_ns(process.ops, order[place])));
  };
  const std::vector<uint32_t> items = program(job, process, order);
  const auto time = [&](size_t place) { return arrival_ns(process.ops, order[place]); };
  const Units units = find_units(items, find_period(items), time);
  if (units.length != 0) {
    steps.source = Steps::Source::kPeriod;
    steps.period = static_cast<uint32_t>(units.length);
    if (units.begins.front() != 0) begin(0);
    for (size_t place : units.begins) begin(place);
    return steps;
  }
  const size_t slices =
      std::min(std::clamp(order.size() / kOpsOfSlice, kLeastSlices, kMostSlices), order.size());
  steps.period = static_cast<uint32_t>(order.size() / slices);
  for (size_t i = 0; i < slices; ++i) begin(i * steps.period);
  return steps;
}

Steps find_steps(const model::Job& job) {
  Steps first;
  size_t asked = 0;
  for (uint32_t process = 0; process < job.processes.size() && asked < kMostAsked; ++process) {
    Steps steps = find_steps(job, process);
    if (steps.size() == 0) continue;
    ++asked;
    if (steps.source != Steps::Source::kSlices) return steps;
    if (first.size() == 0) first = std::move(steps);
  }
  return first;
}

}  // namespace lockstep::analysis::straggler
