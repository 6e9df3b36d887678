// SPDX-License-Identifier: Apache-2.0
// A stop or a state goes into the event's own record while this thread reaches it; else it becomes a record
// of its own, and readers join the two.
#include "capture/nccl/events.h"

#include "capture/nccl/histogram.h"
#include "capture/nccl/steering.h"

namespace lockstep::capture::nccl {
namespace {

using format::Kind;

// What a declined event gets from a host that would skip its children without a handle (before 2.28). No log,
// so stops and parents that name it are known to mean nothing.
constexpr uint64_t kDeclined = format::make_handle(static_cast<uint32_t>(Kind::kGroup), 0, 0);

#define LOCKSTEP_COLD [[gnu::cold, gnu::noinline]]

// Whether the word of steering.h has one of these bits; rare.
bool steered(uint32_t bits) { return __builtin_expect((steering() & bits) != 0, 0); }
// Deep events of an operation that is not chosen; `parent` is its handle.
bool is_unwanted(uint64_t parent) { return steered(kNothing | kSelects) && (parent & kChosen) == 0; }
uint64_t plain(uint64_t handle) { return handle & ~kChosen; }
uint64_t with_choice(uint64_t handle, bool chosen) {
  return chosen && handle != 0 ? handle | kChosen : handle;
}

bool is_own(uint64_t context) { return static_cast<uint32_t>(context >> 32) == Session::get().process_tag(); }

// Comm index of a context; kNoComm, counted, when it was not issued here.
uint32_t comm_of(ThreadLog* log, uint64_t context) {
  uint32_t comm = static_cast<uint32_t>(context) - 1;
  if (__builtin_expect(is_own(context) && comm < Session::get().comms(), 1)) return comm;
  log->lose(kLoss_unknown_context);
  return format::kNoComm;
}

// Publishes a record whose parent normally lies in the same log.
template <class Record>
[[gnu::hot]] uint64_t publish_child(ThreadLog* log, Record* record, Kind kind, uint8_t flags,
                                    uint64_t parent) {
  parent = plain(parent);
  uint32_t back = log->distance(parent, reinterpret_cast<char*>(record));
  bool far = back >= format::kFarLink;
  uint64_t handle = log->publish(record, kind, flags, far ? format::kFarLink : static_cast<uint16_t>(back));
  if (__builtin_expect(far, 0)) log->append_link(handle, parent);
  return handle;
}

// Distance to the plan's Group record; a LinkRecord names one in another log, after publishing.
uint32_t group_distance(ThreadLog* log, uint64_t group, void* record) {
  uint32_t back = log->distance(group, static_cast<char*>(record));
  return back == format::kSaturated ? 0 : back;
}
void link_far_group(ThreadLog* log, uint64_t handle, uint64_t group, uint32_t back) {
  if (__builtin_expect(format::handle_log(group) != 0 && back == 0, 0)) log->append_link(handle, group);
}

// `room` is that of a CollRecord, whose head begins alike.
format::ShortCollRecord* fill_short(format::CollRecord* room, const Coll& coll, uint32_t comm, uint16_t shape,
                                    uint32_t group_link) {
  auto* record = reinterpret_cast<format::ShortCollRecord*>(room);
  record->count = coll.count;
  record->send_buffer_low = static_cast<uint32_t>(coll.send_buffer);
  record->recv_buffer_low = static_cast<uint32_t>(coll.recv_buffer);
  record->send_buffer_high = static_cast<uint16_t>(coll.send_buffer >> 32);
  record->recv_buffer_high = static_cast<uint16_t>(coll.recv_buffer >> 32);
  record->seq = static_cast<uint32_t>(coll.seq);
  record->comm = static_cast<uint16_t>(comm);
  record->shape = shape;
  record->channels = coll.channels;
  record->warps = coll.warps;
  record->group_link = static_cast<uint16_t>(group_link);
  return record;
}

// Stores the first time of a state; one that does not fit also gets a StateRecord.
void mark(ThreadLog* log, uint32_t* field, const format::RecordHead* head, uint64_t handle, uint16_t state,
          uint64_t now) {
  if (*field != 0) {
    log->lose(kLoss_repeated_state);
    return;
  }
  *field = ticks_after(head->start, now);
  if (__builtin_expect(*field == format::kSaturated, 0)) log->append_state(handle, state, now, 0, 0);
}

// The handle of a moved event's record now, if the thread may still write there; else 0.
uint64_t moved_within_reach(ThreadLog* log, uint64_t handle) {
  const uint64_t now = log == nullptr ? 0 : log->moved(handle);
  return now != 0 && log->locate(now) != nullptr ? now : 0;
}

}  // namespace

[[gnu::hot]] uint64_t start_group_api(uint64_t context, int32_t depth, bool graph_captured) {
  if (steered(kNothing)) return 0;
  ThreadLog* log = ThreadLog::get();
  if (log == nullptr) return 0;
  auto* record = log->reserve<format::GroupApiRecord>();
  if (record == nullptr) return 0;
  record->head.start = read_ticks();
  record->comm = comm_of(log, context);
  record->group_start_after = record->group_end_after = 0;
  record->depth = static_cast<uint32_t>(depth);
  return log->publish(record, Kind::kGroupApi, graph_captured ? format::kFlagGraphCaptured : 0, 0);
}

// CollApiRecord and P2pApiRecord hold the same.
template <class Record>
static inline uint64_t append_api(Kind kind, uint64_t context, uint64_t parent, const ApiCall& call) {
  ThreadLog* log = ThreadLog::get();
  if (log == nullptr) return 0;
  ShapeRef shape = log->shape(call.shape);
  uint16_t stream = log->stream(call.stream);
  auto* record = log->reserve<Record>();
  if (record == nullptr) return 0;
  record->head.start = read_ticks();
  record->count = call.count;
  record->comm = comm_of(log, context);
  record->shape = shape.id;
  record->stream = stream;
  uint64_t handle =
      publish_child(log, record, kind, call.graph_captured ? format::kFlagGraphCaptured : 0, parent);
  if (call.user_tag != 0) log->append_user_tag(handle, call.user_tag);
  return handle;
}

namespace {

uint64_t bytes_of(ThreadLog* log, const ShapeKey& shape, uint64_t count) {
  return log == nullptr ? count : count * log->shape(shape).element_bytes;
}

LOCKSTEP_COLD uint64_t steered_coll_api(uint64_t context, uint64_t parent, const ApiCall& call,
                                        uint32_t number) {
  if (steered(kNothing)) return 0;
  ThreadLog* log = ThreadLog::get();
  const bool chosen = choose_collective(
      log, {count_of(context), number, bytes_of(log, call.shape, call.count), /*launching=*/false});
  return with_choice(append_api<format::CollApiRecord>(Kind::kCollApi, context, parent, call), chosen);
}

// Who is sent to is not known yet: the bit says that NCCL watches.
LOCKSTEP_COLD uint64_t steered_p2p_api(uint64_t context, uint64_t parent, const ApiCall& call) {
  if (steered(kNothing)) return 0;
  const bool watched = is_watched();
  return with_choice(append_api<format::P2pApiRecord>(Kind::kP2pApi, context, parent, call), watched);
}

}  // namespace

[[gnu::hot]] uint64_t start_coll_api(uint64_t context, uint64_t parent, const ApiCall& call) {
  const uint32_t number = count_collective(count_of(context));
  if (steered(kNothing | kSelects)) return steered_coll_api(context, parent, call, number);
  return append_api<format::CollApiRecord>(Kind::kCollApi, context, parent, call);
}

[[gnu::hot]] uint64_t start_p2p_api(uint64_t context, uint64_t parent, const ApiCall& call) {
  record_p2p_thread(ThreadLog::current());
  if (steered(kNothing | kSelects)) return steered_p2p_api(context, parent, call);
  return append_api<format::P2pApiRecord>(Kind::kP2pApi, context, parent, call);
}

[[gnu::hot]] uint64_t start_kernel_launch(uint64_t context, uint64_t parent, uint64_t stream) {
  if (steered(kNothing)) return 0;
  ThreadLog* log = ThreadLog::get();
  if (log == nullptr) return 0;
  uint16_t stream_id = log->stream(stream);
  auto* record = log->reserve<format::KernelLaunchRecord>();
  if (record == nullptr) return 0;
  record->head.start = read_ticks();
  record->comm = comm_of(log, context);
  record->stream = stream_id;
  record->reserved1 = record->reserved0 = 0;
  return publish_child(log, record, Kind::kKernelLaunch, 0, parent);
}

[[gnu::hot]] uint64_t start_group(uint64_t context, int api) {
  if (steered(kNothing | kNoGroups)) return api <= 4 ? kDeclined : 0;
  ThreadLog* log = ThreadLog::get();
  if (steered(kMaskWaits)) apply_pending_at_launch(log);
  if (log == nullptr) return api <= 4 ? kDeclined : 0;
  auto* record = log->reserve<format::GroupRecord>();
  if (record == nullptr) return api <= 4 ? kDeclined : 0;
  record->head.start = read_ticks();
  record->comm = comm_of(log, context);
  record->reserved1 = record->reserved0 = 0;
  return log->publish(record, Kind::kGroup, 0, 0);
}

[[gnu::always_inline]] static inline uint64_t append_coll(uint64_t context, uint64_t parent,
                                                          const Coll& coll) {
  ThreadLog* log = ThreadLog::get();
  if (log == nullptr) return 0;
  ShapeRef shape = log->shape(coll.shape);
  auto* record = log->reserve<format::CollRecord>();
  if (record == nullptr) return 0;
  const uint64_t now = read_ticks();
  const uint32_t comm = comm_of(log, context);
  const uint32_t group = group_distance(log, coll.group, record);
  record->head.start = now;
  const uint8_t flags = coll.symmetric ? format::kFlagSymmetric : 0;
  uint64_t handle;
  if (__builtin_expect(format::fits_short_coll(coll.send_buffer, coll.recv_buffer, coll.seq, comm, group),
                       1)) {
    handle =
        publish_child(log, fill_short(record, coll, comm, shape.id, group), Kind::kShortColl, flags, parent);
  } else {
    record->count = coll.count;
    record->send_buffer = coll.send_buffer;
    record->recv_buffer = coll.recv_buffer;
    record->seq = coll.seq;
    record->comm = comm;
    record->shape = shape.id;
    record->channels = coll.channels;
    record->warps = coll.warps;
    record->group_link = group;
    record->reserved0 = 0;
    handle = publish_child(log, record, Kind::kColl, flags, parent);
  }
  if (Session::get().file().ring()) count_operation(log, handle, Kind::kColl, comm, shape, coll.count, now);
  link_far_group(log, handle, coll.group, group);
  if (coll.user_tag != 0) log->append_user_tag(handle, coll.user_tag);
  return handle;
}

LOCKSTEP_COLD static uint64_t steered_coll(uint64_t context, uint64_t parent, const Coll& coll,
                                           uint32_t number) {
  if (steered(kNothing)) return 0;
  ThreadLog* log = ThreadLog::get();
  bool chosen = false;
  if (steered(kSelects)) {
    chosen =
        coll.is_first_sight
            ? choose_collective(log, {count_of(context), number, bytes_of(log, coll.shape, coll.count), true})
            : (parent & kChosen) != 0;
  }
  apply_pending_at_launch(log);
  return with_choice(append_coll(context, parent, coll), chosen);
}

[[gnu::hot]] uint64_t start_coll(uint64_t context, uint64_t parent, const Coll& coll) {
  const uint32_t number = coll.is_first_sight ? count_collective(count_of(context)) : 0;
  if (steered(kNothing | kSelects | kMaskWaits)) return steered_coll(context, parent, coll, number);
  return append_coll(context, parent, coll);
}

[[gnu::always_inline]] static inline uint64_t append_p2p(uint64_t context, uint64_t parent, const P2p& p2p) {
  ThreadLog* log = ThreadLog::get();
  if (log == nullptr) return 0;
  ShapeRef shape = log->shape(p2p.shape);
  auto* record = log->reserve<format::P2pRecord>();
  if (record == nullptr) return 0;
  record->head.start = read_ticks();
  g_steering.p2p_ticks.store(record->head.start, std::memory_order_relaxed);
  record->count = p2p.count;
  record->buffer = p2p.buffer;
  record->comm = comm_of(log, context);
  record->peer = p2p.peer;
  record->group_link = group_distance(log, p2p.group, record);
  record->shape = shape.id;
  record->channels = p2p.channels;
  record->reserved0 = 0;
  uint32_t back = record->group_link;
  uint64_t handle = publish_child(log, record, Kind::kP2p, 0, parent);
  if (Session::get().file().ring())
    count_operation(log, handle, Kind::kP2p, record->comm, shape, p2p.count, record->head.start);
  link_far_group(log, handle, p2p.group, back);
  if (p2p.user_tag != 0) log->append_user_tag(handle, p2p.user_tag);
  return handle;
}

LOCKSTEP_COLD static uint64_t steered_p2p(uint64_t context, uint64_t parent, const P2p& p2p, PairCount* pair,
                                          uint32_t number) {
  if (steered(kNothing)) return 0;
  ThreadLog* log = ThreadLog::get();
  bool chosen = false;
  if (steered(kSelects)) {
    const OperationSeen operation = {count_of(context), number, bytes_of(log, p2p.shape, p2p.count), true};
    chosen = choose_pair(log, pair, operation, p2p.is_first_sight ? is_watched() : (parent & kChosen) != 0);
  }
  apply_pending_at_launch(log);
  return with_choice(append_p2p(context, parent, p2p), chosen);
}

[[gnu::hot]] uint64_t start_p2p(uint64_t context, uint64_t parent, const P2p& p2p) {
  PairCount* pair = pair_of(count_of(context), p2p.peer, p2p.is_send);
  const uint32_t number = count_pair(pair);
  record_p2p_thread(ThreadLog::current());
  if (steered(kNothing | kSelects | kMaskWaits)) return steered_p2p(context, parent, p2p, pair, number);
  return append_p2p(context, parent, p2p);
}

uint64_t start_proxy_op(uint64_t context, uint64_t parent, int32_t rank, const ProxyOp& op) {
  if (is_unwanted(parent)) return 0;
  ThreadLog* log = ThreadLog::get();
  if (log == nullptr) return 0;
  auto* record = log->reserve<format::ProxyOpRecord>();
  if (record == nullptr) return 0;
  record->head.start = read_ticks();
  record->parent = plain(parent);
  record->context = context;
  record->pid = op.pid;
  record->peer = op.peer;
  record->steps = op.steps;
  record->chunk_size = op.chunk_size;
  record->rank = rank;
  record->in_progress_after = 0;
  record->channel = op.channel;
  memset(record->reserved0, 0, sizeof record->reserved0);
  bool foreign = op.pid != Session::get().pid() || !is_own(context);
  auto flags =
      static_cast<uint8_t>((op.is_send ? format::kFlagSend : 0) | (foreign ? format::kFlagForeign : 0));
  return log->publish(record, Kind::kProxyOp, flags, 0);
}

uint64_t start_proxy_step(uint64_t parent, int32_t step) {
  if (parent == 0 && steered(kNothing | kSelects)) return 0;
  ThreadLog* log = ThreadLog::get();
  if (log == nullptr) return 0;
  // While a receive cannot be posted, NCCL starts the same step again on every poll. Steps of no operation
  // (it was lost) cannot be told apart.
  const uint64_t key = StepCache::key(parent, step);
  const uint64_t recent = parent != 0 ? log->steps().recent(key) : 0;
  if (__builtin_expect(recent != 0, 0)) {
    auto* open = reinterpret_cast<format::ProxyStepRecord*>(log->locate(recent));
    if (open != nullptr && open->head.stop_after == 0 && open->parent == parent && open->step == step) {
      if (open->restarts != 0xffff) ++open->restarts;
      log->lose(kLoss_duplicate_step);
      return recent;
    }
  }
  auto* record = log->reserve<format::ProxyStepRecord>();
  if (record == nullptr) return 0;
  record->head.start = read_ticks();
  record->parent = parent;
  record->wait1_after = record->wait2_after = record->wait3_after = 0;
  record->bytes = 0;
  record->step = step;
  record->peer_waits = record->restarts = 0;
  const uint64_t handle = log->publish(record, Kind::kProxyStep, 0, 0);
  log->steps().remember(key, handle);
  return handle;
}

uint64_t start_proxy_ctrl(uint64_t context) {
  if (steered(kNothing | kSelects)) return 0;
  ThreadLog* log = ThreadLog::get();
  if (log == nullptr) return 0;
  auto* record = log->reserve<format::ProxyCtrlRecord>();
  if (record == nullptr) return 0;
  record->head.start = read_ticks();
  record->comm = comm_of(log, context);
  record->first_after = record->second_after = 0;
  record->appended = 0;
  record->first_state = record->second_state = 0;
  return log->publish(record, Kind::kProxyCtrl, 0, 0);
}

uint64_t start_kernel_ch(uint64_t context, uint64_t parent, uint8_t channel, uint64_t gpu_start) {
  if (is_unwanted(parent)) return 0;
  ThreadLog* log = ThreadLog::get();
  if (log == nullptr) return 0;
  auto* record = log->reserve<format::KernelChRecord>();
  if (record == nullptr) return 0;
  record->head.start = read_ticks();
  record->parent = plain(parent);
  record->gpu_start = gpu_start;
  record->gpu_stop = 0;
  record->comm = comm_of(log, context);
  record->gpu_stop_seen_after = 0;
  return log->publish(record, Kind::kKernelCh, 0, channel);
}

uint64_t start_kernel_phase(uint64_t context, uint64_t parent, uint8_t channel, uint8_t phase,
                            const char* name, uint64_t gpu_start) {
  if (is_unwanted(parent)) return 0;
  ThreadLog* log = ThreadLog::get();
  if (log == nullptr) return 0;
  ShapeRef shape =
      log->shape({.func = name, .datatype = nullptr, .algo = nullptr, .proto = nullptr, .root = 0});
  auto* record = log->reserve<format::KernelPhaseRecord>();
  if (record == nullptr) return 0;
  record->head.start = read_ticks();
  record->parent = plain(parent);
  record->gpu_start = gpu_start;
  record->gpu_stop = 0;
  record->comm = comm_of(log, context);
  record->phase_name = shape.id;
  record->phase = phase;
  record->reserved0 = 0;
  return log->publish(record, Kind::kKernelPhase, 0, channel);
}

uint64_t start_net_plugin(uint64_t parent, int64_t id, const void* data) {
  if (parent == 0 && steered(kNothing | kSelects)) return 0;
  ThreadLog* log = ThreadLog::get();
  if (log == nullptr) return 0;
  auto* record = log->reserve<format::NetPluginRecord>();
  if (record == nullptr) return 0;
  record->head.start = read_ticks();
  record->parent = parent;
  record->id = id;
  record->updates = record->last_update_after = 0;
  memset(record->payload, 0, sizeof record->payload);
  // The payload is reused or lives on the stack; only layouts we know can be copied.
  static_assert(sizeof(nccl_abi::NetIb) <= sizeof record->payload);
  if (data != nullptr && id == nccl_abi::kNetIdIb) memcpy(record->payload, data, sizeof(nccl_abi::NetIb));
  if (data != nullptr && id == nccl_abi::kNetIdSocket)
    memcpy(record->payload, data, sizeof(nccl_abi::NetSocket));
  return log->publish(record, Kind::kNetPlugin, 0, 0);
}

uint64_t start_ce_coll(uint64_t context, uint64_t parent, const CeColl& coll) {
  if (steered(kNothing)) return 0;
  ThreadLog* log = ThreadLog::get();
  if (log == nullptr) return 0;
  ShapeRef shape = log->shape(coll.shape);
  uint16_t stream = log->stream(coll.stream);
  auto* record = log->reserve<format::CeCollRecord>();
  if (record == nullptr) return 0;
  record->head.start = read_ticks();
  record->count = coll.count;
  record->send_buffer = coll.send_buffer;
  record->recv_buffer = coll.recv_buffer;
  record->seq = coll.seq;
  record->comm = comm_of(log, context);
  record->shape = shape.id;
  record->stream = stream;
  record->ce_seq = coll.ce_seq;
  record->batch_size = coll.batch_size;
  record->batches = coll.batches;
  memset(record->reserved0, 0, sizeof record->reserved0);
  uint64_t handle =
      publish_child(log, record, Kind::kCeColl, coll.intra_sync ? format::kFlagIntraSync : 0, parent);
  if (coll.user_tag != 0) log->append_user_tag(handle, coll.user_tag);
  return handle;
}

uint64_t start_ce_sync(uint64_t context, uint64_t parent, bool is_complete, int32_t ranks) {
  if (steered(kNothing)) return 0;
  ThreadLog* log = ThreadLog::get();
  if (log == nullptr) return 0;
  auto* record = log->reserve<format::CeSyncRecord>();
  if (record == nullptr) return 0;
  record->head.start = read_ticks();
  record->comm = comm_of(log, context);
  record->ranks = ranks;
  record->reserved0 = 0;
  return publish_child(log, record, Kind::kCeSync, is_complete ? format::kFlagComplete : 0, parent);
}

uint64_t start_ce_batch(uint64_t context, uint64_t parent, int32_t ops, uint64_t bytes, bool intra_sync) {
  if (steered(kNothing)) return 0;
  ThreadLog* log = ThreadLog::get();
  if (log == nullptr) return 0;
  auto* record = log->reserve<format::CeBatchRecord>();
  if (record == nullptr) return 0;
  record->head.start = read_ticks();
  record->bytes = bytes;
  record->comm = comm_of(log, context);
  record->ops = ops;
  return publish_child(log, record, Kind::kCeBatch, intra_sync ? format::kFlagIntraSync : 0, parent);
}

uint64_t unknown_event() {
  if (ThreadLog* log = ThreadLog::get()) log->lose(kLoss_unknown_type);
  return 0;
}

[[gnu::hot]] void stop(uint64_t handle) {
  if (handle == 0 || handle == kDeclined) return;
  ThreadLog* log = ThreadLog::current();
  format::RecordHead* head = log == nullptr ? nullptr : log->locate(handle);
  if (__builtin_expect(head == nullptr || !format::is_event(static_cast<uint8_t>(head->kind)), 0)) {
    if ((handle & kChosen) != 0) return stop(plain(handle));
    if (const uint64_t now = moved_within_reach(log, handle)) return stop(now);
    if ((log = ThreadLog::log_for_late(handle)) != nullptr) log->append_late_stop(handle, read_ticks());
    return;
  }
  if (__builtin_expect(head->stop_after != 0, 0)) {
    log->lose(kLoss_repeated_stop);
    return;
  }
  uint32_t after = 0;
  // NCCL stops a KernelCh in the same breath as it reports its GPU stop: one clock reading serves both.
  if (head->kind == Kind::kKernelCh) {
    auto* kernel = reinterpret_cast<format::KernelChRecord*>(head);
    after = kernel->gpu_stop_seen_after;
    if (Session::get().file().ring()) count_duration(log, kernel);
  }
  if (after == 0 || after == format::kSaturated) {
    uint64_t now = read_ticks();
    after = ticks_after(head->start, now);
    if (__builtin_expect(after == format::kSaturated, 0))
      log->append_state(handle, format::kStateStop, now, 0, 0);
  }
  ThreadLog::store_stop(head, after);
}

namespace {

// A state of an event that this process recorded, and when it came.
struct StateChange {
  ThreadLog* log;
  format::RecordHead* head;
  uint64_t handle;
  int state;
  const StateValue& value;
  uint64_t now;

