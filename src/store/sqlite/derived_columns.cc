// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/derived_columns.h"

#include <algorithm>

#include "model/comms_id.h"
#include "model/event_kind.h"

namespace lockstep::store::sqlite {
namespace {

bool gpu_timed(const model::OpTable& ops, uint32_t op) {
  return ops.gpu_start_ns[op] != 0 && ops.gpu_end_ns[op] != 0;
}

int64_t host_start(const model::OpTable& ops, uint32_t op) {
  for (int64_t time : {ops.enqueued_ns[op], ops.called_ns[op], ops.launched_ns[op]}) {
    if (time != 0) return time;
  }
  return ops.gpu_start_ns[op];
}

int64_t host_end(const model::Trace& trace, uint32_t op) {
  int64_t end = host_start(trace.ops, op);
  if (uint32_t task = trace.ops.task[op]; task < trace.tasks.size())
    end = std::max(end, trace.tasks.end_ns[task]);
  if (uint32_t call = trace.ops.call[op]; call < trace.calls.size())
    end = std::max(end, trace.calls.end_ns[call]);
  return end;
}

}  // namespace

void DerivedColumns::compute(const model::Trace& trace, RunNames& names) {
  compute_processes(trace);
  compute_comms(trace);
  call_name.resize(trace.calls.size());
  for (uint32_t i = 0; i < call_name.size(); ++i) {
    uint32_t shape = trace.calls.shape[i];
    call_name[i] = shape < names.shape_map().size() ? names.shape_texts(names.shape_map()[shape]).api
                                                    : RunNames::kind_text(trace.calls.kind[i]);
  }
  mark_label.resize(trace.marks.size());
  for (uint32_t i = 0; i < mark_label.size(); ++i) {
    std::string label(trace.strings[trace.marks.name[i]]);
    if (trace.marks.is_step[i]) label += ' ' + std::to_string(trace.marks.value[i]);
    mark_label[i] = names.intern(label);
  }
  process_gpu_ = trace.processes.size() ? trace.processes.gpu[0] : -1;
  compute_ops(trace, names);
  compute_launches(trace, names);
  compute_kernels(trace);
}

int32_t DerivedColumns::process_gpu() {
  if (process_gpu_ < 0) process_gpu_ = next_unknown_gpu_++;
  return process_gpu_;
}

void DerivedColumns::compute_processes(const model::Trace& trace) {
  process_node.clear();
  for (uint32_t i = 0; i < trace.processes.size(); ++i) {
    auto key = std::tuple(std::string(trace.strings[trace.processes.boot_id[i]]),
                          std::string(trace.strings[trace.processes.host[i]]),
                          std::string(trace.strings[trace.processes.host_id[i]]));
    process_node.push_back(nodes_.try_emplace(key, static_cast<int32_t>(nodes_.size())).first->second);
  }
}

void DerivedColumns::compute_comms(const model::Trace& trace) {
  comm_run.clear();
  for (uint32_t i = 0; i < trace.comms.size(); ++i) {
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

void DerivedColumns::compute_ops(const model::Trace& trace, const RunNames& names) {
  const model::OpTable& ops = trace.ops;
  comm_collectives.assign(trace.comms.size(), 0);
  comm_p2ps.assign(trace.comms.size(), 0);
  op_gpu.resize(ops.size());
  op_name.resize(ops.size());
  op_host_end.resize(ops.size());
  op_torch_id.resize(ops.size());
  model::TorchGroups torch(trace);
  for (uint32_t i = 0; i < ops.size(); ++i) {
    uint32_t comm = ops.comm[i];
    const bool has_comm = comm < trace.comms.size();
    if (has_comm) ++(ops.peer[i] >= 0 ? comm_p2ps : comm_collectives)[comm];
    op_gpu[i] = has_comm && trace.comms.gpu[comm] >= 0 ? trace.comms.gpu[comm] : process_gpu();
    uint32_t shape = ops.shape[i];
    bool custom = ops.kind[i] == model::number(model::EventKind::kApiOp);
    op_name[i] = RunNames::kind_text(ops.kind[i]);
    if (shape < names.shape_map().size()) {
      const RunNames::ShapeTexts& texts = names.shape_texts(names.shape_map()[shape]);
      op_name[i] = gpu_timed(ops, i) ? (custom ? texts.custom_kernel : texts.kernel)
                                     : (custom ? names.shapes().func[names.shape_map()[shape]] : texts.api);
    }
    op_host_end[i] = host_end(trace, i);
    auto tuple = torch.next(i);
    op_torch_id[i] = tuple ? model::comms_id(*tuple) : model::kNoSeq;
  }
}

void DerivedColumns::compute_launches(const model::Trace& trace, RunNames& names) {
  launch_name.resize(trace.launches.size());
  if (launch_name.empty()) return;
  const uint32_t kernel = names.intern("cuLaunchKernel"), graph = names.intern("cuGraphLaunch");
  for (size_t i = 0; i < launch_name.size(); ++i) {
    const bool is_graph = trace.launches.kind[i] == static_cast<uint8_t>(model::LaunchKind::kGraph);
    launch_name[i] = is_graph ? graph : kernel;
  }
}

void DerivedColumns::compute_kernels(const model::Trace& trace) {
  kernel_gpu.resize(trace.kernels.size());
  for (uint32_t i = 0; i < kernel_gpu.size(); ++i)
    kernel_gpu[i] = trace.kernels.gpu[i] >= 0 ? trace.kernels.gpu[i] : process_gpu();
}

}  // namespace lockstep::store::sqlite
