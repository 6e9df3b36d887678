// SPDX-License-Identifier: Apache-2.0
// Calls the capture library as NCCL does, at any version of the profiler interface. Descriptors start as
// garbage, as on NCCL's stack, and handles as poison, so that a field read by mistake or a handle not written
// shows.
#pragma once
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <string>

#include "capture/nccl/abi.h"
#include "tests/support/places.h"

namespace lockstep::test {

namespace abi = nccl_abi;

inline constexpr uint64_t kPoison = 0xdeadbeefdeadbeef;
inline void* pointer(uint64_t number) { return reinterpret_cast<void*>(number); }
inline uint64_t number(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }
// Memory that is mapped nowhere: touching it ends the test.
inline void* unmapped() { return pointer(0x00000dea'dbee'f000); }

template <int kApi>
struct Api;
#define LOCKSTEP_API(n)                       \
  template <>                                 \
  struct Api<n> {                             \
    using Descriptor = abi::v##n::Descriptor; \
    using Args = abi::v##n::StateArgs;        \
    using Plugin = abi::v##n::Plugin;         \
  }
LOCKSTEP_API(1);
LOCKSTEP_API(2);
LOCKSTEP_API(3);
LOCKSTEP_API(4);
LOCKSTEP_API(5);
LOCKSTEP_API(6);
LOCKSTEP_API(7);
#undef LOCKSTEP_API

template <int kApi>
class NcclPlugin {
 public:
  using Descriptor = typename Api<kApi>::Descriptor;
  using Args = typename Api<kApi>::Args;

