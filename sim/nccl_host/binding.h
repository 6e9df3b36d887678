// SPDX-License-Identifier: Apache-2.0
// Binding: one plugin struct (ncclProfiler_v<N>) called the way an NCCL core calls that version, natively or
// through its adapters: which events and states reach the plugin, which fields they carry, and what the
// argument pointer is. Stateless apart from the plugin's address; any thread may call it. Times only the
// plugin's own code.
#pragma once
#include <cstdint>
#include <memory>

#include "nccl_host/plugin_library.h"
#include "nccl_host/program.h"
#include "nccl_host/stats.h"

namespace lockstep::sim {

// The core being modelled. Versions 1 to 4 are the newer core with its adapter unless old_core is set.
struct Behaviour {
  int api = 6;
  int recorded_api = 5;             // the core that made the recording
  bool old_core = false;            // v1-v3 natively: NCCL 2.23 to 2.26
  bool garbage_args = false;        // uninitialised arguments where an adapter may leave them so
  bool poison = false;              // *eHandle holds a poison value before every start
  Search search = Search::k2_28_3;  // how the plugin is looked for

  bool adapted() const { return old_core ? false : api <= 4 || (api == 5 && recorded_api >= 6); }
  // Versions 1 to 4 stand for cores that start no child of a NULL parent.
  bool gates_children() const { return api <= 4; }
};

// Which pointer a recordEventState gets for a state; kDropped means that the version never sees the state.
enum class ArgsForm { kDropped, kNull, kZeroed, kGarbage, kValid };
ArgsForm args_form(const Behaviour& behaviour, int state);
bool representable(int api, uint64_t type);

// A handle that no plugin returns: what *eHandle holds before a native start.
inline void* const kPoisonHandle = reinterpret_cast<void*>(uint64_t{0xdeadbeefdeadbeef});

class Binding {
 public:
  virtual ~Binding() = default;
  virtual const char* plugin_name() const = 0;
  virtual int init(const CommInfo& comm, int* mask, nccl_abi::Logger logger, void** context,
                   Stats* stats) = 0;
  // The type has to be representable at this version.
  virtual void start(void* context, void** handle, const nccl_abi::v7::Descriptor& descriptor,
                     Stats* stats) = 0;
  virtual void stop(void* handle, Stats* stats) = 0;
  // False when the version does not deliver this state. `steps` is used by the ProxyOp states of old cores
  // only.
  virtual bool state(void* handle, int state, uint64_t value, int steps, Stats* stats) = 0;
  virtual void finalize(void* context, Stats* stats) = 0;
};

// `symbol` is the address of the data object ncclProfiler_v<api>.
std::unique_ptr<Binding> make_binding(const Behaviour& behaviour, void* symbol);

}  // namespace lockstep::sim
