// SPDX-License-Identifier: Apache-2.0
#include "nccl_host/script_builder.h"

namespace lockstep::sim {

namespace abi = nccl_abi;

namespace {
constexpr uint64_t kGpuAheadNs =
    1'795'202'725'000'000'000u + 640'000u;  // near the wall clock, not equal to it
void* pointer(uint64_t value) { return reinterpret_cast<void*>(value); }
}  // namespace

Program ScriptBuilder::finish() {
  program_.link();
  return std::move(program_);
}

abi::v7::Descriptor ScriptBuilder::blank(uint64_t type) {
  abi::v7::Descriptor descriptor{};
  descriptor.type = type;
  return descriptor;
}

uint64_t ScriptBuilder::gpu_now() const { return (kGpuAheadNs + now_ns_) & ~uint64_t{31}; }

Thread ScriptBuilder::thread(const char* name) {
  program_.threads.emplace_back(name);
  return {static_cast<uint16_t>(program_.threads.size() - 1)};
}

Context ScriptBuilder::comm(uint64_t id, int ranks, int rank, int nodes, const char* name) {
  program_.comms.push_back({id, name ? text(name) : nullptr, nodes, ranks, rank});
  sequence_.push_back(0);
  return {program_.context_count++, static_cast<uint32_t>(program_.comms.size() - 1)};
}

void ScriptBuilder::push(Thread t, CallKind kind, uint32_t context, uint32_t handle, uint32_t detail) {
  Call call;
  call.kind = kind;
  call.thread = t.index;
  call.context = context;
  call.handle = handle;
  call.detail = detail;
  call.when_ns = now_ns_;
  now_ns_ += 1000;
  program_.calls.push_back(call);
}

uint32_t ScriptBuilder::start(Thread t, Context c, const abi::v7::Descriptor& descriptor, uint32_t parent,
                              uint32_t parent_group) {
  program_.starts.push_back({descriptor, parent, parent_group});
  push(t, CallKind::kStart, c.slot, program_.handle_count, static_cast<uint32_t>(program_.starts.size() - 1));
  return program_.handle_count++;
}

void ScriptBuilder::state(Thread t, uint32_t handle, int state, uint64_t value) {
  push(t, CallKind::kState, kNone, handle, kNone);
  program_.calls.back().state = static_cast<int16_t>(state);
  program_.calls.back().value = value;
}

uint32_t ScriptBuilder::group_api(Thread t, Context c, int depth, bool graph_captured) {
  auto d = blank(abi::kTypeGroupApi);
  d.group_api = {graph_captured, depth};
  const uint32_t handle = start(t, c, d, kNone);
  state(t, handle, abi::kGroupStartApiStop);
  return handle;
}

uint32_t ScriptBuilder::coll_api(Thread t, Context c, uint32_t group_api, const OpShape& op) {
  auto d = blank(abi::kTypeCollApi);
  d.coll_api = {text(op.func), op.count, text(op.datatype), 0, pointer(0x5600), op.graph_captured, 0};
  const uint32_t handle = start(t, c, d, group_api);
  stop(t, handle);
  return handle;
}

uint32_t ScriptBuilder::p2p_api(Thread t, Context c, uint32_t group_api, const OpShape& op) {
  auto d = blank(abi::kTypeP2pApi);
  d.p2p_api = {text(op.func), op.count, text(op.datatype), pointer(0x5600), op.graph_captured, 0};
  const uint32_t handle = start(t, c, d, group_api);
  stop(t, handle);
  return handle;
}

void ScriptBuilder::kernel_launch(Thread t, Context c, uint32_t group_api) {
  auto d = blank(abi::kTypeKernelLaunch);
  d.kernel_launch = {pointer(0x5600)};
  stop(t, start(t, c, d, group_api));
}

uint32_t ScriptBuilder::group(Thread t, Context c) { return start(t, c, blank(abi::kTypeGroup), kNone); }

uint32_t ScriptBuilder::coll(Thread t, Context c, uint32_t api, uint32_t group, const OpShape& op) {
  auto d = blank(abi::kTypeColl);
  d.rank = rank(c);
  d.coll = {sequence_[c.slot]++,
            text(op.func),
            pointer(0x7f0000100000),
            pointer(0x7f0000200000),
            op.count,
            0,
            text(op.datatype),
            op.channels,
            16,
            text("RING"),
            text("SIMPLE"),
            nullptr,
            nullptr,
            false,
            0};
  return start(t, c, d, api, group);
}

uint32_t ScriptBuilder::p2p(Thread t, Context c, uint32_t api, uint32_t group, const OpShape& op) {
  auto d = blank(abi::kTypeP2p);
  d.rank = rank(c);
  d.p2p = {
      text(op.func), pointer(0x7f0000100000), text(op.datatype), op.count, op.peer, op.channels, nullptr, 0};
  return start(t, c, d, api, group);
}

uint32_t ScriptBuilder::proxy_op(Thread t, Context c, uint32_t task, int channel, int peer, int steps,
                                 bool is_send, int pid) {
  auto d = blank(abi::kTypeProxyOp);
  d.rank = rank(c);
  d.proxy_op = {pid, static_cast<uint8_t>(channel), peer, steps, 4 << 20, is_send};
  return start(t, c, d, task);
}

uint32_t ScriptBuilder::proxy_step(Thread t, Context c, uint32_t op, int step) {
  auto d = blank(abi::kTypeProxyStep);
  d.rank = rank(c);
  d.proxy_step = {step};
  return start(t, c, d, op);
}

uint32_t ScriptBuilder::kernel_ch(Thread t, Context c, uint32_t task, int channel) {
  auto d = blank(abi::kTypeKernelCh);
  d.kernel_ch = {static_cast<uint8_t>(channel), gpu_now()};
  return start(t, c, d, task);
}

void ScriptBuilder::kernel_ch_stop(Thread t, uint32_t handle) {
  state(t, handle, abi::kKernelChStop, gpu_now());
  stop(t, handle);
}

uint32_t ScriptBuilder::net_plugin(Thread t, Context c, uint32_t step, int64_t id) {
  static abi::NetIb ib{1, 0, 77, 0, 12, 65536};
  static abi::NetSocket socket[2] = {{1, 9, 0, 65536},
                                     {}};  // as long as the longest payload: it is copied whole
  auto d = blank(abi::kTypeNetPlugin);
  d.rank = rank(c);
  d.net_plugin = {id, id == abi::kNetIdIb ? static_cast<void*>(&ib) : static_cast<void*>(socket)};
  return start(t, c, d, step);
}

uint32_t ScriptBuilder::ce_coll(Thread t, Context c, uint32_t api, const OpShape& op) {
  auto d = blank(abi::kTypeCeColl);
  d.rank = rank(c);
  d.ce_coll = {sequence_[c.slot],
               text(op.func),
               nullptr,
               nullptr,
               op.count,
               0,
               text(op.datatype),
               text("MC"),
               false,
               0,
               0,
               static_cast<uint32_t>(sequence_[c.slot]),
               pointer(0x5600),
               0};
  ++sequence_[c.slot];
  return start(t, c, d, api);
}

uint32_t ScriptBuilder::ce_sync(Thread t, Context c, uint32_t ce_coll, bool is_complete) {
  auto d = blank(abi::kTypeCeSync);
  d.rank = rank(c);
  d.ce_sync = {is_complete, 8};
  return start(t, c, d, ce_coll);
}

uint32_t ScriptBuilder::ce_batch(Thread t, Context c, uint32_t ce_coll, int ops, size_t bytes) {
  auto d = blank(abi::kTypeCeBatch);
  d.rank = rank(c);
  d.ce_batch = {ops, bytes, false};
  return start(t, c, d, ce_coll);
}

uint32_t ScriptBuilder::kernel_phase(Thread t, Context c, uint32_t task, int channel, int phase) {
  static const char* const kNames[] = {"initial sync", "compute", "final sync"};
  auto d = blank(abi::kTypeKernelPhase);
  d.kernel_phase = {static_cast<uint8_t>(channel), static_cast<uint8_t>(phase), text(kNames[phase]),
                    gpu_now()};
  return start(t, c, d, task);
}

uint32_t ScriptBuilder::collective(Thread t, Context c, const OpShape& op) {
  const uint32_t api_group = group_api(t, c, 1, op.graph_captured);
  const uint32_t api = coll_api(t, c, api_group, op);
  state(t, api_group, abi::kGroupEndApiStart);
  kernel_launch(t, c, api_group);
  const uint32_t task = replay(t, c, api, op);
  stop(t, api_group);
  return task;
}

uint32_t ScriptBuilder::replay(Thread t, Context c, uint32_t api, const OpShape& op) {
  const uint32_t plan = group(t, c);
  const uint32_t task = coll(t, c, api, plan, op);
  stop(t, task);
  stop(t, plan);
  return task;
}

void ScriptBuilder::kernels(Thread t, Context c, uint32_t task, int channels) {
  std::vector<uint32_t> open;
  open.reserve(static_cast<size_t>(channels));
  for (int channel = 0; channel < channels; ++channel) open.push_back(kernel_ch(t, c, task, channel));
  for (const uint32_t handle : open) kernel_ch_stop(t, handle);
}

void ScriptBuilder::append_ops(Thread t, Context c, int count) {
  const uint32_t handle = proxy_ctrl(t, c);
  state(t, handle, abi::kProxyCtrlAppend);
  state(t, handle, abi::kProxyCtrlAppendEnd, static_cast<uint64_t>(count));
  stop(t, handle);
}

void ScriptBuilder::sleep_and_wake(Thread t, Context c) {
  const uint32_t handle = proxy_ctrl(t, c);
  state(t, handle, abi::kProxyCtrlSleep);
  state(t, handle, abi::kProxyCtrlWakeup);
  stop(t, handle);
}

void ScriptBuilder::idle(Thread t, Context c, bool active) {
  const uint32_t handle = proxy_ctrl(t, c);
  state(t, handle, active ? abi::kProxyCtrlActive : abi::kProxyCtrlIdle);
  stop(t, handle);
}

void ScriptBuilder::network_step(Thread t, Context c, uint32_t op, int step, bool is_send, uint64_t bytes,
                                 uint64_t stale) {
  const uint32_t handle = proxy_step(t, c, op, step);
  if (is_send) {
    state(t, handle, abi::kProxyStepSendGpuWait, stale);
    state(t, handle, abi::kProxyStepSendPeerWait, stale);
    state(t, handle, abi::kProxyStepSendWait, bytes);
  } else {
    state(t, handle, abi::kProxyStepRecvWait, stale);
    state(t, handle, abi::kProxyStepRecvFlushWait, bytes);
    state(t, handle, abi::kProxyStepRecvGpuWait, bytes);
  }
  stop(t, handle);
}

uint32_t ScriptBuilder::foreign_handle(uint64_t value) {
  program_.foreign_handles.emplace_back(program_.handle_count, value);
  return program_.handle_count++;
}

Context ScriptBuilder::foreign_context(uint64_t value) {
  program_.foreign_contexts.emplace_back(program_.context_count, value);
  sequence_.push_back(0);
  return {program_.context_count++, kNone};
}

}  // namespace lockstep::sim
