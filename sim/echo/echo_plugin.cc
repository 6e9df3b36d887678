// SPDX-License-Identifier: Apache-2.0
// The plugin that writes down what it gets: every call as one line in the tape format (sim/README.md), so
// that a tape played into it comes out again. For testing the host, and for recording new tapes from a real
// NCCL. One lock is held while writing, so the lines are in the order of the calls.
//
//   ECHO_LOG=FILE          where to write (appended; without it nothing is written)
//   ECHO_MASK=BITS         activation mask, default everything
//   ECHO_MASK_LATER=N:BITS mask stored after the N-th start
//   ECHO_DECLINE=BITS      event types that get a NULL handle
//   ECHO_UNWRITTEN=BITS    event types whose handle is left unwritten: a broken plugin
//   ECHO_FAIL_INIT=1       init fails: a broken plugin
//   ECHO_FAIL_RANK=R       init fails for communicators in which this process is rank R
//
// libecho-plugin.so exports all versions of the interface, libecho-plugin-v<N>.so only one (ECHO_ONLY).
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <mutex>

#include "capture/nccl/abi.h"

namespace {

namespace abi = lockstep::nccl_abi;

uint64_t bits_from(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 0) : otherwise;
}

uint64_t clock_ns(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

struct Echo {
  std::mutex mutex;
  FILE* log = nullptr;
  uint64_t next = 4112;  // contexts and handles alike: multiples of 16 that are never used again
  uint64_t starts = 0;
  uint64_t decline = bits_from("ECHO_DECLINE", 0), unwritten = bits_from("ECHO_UNWRITTEN", 0);
  uint64_t later_after = 0;
  int later_mask = 0;
  int* mask = nullptr;

  Echo() {
    if (const char* later = std::getenv("ECHO_MASK_LATER"))
      std::sscanf(later, "%" SCNu64 ":%i", &later_after, &later_mask);
    const char* path = std::getenv("ECHO_LOG");
    if (path == nullptr || (log = std::fopen(path, "a")) == nullptr) return;
    std::fprintf(log,
                 "{\"call\":\"tape\",\"version\":1,\"pid\":%d,\"hostid\":\"\",\"realtime\":%" PRIu64
                 ",\"monotonic\":%" PRIu64 "}\n",
                 getpid(), clock_ns(CLOCK_REALTIME), clock_ns(CLOCK_MONOTONIC));
    std::fflush(log);
  }
  // At the unload or the end of the process; calls that come later find no log.
  ~Echo() {
    const std::lock_guard lock(mutex);
    if (log) std::fclose(log);
    log = nullptr;
  }
};

Echo& echo() {
  static Echo instance;
  return instance;
}

// One line under the lock; flushed at its end because a tape's process may end without exit handlers.
class Line {
 public:
  explicit Line(const char* call) : lock_(echo().mutex) {
    if (!echo().log) return;
    char name[32] = "";
    pthread_getname_np(pthread_self(), name, sizeof name);
    std::fprintf(echo().log, "{\"t\":%" PRIu64 ",\"tid\":%ld,\"thread\":\"%s\",\"call\":\"%s\"",
                 clock_ns(CLOCK_MONOTONIC), syscall(SYS_gettid), name, call);
  }
  ~Line() {
    if (!echo().log) return;
    std::fputs("}\n", echo().log);
    std::fflush(echo().log);
  }
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;

  template <class Value>
  Line& add(const char* key, Value value) {
    if (!echo().log) return *this;
    if constexpr (std::is_same_v<Value, const char*>) {
      std::fprintf(echo().log, ",\"%s\":\"%s\"", key, value ? value : "(null)");
    } else if constexpr (std::is_pointer_v<Value>) {
      std::fprintf(echo().log, ",\"%s\":%" PRIu64, key, reinterpret_cast<uint64_t>(value));
    } else if constexpr (std::is_signed_v<Value>) {
      std::fprintf(echo().log, ",\"%s\":%" PRId64, key, static_cast<int64_t>(value));
    } else {
      std::fprintf(echo().log, ",\"%s\":%" PRIu64, key, static_cast<uint64_t>(value));
    }
    return *this;
  }

 private:
  std::lock_guard<std::mutex> lock_;
};

int init_common(int api, void** context, int* mask, const char* name, uint64_t id, int nodes, int ranks,
                int rank) {
  const int wanted = static_cast<int>(bits_from("ECHO_MASK", 0xffff));
  __atomic_store_n(mask, wanted, __ATOMIC_RELAXED);
  Line line("init");
  echo().mask = mask;
  *context = reinterpret_cast<void*>(echo().next);
  echo().next += 16;
  char hex[20];
  std::snprintf(hex, sizeof hex, "%016" PRIx64, id);
  line.add("api", api).add("ctx", *context).add("commId", static_cast<const char*>(hex)).add("mask", wanted);
  line.add("commName", name).add("nNodes", nodes).add("nranks", ranks).add("rank", rank);
  const bool fails = std::getenv("ECHO_FAIL_INIT") != nullptr ||
                     bits_from("ECHO_FAIL_RANK", ~0ull) == static_cast<uint64_t>(rank);
  return fails ? 3 : 0;
}

template <int Api>
abi::NcclResult init_v1(void** context, int* mask) {
  return init_common(Api, context, mask, nullptr, 0, 0, 0, 0);
}
template <int Api>
abi::NcclResult init_v4(void** context, int* mask, const char* name, uint64_t id, int nodes, int ranks,
                        int rank, abi::Logger) {
  return init_common(Api, context, mask, name, id, nodes, ranks, rank);
}
template <int Api>
abi::NcclResult init_v5(void** context, uint64_t id, int* mask, const char* name, int nodes, int ranks,
                        int rank, abi::Logger logger) {
  logger(abi::kLogInfo, abi::kLogSubsystemProfile, "echo", 0, "comm %d of %d", rank, ranks);
  return init_common(Api, context, mask, name, id, nodes, ranks, rank);
}

// The members that not every version has are written where they exist.
template <class Coll>
void add_coll(Line* line, const Coll& c) {
  line->add("seqNumber", c.seq)
      .add("func", c.func)
      .add("sendBuff", c.send_buffer)
      .add("recvBuff", c.recv_buffer);
  line->add("count", c.count).add("root", c.root).add("datatype", c.datatype);
  if constexpr (requires { c.channels; }) line->add("nChannels", c.channels);
  if constexpr (requires { c.max_channels; }) line->add("nChannels", c.max_channels);
  line->add("nWarps", c.warps).add("algo", c.algo).add("proto", c.proto);
  if constexpr (requires { c.parent_group; }) line->add("parentGroup", c.parent_group);
  if constexpr (requires { c.comm_hash; }) line->add("commHash", c.comm_hash).add("name", c.name);
  if constexpr (requires { c.traffic_bytes; }) line->add("trafficBytes", c.traffic_bytes);
  if constexpr (requires { c.user_tag; })
    line->add("kernelVariant", c.kernel_variant).add("isSymColl", c.is_symmetric).add("userTag", c.user_tag);
}

template <class P2p>
void add_p2p(Line* line, const P2p& p) {
  line->add("func", p.func)
      .add("buff", p.buffer)
      .add("datatype", p.datatype)
      .add("count", p.count)
      .add("peer", p.peer);
  if constexpr (requires { p.channels; }) line->add("nChannels", p.channels);
  if constexpr (requires { p.parent_group; }) line->add("parentGroup", p.parent_group);
  if constexpr (requires { p.comm_hash; }) line->add("commHash", p.comm_hash).add("name", p.name);
  if constexpr (requires { p.user_tag; }) line->add("userTag", p.user_tag);
}

template <class Descriptor>
void add_api_fields(Line* line, const Descriptor& d) {
  if (d.type == abi::kTypeGroupApi)
    line->add("graphCaptured", d.group_api.graph_captured).add("groupDepth", d.group_api.depth);
  if (d.type == abi::kTypeCollApi)
    line->add("func", d.coll_api.func)
        .add("count", d.coll_api.count)
        .add("datatype", d.coll_api.datatype)
        .add("root", d.coll_api.root)
        .add("stream", d.coll_api.stream)
        .add("graphCaptured", d.coll_api.graph_captured);
  if (d.type == abi::kTypeP2pApi)
    line->add("func", d.p2p_api.func)
        .add("count", d.p2p_api.count)
        .add("datatype", d.p2p_api.datatype)
        .add("stream", d.p2p_api.stream)
        .add("graphCaptured", d.p2p_api.graph_captured);
  if (d.type == abi::kTypeKernelLaunch) line->add("stream", d.kernel_launch.stream);
}

template <class Descriptor>
void add_ce_fields(Line* line, const Descriptor& d) {
  if (d.type == abi::kTypeCeColl)
    line->add("seqNumber", d.ce_coll.seq)
        .add("func", d.ce_coll.func)
        .add("count", d.ce_coll.count)
        .add("root", d.ce_coll.root)
        .add("datatype", d.ce_coll.datatype)
        .add("syncStrategy", d.ce_coll.sync_strategy)
        .add("intraBatchSync", d.ce_coll.intra_batch_sync)
        .add("batchSize", d.ce_coll.batch_size)
        .add("numBatches", d.ce_coll.batches)
        .add("ceSeqNum", d.ce_coll.ce_seq)
        .add("stream", d.ce_coll.stream);
  if (d.type == abi::kTypeCeSync)
    line->add("isComplete", d.ce_sync.is_complete).add("nRanks", d.ce_sync.ranks);
  if (d.type == abi::kTypeCeBatch)
    line->add("numOps", d.ce_batch.ops)
        .add("totalBytes", d.ce_batch.total_bytes)
        .add("useIntraSync", d.ce_batch.use_intra_sync);
}

template <class Descriptor>
void add_fields(Line* line, const Descriptor& d) {
  if (d.type == abi::kTypeColl) add_coll(line, d.coll);
  if (d.type == abi::kTypeP2p) add_p2p(line, d.p2p);
  if (d.type == abi::kTypeProxyOp)
    line->add("pid", d.proxy_op.pid)
        .add("channelId", d.proxy_op.channel)
        .add("peer", d.proxy_op.peer)
        .add("nSteps", d.proxy_op.steps)
        .add("chunkSize", d.proxy_op.chunk_size)
        .add("isSend", d.proxy_op.is_send);
  if (d.type == abi::kTypeProxyStep) line->add("step", d.proxy_step.step);
  if constexpr (requires { d.kernel_ch; })
    if (d.type == abi::kTypeKernelCh) {
      line->add("channelId", d.kernel_ch.channel);
      if constexpr (requires { d.kernel_ch.ptimer; }) line->add("pTimer", d.kernel_ch.ptimer);
    }
  if constexpr (requires { d.net_plugin; })
    if (d.type == abi::kTypeNetPlugin) {
      line->add("id", d.net_plugin.id);
      if (d.net_plugin.id == abi::kNetIdIb)
        line->add("wr_id", static_cast<abi::NetIb*>(d.net_plugin.data)->wr_id);
    }
  if constexpr (requires { d.group_api; }) add_api_fields(line, d);
  if constexpr (requires { d.ce_coll; }) add_ce_fields(line, d);
  if constexpr (requires { d.kernel_phase; })
    if (d.type == abi::kTypeKernelPhase)
      line->add("channelId", d.kernel_phase.channel)
          .add("phaseId", d.kernel_phase.phase)
          .add("phaseName", d.kernel_phase.phase_name)
          .add("pTimer", d.kernel_phase.ptimer);
}

template <class Descriptor>
abi::NcclResult start_event(void* context, void** handle, Descriptor* descriptor) {
  Line line("start");
  const uint64_t type = descriptor->type;
  if ((type & echo().unwritten) == 0)
    *handle = (type & echo().decline) ? nullptr : reinterpret_cast<void*>(echo().next);
  const uint64_t issued = (type & echo().decline) ? 0 : echo().next;
  echo().next += 16;
  line.add("ctx", context).add("h", issued).add("type", type).add("parent", descriptor->parent);
  line.add("rank", descriptor->rank);
  add_fields(&line, *descriptor);
  if (++echo().starts == echo().later_after)
    __atomic_store_n(echo().mask, echo().later_mask, __ATOMIC_RELAXED);
  return 0;
}

abi::NcclResult stop_event(void* handle) {
  Line("stop").add("h", handle);
  return 0;
}

template <class Args>
abi::NcclResult record_event_state(void* handle, abi::State state, Args* args) {
  Line line("state");
  line.add("h", handle).add("state", static_cast<int>(state));
  if (args == nullptr) {
    line.add("args", static_cast<const char*>("null"));
    return 0;
  }
  uint64_t raw = 0;
  __builtin_memcpy(&raw, args, sizeof raw);
  line.add("raw", raw);
  if (state >= abi::kProxyStepSendGpuWait && state <= abi::kProxyStepRecvGpuWait) line.add("transSize", raw);
  if (state == abi::kProxyStepSendPeerWait || state <= abi::kProxyOpRecvDone) line.add("transSize", raw);
  if (state >= abi::kProxyCtrlIdle && state <= abi::kProxyCtrlAppendEnd)
    line.add("appendedProxyOps", args->proxy_ctrl.appended);
  if (state == abi::kKernelChStop || state == abi::kKernelPhaseStop) line.add("pTimer", raw);
  return 0;
}

abi::NcclResult finalize(void* context) {
  Line("finalize").add("ctx", context);
  return 0;
}

}  // namespace

