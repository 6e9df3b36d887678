// SPDX-License-Identifier: Apache-2.0
// Reduces a run to what a comparison needs: sums by class of operation and by block of steps. Only sums are
// kept, so that two runs of any length fit into memory together. Classes are limited in number, since a
// damaged file may name millions of them; what is left out is counted.
#include "analysis/compare/samples.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <unordered_map>

#include "analysis/bandwidth/rates.h"
#include "analysis/straggler/lateness/exclusive_times.h"
#include "analysis/straggler/lateness/lateness.h"
#include "analysis/straggler/lateness/steps.h"
#include "base/parallel.h"
#include "base/text/wording.h"
#include "model/names/operation_size.h"

namespace lockstep::analysis::compare {
namespace {

using model::Job;
using straggler::Steps;

// Of a process: what it did when falls into which block.
class StepCursor {
 public:
  StepCursor(const Job& job, uint32_t process, const Steps& steps, size_t in_block)
      : job_(job), process_(process), steps_(steps), in_block_(in_block) {}

  // Of a time as in exclusive_times.h.
  std::optional<size_t> block_at(int64_t ns) {
    const std::vector<int64_t>& begin = steps_.begin_ns;
    if (begin.empty() || ns < begin.front()) return std::nullopt;
    // Neighbours are mostly of one step: the last answer is tried before a search.
    const bool here =
        at_ < begin.size() && begin[at_] <= ns && (at_ + 1 == begin.size() || ns < begin[at_ + 1]);
    if (!here) at_ = steps_.at(ns);
    return block_of(at_);
  }
  std::optional<size_t> block_of(size_t step) const {
    if (step < kWarmUpSteps || step + 1 >= steps_.size()) return std::nullopt;
    return (step - kWarmUpSteps) / in_block_;
  }
  std::optional<size_t> block_of_op(uint32_t op) {
    const int64_t ns = straggler::host_ns(job_.processes[process_].ops, op);
    if (ns == 0) return std::nullopt;
    const auto common = job_.common_ns(process_, ns);
    return block_at(common ? common->ns : ns);
  }
  // One unit for each step that counts.
  void count_steps(Series& series) const {
    for (size_t step = kWarmUpSteps; step + 1 < steps_.size(); ++step) series.add(*block_of(step), 0, 1);
  }
  size_t usable() const { return steps_.size() > kWarmUpSteps + 1 ? steps_.size() - kWarmUpSteps - 1 : 0; }

 private:
  const Job& job_;
  uint32_t process_;
  const Steps& steps_;
  size_t in_block_, at_ = 0;
};

int bucket_of(uint64_t size) { return static_cast<int>(std::bit_width(size)); }

// Whether its steps are those of most of what the process did; the repeated end of a benchmark is not.
bool is_stepped(const Steps& steps, size_t ops) {
  if (steps.source == Steps::Source::kMarks) return true;
  return steps.source == Steps::Source::kPeriod && 2 * (steps.size() - 1) * steps.period >= ops;
}

// Numbers the operations of each class of one member, or of several that are through with each other one
// after the other.
class Ordinals {
 public:
  explicit Ordinals(size_t in_block) : in_block_(in_block) {}
  std::optional<size_t> next(const ClassSamples* of) {
    const size_t number = met_[of]++;
    if (number < kWarmUpSteps) return std::nullopt;
    return (number - kWarmUpSteps) / in_block_;
  }

 private:
  size_t in_block_;
  std::unordered_map<const ClassSamples*, size_t> met_;
};

class Sampler {
 public:
  explicit Sampler(const Job& job) : job_(job), steps_(job.processes.size()) {}

  Samples take() && {
    out_.processes = static_cast<uint32_t>(job_.processes.size());
    out_.is_amd = job_.has_amd_gpus();
    if (job_.processes.empty()) return std::move(out_);
    find_steps();
    name_comms();
    for (uint32_t process = 0; process < job_.processes.size(); ++process) add_process(process);
    add_moving();
    if (!by_operations()) add_lateness();
    std::erase_if(out_.moving, [](const auto& of) { return of.second.ops == 0; });
    std::erase_if(out_.durations, [](const auto& of) { return of.second.ops == 0; });
    return std::move(out_);
  }

 private:
  StepCursor cursor(uint32_t process) const { return {job_, process, steps_[process], out_.steps_in_block}; }

