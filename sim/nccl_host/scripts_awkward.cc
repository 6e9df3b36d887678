// SPDX-License-Identifier: Apache-2.0
// Scripts of what real jobs do to a plugin: several comms, several threads, aborts, other processes' handles.
#include "nccl_host/script_builder.h"
#include "nccl_host/scripts.h"

namespace lockstep::sim {

namespace abi = nccl_abi;

namespace {
constexpr OpShape kAllReduce{.func = "AllReduce", .channels = 2};
uint64_t or_default(uint64_t size, uint64_t own) { return size ? size : own; }
}  // namespace

Program script_split(uint64_t) {
  ScriptBuilder b("split");
  const Thread user = b.thread("python"), parent_progress = b.thread("NCCL Progress 0"),
               child_progress = b.thread("NCCL Progress 1");
  const Context parent = b.comm(0x1111, 8, 3), child = b.comm(0x2222, 4, 1);
  b.init(user, parent);
  b.kernels(parent_progress, parent, b.collective(user, parent, kAllReduce), 2);
  b.init(user, child);
  for (int n = 0; n < 4; ++n) {
    const uint32_t of_parent = b.collective(user, parent, kAllReduce);
    const uint32_t of_child = b.collective(user, child, kAllReduce);
    b.append_ops(child_progress, child, 2);
    b.append_ops(parent_progress, parent, 2);
    b.kernels(child_progress, child, of_child, 2);
    b.kernels(parent_progress, parent, of_parent, 2);
  }
  b.finalize(user, child);
  b.kernels(parent_progress, parent, b.collective(user, parent, kAllReduce), 2);
  b.finalize(user, parent);
  return b.finish();
}

Program script_shared_split(uint64_t) {
  ScriptBuilder b("shared_split");
  const Thread user = b.thread("python"), progress = b.thread("NCCL Progress 0");
  const Context owner = b.comm(0x1111, 8, 3), child = b.comm(0x2222, 4, 1), last = b.comm(0x3333, 2, 0);
  b.init(user, owner);
  b.init(user, child);
  b.init(user, last);
  // The child goes first: what it still has in flight ends after its finalize.
  const uint32_t task = b.collective(user, child, kAllReduce);
  b.append_ops(progress, owner, 2);
  const uint32_t kernel = b.kernel_ch(progress, child, task, 0);
  const uint32_t op = b.proxy_op(progress, child, task, 0, 1, 2, true);
  b.network_step(progress, child, op, 0, true, 4096, 0);
  b.finalize(user, child);
  b.network_step(progress, child, op, 1, true, 4096, 4096);
  b.stop(progress, op);
  b.kernel_ch_stop(progress, kernel);
  b.append_ops(progress, owner, 0);
  // Then the owner: its progress thread goes on for the comm that is left, under the finalized context.
  b.finalize(user, owner);
  for (int n = 0; n < 4; ++n) {
    const uint32_t late = b.collective(user, last, kAllReduce);
    b.append_ops(progress, owner, 2);
    b.kernels(progress, last, late, 2);
    b.sleep_and_wake(progress, owner);
  }
  b.finalize(user, last);
  return b.finish();
}

Program script_abort(uint64_t) {
  ScriptBuilder b("abort");
  const Thread user = b.thread("python"), progress = b.thread("NCCL Progress 0");
  const Thread watchdog = b.thread("pt_nccl_watchdg");
  const Context comm = b.comm(0x1111, 8, 3, 2);
  b.init(user, comm);
  b.kernels(progress, comm, b.collective(user, comm, kAllReduce), 2);
  const uint32_t task = b.collective(user, comm, kAllReduce);
  const uint32_t append = b.proxy_ctrl(progress, comm);
  b.state(progress, append, abi::kProxyCtrlAppend);  // left open by the error return
  const uint32_t send = b.proxy_op(progress, comm, task, 0, 4, 8, true);
  const uint32_t recv = b.proxy_op(progress, comm, task, 0, 2, 8, false);
  b.proxy_op(progress, comm, task, 1, 2, 8, false);  // a CollNet operation: started, and nothing after that
  b.state(progress, send, abi::kProxyOpInProgress);
  b.state(progress, recv, abi::kProxyOpInProgress);
  const uint32_t send_step = b.proxy_step(progress, comm, send, 0);
  b.state(progress, send_step, abi::kProxyStepSendGpuWait);
  const uint32_t recv_step = b.proxy_step(progress, comm, recv, 0);
  b.state(progress, recv_step, abi::kProxyStepRecvWait);
  b.kernel_ch(progress, comm, task, 0);
  b.kernel_ch(progress, comm, task, 1);
  b.finalize(watchdog, comm);
  return b.finish();
}

Program script_pxn(uint64_t) {
  ScriptBuilder b("pxn");
  const Thread user = b.thread("python"), progress = b.thread("NCCL Progress 0");
  const Context own = b.comm(0x1111, 8, 3, 2);
  b.init(user, own);
  const uint32_t own_task = b.collective(user, own, kAllReduce);
  const Context theirs = b.foreign_context(0x6fdead00001000);
  for (int n = 0; n < 4; ++n) {
    const uint32_t their_task = b.foreign_handle(0x100000001u + static_cast<uint64_t>(n));
    const uint32_t op = b.proxy_op(progress, theirs, their_task, 0, 4, 2, true, 4'000'001);
    b.state(progress, op, abi::kProxyOpInProgress);
    b.network_step(progress, theirs, op, 0, true, 4096, 0);
    const uint32_t step = b.proxy_step(progress, theirs, op, 1);
    b.stop(progress, b.net_plugin(progress, theirs, step, abi::kNetIdIb));
    b.stop(progress, step);
    b.stop(progress, op);
  }
  b.kernels(progress, own, own_task, 2);
  b.finalize(user, own);
  return b.finish();
}

Program script_many_comms(uint64_t size) {
  constexpr size_t kThreads = 8;
  ScriptBuilder b("many_comms");
  b.program().ordered = false;
  std::vector<Thread> users;
  for (size_t i = 0; i < kThreads; ++i) users.push_back(b.thread("python"));
  b.barrier();
  for (size_t i = 0; i < kThreads; ++i)
    for (uint64_t n = 0; n < or_default(size, 16); ++n) {
      const Context comm = b.comm(0x1000 * (i + 1) + n, 8, static_cast<int>(i));
      b.init(users[i], comm);
      b.kernels(users[i], comm, b.collective(users[i], comm, kAllReduce), 2);
      b.finalize(users[i], comm);
    }
  return b.finish();
}

Program script_threads(uint64_t size) {
  constexpr size_t kUsers = 4;
  ScriptBuilder b("threads");
  b.program().ordered = false;
  std::vector<Thread> users;
  for (size_t i = 0; i < kUsers; ++i) users.push_back(b.thread("python"));
  const Thread progress = b.thread("NCCL Progress 0");
  const Context comm = b.comm(0x1111, 8, 3);
  b.init(users[0], comm);
  b.barrier();
  // While the users issue one round, the progress thread reports the round before.
  std::vector<uint32_t> before, now;
  for (uint64_t round = 0; round < or_default(size, 50); ++round) {
    for (const uint32_t task : before) b.kernels(progress, comm, task, 2);
    now.clear();
    for (const Thread user : users) now.push_back(b.collective(user, comm, kAllReduce));
    b.barrier();
    before = now;
  }
  for (const uint32_t task : before) b.kernels(progress, comm, task, 2);
  b.barrier();
  b.finalize(users[1], comm);
  return b.finish();
}

Program script_load_cycle(uint64_t size) {
  ScriptBuilder b("load_cycle");
  const Thread user = b.thread("python"), progress = b.thread("NCCL Progress 0");
  const Context comm = b.comm(0x1111, 8, 3);
  b.init(user, comm);
  b.kernels(progress, comm, b.collective(user, comm, kAllReduce), 2);
  b.finalize(user, comm);
  b.program().loop_count = or_default(size, 5);
  b.program().loop_end = b.program().calls.size();
  return b.finish();
}

Program script_million_comms(uint64_t size) {
  ScriptBuilder b("million_comms");
  const Thread user = b.thread("python");
  const Context stays = b.comm(0x1111, 8, 3), comes = b.comm(0x2222, 8, 3);
  b.init(user, stays);
  b.program().loop_begin = b.program().calls.size();
  b.init(user, comes);
  b.collective(user, comes, kAllReduce);
  b.finalize(user, comes);
  b.program().loop_end = b.program().calls.size();
  b.program().loop_count = or_default(size, 1'000'000);
  b.finalize(user, stays);
  return b.finish();
}

}  // namespace lockstep::sim