  void mark_at(uint32_t* after) const { mark(log, after, head, handle, static_cast<uint16_t>(state), now); }
  template <class Record>
  Record* record() const {
    return reinterpret_cast<Record*>(head);
  }
};

bool store_proxy_step(const StateChange& change) {
  auto* step = change.record<format::ProxyStepRecord>();
  switch (change.state) {
    case nccl_abi::kProxyStepSendGpuWait:
      change.head->flags |= format::kFlagSend;
      change.mark_at(&step->wait1_after);
      return true;
    case nccl_abi::kProxyStepSendPeerWait:
      if (step->peer_waits != 0xffff) ++step->peer_waits;
      if (step->wait2_after == 0) change.mark_at(&step->wait2_after);
      return true;
    case nccl_abi::kProxyStepRecvWait:
      change.mark_at(&step->wait1_after);
      return true;
    case nccl_abi::kProxyStepSendWait:
      change.head->flags |= format::kFlagSend;
      change.mark_at(&step->wait3_after);
      break;
    case nccl_abi::kProxyStepRecvFlushWait:
      change.mark_at(&step->wait2_after);
      break;
    case nccl_abi::kProxyStepRecvGpuWait:
      change.mark_at(&step->wait3_after);
      return true;
    default:
      return false;
  }
  // Only states 9 and 11 carry the size of this step; elsewhere it is a leftover.
  if (change.value.number > 0xffffffff) change.log->lose(kLoss_clamped);
  step->bytes = change.value.number > 0xffffffff ? 0xffffffff : static_cast<uint32_t>(change.value.number);
  return true;
}

bool store_kernel_ch(const StateChange& change) {
  auto* kernel = change.record<format::KernelChRecord>();
  if (change.state != nccl_abi::kKernelChStop) return false;
  if (kernel->gpu_stop_seen_after == 0) kernel->gpu_stop = change.value.number;
  change.mark_at(&kernel->gpu_stop_seen_after);
  return true;
}

bool store_kernel_phase(const StateChange& change) {
  auto* phase = change.record<format::KernelPhaseRecord>();
  if (change.state != nccl_abi::kKernelPhaseStop) return false;
  if (phase->gpu_stop == 0)
    phase->gpu_stop = change.value.number;
  else
    change.log->lose(kLoss_repeated_state);
  return true;
}

bool store_proxy_ctrl(const StateChange& change) {
  const int state = change.state;
  auto* ctrl = change.record<format::ProxyCtrlRecord>();
  if (state < nccl_abi::kProxyCtrlIdle || state > nccl_abi::kProxyCtrlAppendEnd) return false;
  const bool second = state == nccl_abi::kProxyCtrlWakeup || state == nccl_abi::kProxyCtrlAppendEnd;
  (second ? ctrl->second_state : ctrl->first_state) = static_cast<uint8_t>(state);
  if (state == nccl_abi::kProxyCtrlAppendEnd) {
    if (change.value.number > 0xffff) change.log->lose(kLoss_clamped);
    ctrl->appended = change.value.number > 0xffff ? 0xffff : static_cast<uint16_t>(change.value.number);
  }
  change.mark_at(second ? &ctrl->second_after : &ctrl->first_after);
  return true;
}

bool store_proxy_op(const StateChange& change) {
  if (change.state == nccl_abi::kProxyOpInProgress) {
    change.mark_at(&change.record<format::ProxyOpRecord>()->in_progress_after);
    return true;
  }
  if (change.state > nccl_abi::kProxyOpRecvDone) return false;
  // NCCL before 2.27 reports every step of the op as states of the op itself.
  change.log->append_state(change.handle, static_cast<uint16_t>(change.state), change.now,
                           change.value.number, change.value.steps);
  return true;
}

bool store_group_api(const StateChange& change) {
  auto* group = change.record<format::GroupApiRecord>();
  const bool start = change.state == nccl_abi::kGroupStartApiStop;
  if (!start && change.state != nccl_abi::kGroupEndApiStart) return false;
  change.mark_at(start ? &group->group_start_after : &group->group_end_after);
  return true;
}

bool store_net_plugin(const StateChange& change) {
  auto* net = change.record<format::NetPluginRecord>();
  if (change.state != nccl_abi::kNetPluginUpdate) return false;
  ++net->updates;
  net->last_update_after = ticks_after(change.head->start, change.now);
  return true;
}

// States that a kind can have are stored in its record; true if this one can.
bool store_state(const StateChange& change) {
  switch (change.head->kind) {
    case Kind::kProxyStep:
      return store_proxy_step(change);
    case Kind::kKernelCh:
      return store_kernel_ch(change);
    case Kind::kKernelPhase:
      return store_kernel_phase(change);
    case Kind::kProxyCtrl:
      return store_proxy_ctrl(change);
    case Kind::kProxyOp:
      return store_proxy_op(change);
    case Kind::kGroupApi:
      return store_group_api(change);
    case Kind::kNetPlugin:
      return store_net_plugin(change);
    default:
      return false;
  }
}

}  // namespace

void record_state(uint64_t handle, nccl_abi::State state, const StateValue& value) {
  if (handle == 0 || handle == kDeclined) return;
  ThreadLog* log = ThreadLog::current();
  if (__builtin_expect(state < 0 || state > nccl_abi::kKernelPhaseStop, 0)) {
    if ((log = ThreadLog::get()) != nullptr) log->lose(kLoss_unknown_state);
    return;
  }
  format::RecordHead* head = log == nullptr ? nullptr : log->locate(handle);
  if (__builtin_expect(head == nullptr, 0)) {
    if ((handle & kChosen) != 0) return record_state(plain(handle), state, value);
    if (const uint64_t now = moved_within_reach(log, handle)) return record_state(now, state, value);
    if ((log = ThreadLog::log_for_late(handle)) != nullptr)
      log->append_state(handle, static_cast<uint16_t>(state), read_ticks(), value.number, value.steps);
  } else if (__builtin_expect(!store_state({log, head, handle, state, value, read_ticks()}), 0)) {
    log->lose(kLoss_state_mismatch);
  }
}

}  // namespace lockstep::capture::nccl