  void find_steps() {
    // The job is only read, and each task writes its own element.
    for_each_parallel(steps_.size(), parallel_threads(),
                      [&](size_t i) { steps_[i] = straggler::find_steps(job_, static_cast<uint32_t>(i)); });
    size_t most_ops = 0;
    for (uint32_t i = 0; i < steps_.size(); ++i) {
      most_ops = std::max(most_ops, job_.processes[i].ops.size());
      // A process that repeats nothing beside others that do has no steps that compare with theirs.
      if (!is_stepped(steps_[i], job_.processes[i].ops.size())) steps_[i] = Steps();
    }
    // The process with the most steps dates the blocks; what others did in a step is in the block of that
    // number.
    const Steps& most = *std::max_element(steps_.begin(), steps_.end(),
                                          [](const Steps& a, const Steps& b) { return a.size() < b.size(); });
    if (most.size() == 0) {
      if (most_ops == 0) return;
      out_.steps_by = Samples::Steps::kOperations;
      out_.steps_in_block = (most_ops + kMostBlocks - 1) / kMostBlocks;
      for (size_t i = 0; i * out_.steps_in_block + kWarmUpSteps < most_ops; ++i)
        out_.blocks.push_back({static_cast<int64_t>(i * out_.steps_in_block + kWarmUpSteps), 0});
      return;
    }
    out_.steps_by = most.source == Steps::Source::kMarks ? Samples::Steps::kMarks : Samples::Steps::kPeriod;
    if (most.size() <= kWarmUpSteps + 1) return;
    const size_t usable = most.size() - kWarmUpSteps - 1;
    out_.steps_in_block = (usable + kMostBlocks - 1) / kMostBlocks;
    for (size_t i = 0; i < usable; ++i) {
      const size_t step = i + kWarmUpSteps;
      if (i % out_.steps_in_block == 0) out_.blocks.push_back({most.number[step], most.begin_ns[step]});
      out_.step.add(i / out_.steps_in_block,
                    static_cast<double>(most.begin_ns[step + 1] - most.begin_ns[step]), 1);
    }
  }
  bool by_operations() const { return out_.steps_by == Samples::Steps::kOperations; }

  void name_comms() {
    for (uint32_t row = 0; row < job_.comms.size(); ++row) {
      const model::JobComm& comm = job_.comms[row];
      CommSamples& of = out_.comms.emplace_back();
      of.name = job_.text(comm.name);
      of.ranks = comm.ranks;
      bool known = comm.unranked.empty();
      for (uint32_t member : comm.members) {
        const int32_t rank =
            member == model::kNoRow ? -1 : job_.processes[job_.members[member].process].row.rank;
        known = known && rank >= 0;
        of.members.push_back(rank);
        if (member == model::kNoRow) continue;
        of.processes.insert(job_.members[member].process);
        const int64_t init = job_.members[member].init_ns;
        if (init != 0 && (of.first_ns == 0 || init < of.first_ns)) of.first_ns = init;
      }
      if (!known) of.members.clear();
      std::sort(of.members.begin(), of.members.end());
      of.label = !of.name.empty() || of.members.empty() ? wording::name(job_.comm_name(row))
                                                        : wording::ranks(of.members);
    }
  }

  void add_process(uint32_t process) {
    const model::JobProcess& of = job_.processes[process];
    if (of.row.rank >= 0)
      out_.ranks.insert(of.row.rank);
    else
      ++out_.unranked;
    if (of.row.first_ns > 0 && (out_.begin_ns == 0 || of.row.first_ns < out_.begin_ns))
      out_.begin_ns = of.row.first_ns;
    for (uint32_t row : of.members) {
      const model::Member& member = job_.members[row];
      add_durations(process, member, member.first, member.ops);
      for (const model::Lane& lane : member.lanes) add_durations(process, member, lane.first, lane.ops);
    }
    add_exposed(process);
  }

  // From call to end is another kind of time: it holds queueing and is never added to GPU times.
  struct Duration {
    double ns;
    uint8_t source;
  };
  static std::optional<Duration> duration(const model::JobOps& ops, uint32_t op) {
    const int64_t start = ops.gpu_start_ns[op], end = ops.gpu_end_ns[op];
    if (end == 0) return std::nullopt;
    if (start != 0) {
      if (end <= start) return std::nullopt;
      return Duration{static_cast<double>(end - start), ops.gpu_source[op]};
    }
    const int64_t entered = ops.entered_ns(op);
    if (entered == 0 || end <= entered) return std::nullopt;
    return Duration{static_cast<double>(end - entered), kCallToEnd};
  }

  ClassSamples* class_of(Classes& classes, uint32_t comm, model::StringId func, int bucket, uint8_t source) {
    // Callers keep the pointer: elements of a std::map stay where they are.
    ClassKey key{std::string(job_.text(func)), bucket, comm, source};
    if (classes.size() < kMostClasses) return &classes[std::move(key)];
    const auto known = classes.find(key);
    return known == classes.end() ? nullptr : &known->second;
  }
  void note_algorithm(const model::Signature& s, ClassSamples& of) const {
    if (s.algo == 0 || of.algorithms.size() >= kMostAlgorithms) return;
    of.algorithms.insert(
        wording::name(std::string(job_.text(s.algo)) + " " + std::string(job_.text(s.proto))));
  }

