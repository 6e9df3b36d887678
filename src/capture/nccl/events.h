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

// What a CollApi or P2pApi event reports. Texts of `shape` are known by their address, as NCCL's are
// constants, and copied at first sight; `count` is in elements, `stream` a pointer's value.
struct ApiCall {
  ShapeKey shape;
  uint64_t count;
  uint64_t stream;
  bool graph_captured;
  uint64_t user_tag;
};
// What a Coll event reports. `count` as NCCL gives it (bytes for AllGather and Broadcast); `group`: handle of
// the plan, 0 none.
struct Coll {
  ShapeKey shape;
  uint64_t count = 0, send_buffer = 0, recv_buffer = 0, seq = 0, group = 0, user_tag = 0;
  uint8_t channels = 0, warps = 0;
  bool symmetric = false;
  bool is_first_sight = false;  // up to v4, where no API event came before
};
// What a P2p event reports. `peer`: rank in the communicator.
struct P2p {
  ShapeKey shape;
  uint64_t count = 0, buffer = 0, group = 0, user_tag = 0;
  int32_t peer = -1;
  uint8_t channels = 0;
  bool is_send = false, is_first_sight = false;
};
// What a CeColl event reports: a collective of copy engines; `batch_size` and `batches` as NCCL gives them.
struct CeColl {
  ShapeKey shape;
  uint64_t count = 0, send_buffer = 0, recv_buffer = 0, seq = 0, stream = 0;
  uint32_t ce_seq = 0, batch_size = 0, batches = 0;
  bool intra_sync = false;
  uint64_t user_tag = 0;
};
// What a ProxyOp event reports; `chunk_size` in bytes. `pid` is the process that asked for it, which with PXN
// is another one.
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

// A communicator begins: opens the session at the first one, writes the context and NCCL's mask. It never
// fails, whatever became of the session: NCCL of several releases crashes on a plugin that does. It may take
// milliseconds.
nccl_abi::NcclResult init(int api, void** context, int* mask, CommInfo comm, nccl_abi::Logger logger);
// The communicator is gone. Events of it may still come and are recorded.
void end_comm(uint64_t context);
// Id and name of a communicator as its first event gives them, for versions whose init does not (v1 to v3).
void identify_comm(uint64_t context, uint64_t comm_id, const char* name);

// Each appends one record, without a lock, and returns its handle. 0: capture is off or closed, the mode
// leaves the event out, or there was no room, which is counted.
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
// Counts an event of a type that this version does not know; 0.
uint64_t unknown_event();

// Any handle may come: 0, stale, twice, of another process, never issued. What cannot be applied is counted.
void stop(uint64_t handle);
void record_state(uint64_t handle, nccl_abi::State state, const StateValue& value);

}  // namespace lockstep::capture::nccl
