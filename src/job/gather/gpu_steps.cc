// SPDX-License-Identifier: Apache-2.0
// Communication costs time only while no computation runs beside it. So what counts is the length of sets of
// instants, not the sum of kernels' durations: kernels of several streams overlap, and a sum would count one
// instant twice. The sets are cut at the marks of the steps.
#include "job/gather/gpu_steps.h"

#include <algorithm>
#include <map>

#include "model/intervals.h"

namespace lockstep::job::gather {
namespace {

using model::Interval;
using model::Intervals;
using model::KernelKind;

constexpr size_t kMostDevices = 64;  // of one process

class StepMaker {
 public:
  StepMaker(const model::Trace& trace, model::JobProcess& process)
      : trace_(trace), kernels_(trace.kernels), process_(process) {}

  void make() {
    const auto kinds = kernels_.all(&model::KernelTable::kind);
    // Communication counts as exposed where nothing computes: without records of computation all of it would.
    if (std::find(kinds.begin(), kinds.end(), static_cast<uint8_t>(KernelKind::kCompute)) == kinds.end())
      return;
    find_devices();
    find_borders();
    for (size_t device = 0; device < devices_; ++device) add_device(device);
    for (const auto& [key, of] : exposed_) {
      process_.exposed.push_back(
          {.member = key.first, .func = key.second, .communicating_ns = of.first, .exposed_ns = of.second});
    }
  }

 private:
  void find_devices() {
    std::map<int32_t, uint8_t> numbers;
    device_.resize(kernels_.size());
    for (size_t i = 0; i < kernels_.size(); ++i) {
      // Devices beyond the limit share the last number: a forged file cannot make lists grow.
      const auto next = static_cast<uint8_t>(std::min(numbers.size(), kMostDevices - 1));
      device_[i] = numbers.try_emplace(kernels_.gpu[i], next).first->second;
      devices_ = std::max<size_t>(devices_, device_[i] + 1u);
    }
  }

  void add_step(int64_t number, bool is_whole) {
    model::GpuStep step;
    step.number = number;
    step.begin_ns = borders_[borders_.size() - 2];
    step.end_ns = borders_.back();
    step.is_whole = is_whole;
    step.devices = static_cast<uint32_t>(devices_);
    process_.gpu_steps.push_back(step);
  }

  // From mark to mark. The last step ends when the GPU has nothing more to do; without marks, all is one.
  void find_borders() {
    int64_t first = INT64_MAX, last = INT64_MIN;
    for (size_t i = 0; i < kernels_.size(); ++i) {
      first = std::min(first, kernels_.start_ns[i]);
      last = std::max(last, kernels_.end_ns[i]);
    }
    std::vector<std::pair<int64_t, int64_t>> marks;
    for (const model::Mark& mark : process_.marks) marks.emplace_back(mark.time_ns, mark.value);
    std::sort(marks.begin(), marks.end());
    for (const auto& [time, number] : marks) {
      const bool is_first = borders_.empty();
      // A second mark of the same instant begins no step.
      if (!is_first && time <= borders_.back()) continue;
      borders_.push_back(time);
      if (!is_first) add_step(open_number_, true);
      open_number_ = number;
    }
    if (borders_.empty()) borders_.push_back(first);
    // What follows the last mark is a step of which only the GPU's end is known.
    if (last <= borders_.back()) return;
    borders_.push_back(last);
    add_step(open_number_, false);
  }

  void add_device(size_t device) {
    Intervals by_kind[3];
    for (size_t i = 0; i < kernels_.size(); ++i) {
      if (device_[i] == device && kernels_.kind[i] < std::size(by_kind))
        by_kind[kernels_.kind[i]].push_back({kernels_.start_ns[i], kernels_.end_ns[i]});
    }
    auto take = [&](KernelKind kind) {
      return model::union_of(std::move(by_kind[static_cast<size_t>(kind)]));
    };
    const Intervals computing = take(KernelKind::kCompute), communicating = take(KernelKind::kCommunication),
                    copying = take(KernelKind::kCopy);
    // Exposed is what communicates and does not compute: the union of one less what both share.
    const Intervals hidden = model::common_to(computing, communicating);
    Intervals all = computing;
    all.insert(all.end(), communicating.begin(), communicating.end());
    const Intervals working = model::union_of(std::move(all));
    const Intervals copying_beside = model::common_to(copying, working);
    const auto add = [this](const Intervals& intervals, int64_t model::GpuStep::*sum, int sign) {
      const std::vector<int64_t> covered = model::covered_between(intervals, borders_);
      for (size_t i = 0; i < covered.size(); ++i) process_.gpu_steps[i].*sum += sign * covered[i];
    };
    add(computing, &model::GpuStep::computing_ns, 1);
    add(communicating, &model::GpuStep::communicating_ns, 1);
    add(communicating, &model::GpuStep::exposed_ns, 1);
    add(hidden, &model::GpuStep::exposed_ns, -1);
    add(copying, &model::GpuStep::copying_ns, 1);
    add(copying_beside, &model::GpuStep::copying_ns, -1);
    add_exposed(device, computing);
  }

  void add_exposed(size_t device, const Intervals& computing) {
    // Per kernel and not as a union: each communicator and function is asked by itself, and two of them that
    // overlap are both exposed.
    const model::Cover cover(computing);
    for (size_t i = 0; i < kernels_.size(); ++i) {
      const uint32_t op = kernels_.op[i];
      if (device_[i] != device || op >= trace_.ops.size()) continue;
      const uint32_t comm = trace_.ops.comm[op], shape = trace_.ops.shape[op];
      if (comm >= trace_.comms.size() || shape >= trace_.shapes.size()) continue;
      const Interval kernel{kernels_.start_ns[i], std::max(kernels_.start_ns[i], kernels_.end_ns[i])};
      auto& of = exposed_[{comm, trace_.shapes.func[shape]}];
      of.first += kernel.end - kernel.begin;
      of.second += kernel.end - kernel.begin - cover.within(kernel);
    }
  }

  const model::Trace& trace_;
  const model::KernelTable& kernels_;
  model::JobProcess& process_;
  std::vector<uint8_t> device_;  // by kernel
  size_t devices_ = 0;
  std::vector<int64_t> borders_;  // of the steps
  int64_t open_number_ = -1;
  std::map<std::pair<uint32_t, model::StringId>, std::pair<int64_t, int64_t>> exposed_;
};

}  // namespace

void add_gpu_steps(const model::Trace& trace, model::JobProcess& process) {
  StepMaker(trace, process).make();
}

}  // namespace lockstep::job::gather
