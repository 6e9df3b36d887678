// SPDX-License-Identifier: Apache-2.0
// ScriptBuilder: writes Programs call by call. One method per call that NCCL makes, plus the few sequences
// that most scripts share (an eager collective, the KernelCh of a task, one network step). Times advance by a
// microsecond a call; GPU stamps come from a GPU clock that is ahead of the host by a constant. Build time
// only, one thread.
#pragma once
#include <string>
#include <vector>

#include "nccl_host/program.h"

namespace lockstep::sim {

struct Thread {
  uint16_t index;
};
struct Context {
  uint32_t slot;
  uint32_t comm;
};

// One collective or transfer, with what all of its events share.
struct OpShape {
  const char* func = "AllReduce";
  size_t count = 1 << 20;
  const char* datatype = "ncclFloat32";
  int peer = 0;
  uint8_t channels = 2;
  bool graph_captured = false;
};

class ScriptBuilder {
 public:
  explicit ScriptBuilder(std::string name) { program_.name = std::move(name); }
  Program finish();
  Program& program() { return program_; }

  Thread thread(const char* name);
  Context comm(uint64_t id, int ranks, int rank, int nodes = 1, const char* name = nullptr);
  void init(Thread t, Context c) { push(t, CallKind::kInit, c.slot, kNone, c.comm); }
  void finalize(Thread t, Context c) { push(t, CallKind::kFinalize, c.slot, kNone, kNone); }
  void stop(Thread t, uint32_t handle) { push(t, CallKind::kStop, kNone, handle, kNone); }
  void state(Thread t, uint32_t handle, int state, uint64_t value = 0);
  void barrier() { push({0}, CallKind::kBarrier, kNone, kNone, kNone); }

  uint32_t group_api(Thread t, Context c, int depth, bool graph_captured = false);  // start and state 23
  uint32_t coll_api(Thread t, Context c, uint32_t group_api, const OpShape& op);    // start and stop
  uint32_t p2p_api(Thread t, Context c, uint32_t group_api, const OpShape& op);
  void kernel_launch(Thread t, Context c, uint32_t group_api);  // start and stop
  uint32_t group(Thread t, Context c);
  uint32_t coll(Thread t, Context c, uint32_t api, uint32_t group, const OpShape& op);
  uint32_t p2p(Thread t, Context c, uint32_t api, uint32_t group, const OpShape& op);
  uint32_t proxy_op(Thread t, Context c, uint32_t task, int channel, int peer, int steps, bool is_send,
                    int pid = 0);
  uint32_t proxy_step(Thread t, Context c, uint32_t op, int step);
  uint32_t kernel_ch(Thread t, Context c, uint32_t task, int channel);
  void kernel_ch_stop(Thread t, uint32_t handle);  // state 22 and stop
  uint32_t net_plugin(Thread t, Context c, uint32_t step, int64_t id);
  uint32_t proxy_ctrl(Thread t, Context c) { return start(t, c, blank(nccl_abi::kTypeProxyCtrl), kNone); }
  uint32_t ce_coll(Thread t, Context c, uint32_t api, const OpShape& op);
  uint32_t ce_sync(Thread t, Context c, uint32_t ce_coll, bool is_complete);
  uint32_t ce_batch(Thread t, Context c, uint32_t ce_coll, int ops, size_t bytes);
  uint32_t kernel_phase(Thread t, Context c, uint32_t task, int channel, int phase);

  // GroupApi ... Group of one eager collective, all on the user's thread. Returns the Coll.
  uint32_t collective(Thread t, Context c, const OpShape& op);
  // Group, Coll and their stops alone: a graph's replay.
  uint32_t replay(Thread t, Context c, uint32_t api, const OpShape& op);
  // Starts of all channels, then state 22 and stop of all.
  void kernels(Thread t, Context c, uint32_t task, int channels);
  void append_ops(Thread t, Context c, int count);  // ProxyCtrl 17, 18
  void sleep_and_wake(Thread t, Context c);         // ProxyCtrl 15, 16
  void idle(Thread t, Context c, bool active);      // ProxyCtrl 13 or 14
  void network_step(Thread t, Context c, uint32_t op, int step, bool is_send, uint64_t bytes, uint64_t stale);

  uint32_t foreign_handle(uint64_t value);
  Context foreign_context(uint64_t value);

 private:
  static nccl_abi::v7::Descriptor blank(uint64_t type);
  uint32_t start(Thread t, Context c, const nccl_abi::v7::Descriptor& descriptor, uint32_t parent,
                 uint32_t parent_group = kNone);
  void push(Thread t, CallKind kind, uint32_t context, uint32_t handle, uint32_t detail);
  const char* text(const char* value) { return program_.strings.intern(value); }
  uint64_t gpu_now() const;
  int rank(Context c) const { return c.comm == kNone ? 0 : program_.comms[c.comm].rank; }

  Program program_;
  std::vector<uint64_t> sequence_;  // by context slot
  uint64_t now_ns_ = 1'000'000'000;
};

}  // namespace lockstep::sim
