// SPDX-License-Identifier: Apache-2.0
// Names of rocpd's tables are put together here, once a row, as numbers of texts: a view would make a text
// for each row that it shows. An operation that the GPU timed has the name of its kernel, another one that of
// its call, as views show it as the one or the other.
#include "store/sqlite/derived_columns.h"

#include <algorithm>

#include "model/event_kind.h"

namespace lockstep::store::sqlite {
namespace {

bool gpu_timed(const model::OpTable& ops, uint32_t op) {
  return ops.gpu_start_ns[op] != 0 && ops.gpu_end_ns[op] != 0;
}

int64_t host_start(const model::OpTable& ops, uint32_t op) {
  // The order of the view rocpd_op, whose rows must not end before they begin.
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
  run.compute(trace);
  call_name.resize(trace.calls.size());
  for (uint32_t i = 0; i < call_name.size(); ++i) {
    // A call without a shape, such as that of a group, is named by what kind of event it is.
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
  compute_ops(trace, names);
  compute_launches(trace, names);
}

void DerivedColumns::compute_ops(const model::Trace& trace, const RunNames& names) {
  const model::OpTable& ops = trace.ops;
  op_name.resize(ops.size());
  op_host_end.resize(ops.size());
  for (uint32_t i = 0; i < ops.size(); ++i) {
    uint32_t shape = ops.shape[i];
    bool custom = ops.kind[i] == model::number(model::EventKind::kApiOp);
    op_name[i] = RunNames::kind_text(ops.kind[i]);
    if (shape < names.shape_map().size()) {
      const RunNames::ShapeTexts& texts = names.shape_texts(names.shape_map()[shape]);
      op_name[i] = gpu_timed(ops, i) ? (custom ? texts.custom_kernel : texts.kernel)
                                     : (custom ? names.shapes().func[names.shape_map()[shape]] : texts.api);
    }
    op_host_end[i] = host_end(trace, i);
  }
  // A kernel that is known by itself has a name of its own.
  const model::KernelTable& kernels = trace.kernels;
  std::vector<bool> is_named(ops.size());
  for (size_t i = 0; i < kernels.size(); ++i) {
    const uint32_t op = kernels.op[i];
    if (op >= ops.size() || kernels.name[i] == 0 || is_named[op] || !gpu_timed(ops, op)) continue;
    // The first kernel of an operation names it.
    is_named[op] = true;
    op_name[op] = names.string_map()[kernels.name[i]];
  }
}

void DerivedColumns::compute_launches(const model::Trace& trace, RunNames& names) {
  launch_name.resize(trace.launches.size());
  // A run without launches shall not hold their names.
  if (launch_name.empty()) return;
  const uint32_t kernel = names.intern("cuLaunchKernel"), graph = names.intern("cuGraphLaunch");
  for (size_t i = 0; i < launch_name.size(); ++i) {
    const bool is_graph = trace.launches.kind[i] == static_cast<uint8_t>(model::LaunchKind::kGraph);
    launch_name[i] = is_graph ? graph : kernel;
  }
}

}  // namespace lockstep::store::sqlite