  NcclPlugin() {
    library_ = dlopen(LOCKSTEP_LIB_DIR "/liblockstep-nccl.so", RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(library_, nullptr) << dlerror();
    std::string symbol = "ncclProfiler_v" + std::to_string(kApi);
    plugin_ = static_cast<typename Api<kApi>::Plugin*>(dlsym(library_, symbol.c_str()));
    EXPECT_NE(plugin_, nullptr);
  }
  const auto& vtable() const { return *plugin_; }
  void* library() const { return library_; }

  // A comm; its context is also the one that the calls below use from now on.
  void* init(uint64_t id = 0x1234, const char* name = nullptr, int ranks = 8, int rank = 3,
             abi::Logger logger = nullptr) {
    void* made = pointer(kPoison);
    if constexpr (kApi <= 3) {
      EXPECT_EQ(plugin_->init(&made, &mask), 0);
    } else if constexpr (kApi == 4) {
      EXPECT_EQ(plugin_->init(&made, &mask, name, id, 2, ranks, rank, logger), 0);
    } else {
      EXPECT_EQ(plugin_->init(&made, id, &mask, name, 2, ranks, rank, logger), 0);
    }
    context = made;
    return made;
  }
  int finalize(void* which) { return plugin_->finalize(which); }

  static Descriptor descriptor(uint64_t type, void* parent = nullptr) {
    Descriptor d;
    memset(static_cast<void*>(&d), 0xa5, sizeof d);
    d.type = static_cast<decltype(d.type)>(type);
    d.parent = parent;
    return d;
  }
  void* start(Descriptor& d, void* with) {
    void* handle = pointer(kPoison);
    EXPECT_EQ(plugin_->start_event(with, &handle, &d), 0);
    EXPECT_NE(handle, pointer(kPoison)) << "the handle was not written";
    return handle;
  }
  void* start(Descriptor& d) { return start(d, context); }
  void* start(uint64_t type, void* parent = nullptr) {
    Descriptor d = descriptor(type, parent);
    return start(d);
  }
  int stop(void* handle) { return plugin_->stop_event(handle); }
  int state(void* handle, int state, Args* args = nullptr) {
    return plugin_->record_event_state(handle, static_cast<abi::State>(state), args);
  }
  // A state with the number that belongs to it: transSize, pTimer or appended ops.
  int state_with(void* handle, int state, uint64_t value) {
    Args args;
    memset(static_cast<void*>(&args), 0, sizeof args);
    memcpy(static_cast<void*>(&args), &value, sizeof value);
    return this->state(handle, state, &args);
  }

  static Descriptor coll(uint64_t seq, void* parent = nullptr, uint64_t count = 1024, int root = 0) {
    Descriptor d = descriptor(abi::kTypeColl, parent);
    auto& op = d.coll;
    op.seq = seq;
    op.send_buffer = pointer(0x7000'0000'1000);
    op.recv_buffer = pointer(0x7000'0000'2000);
    op.count = count;
    op.root = root;
    op.warps = 16;
    if constexpr (kApi == 1) {
      op.func = 4, op.datatype = 7, op.algo = 1, op.proto = 2;
    } else {
      op.func = "AllReduce", op.datatype = "ncclFloat32", op.algo = "RING", op.proto = "SIMPLE";
    }
    if constexpr (requires { op.comm_hash; }) op.comm_hash = 0, op.name = nullptr;
    if constexpr (requires { op.channels; }) op.channels = 8;
    if constexpr (requires { op.max_channels; }) op.max_channels = 8;
    if constexpr (requires { op.parent_group; }) op.parent_group = nullptr;
    if constexpr (requires { op.user_tag; })
      op.user_tag = 0, op.is_symmetric = false, op.kernel_variant = nullptr;
    return d;
  }
  static Descriptor p2p(int peer, void* parent = nullptr, uint64_t count = 64) {
    Descriptor d = descriptor(abi::kTypeP2p, parent);
    auto& op = d.p2p;
    op.buffer = pointer(0x7000'0000'3000);
    op.count = count;
    op.peer = peer;
    if constexpr (kApi == 1) {
      op.func = 6, op.datatype = 7;
    } else {
      op.func = "Send", op.datatype = "ncclFloat32";
    }
    if constexpr (requires { op.comm_hash; }) op.comm_hash = 0, op.name = nullptr;
    if constexpr (kApi >= 5) op.channels = 4;  // the v4 adapter leaves it as it was
    if constexpr (requires { op.parent_group; }) op.parent_group = nullptr;
    if constexpr (requires { op.user_tag; }) op.user_tag = 0;
    return d;
  }
  Descriptor proxy_op(void* parent = nullptr) const { return proxy_op(parent, pid_); }
  static Descriptor proxy_op(void* parent, int pid, bool send = true) {
    Descriptor d = descriptor(abi::kTypeProxyOp, parent);
    d.rank = 5;
    d.proxy_op = {pid, 2, 7, 12, 1 << 20, send};
    return d;
  }
  void* start_coll(uint64_t seq, void* parent = nullptr) {
    Descriptor d = coll(seq, parent);
    return start(d);
  }
  void* start_group_api() {
    Descriptor d = descriptor(abi::kTypeGroupApi);
    d.group_api = {false, 1};
    return start(d);
  }
  void* start_proxy_op(void* parent = nullptr) {
    Descriptor d = proxy_op(parent);
    return start(d);
  }
  void* start_proxy_step(void* parent, int step) {
    Descriptor d = descriptor(abi::kTypeProxyStep, parent);
    d.proxy_step.step = step;
    return start(d, unmapped());
  }
  void* start_kernel_ch(void* parent, uint8_t channel = 0, uint64_t ptimer = 1000) {
    Descriptor d = descriptor(abi::kTypeKernelCh, parent);
    if constexpr (kApi >= 3) d.kernel_ch.channel = channel;
    if constexpr (kApi >= 4) d.kernel_ch.ptimer = ptimer;
    return start(d);
  }

  void* context = nullptr;
  int mask = -1;

 private:
  int pid_ = getpid();
  void* library_ = nullptr;
  typename Api<kApi>::Plugin* plugin_ = nullptr;
};

}  // namespace lockstep::test
