// SPDX-License-Identifier: Apache-2.0
#include "nccl_host/core.h"

#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace lockstep::sim {
namespace {

namespace abi = nccl_abi;

constexpr uint64_t kCeTypes = abi::kTypeCeColl | abi::kTypeCeSync | abi::kTypeCeBatch;
constexpr uint64_t kProxyTree = abi::kTypeProxyOp | abi::kTypeProxyStep | abi::kTypeNetPlugin;
constexpr uint64_t kTaskTree = kProxyTree | abi::kTypeKernelCh;
constexpr size_t kPayloadBytes = sizeof(abi::NetIb);
constexpr uint64_t kNoDelay = UINT64_MAX;

// The mask bits that enable an event: its own and those of everything below it.
uint64_t enabling_bits(uint64_t type) {
  switch (type) {
    case abi::kTypeGroupApi:
      return type | abi::kTypeP2pApi | abi::kTypeCollApi | abi::kTypeKernelLaunch | abi::kTypeGroup |
             abi::kTypeColl | abi::kTypeP2p | kTaskTree | kCeTypes;
    case abi::kTypeCollApi:
      return type | abi::kTypeColl | kTaskTree | kCeTypes;
    case abi::kTypeP2pApi:
      return type | abi::kTypeP2p | kTaskTree;
    case abi::kTypeGroup:
      return type | abi::kTypeColl | abi::kTypeP2p | kTaskTree;
    case abi::kTypeColl:
    case abi::kTypeP2p:
      return type | kTaskTree;
    case abi::kTypeProxyOp:
      return kProxyTree;
    case abi::kTypeProxyStep:
      return type | abi::kTypeNetPlugin;
    case abi::kTypeCeColl:
      return kCeTypes;
    default:
      return type;
  }
}

void log_line(int level, unsigned long, const char* file, int line, const char* format, ...) {
  static const char* const wanted = std::getenv("NCCL_DEBUG");
  if (wanted == nullptr || (level > abi::kLogWarn && std::strcmp(wanted, "WARN") == 0)) return;
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  std::fprintf(stderr, "NCCL %s %s:%d %s\n", level == abi::kLogWarn ? "WARN" : "INFO", file, line, text);
}

}  // namespace

Core::Core(const Program& program, const Behaviour& behaviour, std::string plugin, PluginLibrary library)
    : program_(program), behaviour_(behaviour), plugin_(std::move(plugin)), library_(std::move(library)) {
  binding_ = make_binding(behaviour_, library_->symbol());
  plugin_name_ = binding_->plugin_name();
  handles_.assign(program.handle_count, nullptr);
  contexts_.assign(program.context_count, nullptr);
  ranks_.assign(program.context_count, 0);
  snapshots_.assign(program.handle_count, 0);
  nulled_.assign(program.handle_count, 0);
  gpu_delays_.assign(program.handle_count, kNoDelay);
  if (behaviour_.old_core) moved_bytes_.assign(program.handle_count, 0);
  for (const auto& [slot, number] : program.foreign_handles) handles_[slot] = reinterpret_cast<void*>(number);
  for (const auto& [slot, number] : program.foreign_contexts)
    contexts_[slot] = reinterpret_cast<void*>(number);
}

bool Core::acquire() {
  const std::lock_guard lock(load_mutex_);
  if (references_ == 0 && !library_) {
    auto library = PluginLibrary::open(plugin_, behaviour_.api, behaviour_.search);
    if (!library) return false;
    library_.emplace(std::move(*library));
    binding_ = make_binding(behaviour_, library_->symbol());
    ++loads_;
  }
  ++references_;
  return true;
}

void Core::release() {
  const std::lock_guard lock(load_mutex_);
  if (--references_ != 0) return;
  binding_.reset();
  library_.reset();
}

void* Core::init(const CommInfo& recorded, uint64_t round, Stats* stats) {
  if (!acquire()) {
    ++stats->after_unload;
    return nullptr;
  }
  CommInfo comm = recorded;
  comm.id ^= round * 0x9e3779b97f4a7c15u;
  // The name belongs to the user, who may free it once init has returned.
  char name[256];
  std::snprintf(name, sizeof name, "%s", comm.name ? comm.name : "");
  if (comm.name) comm.name = name;
  void* context = nullptr;
  if (binding_->init(comm, &mask_, log_line, &context, stats) != 0) {
    ++stats->failed_inits;
    context = nullptr;
  }
  std::memset(name, 'x', sizeof name);
  stats->null_contexts += context == nullptr;
  ++stats->inits;
  // The v5 adapter of newer cores hides what it does not deliver, once.
  if (behaviour_.api == 5 && behaviour_.adapted())
    __atomic_fetch_and(&mask_, ~static_cast<int>(kCeTypes), __ATOMIC_RELAXED);
  const std::lock_guard lock(load_mutex_);
  if (!saw_init_) first_mask_ = static_cast<int>(live_mask());
  saw_init_ = true;
  return context;
}