  void add_durations(uint32_t process, const model::Member& member, uint32_t first, uint32_t count) {
    const model::JobOps& ops = job_.processes[process].ops;
    StepCursor steps = cursor(process);
    Ordinals ordinals(out_.steps_in_block);
    // Neighbours are mostly alike: what was looked up last is looked up first.
    uint32_t signature = model::kNoRow;
    uint8_t source = 0;
    ClassSamples* into = nullptr;
    Series* whole = nullptr;
    uint64_t size = 0;
    for (uint32_t op = first; op < first + count; ++op) {
      const auto took = duration(ops, op);
      if (!took) continue;
      if (ops.signature[op] != signature || took->source != source) {
        signature = ops.signature[op];
        source = took->source;
        const model::Signature& s = job_.signatures[signature];
        size = model::operation_size(job_.text(s.func), s.bytes, job_.comms[member.comm].ranks,
                                     s.kind == model::number(model::EventKind::kApiOp));
        into = class_of(out_.durations, member.comm, s.func, bucket_of(size), source);
        if (into != nullptr) note_algorithm(s, *into);
        whole = communicating(process, source);
      }
      const auto block = by_operations() ? ordinals.next(into) : steps.block_of_op(op);
      if (!block) continue;
      // Its units are steps, which were counted when the series was made.
      if (whole != nullptr) whole->add(*block, took->ns, 0);
      if (into == nullptr) {
        ++out_.left_out;
        continue;
      }
      into->series.add(*block, took->ns, 1);
      ++into->ops;
      into->bytes += static_cast<double>(size);
    }
  }

  Series* communicating(uint32_t process, uint8_t source) {
    const int32_t rank = job_.processes[process].row.rank;
    if (rank < 0 || by_operations()) return nullptr;
    const auto [at, added] = out_.communicating.try_emplace({rank, source});
    if (added) cursor(process).count_steps(at->second);
    return &at->second;
  }

  void add_exposed(uint32_t process) {
    const model::JobProcess& of = job_.processes[process];
    if (of.row.rank < 0 || of.gpu_steps.size() <= kWarmUpSteps || by_operations()) return;
    Series& series = out_.exposed[of.row.rank];
    for (size_t i = kWarmUpSteps; i < of.gpu_steps.size(); ++i) {
      const model::GpuStep& step = of.gpu_steps[i];
      const size_t block = (i - kWarmUpSteps) / out_.steps_in_block;
      if (step.is_whole && step.devices > 0 && block < kMostBlocks)
        series.add(block, static_cast<double>(step.exposed_ns) / step.devices, 1);
    }
  }

  void add_moving() {
    uint32_t member = model::kNoRow;
    std::optional<StepCursor> steps;
    std::optional<Ordinals> ordinals;
    bandwidth::measure(job_, [&](const bandwidth::Moved& moved) {
      const uint32_t process = job_.members[moved.member].process;
      // measure() reports one member's operations together, so a cursor serves many calls.
      if (moved.member != member) {
        steps.emplace(cursor(process));
        ordinals.emplace(out_.steps_in_block);
      }
      member = moved.member;
      const model::JobOps& ops = job_.processes[process].ops;
      ClassSamples* into =
          class_of(out_.moving, moved.comm, moved.func, bucket_of(moved.bytes), ops.gpu_source[moved.op]);
      if (into == nullptr) return;
      const auto block = by_operations() ? ordinals->next(into) : steps->block_of_op(moved.op);
      if (!block) return;
      note_algorithm(job_.signatures[ops.signature[moved.op]], *into);
      into->series.add(*block, moved.time_ns, static_cast<double>(moved.bytes));
      into->factor = moved.factor;
      ++into->ops;
      into->bytes += static_cast<double>(moved.bytes);
    });
  }

  void add_lateness() {
    const straggler::Lateness lateness = straggler::measure(job_);
    for (uint32_t process = 0; process < job_.processes.size(); ++process) {
      const int32_t rank = job_.processes[process].row.rank;
      StepCursor steps = cursor(process);
      if (rank < 0 || lateness.processes[process].ops == 0 || steps.usable() == 0) continue;
      Series& series = out_.late[rank];
      steps.count_steps(series);
      for (const straggler::LateOp& late : lateness.late[process]) {
        // Steps without lateness are in the series as 0: count_steps() has put them there.
        if (const auto block = steps.block_at(late.host_ns))
          series.add(*block, static_cast<double>(late.blame_ns), 0);
      }
    }
  }

  static constexpr size_t kMostAlgorithms = 8;  // in words
  const Job& job_;
  std::vector<Steps> steps_;  // by process
  Samples out_;
};

}  // namespace

void Series::add(size_t block, double sum, double unit) {
  if (block >= sums.size()) {
    sums.resize(block + 1);
    units.resize(block + 1);
  }
  sums[block] += sum;
  units[block] += unit;
}

std::string_view time_text(uint8_t source) {
  return source == kCallToEnd ? "call to end" : model::gpu_source_name(source);
}

Samples take(const Job& job) { return Sampler(job).take(); }

}  // namespace lockstep::analysis::compare
