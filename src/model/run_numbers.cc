// SPDX-License-Identifier: Apache-2.0
// What nobody can tell gets a number of its own, once for each: one number for all that is unknown would put
// communicators or devices together that have nothing to do with each other.
#include "model/run_numbers.h"

#include "model/record_gaps.h"
#include "model/recording_modes.h"

namespace lockstep::model {

OperationNumbers::OperationNumbers(const Trace& trace) : collectives_from_(trace.comms.size()) {
  bool is_whole = true;
  for (size_t i = 0; i < trace.losses.size(); ++i)
    is_whole = is_whole && !events_gone(trace.strings[trace.losses.kind[i]]);
  auto window = Window::kNone;
  if (trace.processes.size() > 0) {
    is_whole = is_whole && !was_off(trace.strings[trace.processes.modes[0]]);
    window = static_cast<Window>(trace.processes.window[0]);
  }
  std::optional<int64_t> first_step;
  for (size_t i = 0; i < trace.marks.size() && !first_step; ++i) {
    if (trace.marks.is_step[i]) first_step = trace.marks.value[i];
  }
  // Without steps nothing says with what a window began.
  const std::optional<int64_t> counted = window == Window::kCounted ? first_step : kFromBegin;
  for (uint32_t comm = 0; comm < trace.comms.size(); ++comm) {
    if (trace.comms.numbered[comm] != 0)
      collectives_from_[comm] = kFromBegin;
    else if (is_whole)
      collectives_from_[comm] = counted;
  }
  // Messages have no number that holds their place within a window of any kind.
  if (is_whole) messages_from_ = window != Window::kNone && first_step ? first_step : counted;
}

void RunNumbers::compute(const Trace& trace) {
  compute_processes(trace);
  compute_comms(trace);
  process_gpu_ = trace.processes.size() ? trace.processes.gpu[0] : -1;
  compute_ops(trace);
  compute_kernels(trace);
}

int32_t RunNumbers::process_gpu() {
  // Made up on the first need: a process whose rows all name their device uses up no number.
  if (process_gpu_ < 0) process_gpu_ = next_unknown_gpu_++;
  return process_gpu_;
}

void RunNumbers::compute_processes(const Trace& trace) {
  process_node.clear();
  for (uint32_t i = 0; i < trace.processes.size(); ++i) {
    auto key = std::tuple(std::string(trace.strings[trace.processes.boot_id[i]]),
                          std::string(trace.strings[trace.processes.host[i]]),
                          std::string(trace.strings[trace.processes.host_id[i]]));
    process_node.push_back(nodes_.try_emplace(key, static_cast<int32_t>(nodes_.size())).first->second);
  }
}

void RunNumbers::compute_comms(const Trace& trace) {
  comm_run.clear();
  comm_same_index.clear();
  const OperationNumbers numbers(trace);
  for (uint32_t i = 0; i < trace.comms.size(); ++i) {
    comm_same_index.push_back(numbers.has_same_index(i, -1));
    uint64_t id = trace.comms.comm_id[i];
    if (id == 0) {
      comm_run.push_back(next_run_comm_++);  // nothing says which comms of other processes it belongs with
      continue;
    }
    auto [place, added] = run_comms_.try_emplace({id, trace.comms.ranks[i]}, next_run_comm_);
    if (added) ++next_run_comm_;
    comm_run.push_back(place->second);
  }
}

void RunNumbers::compute_ops(const Trace& trace) {
  const OpTable& ops = trace.ops;
  comm_collectives.assign(trace.comms.size(), 0);
  comm_p2ps.assign(trace.comms.size(), 0);
  op_gpu.resize(ops.size());
  for (uint32_t i = 0; i < ops.size(); ++i) {
    uint32_t comm = ops.comm[i];
    const bool has_comm = comm < trace.comms.size();
    if (has_comm) ++(ops.peer[i] >= 0 ? comm_p2ps : comm_collectives)[comm];
    op_gpu[i] = has_comm && trace.comms.gpu[comm] >= 0 ? trace.comms.gpu[comm] : process_gpu();
  }
}

void RunNumbers::compute_kernels(const Trace& trace) {
  kernel_gpu.resize(trace.kernels.size());
  for (uint32_t i = 0; i < kernel_gpu.size(); ++i)
    kernel_gpu[i] = trace.kernels.gpu[i] >= 0 ? trace.kernels.gpu[i] : process_gpu();
}

}  // namespace lockstep::model
