// SPDX-License-Identifier: Apache-2.0
// Joins kernels to the calls that launched them, in files of profilers that name operations on the host and
// kernels on the GPU. The surest link is tried first: an id that both bear, if the launch lies inside the
// call or the kernel names its collective itself. Else the launch's own place decides: inside a call, or
// behind the last call of a group, where NCCL launches for all of them together. What fits none stays
// unjoined.
#include "readers/common/kernel_links.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>

namespace lockstep::readers::common {
namespace {

using model::kNoRow;

// From the last call of a group to the launch of all: what the end of the group takes on the host.
constexpr int64_t kGroupEndNs = 20'000'000;
constexpr size_t kMostInGroup = 65'536;

class Linker {
 public:
  Linker(std::span<const LinkedCall> calls, std::span<const LinkedKernel> kernels,
         std::vector<KernelLaunch>& launches, const model::Trace& trace)
      : calls_(calls), kernels_(kernels), launches_(launches), trace_(trace) {
    links_.work.resize(calls.size());
    links_.call_of_kernel.assign(kernels.size(), kNoRow);
    batch_.assign(calls.size(), 0);
    // Of launches with one number a recorded call comes before what an arrow alone shows.
    std::sort(launches.begin(), launches.end(), [](const KernelLaunch& a, const KernelLaunch& b) {
      return std::tie(a.correlation, a.is_flow, a.start_ns) < std::tie(b.correlation, b.is_flow, b.start_ns);
    });
    by_external_.reserve(calls.size());
    for (uint32_t call = 0; call < calls.size(); ++call) {
      const LinkedCall& of = calls[call];
      if (of.external != kNoLink) by_external_.try_emplace(of.external, call);
      by_thread_[of.tid].push_back(call);
    }
  }

  Links run() {
    std::vector<uint32_t> left;
    for (uint32_t i = 0; i < kernels_.size(); ++i) {
      const uint32_t call = direct_call(kernels_[i]);
      if (call == kNoRow)
        left.push_back(i);
      else
        attach(i, call);
    }
    auto launched = [this](uint32_t kernel) {
      const KernelLaunch* launch = launch_of(kernels_[kernel]);
      return launch == nullptr ? INT64_MAX : launch->start_ns;
    };
    // In the order of launches: the first kernel of a group claims its calls, and later ones join it.
    std::stable_sort(left.begin(), left.end(),
                     [&](uint32_t a, uint32_t b) { return launched(a) < launched(b); });
    for (const uint32_t kernel : left) attach_to_group(kernel);
    for (const CallWork& work : links_.work) links_.silent_calls += work.gpu_start_ns == kNoTime;
    return std::move(links_);
  }

 private:
  const KernelLaunch* launch_of(const LinkedKernel& kernel) const {
    if (kernel.correlation == kNoLink) return nullptr;
    const auto at = std::lower_bound(
        launches_.begin(), launches_.end(), kernel.correlation,
        [](const KernelLaunch& launch, int64_t correlation) { return launch.correlation < correlation; });
    return at != launches_.end() && at->correlation == kernel.correlation ? &*at : nullptr;
  }

  bool may_run_call(const LinkedKernel& kernel, uint32_t call) const {
    return model::may_run(kernel.work, trace_.strings[calls_[call].func]);
  }

  // Files of 2023 and before give a kernel its own correlation as id, which may by chance be that of another
  // call.
  uint32_t direct_call(const LinkedKernel& kernel) const {
    // A replay runs when its graph is launched, long after the call that was captured.
    if (trace_.kernels.graph[kernel.row] != 0) return kNoRow;
    const KernelLaunch* const launch = launch_of(kernel);
    if (const auto at = by_external_.find(kernel.external);
        kernel.external != kNoLink && at != by_external_.end()) {
      const LinkedCall& call = calls_[at->second];
      const bool is_nested = launch != nullptr && launch->tid == call.tid &&
                             launch->start_ns >= call.start_ns && launch->start_ns <= call.end_ns;
      if (kernel.is_named || is_nested) return at->second;
    }
    if (launch == nullptr) return kNoRow;
    const uint32_t before = last_call_before(*launch);
    if (before == kNoRow || launch->start_ns > calls_[before].end_ns) return kNoRow;
    return may_run_call(kernel, before) ? before : kNoRow;
  }