void Core::finalize(void* context, Stats* stats) {
  if (context != nullptr) {
    binding_->finalize(context, stats);
    ++stats->finalizes;
  }
  release();
}

void Core::race_comm(uint64_t id, Stats* stats) {
  CommInfo comm{id, nullptr, 1, 2, 0};
  void* context = init(comm, 0, stats);
  if (context == nullptr) return;
  abi::v7::Descriptor descriptor{};
  descriptor.type = abi::kTypeGroupApi;
  void* handle = nullptr;
  if (representable(behaviour_.api, descriptor.type)) {
    binding_->start(context, &handle, descriptor, stats);
    if (handle != nullptr) binding_->stop(handle, stats);
  }
  finalize(context, stats);
}

void Core::execute(const Call& call, uint64_t round, Stats* stats) {
  if (call.kind == CallKind::kInit) {
    const CommInfo& comm = program_.comms[call.detail];
    ranks_[call.context] = comm.rank;
    contexts_[call.context] = init(comm, round, stats);
    return;
  }
  if (!binding_) {
    ++stats->after_unload;
    return;
  }
  switch (call.kind) {
    case CallKind::kStart:
      start(call, stats);
      break;
    case CallKind::kStop:
      stop(call, stats);
      break;
    case CallKind::kState:
      state(call, stats);
      break;
    case CallKind::kFinalize:
      finalize(contexts_[call.context], stats);
      break;
    default:
      break;
  }
}

bool Core::enabled(const Call& call, const Start& start) const {
  const uint64_t type = start.descriptor.type;
  const HandleInfo& info = program_.handles[call.handle];
  const bool is_live = type == abi::kTypeProxyCtrl || (type & kCeTypes) != 0 || info.root == kNone;
  const uint64_t mask = is_live ? live_mask() : snapshots_[info.root];
  if ((mask & enabling_bits(type)) == 0) return false;
  if ((type == abi::kTypeCeSync || type == abi::kTypeCeBatch) && value(start.parent) == nullptr) return false;
  if (!behaviour_.gates_children()) return true;
  if (type == abi::kTypeColl || type == abi::kTypeP2p)
    return start.parent_group == kNone || value(start.parent_group) != nullptr;
  return type != abi::kTypeProxyStep || value(start.parent) != nullptr;
}

void Core::start(const Call& call, Stats* stats) {
  const Start& start = program_.starts[call.detail];
  const uint64_t type = start.descriptor.type;
  void*& slot = handles_[call.handle];
  slot = nullptr;
  nulled_[call.handle] = 0;
  gpu_delays_[call.handle] = kNoDelay;
  if (type == abi::kTypeGroupApi) snapshots_[call.handle] = live_mask();
  if (!enabled(call, start)) {
    ++stats->gated_starts;
  } else if (!representable(behaviour_.api, type)) {
    ++stats->dropped[event_index(type)];
  } else {
    call_start(call, start, &slot, stats);
  }
}

void Core::call_start(const Call& call, const Start& start, void** slot, Stats* stats) {
  abi::v7::Descriptor descriptor = start.descriptor;
  const uint64_t type = descriptor.type;
  descriptor.parent = value(start.parent);
  if (type == abi::kTypeKernelCh) descriptor.kernel_ch.ptimer += gpu_delay(call.handle, start.parent);
  if (type == abi::kTypeKernelPhase) descriptor.kernel_phase.ptimer += gpu_delay(call.handle, start.parent);
  if (type == abi::kTypeColl) descriptor.coll.parent_group = value(start.parent_group);
  if (type == abi::kTypeP2p) descriptor.p2p.parent_group = value(start.parent_group);
  if (type == abi::kTypeProxyOp && static_cast<uint64_t>(descriptor.proxy_op.pid) == program_.recorded_pid)
    descriptor.proxy_op.pid = getpid();
  if (behaviour_.api == 7 && (type >= abi::kTypeGroupApi && type <= abi::kTypeKernelLaunch))
    descriptor.rank = ranks_[call.context];
  // Network code reuses its payload as soon as the call is over.
  alignas(8) char payload[kPayloadBytes] = {};
  if (type == abi::kTypeNetPlugin) {
    if (descriptor.net_plugin.data) std::memcpy(payload, descriptor.net_plugin.data, sizeof payload);
    descriptor.net_plugin.data = payload;
  }
  const bool poisoned = behaviour_.poison || !behaviour_.adapted();
  void* handle = poisoned ? kPoisonHandle : nullptr;
  binding_->start(contexts_[call.context], &handle, descriptor, stats);
  std::memset(payload, 0xdb, sizeof payload);
  __asm__ volatile("" : : "r"(payload) : "memory");
  ++stats->starts[event_index(type)];
  if (poisoned && handle == kPoisonHandle) {
    ++stats->unwritten_handles;
    handle = nullptr;
  } else if (handle == nullptr) {
    ++stats->null_handles;
  }
  *slot = handle;
  if (behaviour_.old_core) moved_bytes_[call.handle] = 0;
}

