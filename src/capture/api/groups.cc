// SPDX-License-Identifier: Apache-2.0
#include "capture/api/groups.h"

#include <pthread.h>
#include <sys/mman.h>

#include <cstring>

#include "capture/core/session.h"

namespace lockstep::capture::api {
namespace {

constexpr uint32_t kGroups = 1 << 16, kProbes = 1024;
constexpr int32_t kMostMembers = 1 << 24;
Group g_groups[kGroups];  // zero at load: memory only where it is used
pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;

class Fnv1a {
 public:
  void add(const void* bytes, size_t count) {
    for (size_t i = 0; i < count; ++i)
      hash_ = (hash_ ^ static_cast<const unsigned char*>(bytes)[i]) * 0x100000001b3;
  }
  uint64_t value() const { return hash_; }

 private:
  uint64_t hash_ = 0xcbf29ce484222325;
};

// The members: a progression, a list, or (stride -1) a number only. A list that is a progression becomes one, so that
// both ways of declaring a group are the same group.
struct Members {
  const int32_t* ranks = nullptr;
  int32_t count = 0, start = -1, stride = -1;

  explicit Members(const lockstep_group_info& info) : count(info.count) {
    const bool listed = info.ranks != nullptr;
    start = listed ? info.ranks[0] : info.start;
    int64_t step = count == 1 ? 0 : listed ? int64_t{info.ranks[1]} - start : info.stride;
    bool progression = start >= 0 && (step > 0 || count == 1) && start + step * (count - 1) <= INT32_MAX;
    for (int32_t i = 1; listed && progression && i < count; ++i) {
      progression = int64_t{info.ranks[i]} - info.ranks[i - 1] == step;
    }
    stride = progression ? static_cast<int32_t>(step) : -1;
    if (listed && !progression) ranks = info.ranks;
  }
  bool known() const { return ranks != nullptr || stride >= 0; }
  int32_t rank(int32_t i) const { return ranks != nullptr ? ranks[i] : start + i * stride; }
  int32_t index_of(int32_t global) const {
    if (global < 0 || !known()) return -1;
    if (ranks == nullptr) {
      if (count == 1) return global == start ? 0 : -1;
      int32_t index = (global - start) / stride;
      return global >= start && index < count && rank(index) == global ? index : -1;
    }
    for (int32_t i = 0; i < count; ++i) {
      if (ranks[i] == global) return i;
    }
    return -1;
  }
};

// Equal on all members. Not 0, which means unknown.
uint64_t comm_id_of(const char* name, const Members& members) {
  Fnv1a hash;
  hash.add(name, strlen(name) + 1);
  hash.add(&members.count, sizeof members.count);
  hash.add(&members.start, sizeof members.start);
  hash.add(&members.stride, sizeof members.stride);
  if (members.ranks != nullptr) hash.add(members.ranks, static_cast<size_t>(members.count) * sizeof(int32_t));
  return hash.value() | uint64_t{hash.value() == 0};
}

void add_ranks(Session& session, uint32_t comm, const Members& members) {
  if (members.ranks != nullptr) {
    session.add_group_ranks(comm, members.ranks, static_cast<uint32_t>(members.count));
    return;
  }
  if (!members.known()) return;
  auto bytes = static_cast<size_t>(members.count) * sizeof(int32_t);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    session.lose(kLoss_meta_full);
    return;
  }
  auto* ranks = static_cast<int32_t*>(memory);
  for (int32_t i = 0; i < members.count; ++i) ranks[i] = members.rank(i);
  session.add_group_ranks(comm, ranks, static_cast<uint32_t>(members.count));
  munmap(memory, bytes);
}

// The slot of a key, or the free one where it belongs; kGroups when there is none.
uint32_t slot_of(uint64_t key) {
  for (uint32_t probe = 0; probe < kProbes; ++probe) {
    uint32_t slot = static_cast<uint32_t>(key + probe) % kGroups;
    uint64_t found = __atomic_load_n(&g_groups[slot].key, __ATOMIC_ACQUIRE);
    if (found == key || found == 0) return slot;
  }
  return kGroups;
}
bool is_used(uint32_t slot) {
  return slot < kGroups && __atomic_load_n(&g_groups[slot].key, __ATOMIC_ACQUIRE) != 0;
}

uint32_t add_group(uint64_t key, const CommInfo& info, const Members& members) {
  Session& session = Session::get();
  pthread_mutex_lock(&g_lock);
  uint32_t slot = slot_of(key);
  if (slot == kGroups) session.lose(kLoss_meta_full);
  if (slot < kGroups && !is_used(slot)) {
    uint32_t comm = session.add_comm(info);
    if (comm == format::kNoComm) {
      slot = kGroups;
    } else {
      add_ranks(session, comm, members);
      g_groups[slot].comm = comm;
      __atomic_store_n(&g_groups[slot].key, key, __ATOMIC_RELEASE);
    }
  }
  pthread_mutex_unlock(&g_lock);
  return slot;
}

}  // namespace

static std::atomic<bool> g_off{false};
bool is_off() { return __builtin_expect(g_off.load(std::memory_order_relaxed), 0); }
const Steering kSteering = {[](const Recording& recording) {
                              g_off.store(recording.mode == format::Mode::kOff, std::memory_order_relaxed);
                            },
                            nullptr};

lockstep_group declare_group(const lockstep_group_info* info) {
  Session& session = Session::get();
  if (!session.open(format::Source::kApi, kSteering)) return 0;
  if (info == nullptr || info->size < sizeof *info || info->count <= 0 || info->count > kMostMembers) {
    session.lose(kLoss_unknown_context);
    return 0;
  }
  const char* name = info->name == nullptr ? "" : info->name;
  Members members(*info);
  int32_t rank = info->rank >= 0 ? info->rank : members.index_of(session.file().header()->rank);
  CommInfo comm{.comm_id = comm_id_of(name, members), .name = name, .rank = rank, .ranks = members.count};
  // Threads of one process may be different members.
  uint64_t key = (comm.comm_id ^ static_cast<uint32_t>(rank)) * 0x9e3779b97f4a7c15;
  key |= uint64_t{key == 0};
  uint32_t slot = slot_of(key);
  if (!is_used(slot)) slot = add_group(key, comm, members);
  return slot == kGroups ? 0 : format::make_context(session.process_tag(), slot);
}

Group* find_group(lockstep_group handle) {
  uint32_t slot = static_cast<uint32_t>(handle) - 1;
  if (static_cast<uint32_t>(handle >> 32) != Session::get().process_tag() || slot >= kGroups) return nullptr;
  return __atomic_load_n(&g_groups[slot].key, __ATOMIC_ACQUIRE) != 0 ? &g_groups[slot] : nullptr;
}

}  // namespace lockstep::capture::api