  // The thread's last call that began before the launch.
  uint32_t last_call_before(const KernelLaunch& launch) const {
    const auto thread = by_thread_.find(launch.tid);
    if (thread == by_thread_.end()) return kNoRow;
    const std::vector<uint32_t>& calls = thread->second;
    const auto behind =
        std::upper_bound(calls.begin(), calls.end(), launch.start_ns,
                         [this](int64_t ns, uint32_t call) { return ns < calls_[call].start_ns; });
    return behind == calls.begin() ? kNoRow : *(behind - 1);
  }

  void add_work(const LinkedKernel& kernel, uint32_t call, const KernelLaunch* launch) {
    CallWork& work = links_.work[call];
    const int64_t start = trace_.kernels.start_ns[kernel.row], end = trace_.kernels.end_ns[kernel.row];
    work.gpu_start_ns = work.gpu_start_ns == kNoTime ? start : std::min(work.gpu_start_ns, start);
    work.gpu_end_ns = std::max(work.gpu_end_ns, end);
    if (launch == nullptr) return;
    if (work.launch == nullptr || launch->start_ns < work.launch->start_ns) work.launch = launch;
    // No kernel begins before its launch: what seems so bounds the error of the two clocks from below.
    links_.contradiction_ns = std::max(links_.contradiction_ns, launch->start_ns - start);
  }

  void attach(uint32_t kernel, uint32_t call) {
    const LinkedKernel& of = kernels_[kernel];
    add_work(of, call, launch_of(of));
    links_.call_of_kernel[kernel] = call;
  }

  void attach_to_group(uint32_t kernel) {
    const LinkedKernel& of = kernels_[kernel];
    if (trace_.kernels.graph[of.row] != 0) {
      ++links_.graph_kernels;
      return;
    }
    const KernelLaunch* const launch = launch_of(of);
    const uint32_t last = launch == nullptr ? kNoRow : last_call_before(*launch);
    if (last == kNoRow || launch->start_ns - calls_[last].end_ns > kGroupEndNs || !may_run_call(of, last) ||
        (links_.work[last].gpu_start_ns != kNoTime && batch_[last] == 0)) {
      ++links_.unlinked_kernels;
      return;
    }
    // A group's work may take several kernels.
    const bool is_more = batch_[last] != 0;
    const uint32_t batch = is_more ? batch_[last] : ++batches_;
    const std::vector<uint32_t>& calls = by_thread_[launch->tid];
    size_t place =
        static_cast<size_t>(std::lower_bound(calls.begin(), calls.end(), last) - calls.begin()) + 1;
    uint32_t first = last;
    for (size_t count = 0; place-- > 0 && count < kMostInGroup; ++count) {
      const uint32_t call = calls[place];
      if (calls_[call].group != calls_[last].group || !may_run_call(of, call)) break;
      if (is_more ? batch_[call] != batch : links_.work[call].gpu_start_ns != kNoTime) break;
      add_work(of, call, launch);
      batch_[call] = batch;
      first = call;
    }
    links_.call_of_kernel[kernel] = first;
  }

  std::span<const LinkedCall> calls_;
  std::span<const LinkedKernel> kernels_;
  std::vector<KernelLaunch>& launches_;  // by correlation
  const model::Trace& trace_;
  Links links_;
  std::unordered_map<int64_t, uint32_t> by_external_;
  std::unordered_map<int64_t, std::vector<uint32_t>> by_thread_;  // calls in order of time
  std::vector<uint32_t> batch_;  // by call: which group of calls one launch did; 0 none
  uint32_t batches_ = 0;
};

}  // namespace

Links link(std::span<const LinkedCall> calls, std::span<const LinkedKernel> kernels,
           std::vector<KernelLaunch>& launches, const model::Trace& trace) {
  return Linker(calls, kernels, launches, trace).run();
}

}  // namespace lockstep::readers::common
