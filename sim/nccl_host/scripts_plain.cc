// SPDX-License-Identifier: Apache-2.0
// Scripts of one healthy comm: what NCCL calls for each kind of operation.
#include "nccl_host/script_builder.h"
#include "nccl_host/scripts.h"

namespace lockstep::sim {

namespace abi = nccl_abi;

namespace {

constexpr uint64_t kCommId = 0x52c43a9dd026dbab;

// A user thread and a progress thread on one comm.
struct Stage {
  explicit Stage(const char* name, int nodes = 1) : b(name) {
    user = b.thread("python");
    progress = b.thread("NCCL Progress 0");
    comm = b.comm(kCommId, 8, 3, nodes, "");
    b.init(user, comm);
  }
  Program finish() {
    b.finalize(user, comm);
    return b.finish();
  }
  ScriptBuilder b;
  Thread user{}, progress{};
  Context comm{};
};

}  // namespace

Program script_allreduce(uint64_t) {
  Stage s("allreduce");
  s.b.idle(s.progress, s.comm, false);
  const OpShape op{.func = "AllReduce", .channels = 4};
  for (int n = 0; n < 16; ++n) {
    const uint32_t task = s.b.collective(s.user, s.comm, op);
    s.b.sleep_and_wake(s.progress, s.comm);
    s.b.append_ops(s.progress, s.comm, op.channels);
    s.b.kernels(s.progress, s.comm, task, op.channels);
    s.b.append_ops(s.progress, s.comm, 0);
  }
  return s.finish();
}

Program script_net_allreduce(uint64_t) {
  constexpr int kChannels = 2, kSteps = 12, kOutstanding = 4;
  Stage s("net_allreduce", 2);
  auto& b = s.b;
  const OpShape op{.func = "AllReduce", .channels = kChannels};
  for (int n = 0; n < 4; ++n) {
    const uint32_t task = b.collective(s.user, s.comm, op);
    b.sleep_and_wake(s.progress, s.comm);
    std::vector<uint32_t> ops;
    const uint32_t append = b.proxy_ctrl(s.progress, s.comm);
    b.state(s.progress, append, abi::kProxyCtrlAppend);
    for (int channel = 0; channel < kChannels; ++channel)
      for (const bool is_send : {false, true})
        ops.push_back(b.proxy_op(s.progress, s.comm, task, channel, is_send ? 4 : 2, kSteps, is_send));
    b.state(s.progress, append, abi::kProxyCtrlAppendEnd, 3 * kChannels);
    b.stop(s.progress, append);
    for (const uint32_t handle : ops) b.state(s.progress, handle, abi::kProxyOpInProgress);
    std::vector<uint32_t> kernels;
    kernels.reserve(kChannels);
    for (int channel = 0; channel < kChannels; ++channel)
      kernels.push_back(b.kernel_ch(s.progress, s.comm, task, channel));
    // Receives are posted ahead of the data, as many as there are slots; sends follow one by one.
    for (int step = 0; step < kSteps; step += kOutstanding) {
      for (size_t i = 0; i < ops.size(); i += 2) {
        std::vector<uint32_t> open;
        for (int k = 0; k < kOutstanding; ++k) {
          open.push_back(b.proxy_step(s.progress, s.comm, ops[i], step + k));
          b.state(s.progress, open.back(), abi::kProxyStepRecvWait, step ? 1 << 20 : 0);
        }
        for (int k = 0; k < kOutstanding; ++k)
          b.network_step(s.progress, s.comm, ops[i + 1], step + k, true, 1 << 20, step + k ? 1 << 20 : 0);
        for (const uint32_t handle : open) {
          b.state(s.progress, handle, abi::kProxyStepRecvFlushWait, 1 << 20);
          b.state(s.progress, handle, abi::kProxyStepRecvGpuWait, 1 << 20);
          b.stop(s.progress, handle);
        }
      }
    }
    for (const uint32_t handle : kernels) b.kernel_ch_stop(s.progress, handle);
    for (const uint32_t handle : ops) b.stop(s.progress, handle);
    b.idle(s.progress, s.comm, true);
  }
  return s.finish();
}

Program script_group_sendrecv(uint64_t) {
  Stage s("group_sendrecv");
  auto& b = s.b;
  const OpShape shapes[] = {{.func = "Send", .count = 32768, .peer = 4, .channels = 4},
                            {.func = "Recv", .count = 32768, .peer = 2, .channels = 4}};
  for (const bool nested : {false, true}) {
    // NCCL counts the inner groups one short, so each pair of nested operations gets a GroupApi of its own,
    // and both end before the launch.
    std::vector<uint32_t> apis;
    uint32_t first_group = kNone, last_group = kNone;
    for (int pair = 0; pair < 2; ++pair) {
      if (pair == 0 || nested) last_group = b.group_api(s.user, s.comm, nested ? 3 : 2);
      if (pair == 0) first_group = last_group;
      for (const OpShape& shape : shapes) apis.push_back(b.p2p_api(s.user, s.comm, last_group, shape));
      if (nested || pair == 1) b.state(s.user, last_group, abi::kGroupEndApiStart);
      if (nested) b.stop(s.user, last_group);
    }
    b.kernel_launch(s.user, s.comm, first_group);
    const uint32_t plan = b.group(s.user, s.comm);
    std::vector<uint32_t> tasks;
    for (size_t i = 0; i < apis.size(); ++i)
      tasks.push_back(b.p2p(s.user, s.comm, apis[i], plan, shapes[i % 2]));
    for (const uint32_t task : tasks) b.stop(s.user, task);
    b.stop(s.user, plan);
    if (!nested) b.stop(s.user, last_group);
    for (const uint32_t task : tasks) b.kernels(s.progress, s.comm, task, 4);
  }
  return s.finish();
}

Program script_alltoall(uint64_t) {
  constexpr int kRanks = 8, kSelf = 3;
  Stage s("alltoall");
  auto& b = s.b;
  const uint32_t group_api = b.group_api(s.user, s.comm, 1);
  std::vector<uint32_t> sends, recvs, tasks;
  for (int peer = 0; peer < kRanks; ++peer) {
    sends.push_back(b.p2p_api(s.user, s.comm, group_api, {.func = "Send", .count = 1024}));
    recvs.push_back(b.p2p_api(s.user, s.comm, group_api, {.func = "Recv", .count = 1024}));
  }
  b.state(s.user, group_api, abi::kGroupEndApiStart);
  b.kernel_launch(s.user, s.comm, group_api);
  const uint32_t plan = b.group(s.user, s.comm);
  for (int round = 0; round < kRanks; ++round) {
    const int to = (kSelf + round) % kRanks, from = (kSelf + kRanks - round) % kRanks;
    const OpShape send{.func = "Send", .count = 1024, .peer = to, .channels = 1};
    const OpShape recv{.func = "Recv", .count = 1024, .peer = from, .channels = 1};
    tasks.push_back(b.p2p(s.user, s.comm, sends[static_cast<size_t>(to)], plan, send));
    tasks.push_back(b.p2p(s.user, s.comm, recvs[static_cast<size_t>(from)], plan, recv));
  }
  for (const uint32_t task : tasks) b.stop(s.user, task);
  b.stop(s.user, plan);
  b.stop(s.user, group_api);
  for (const uint32_t task : tasks) b.kernels(s.progress, s.comm, task, 1);
  return s.finish();
}

Program script_graph(uint64_t) {
  constexpr int kOps = 4, kReplays = 5;
  Stage s("graph");
  auto& b = s.b;
  const Thread callback = b.thread("cuda-EvtHandlr");
  const OpShape op{.func = "AllReduce", .channels = 2, .graph_captured = true};
  std::vector<uint32_t> apis;
  for (int i = 0; i < kOps; ++i) {
    const uint32_t group_api = b.group_api(s.user, s.comm, 1, true);
    apis.push_back(b.coll_api(s.user, s.comm, group_api, op));
    b.state(s.user, group_api, abi::kGroupEndApiStart);
    b.kernel_launch(s.user, s.comm, group_api);
    b.stop(s.user, group_api);
  }
  for (int replay = 0; replay < kReplays; ++replay)
    for (const uint32_t api : apis) {
      const uint32_t task = b.replay(callback, s.comm, api, op);
      b.append_ops(s.progress, s.comm, 2);
      b.kernels(s.progress, s.comm, task, 2);
    }
  b.kernels(s.progress, s.comm, b.collective(s.user, s.comm, {.func = "AllReduce"}), 2);
  return s.finish();
}

Program script_ce(uint64_t) {
  Stage s("ce");
  s.b.program().recorded_api = 6;
  auto& b = s.b;
  for (const char* func : {"AllGather", "AlltoAll", "Gather", "Scatter"}) {
    const OpShape op{.func = func, .count = 8 << 20, .datatype = "ncclInt8"};
    const uint32_t group_api = b.group_api(s.user, s.comm, 1);
    const uint32_t api = b.coll_api(s.user, s.comm, group_api, op);
    b.state(s.user, group_api, abi::kGroupEndApiStart);
    const uint32_t task = b.ce_coll(s.user, s.comm, api, op);
    b.stop(s.user, b.ce_sync(s.user, s.comm, task, false));
    b.stop(s.user, b.ce_batch(s.user, s.comm, task, 8, 64u << 20));
    b.stop(s.user, b.ce_sync(s.user, s.comm, task, true));
    b.stop(s.user, task);
    b.stop(s.user, group_api);
  }
  return s.finish();
}

Program script_phases(uint64_t) {
  Stage s("phases");
  s.b.program().recorded_api = 6;
  auto& b = s.b;
  for (int n = 0; n < 4; ++n) {
    const uint32_t task = b.collective(s.user, s.comm, {.func = "AllReduce", .channels = 2});
    auto& coll = b.program().starts[b.program().starts.size() - 1].descriptor.coll;
    coll.kernel_variant = b.program().strings.intern("LSA_LL");
    coll.is_symmetric = true;
    coll.proto = b.program().strings.intern("");
    coll.user_tag = 42;
    for (int channel = 0; channel < 2; ++channel) {
      const uint32_t kernel = b.kernel_ch(s.progress, s.comm, task, channel);
      for (int phase = 0; phase < 3; ++phase) {
        const uint32_t handle = b.kernel_phase(s.progress, s.comm, task, channel, phase);
        b.state(s.progress, handle, abi::kKernelPhaseStop, 1'795'202'725'000'000'000u);
        b.stop(s.progress, handle);
      }
      b.kernel_ch_stop(s.progress, kernel);
    }
  }
  return s.finish();
}

Program script_netplugin(uint64_t) {
  Stage s("netplugin", 2);
  auto& b = s.b;
  const uint32_t task = b.collective(s.user, s.comm, {.func = "AllReduce", .channels = 1});
  const uint32_t op = b.proxy_op(s.progress, s.comm, task, 0, 4, 4, true);
  b.state(s.progress, op, abi::kProxyOpInProgress);
  for (int i = 0; i < 4; ++i) {
    const uint32_t step = b.proxy_step(s.progress, s.comm, op, i);
    b.state(s.progress, step, abi::kProxyStepSendGpuWait);
    b.state(s.progress, step, abi::kProxyStepSendPeerWait);
    const uint32_t net = b.net_plugin(s.progress, s.comm, step, i < 2 ? abi::kNetIdIb : abi::kNetIdSocket);
    b.state(s.progress, step, abi::kProxyStepSendWait, 65536);
    b.state(s.progress, net, abi::kNetPluginUpdate);
    b.stop(s.progress, net);  // at the completion
    b.stop(s.progress, net);  // and again when the request is done
    b.stop(s.progress, b.net_plugin(s.progress, s.comm, step, 0x770003));
    b.stop(s.progress, step);
  }
  b.stop(s.progress, op);
  b.kernels(s.progress, s.comm, task, 1);
  return s.finish();
}

}  // namespace lockstep::sim
