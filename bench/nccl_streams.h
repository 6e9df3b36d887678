// SPDX-License-Identifier: Apache-2.0
// The two streams of callbacks that the event path is measured with, driven as NCCL drives a v5 plugin:
//   A  intra-node: 1 Coll and 8 KernelCh, start / state / stop (26 callbacks)
//   B  network: 2 KernelCh, 2 channels x send and receive x (1 ProxyOp + 4 ProxySteps x 3 states)
//     (100 callbacks)
// and an empty plugin, which returns at once.
#pragma once
#include <dlfcn.h>
#include <unistd.h>

#include <cstdint>

#include "capture/nccl/abi.h"

namespace lockstep::bench {

namespace abi = nccl_abi;
using abi::v5::Descriptor;
using abi::v5::StateArgs;

inline abi::NcclResult empty_init(void** context, uint64_t, int*, const char*, int, int, int, abi::Logger) {
  *context = reinterpret_cast<void*>(1);
  return 0;
}
inline abi::NcclResult empty_start(void*, void** handle, Descriptor*) {
  *handle = reinterpret_cast<void*>(1);
  return 0;
}
inline abi::NcclResult empty_stop(void*) { return 0; }
inline abi::NcclResult empty_state(void*, abi::State, StateArgs*) { return 0; }
inline constexpr abi::v5::Plugin kEmpty = {"empty",    empty_init,  empty_start,
                                           empty_stop, empty_state, empty_stop};

inline const abi::v5::Plugin* load(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  return library == nullptr ? nullptr
                            : static_cast<const abi::v5::Plugin*>(dlsym(library, "ncclProfiler_v5"));
}
inline const abi::v5::Plugin* lockstep_plugin() {
  static const auto* plugin = load(LOCKSTEP_LIB_DIR "/liblockstep-nccl.so");
  return plugin;
}

inline void log_nothing(int, unsigned long, const char*, int, const char*, ...) {}

struct Host {
  const abi::v5::Plugin* plugin;
  void* context = nullptr;
  uint64_t time = 1000;
  Descriptor descriptor{};
  StateArgs args{};
  int mask = 0;  // the plugin keeps its address

  explicit Host(const abi::v5::Plugin* p) : plugin(p) {
    plugin->init(&context, 0x1234, &mask, "bench", 1, 8, 0, log_nothing);
  }
  ~Host() { plugin->finalize(context); }

  void* start(uint64_t type, void* parent) {
    void* handle = nullptr;
    descriptor.type = type;
    descriptor.parent = parent;
    plugin->start_event(context, &handle, &descriptor);
    return handle;
  }
  void state(void* handle, abi::State state, uint64_t value) {
    args.kernel_ch.ptimer = value;
    plugin->record_event_state(handle, state, &args);
  }
  void* coll() {
    descriptor.coll = {time,          "AllReduce", nullptr, nullptr, 1u << 20, 0,
                       "ncclFloat32", 8,           16,      "RING",  "SIMPLE", nullptr};
    return start(abi::kTypeColl, nullptr);
  }
  void kernels(void* parent, int channels) {
    void* handles[8];
    for (int c = 0; c < channels; ++c) {
      descriptor.kernel_ch = {static_cast<uint8_t>(c), time};
      handles[c] = start(abi::kTypeKernelCh, parent);
    }
    for (int c = 0; c < channels; ++c) {
      state(handles[c], abi::kKernelChStop, time + 50000);
      plugin->stop_event(handles[c]);
    }
  }
  void stream_a() {
    void* operation = coll();
    plugin->stop_event(operation);
    kernels(operation, 8);
    time += 100000;
  }
  void proxy(void* parent, uint8_t channel, bool send) {
    descriptor.proxy_op = {getpid_cached, channel, 1, 4, 1 << 20, send};
    void* op = start(abi::kTypeProxyOp, parent);
    plugin->record_event_state(op, abi::kProxyOpInProgress, nullptr);
    constexpr abi::State kSend[] = {abi::kProxyStepSendGpuWait, abi::kProxyStepSendPeerWait,
                                    abi::kProxyStepSendWait};
    constexpr abi::State kRecv[] = {abi::kProxyStepRecvWait, abi::kProxyStepRecvFlushWait,
                                    abi::kProxyStepRecvGpuWait};
    for (int step = 0; step < 4; ++step) {
      descriptor.proxy_step.step = step;
      void* handle = start(abi::kTypeProxyStep, op);
      for (abi::State s : send ? kSend : kRecv) state(handle, s, 1 << 20);
      plugin->stop_event(handle);
    }
    plugin->stop_event(op);
  }
  void stream_b() {
    void* operation = coll();
    plugin->stop_event(operation);
    for (uint8_t channel = 0; channel < 2; ++channel) {
      proxy(operation, channel, true);
      proxy(operation, channel, false);
    }
    kernels(operation, 2);
    time += 100000;
  }
  static inline const int getpid_cached = getpid();
};
inline constexpr int kCallsA = 2 + 8 * 3;
inline constexpr int kCallsB = 2 + 4 * (3 + 4 * 5) + 2 * 3;

}  // namespace lockstep::bench
