// SPDX-License-Identifier: Apache-2.0
// Areas are two words each, written under a lock and read without: the begin is stored last and taken away
// first, and a reader that finds it unchanged behind the end has read both of one area.
#include "capture/hsa/argument_memory.h"

#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include <atomic>

#include "capture/core/locked.h"
#include "capture/core/session/session.h"
#include "capture/hsa/packets.h"

namespace lockstep::capture::hsa {
namespace {

constexpr uint32_t kMostPools = 512;

struct Area {
  std::atomic<uint64_t> begin, end;  // begin 0: none
};
struct KnownPool {
  Pool pool;
  bool is_of_gpu;
};

pthread_mutex_t g_areas_lock = PTHREAD_MUTEX_INITIALIZER;  // of what is written
Area g_areas[kMostAreas];
std::atomic<uint32_t> g_areas_used{0};  // those behind have never been taken
KnownPool g_pools[kMostPools];
uint32_t g_pool_count = 0;

struct Listing {
  const Runtime* runtime;
  bool is_of_gpu, with_gpus;
};

Status add_pool(Pool pool, void* data) {
  const Listing& listing = *static_cast<const Listing*>(data);
  if (g_pool_count < kMostPools) g_pools[g_pool_count++] = {pool, listing.is_of_gpu};
  return kSuccess;
}

Status add_pools(Agent agent, void* data) {
  Listing& listing = *static_cast<Listing*>(data);
  uint32_t device = 0;
  constexpr uint32_t kDeviceCpu = 0;
  if (listing.runtime->agent_get_info(agent, agent_info::kDevice, &device) != kSuccess) return kSuccess;
  listing.is_of_gpu = device == agent_info::kDeviceGpu;
  if (device == kDeviceCpu || (listing.is_of_gpu && listing.with_gpus))
    listing.runtime->iterate_pools(agent, add_pool, &listing);
  return kSuccess;
}

const KnownPool* find_pool(Pool pool) {
  for (uint32_t i = 0; i < g_pool_count; ++i) {
    if (g_pools[i].pool.handle == pool.handle) return &g_pools[i];
  }
  return nullptr;
}

// The lines of the maps that this process can read: "7f10-7f20 rw-s ...", in the order of addresses.
class ReadableMaps {
 public:
  ReadableMaps() : file_(open("/proc/self/maps", O_RDONLY | O_CLOEXEC)) {}
  ~ReadableMaps() {
    if (file_ >= 0) close(file_);
  }
  ReadableMaps(const ReadableMaps&) = delete;
  ReadableMaps& operator=(const ReadableMaps&) = delete;

  // Whether all of it is readable, in one mapping or several that touch.
  bool contain(uint64_t begin, uint64_t end) {
    uint64_t first, behind;
    bool is_readable;
    while (next(&first, &behind, &is_readable)) {
      if (behind <= begin) continue;
      if (first > begin || !is_readable) return false;
      begin = behind;
      if (begin >= end) return true;
    }
    return false;
  }

 private:
  int take() {
    if (at_ == length_) {
      const ssize_t got = file_ < 0 ? 0 : read(file_, buffer_, sizeof buffer_);
      at_ = 0;
      length_ = got > 0 ? static_cast<size_t>(got) : 0;
    }
    return at_ == length_ ? -1 : static_cast<unsigned char>(buffer_[at_++]);
  }
  uint64_t number() {
    uint64_t value = 0;
    for (int digit = take(); digit >= 0 && digit != '-' && digit != ' '; digit = take())
      value = value << 4 | static_cast<uint64_t>(digit <= '9' ? digit - '0' : digit - 'a' + 10);
    return value;
  }
  bool next(uint64_t* first, uint64_t* behind, bool* is_readable) {
    *first = number();
    *behind = number();
    int c = take();
    *is_readable = c == 'r';
    while (c >= 0 && c != '\n') c = take();
    return c >= 0;
  }

  const int file_;
  char buffer_[1024];
  size_t at_ = 0, length_ = 0;
};

void add_area(uint64_t begin, uint64_t end) {
  Locked locked(&g_areas_lock);
  for (uint32_t i = 0; i < kMostAreas; ++i) {
    Area& area = g_areas[i];
    if (area.begin.load(std::memory_order_relaxed) != 0) continue;
    area.end.store(end, std::memory_order_relaxed);
    area.begin.store(begin, std::memory_order_release);
    if (i >= g_areas_used.load(std::memory_order_relaxed))
      g_areas_used.store(i + 1, std::memory_order_release);
    return;
  }
}

// In a forked child somebody may hold the lock for ever, and nothing is read.
void forget(const void* memory) {
  if (memory == nullptr || !Session::get().running()) return;
  Locked locked(&g_areas_lock);
  const uint32_t used = g_areas_used.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < used; ++i) {
    if (g_areas[i].begin.load(std::memory_order_relaxed) == reinterpret_cast<uint64_t>(memory))
      g_areas[i].begin.store(0, std::memory_order_release);
  }
}

bool is_in(const Area& area, uint64_t begin, uint64_t end) {
  const uint64_t first = area.begin.load(std::memory_order_acquire);
  if (first == 0 || begin < first) return false;
  const bool is_inside = end <= area.end.load(std::memory_order_acquire);
  return is_inside && area.begin.load(std::memory_order_relaxed) == first;
}

}  // namespace

bool begin_argument_memory(const Runtime& runtime, bool with_gpus) {
  g_pool_count = 0;
  // What an earlier runtime gave went with it.
  for (Area& area : g_areas) area.begin.store(0, std::memory_order_release);
  if (runtime.iterate_pools == nullptr || runtime.pool_allocate == nullptr || runtime.pool_free == nullptr ||
      runtime.memory_free == nullptr)
    return false;
  Listing listing{&runtime, false, with_gpus};
  runtime.iterate_agents(add_pools, &listing);
  return g_pool_count > 0;
}

Status on_pool_allocate(Pool pool, size_t bytes, uint32_t flags, void** memory) {
  const Status made = g_runtime.pool_allocate(pool, bytes, flags, memory);
  const KnownPool* known = made == kSuccess && Session::get().running() ? find_pool(pool) : nullptr;
  if (known == nullptr || memory == nullptr || *memory == nullptr) return made;
  const auto begin = reinterpret_cast<uint64_t>(*memory);
  if (!known->is_of_gpu || ReadableMaps().contain(begin, begin + bytes)) add_area(begin, begin + bytes);
  return made;
}

// Forgotten before it is gone.
Status on_pool_free(void* memory) {
  forget(memory);
  return g_runtime.pool_free(memory);
}
Status on_memory_free(void* memory) {
  forget(memory);
  return g_runtime.memory_free(memory);
}

bool can_read(uint64_t address, size_t bytes, uint32_t* hint) {
  // A queue's arguments mostly lie where the last ones did.
  if (is_in(g_areas[*hint], address, address + bytes)) return true;
  const uint32_t used = g_areas_used.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < used; ++i) {
    if (!is_in(g_areas[i], address, address + bytes)) continue;
    *hint = i;
    return true;
  }
  return false;
}

}  // namespace lockstep::capture::hsa
