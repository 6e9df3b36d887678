// SPDX-License-Identifier: Apache-2.0
// The events of all plugin versions in one form, and what is done with them: one record each. `context`,
// `parent` and `handle` are the numbers that the host passes; foreign ones (PXN) are recorded by value. Start
// functions return the handle to give back, 0 when the event is declined or lost. Any thread; each writes to
// its own log.
#pragma once
#include <cstdint>

#include "capture/core/log/thread_log.h"
#include "capture/core/session/session.h"
#include "capture/nccl/abi.h"

namespace lockstep::capture::nccl {

struct ApiCall {
  ShapeKey shape;
  uint64_t count;
  uint64_t stream;
  bool graph_captured;
  uint64_t user_tag;
};
struct Coll {
  ShapeKey shape;
  uint64_t count = 0, send_buffer = 0, recv_buffer = 0, seq = 0, group = 0, user_tag = 0;
  uint8_t channels = 0, warps = 0;
  bool symmetric = false;
  bool is_first_sight = false;  // up to v4, where no API event came before
};
struct P2p {
  ShapeKey shape;
  uint64_t count = 0, buffer = 0, group = 0, user_tag = 0;
  int32_t peer = -1;
  uint8_t channels = 0;
  bool is_send = false, is_first_sight = false;
};
struct CeColl {
  ShapeKey shape;
  uint64_t count = 0, send_buffer = 0, recv_buffer = 0, seq = 0, stream = 0;
  uint32_t ce_seq = 0, batch_size = 0, batches = 0;
  bool intra_sync = false;
  uint64_t user_tag = 0;
};
struct ProxyOp {
  int32_t pid, peer, steps, chunk_size;
  uint8_t channel;
  bool is_send;
};
// transSize, pTimer or appended ops, whichever the state carries; `steps` for the states of NCCL before 2.27.
struct StateValue {
  uint64_t number = 0;
  uint32_t steps = 0;
};

nccl_abi::NcclResult init(int api, void** context, int* mask, CommInfo comm, nccl_abi::Logger logger);
void end_comm(uint64_t context);
void identify_comm(uint64_t context, uint64_t comm_id, const char* name);

uint64_t start_group_api(uint64_t context, int32_t depth, bool graph_captured);
uint64_t start_coll_api(uint64_t context, uint64_t parent, const ApiCall& call);
uint64_t start_p2p_api(uint64_t context, uint64_t parent, const ApiCall& call);
uint64_t start_kernel_launch(uint64_t context, uint64_t parent, uint64_t stream);
uint64_t start_group(uint64_t context, int api);
uint64_t start_coll(uint64_t context, uint64_t parent, const Coll& coll);
uint64_t start_p2p(uint64_t context, uint64_t parent, const P2p& p2p);
uint64_t start_proxy_op(uint64_t context, uint64_t parent, int32_t rank, const ProxyOp& op);
uint64_t start_proxy_step(uint64_t parent, int32_t step);
uint64_t start_proxy_ctrl(uint64_t context);
uint64_t start_kernel_ch(uint64_t context, uint64_t parent, uint8_t channel, uint64_t gpu_start);
uint64_t start_kernel_phase(uint64_t context, uint64_t parent, uint8_t channel, uint8_t phase,
                            const char* name, uint64_t gpu_start);
uint64_t start_net_plugin(uint64_t parent, int64_t id, const void* data);
uint64_t start_ce_coll(uint64_t context, uint64_t parent, const CeColl& coll);
uint64_t start_ce_sync(uint64_t context, uint64_t parent, bool is_complete, int32_t ranks);
uint64_t start_ce_batch(uint64_t context, uint64_t parent, int32_t ops, uint64_t bytes, bool intra_sync);
uint64_t unknown_event();

void stop(uint64_t handle);
void record_state(uint64_t handle, nccl_abi::State state, const StateValue& value);

}  // namespace lockstep::capture::nccl
