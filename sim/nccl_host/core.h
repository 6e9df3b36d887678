// SPDX-License-Identifier: Apache-2.0
// Core: NCCL's side of the plugin interface. Loads the plugin with the first comm and closes it after the
// last one, owns the process-wide activation mask, decides for every call of a Program whether NCCL would
// make it (mask rows, snapshots, NULL handles), and keeps what the plugin returned.
//
// Threads: execute() may run on several threads at once; the caller orders calls that share a handle or a
// context. Loading and closing are under a mutex, `init` is not, as in NCCL. A comm's calls end before its
// last finalize.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "nccl_host/binding.h"
#include "nccl_host/plugin_library.h"
#include "nccl_host/program.h"
#include "nccl_host/stats.h"

namespace lockstep::sim {

class Core {
 public:
  // The library is opened by the caller so that its errors come first; `behaviour.api` is the library's.
  Core(const Program& program, const Behaviour& behaviour, std::string plugin, PluginLibrary library);

  // `round` makes comm ids fresh when the same call is played again.
  void execute(const Call& call, uint64_t round, Stats* stats);

  // How much later than recorded the calls come from now on. The GPU's stamps of an operation are reported as
  // much later as the first of them is: so long as recorded, however slow this machine. Never less than
  // before, so that a kernel still lies between its launch and its sighting. Calls must be ordered.
  void set_delay(uint64_t ns) { delay_ns_ = ns; }

  // For threads that are not part of the program: one comm from init to finalize with one GroupApi in it.
  void race_comm(uint64_t id, Stats* stats);

  const std::string& plugin_name() const { return plugin_name_; }
  int first_mask() const { return first_mask_; }  // as the plugin left it after the first init
  bool all_finalized() const { return references_ == 0; }
  uint64_t loads() const { return loads_; }

 private:
  bool acquire();  // false when the plugin cannot be loaded again
  void release();
  void* init(const CommInfo& comm, uint64_t round, Stats* stats);
  void finalize(void* context, Stats* stats);
  void start(const Call& call, Stats* stats);
  void stop(const Call& call, Stats* stats);
  void state(const Call& call, Stats* stats);
  bool enabled(const Call& call, const Start& start) const;
  void call_start(const Call& call, const Start& start, void** slot, Stats* stats);
  void old_core_state(const Call& call, Stats* stats);
  void old_core_stop(const Call& call, Stats* stats);
  void old_core_op_state(uint32_t step, int state, Stats* stats);
  uint64_t live_mask() const { return static_cast<uint32_t>(__atomic_load_n(&mask_, __ATOMIC_RELAXED)); }
  void* value(uint32_t handle) const { return handle == kNone ? nullptr : handles_[handle]; }
  uint64_t type_of(uint32_t handle) const { return program_.handles[handle].type; }

  const Program& program_;
  const Behaviour behaviour_;
  const std::string plugin_;  // as NCCL_PROFILER_PLUGIN has it
  std::mutex load_mutex_;
  std::optional<PluginLibrary> library_;
  std::unique_ptr<Binding> binding_;
  std::string plugin_name_;
  std::atomic<int> references_ = 0;
  uint64_t loads_ = 1;
  int mask_ = 0;  // the plugin keeps this address and may store to it from any thread
  int first_mask_ = 0;
  bool saw_init_ = false;
  std::vector<void*> handles_, contexts_;
  std::vector<int> ranks_;  // by context
  // Of the operation whose channels or phases a handle stands for.
  uint64_t gpu_delay(uint32_t handle, uint32_t parent);

  uint64_t delay_ns_ = 0;
  std::vector<uint64_t> gpu_delays_;   // by handle; kNoDelay: no stamp of it has been reported
  std::vector<uint64_t> snapshots_;    // by GroupApi handle
  std::vector<char> nulled_;           // v7 forgets Group, Coll and P2p handles at their stop
  std::vector<uint64_t> moved_bytes_;  // by ProxyOp handle, for old cores
};

}  // namespace lockstep::sim