uint64_t Core::gpu_delay(uint32_t handle, uint32_t parent) {
  uint64_t& of_operation = gpu_delays_[parent == kNone ? handle : parent];
  if (of_operation == kNoDelay) of_operation = delay_ns_;
  return gpu_delays_[handle] = of_operation;
}

void Core::stop(const Call& call, Stats* stats) {
  void* handle = value(call.handle);
  const uint64_t type = call.handle == kNone ? 0 : type_of(call.handle);
  const bool forwarded = handle != nullptr && !nulled_[call.handle];
  // Network code does not look at its handle, so a declined NetPlugin is stopped all the same.
  const bool blind = type == abi::kTypeNetPlugin && representable(behaviour_.api, type);
  if (!forwarded && !blind && !call.forced) {
    ++stats->gated_stops;
    return;
  }
  binding_->stop(handle, stats);
  ++stats->stops;
  if (behaviour_.old_core) old_core_stop(call, stats);
  if (behaviour_.api == 7 && (type == abi::kTypeGroup || type == abi::kTypeColl || type == abi::kTypeP2p))
    nulled_[call.handle] = 1;
}

void Core::state(const Call& call, Stats* stats) {
  void* handle = value(call.handle);
  const uint64_t type = call.handle == kNone ? 0 : type_of(call.handle);
  bool forwarded = handle != nullptr;
  if (type == abi::kTypeNetPlugin) forwarded = representable(behaviour_.api, type);
  if (type == abi::kTypeProxyCtrl) forwarded = forwarded && (live_mask() & abi::kTypeProxyCtrl) != 0;
  if (type == abi::kTypeProxyStep)
    forwarded = forwarded && value(program_.handles[call.handle].parent) != nullptr;
  if (!forwarded && !call.forced) {
    ++stats->gated_states;
    return;
  }
  if (behaviour_.old_core) old_core_state(call, stats);
  alignas(8) char payload[kPayloadBytes] = {};
  uint64_t argument = call.value;
  if (call.state == abi::kKernelChStop || call.state == abi::kKernelPhaseStop)
    argument +=
        call.handle == kNone || gpu_delays_[call.handle] == kNoDelay ? delay_ns_ : gpu_delays_[call.handle];
  if (call.state == abi::kNetPluginUpdate) argument = reinterpret_cast<uint64_t>(&payload);
  const bool delivered = binding_->state(handle, call.state, argument, 0, stats);
  ++(delivered ? stats->states : stats->dropped_states);
  __asm__ volatile("" : : "r"(payload) : "memory");
}

// Cores before 2.27 keep the network progress on the ProxyOp: 0 to 3 of a sender, 4 to 7 of a receiver,
// beside the states of the step. 0 comes before the step's own 8; 3 and 7 come after its stop.
void Core::old_core_state(const Call& call, Stats* stats) {
  if (call.handle == kNone || type_of(call.handle) != abi::kTypeProxyStep) return;
  const uint32_t op = program_.handles[call.handle].parent;
  if (op == kNone) return;
  switch (call.state) {
    case abi::kProxyStepSendGpuWait:
      old_core_op_state(call.handle, abi::kProxyOpSendPosted, stats);
      break;
    case abi::kProxyStepSendPeerWait:
      old_core_op_state(call.handle, abi::kProxyOpSendRemFifoWait, stats);
      break;
    case abi::kProxyStepSendWait:
      moved_bytes_[op] += call.value;
      old_core_op_state(call.handle, abi::kProxyOpSendTransmitted, stats);
      break;
    case abi::kProxyStepRecvWait:
      old_core_op_state(call.handle, abi::kProxyOpRecvPosted, stats);
      break;
    case abi::kProxyStepRecvFlushWait:
      moved_bytes_[op] += call.value;
      old_core_op_state(call.handle, abi::kProxyOpRecvReceived, stats);
      break;
    case abi::kProxyStepRecvGpuWait:
      old_core_op_state(call.handle, abi::kProxyOpRecvTransmitted, stats);
      break;
    default:
      break;
  }
}

void Core::old_core_stop(const Call& call, Stats* stats) {
  if (call.handle == kNone || type_of(call.handle) != abi::kTypeProxyStep) return;
  const uint32_t op = program_.handles[call.handle].parent;
  if (op == kNone || type_of(op) != abi::kTypeProxyOp) return;
  const bool is_send = program_.handles[op].is_send;
  old_core_op_state(call.handle, is_send ? abi::kProxyOpSendDone : abi::kProxyOpRecvDone, stats);
}

void Core::old_core_op_state(uint32_t step, int state, Stats* stats) {
  const HandleInfo& info = program_.handles[step];
  void* op = value(info.parent);
  if (op == nullptr) return;
  const bool delivered = binding_->state(op, state, moved_bytes_[info.parent], info.step + 1, stats);
  ++(delivered ? stats->states : stats->dropped_states);
}

}  // namespace lockstep::sim
