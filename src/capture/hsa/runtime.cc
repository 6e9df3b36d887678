// SPDX-License-Identifier: Apache-2.0
// The runtime's tables have grown over years, and their layout is known by version and size alone. A function
// is taken only from a slot that the table's size includes, and a table of an unknown major version is left
// alone.
#include "capture/hsa/runtime.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

namespace lockstep::capture::hsa {
namespace {

const TableVersion& version_of(const void* table) { return *static_cast<const TableVersion*>(table); }

bool has_slot(const void* table, size_t offset) { return offset + sizeof(void*) <= version_of(table).minor; }
void** slot(void* table, size_t offset) {
  return reinterpret_cast<void**>(static_cast<char*>(table) + offset);
}

template <class Function>
bool take(void* table, size_t offset, Function* function) {
  *function = has_slot(table, offset) ? reinterpret_cast<Function>(*slot(table, offset)) : nullptr;
  return *function != nullptr;
}

// Whom the runtime calls when somebody calls `name`: is it the function in this slot?
bool g_is_tried = false;
template <class... Arguments>
Status try_out(Arguments...) {
  g_is_tried = true;
  return kSuccess;
}
template <class... Arguments>
bool leads_to(void* exported, void** slot, Status (*)(Arguments...)) {
  void* const theirs = *slot;
  *slot = reinterpret_cast<void*>(&try_out<Arguments...>);
  g_is_tried = false;
  // In another slot the runtime refuses the call: there is no agent.
  reinterpret_cast<Status (*)(Arguments...)>(exported)(Arguments{}...);
  *slot = theirs;
  return g_is_tried;
}

template <class Function>
void put(void* table, size_t offset, Function theirs, Function ours) {
  if (theirs != nullptr && ours != nullptr) *slot(table, offset) = reinterpret_cast<void*>(ours);
}

bool is_moved(const void* ext) { return version_of(ext).minor >= kExtWithEngines; }

bool is_within(uint32_t value, uint32_t least, uint32_t most) { return value >= least && value <= most; }

// By the file that holds the function: a tool that came first has put its own in place of the runtime's.
const void* object_of(void* function) {
  Dl_info info{};
  return dladdr(function, &info) != 0 ? info.dli_fbase : nullptr;
}

// What the library of `function` exports as `name`, which may be loaded for another library alone.
void* exported_by(void* function, const char* name) {
  Dl_info info{};
  if (dladdr(function, &info) == 0) return nullptr;
  void* found = dlsym(RTLD_DEFAULT, name);
  if (found != nullptr && object_of(found) == info.dli_fbase) return found;
  void* library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  found = dlsym(library, name);
  dlclose(library);
  return found;
}

// As the name of its file ends: 70201 of "libhsa-runtime64.so.1.18.70201". 0: it does not say.
unsigned long release_of(void* function) {
  Dl_info info{};
  char path[PATH_MAX];
  if (dladdr(function, &info) == 0 || realpath(info.dli_fname, path) == nullptr) return 0;
  const char* last = strrchr(path, '.');
  return last != nullptr ? strtoul(last + 1, nullptr, 10) : 0;
}

// nullptr: the runtime has no such function, or not in this slot.
template <class Function>
void take_proven(const RootTable* root, size_t offset, const char* name, void* of_runtime,
                 Function* function) {
  if (!take(root->ext, offset, function)) return;
  void* exported = exported_by(of_runtime, name);
  if (exported == nullptr || !leads_to(exported, slot(root->ext, offset), *function)) *function = nullptr;
}

}  // namespace

bool read_tables(const RootTable* root, Runtime* runtime, char* why, size_t size) {
  if (root == nullptr || root->version.minor < sizeof(RootTable) || root->core == nullptr ||
      root->ext == nullptr) {
    snprintf(why, size, "the runtime hands out no tables");
    return false;
  }
  const TableVersion &core = version_of(root->core), &ext = version_of(root->ext);
  if (!is_within(root->version.major, kOldestRoot, kNewestRoot) ||
      !is_within(core.major, kOldestCore, kNewestCore) || !is_within(ext.major, kOldestExt, kNewestExt)) {
    snprintf(why, size, "tables of an unknown version: %u, core %u, ext %u", root->version.major, core.major,
             ext.major);
    return false;
  }
  Runtime& r = *runtime;
  const bool moved = is_moved(root->ext);
  const struct {
    const char* name;
    bool is_there;
  } slots[] = {
      {"system_get_info", take(root->core, core_slot::kSystemGetInfo, &r.system_get_info)},
      {"iterate_agents", take(root->core, core_slot::kIterateAgents, &r.iterate_agents)},
      {"agent_get_info", take(root->core, core_slot::kAgentGetInfo, &r.agent_get_info)},
      {"queue_create", take(root->core, core_slot::kQueueCreate, &r.queue_create)},
      {"queue_destroy", take(root->core, core_slot::kQueueDestroy, &r.queue_destroy)},
      {"signal_destroy", take(root->core, core_slot::kSignalDestroy, &r.signal_destroy)},
      {"signal_load", take(root->core, core_slot::kSignalLoadAcquire, &r.signal_load)},
      {"signal_store", take(root->core, core_slot::kSignalStoreRelaxed, &r.signal_store)},
      {"signal_subtract", take(root->core, core_slot::kSignalSubtractRelease, &r.signal_subtract)},
      {"executable_freeze", take(root->core, core_slot::kExecutableFreeze, &r.executable_freeze)},
      {"executable_destroy", take(root->core, core_slot::kExecutableDestroy, &r.executable_destroy)},
      {"iterate_symbols", take(root->core, core_slot::kIterateSymbols, &r.iterate_symbols)},
      {"symbol_get_info", take(root->core, core_slot::kSymbolGetInfo, &r.symbol_get_info)},
      {"set_profiler_enabled", take(root->ext, ext_slot::kSetProfilerEnabled, &r.set_profiler_enabled)},
      {"convert_tick", take(root->ext, ext_slot::kConvertTick, &r.convert_tick)},
      {"async_copy_enable", take(root->ext, ext_slot::kAsyncCopyEnable, &r.async_copy_enable)},
      {"get_copy_time", take(root->ext, ext_slot::kGetCopyTime, &r.get_copy_time)},
      {"async_handler", take(root->ext, ext_slot::kAsyncHandler, &r.async_handler)},
      {"memory_async_copy", take(root->ext, ext_slot::kMemoryAsyncCopy, &r.memory_async_copy)},
      {"signal_create",
       take(root->ext, moved ? ext_slot::kNewSignalCreate : ext_slot::kOldSignalCreate, &r.signal_create)},
      {"queue_intercept_create",
       take(root->ext, moved ? ext_slot::kNewInterceptCreate : ext_slot::kOldInterceptCreate,
            &r.intercept_create)},
      {"queue_intercept_register",
       take(root->ext, moved ? ext_slot::kNewInterceptRegister : ext_slot::kOldInterceptRegister,
            &r.intercept_register)},
  };
  for (const auto& needed : slots) {
    if (needed.is_there) continue;
    snprintf(why, size, "the runtime lacks %s (tables of %u and %u bytes)", needed.name, core.minor,
             ext.minor);
    return false;
  }
  take(root->ext, ext_slot::kIteratePools, &r.iterate_pools);
  take(root->ext, ext_slot::kPoolAllocate, &r.pool_allocate);
  take(root->ext, ext_slot::kPoolFree, &r.pool_free);
  take(root->core, core_slot::kMemoryFree, &r.memory_free);
  r.copy_on_engine = nullptr;
  if (moved) take(root->ext, ext_slot::kCopyOnEngine, &r.copy_on_engine);
  take(root->ext, ext_slot::kSetMask, &r.set_mask);
  void* const of_runtime = reinterpret_cast<void*>(r.agent_get_info);
  take_proven(root, ext_slot::kCountedAcquire, "hsa_amd_counted_queue_acquire", of_runtime,
              &r.counted_acquire);
  take_proven(root, ext_slot::kCreateQueues, "hsa_amd_queue_create", of_runtime, &r.create_queues);
  if (moved) take(root->ext, ext_slot::kNewSetPriority, &r.set_priority);
  const auto is_anothers = [&](auto function) {
    return function != nullptr && object_of(reinterpret_cast<void*>(function)) != object_of(of_runtime);
  };
  r.is_behind_another = is_anothers(r.queue_create) || is_anothers(r.create_queues);
  r.must_not_overflow = root->version.major < 2;
  // By the runtime's own file, also where a tool has put its functions before the runtime's.
  void* const own = exported_by(of_runtime, "hsa_init");
  r.overruns_its_buffer = release_of(own != nullptr ? own : of_runtime) / 100 == 702;
  return true;
}

void replace(const RootTable* root, const Runtime& theirs, const Replacements& ours) {
  put(root->core, core_slot::kQueueCreate, theirs.queue_create, ours.queue_create);
  put(root->core, core_slot::kQueueDestroy, theirs.queue_destroy, ours.queue_destroy);
  put(root->core, core_slot::kExecutableFreeze, theirs.executable_freeze, ours.executable_freeze);
  put(root->core, core_slot::kExecutableDestroy, theirs.executable_destroy, ours.executable_destroy);
  put(root->ext, ext_slot::kCountedAcquire, theirs.counted_acquire, ours.counted_acquire);
  put(root->ext, ext_slot::kCreateQueues, theirs.create_queues, ours.create_queues);
  put(root->ext, ext_slot::kMemoryAsyncCopy, theirs.memory_async_copy, ours.memory_async_copy);
  put(root->ext, ext_slot::kCopyOnEngine, theirs.copy_on_engine, ours.copy_on_engine);
  put(root->ext, ext_slot::kPoolAllocate, theirs.pool_allocate, ours.pool_allocate);
  put(root->ext, ext_slot::kPoolFree, theirs.pool_free, ours.pool_free);
  put(root->core, core_slot::kMemoryFree, theirs.memory_free, ours.memory_free);
}

}  // namespace lockstep::capture::hsa
