// SPDX-License-Identifier: Apache-2.0
// What of AMD's rocprofiler-sdk 1.x is used, in our own declarations, from its published headers (ROCm 7.0
// on). Before 1.0 a callback's record has no `ancestor`, so all behind it lies elsewhere: such an SDK is left
// alone. Structures grow at their end; `bytes` says how far they go.
#pragma once
#include <cstddef>
#include <cstdint>

namespace lockstep::capture::rocp {

using Status = int32_t;
inline constexpr Status kSuccess = 0;
inline constexpr uint32_t kOldestVersion = 10000, kNextMajorVersion = 20000;  // 10000 major + 100 minor

// ---- how the SDK comes to us: rocprofiler_configure()

// It takes the client's id, a struct that has grown between releases: we neither call it nor write to the id.
using Finalize = void (*)();
struct Configured {
  size_t bytes;
  // Here alone contexts and services are made. 0: go on.
  int (*initialize)(Finalize finalize, void* data);
  void (*finalize)(void* data);
  void* data;
};
static_assert(sizeof(Configured) == 32);

// ---- callbacks

enum CallbackKind : int32_t { kMarkers = 7, kCodeObject = 10, kKernelDispatch = 12 };
enum MarkerOperation : int32_t { kPush = 1, kPop = 2, kStartRange = 3, kStopRange = 4 };
enum CodeObjectOperation : int32_t { kLoadCode = 1, kDeviceSymbol = 2 };
enum DispatchOperation : int32_t { kEnqueue = 1, kComplete = 2 };
// Of a code object kEnter is its loading. What has no two sides (kComplete) is kNoPhase.
enum Phase : int32_t { kNoPhase = 0, kEnter = 1, kExit = 2 };

struct CallbackRecord {
  uint64_t context;
  uint64_t thread;  // tid
  uint64_t internal, external, ancestor;
  int32_t kind, operation, phase;
  int32_t padding;
  void* payload;
};
static_assert(sizeof(CallbackRecord) == 64 && offsetof(CallbackRecord, kind) == 40 &&
              offsetof(CallbackRecord, phase) == 48 && offsetof(CallbackRecord, payload) == 56);
// The record comes by value. What a kernel's kEnqueue leaves in `own` is there again at its kComplete.
using Callback = void (*)(CallbackRecord record, uint64_t* own, void* data);

struct DispatchInfo {
  uint64_t bytes;
  uint64_t agent, queue, kernel, dispatch;
  uint32_t private_bytes, group_bytes;
  uint32_t group[3], grid[3];  // work items
  uint8_t reserved[56];
};
static_assert(sizeof(DispatchInfo) == 128 && offsetof(DispatchInfo, group) == 48 &&
              offsetof(DispatchInfo, grid) == 60 && offsetof(DispatchInfo, reserved) == 72);
struct Dispatch {
  uint64_t bytes;
  uint64_t start, stop;  // ns of HSA's system clock; at kComplete
  DispatchInfo info;
};
static_assert(sizeof(Dispatch) == 152 && offsetof(Dispatch, info) == 24);
struct KernelSymbol {
  uint64_t bytes;
  uint64_t kernel, code_object;
  const char* name;  // ends in ".kd", or not
};
static_assert(sizeof(KernelSymbol) == 32 && offsetof(KernelSymbol, name) == 24);

// A call of roctx. `text`: of kPush and kStartRange; `range`: of kStopRange; `returned`: at kExit of
// kStartRange, the range.
struct Marker {
  uint64_t bytes;
  union {
    const char* text;
    uint64_t range;
    uint64_t words[2];
  };
  uint64_t returned;
};
static_assert(sizeof(Marker) == 32 && offsetof(Marker, text) == 8 && offsetof(Marker, returned) == 24);

// ---- agents

// As much of the SDK's as its first release had; `location` and `domain` are the PCI address.
struct SdkAgent {
  uint64_t bytes, id;
  int32_t type;
  uint32_t counts[21];
  uint16_t vendor, device;
  uint32_t location, domain;
  uint32_t more[13];
  uint32_t sizes[2];
  uint64_t local_memory, hive, gpu;
  uint32_t group_max[3], grid_max[3];
  const void *banks, *caches, *links;
  const char *name, *vendor_name, *product_name, *model_name;
  uint64_t more_of_a_release[3];  // the node's number is among them, not always at the same place
};
static_assert(sizeof(SdkAgent) == 304 && offsetof(SdkAgent, counts) == 20 &&
              offsetof(SdkAgent, vendor) == 104 && offsetof(SdkAgent, location) == 108 &&
              offsetof(SdkAgent, domain) == 112 && offsetof(SdkAgent, local_memory) == 176 &&
              offsetof(SdkAgent, name) == 248 && offsetof(SdkAgent, product_name) == 264);
inline constexpr int32_t kAgentIsGpu = 2, kAgentVersion = 1;
using AgentsCallback = Status (*)(int32_t version, const void** agents, size_t count, void* data);

// ---- functions of the SDK. Contexts are handles of 8 bytes, passed as such.

struct ContextId {
  uint64_t handle;
};
using CreateContext = Status (*)(ContextId*);
using StartContext = Status (*)(ContextId);
using ConfigureCallbacks = Status (*)(ContextId, int32_t kind, const int32_t* operations, size_t count,
                                      Callback, void* data);
using QueryAgents = Status (*)(int32_t version, AgentsCallback, size_t bytes, void* data);
using GetTimestamp = Status (*)(uint64_t*);

}  // namespace lockstep::capture::rocp
