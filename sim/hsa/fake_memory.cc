// SPDX-License-Identifier: Apache-2.0
#include "sim/hsa/fake_memory.h"

#include <sys/mman.h>

#include <cstring>
#include <map>
#include <mutex>

#include "sim/hsa/fake_hsa.h"

namespace lockstep::sim {
namespace {

using hsa::Status;

constexpr uint64_t kPools = 0x9000, kHiddenPools = 0xa000;

std::mutex g_mutex;
std::map<void*, size_t> g_memory;

template <class Function>
Function slot_of(const void* table, size_t offset) {
  void* pointer = nullptr;
  std::memcpy(&pointer, static_cast<const char*>(table) + offset, sizeof pointer);
  return reinterpret_cast<Function>(pointer);
}

}  // namespace

Status iterate_pools(hsa::Agent agent, Status (*visit)(hsa::Pool, void*), void* data) {
  const Status status = visit({kPools + agent.handle}, data);
  const bool is_cpu = agent.handle == FakeHsa::get().cpu().handle;
  return status != hsa::kSuccess || is_cpu ? status : visit({kHiddenPools + agent.handle}, data);
}

Status pool_allocate(hsa::Pool pool, size_t bytes, uint32_t, void** memory) {
  const int access = pool.handle >= kHiddenPools ? PROT_NONE : PROT_READ | PROT_WRITE;
  *memory = mmap(nullptr, bytes, access, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (*memory == MAP_FAILED) return hsa::kErrorOutOfResources;
  std::lock_guard lock(g_mutex);
  g_memory[*memory] = bytes;
  return hsa::kSuccess;
}

Status memory_free(void* memory) {
  std::lock_guard lock(g_mutex);
  const auto known = g_memory.find(memory);
  if (known == g_memory.end()) return 0x1001;
  munmap(memory, known->second);
  g_memory.erase(known);
  return hsa::kSuccess;
}

void* FakeHsa::allocate(size_t bytes, Memory of) {
  const hsa::Pool pool{of == Memory::kHost  ? kPools + cpu().handle
                       : of == Memory::kGpu ? kPools + gpu().handle
                                            : kHiddenPools + gpu().handle};
  void* memory = nullptr;
  slot_of<hsa::PoolAllocate>(tables()->ext, hsa::ext_slot::kPoolAllocate)(pool, bytes, 0, &memory);
  return memory;
}
void FakeHsa::free(void* memory, bool by_pool) {
  const void* table = by_pool ? tables()->ext : tables()->core;
  slot_of<hsa::MemoryFree>(table, by_pool ? hsa::ext_slot::kPoolFree : hsa::core_slot::kMemoryFree)(memory);
}

hsa::Status FakeHsa::copy(void* to, const void* from, size_t bytes, hsa::Signal completion, bool to_gpu) {
  return slot_of<hsa::MemoryAsyncCopy>(tables()->ext, hsa::ext_slot::kMemoryAsyncCopy)(
      to, to_gpu ? gpu() : cpu(), from, to_gpu ? cpu() : gpu(), bytes, 0, nullptr, completion);
}

}  // namespace lockstep::sim
