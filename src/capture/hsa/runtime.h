// SPDX-License-Identifier: Apache-2.0
// The functions of the runtime that we call, as the tables held them when we came, and where our own go.
// Filled by OnLoad on its thread; read by any.
#pragma once
#include "capture/hsa/hsa_abi.h"

namespace lockstep::capture::hsa {

// Pointers into the runtime, or into a tool that came before us. Never null but where it says so.
struct Runtime {
  SystemGetInfo system_get_info;
  IterateAgents iterate_agents;
  AgentGetInfo agent_get_info;
  QueueCreate queue_create;
  QueueDestroy queue_destroy;
  SignalDestroy signal_destroy;
  SignalLoad signal_load;
  SignalStore signal_store;
  SignalStore signal_subtract;
  ExecutableFreeze executable_freeze;
  ExecutableDestroy executable_destroy;
  IterateSymbols iterate_symbols;
  SymbolGetInfo symbol_get_info;
  SetProfilerEnabled set_profiler_enabled;
  ConvertTick convert_tick;
  AsyncCopyEnable async_copy_enable;
  GetCopyTime get_copy_time;
  AsyncHandler async_handler;
  MemoryAsyncCopy memory_async_copy;
  SignalCreate signal_create;
  QueueCreate intercept_create;
  InterceptRegister intercept_register;
  // May be nullptr: not in this runtime.
  CopyOnEngine copy_on_engine;
  CountedAcquire counted_acquire;
  CreateQueues create_queues;
  SetPriority set_priority;
  SetMask set_mask;
  IteratePools iterate_pools;
  PoolAllocate pool_allocate;
  MemoryFree pool_free, memory_free;
  // Queues are made by another tool, which loaded before us.
  bool is_behind_another;
  // Before ROCm 6: an intercept queue fails when it overflows and several packets come of one.
  bool must_not_overflow;
  // ROCm 7.2: more than 256 packets of an intercept queue that cross the end of its ring go past a buffer of
  // the runtime's, whatever the tool does.
  bool overruns_its_buffer;
};

// What of ours takes the place of theirs.
struct Replacements {
  QueueCreate queue_create;
  QueueDestroy queue_destroy;
  ExecutableFreeze executable_freeze;
  ExecutableDestroy executable_destroy;
  CountedAcquire counted_acquire;
  CreateQueues create_queues;
  MemoryAsyncCopy memory_async_copy;  // nullptr: copies are left alone
  CopyOnEngine copy_on_engine;
  PoolAllocate pool_allocate;  // nullptr: arguments are not read
  MemoryFree pool_free, memory_free;
};

// False, and why, where the tables are of a version that is not known, or lack a slot. On OnLoad's thread: a
// slot that may be another function's is tried by a call of the function that the runtime exports, with a
// function of ours in the slot.
bool read_tables(const RootTable* root, Runtime* runtime, char* why, size_t size);
// Puts our functions into the tables, each where the runtime has one of its own. On OnLoad's thread, before
// any queue.
void replace(const RootTable* root, const Runtime& runtime, const Replacements& ours);

}  // namespace lockstep::capture::hsa
