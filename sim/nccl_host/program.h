// SPDX-License-Identifier: Apache-2.0
// Program: the calls one process makes into a profiler plugin, as data. Tapes are parsed into it, scripts are
// built into it, faults rewrite it, and Player plays it. A start carries the newest (v7) descriptor; older
// versions are derived from it when it is played. Contexts and handles are dense slot numbers; the player
// fills the slots with what the plugin returned. Plain data: one owner, no threads while it is built,
// read-only while it is played.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "capture/nccl/abi.h"

namespace lockstep::sim {

inline constexpr uint32_t kNone = UINT32_MAX;

// Event kinds by index = log2 of the type bit, with NCCL's names.
inline constexpr int kEventKinds = 16;
inline constexpr std::array<const char*, kEventKinds> kEventNames = {
    "Group",    "Coll",    "P2p",    "ProxyOp",      "ProxyStep", "ProxyCtrl", "KernelCh", "NetPlugin",
    "GroupApi", "CollApi", "P2pApi", "KernelLaunch", "CeColl",    "CeSync",    "CeBatch",  "KernelPhase"};
constexpr size_t event_index(uint64_t type) { return static_cast<size_t>(__builtin_ctzll(type)); }

enum class CallKind : uint8_t { kInit, kStart, kStop, kState, kFinalize, kBarrier };

struct Call {
  CallKind kind = CallKind::kBarrier;
  bool forced = false;  // made even where NCCL's own gating would skip it: a fault
  uint16_t thread = 0;
  int16_t state = 0;         // kState
  uint32_t context = kNone;  // kInit, kStart, kFinalize
  uint32_t handle = kNone;   // kStart, kStop, kState
  uint32_t detail = kNone;   // kInit: comms index; kStart: starts index
  uint64_t value = 0;        // kState: transSize, appendedProxyOps or pTimer
  uint64_t when_ns = 0;
};

struct Start {
  nccl_abi::v7::Descriptor descriptor{};  // parent and parent_group are patched from the two slots below
  uint32_t parent = kNone;
  uint32_t parent_group = kNone;
};

struct CommInfo {
  uint64_t id = 0;
  const char* name = nullptr;
  int nodes = 1, ranks = 1, rank = 0;
};

// What a slot holds, derived from the calls by link(). `root` is the GroupApi whose start takes the mask
// snapshot.
struct HandleInfo {
  uint64_t type = 0;
  uint32_t root = kNone;
  uint32_t parent = kNone;
  int step = 0;          // ProxyStep
  bool is_send = false;  // ProxyOp
};

// Strings with an address of their own for the whole life of the program, as NCCL's literals have.
class StringTable {
 public:
  const char* intern(std::string_view text) { return strings_.emplace(text).first->c_str(); }

 private:
  std::unordered_set<std::string> strings_;
};

struct Program {
  std::string name;
  int recorded_api = 5;  // 5 = NCCL 2.28, 6 = 2.29 and 2.30
  bool ordered =
      true;           // one call at a time, in this order; otherwise each thread runs freely between barriers
  bool torn = false;  // a tape whose writer was killed
  uint64_t recorded_pid = 0;
  int64_t recorded_realtime_ns =
      0;  // CLOCK_REALTIME less the clock of Call::when_ns; 0: the tape does not say
  std::vector<Call> calls;
  std::vector<Start> starts;
  std::vector<CommInfo> comms;
  std::vector<std::string> threads;
  std::vector<int64_t> thread_ids;  // as recorded, by thread; scripts have none
  uint32_t handle_count = 0;
  uint32_t context_count = 0;
  std::vector<std::pair<uint32_t, uint64_t>> foreign_handles;  // slots that hold another process's value
  std::vector<std::pair<uint32_t, uint64_t>> foreign_contexts;
  // Calls [loop_begin, loop_end) are played loop_count times, each time with fresh comm ids.
  size_t loop_begin = 0, loop_end = 0, loop_count = 1;
  StringTable strings;
  std::vector<HandleInfo> handles;  // filled by link()

  void link();
  std::array<uint64_t, kEventKinds> starts_per_kind() const;
};

}  // namespace lockstep::sim