#define ECHO_PLUGIN(n, init_function)                                                    \
  extern "C" __attribute__((visibility("default"))) abi::v##n::Plugin ncclProfiler_v##n; \
  abi::v##n::Plugin ncclProfiler_v##n = {"echo",                                         \
                                         init_function<n>,                               \
                                         start_event<abi::v##n::Descriptor>,             \
                                         stop_event,                                     \
                                         record_event_state<abi::v##n::StateArgs>,       \
                                         finalize};
#if !defined(ECHO_ONLY) || ECHO_ONLY == 1
ECHO_PLUGIN(1, init_v1)
#endif
#if !defined(ECHO_ONLY) || ECHO_ONLY == 2
ECHO_PLUGIN(2, init_v1)
#endif
#if !defined(ECHO_ONLY) || ECHO_ONLY == 3
ECHO_PLUGIN(3, init_v1)
#endif
#if !defined(ECHO_ONLY) || ECHO_ONLY == 4
ECHO_PLUGIN(4, init_v4)
#endif
#if !defined(ECHO_ONLY) || ECHO_ONLY == 5
ECHO_PLUGIN(5, init_v5)
#endif
#if !defined(ECHO_ONLY) || ECHO_ONLY == 6
ECHO_PLUGIN(6, init_v5)
#endif
#if !defined(ECHO_ONLY) || ECHO_ONLY == 7
ECHO_PLUGIN(7, init_v5)
#endif
#undef ECHO_PLUGIN
