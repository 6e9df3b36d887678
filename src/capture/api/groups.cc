// SPDX-License-Identifier: Apache-2.0
// A group declared again, on any thread and in either of its forms, has to be the same group and cheap. So a
// list of ranks that is a progression becomes one, and the id is a hash of name and members, equal on all of
// them without any communication.
#include "capture/api/groups.h"

#include <pthread.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstring>

#include "capture/core/session/session.h"

namespace lockstep::capture::api {
namespace {

constexpr uint32_t kGroups = 1 << 16, kProbes = 1024;
constexpr int32_t kMostMembers = 1 << 24;
Group g_groups[kGroups];  // zero at load: memory only where it is used
pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;

// Members that run different builds have to agree on the sum, so it never changes.
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

// The members: a progression, a list, or (stride -1) a number only. A list that is a progression becomes one,
// so that both ways of declaring a group are the same group.
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
  // With its NUL, which keeps the name apart from the numbers behind it.
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

// The slot of a key, or the free one where it belongs; kGroups when there is none. Slots are never freed, so
// a free one ends the search.
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

void publish(uint32_t slot, uint64_t key, uint32_t comm, uint32_t main, int32_t rank) {
  Group& group = g_groups[slot];
  group.comm = comm;
  group.rank = rank;
  __atomic_store_n(&group.main, main, __ATOMIC_RELAXED);
  // Last: who finds the key without the lock finds the rest.
  __atomic_store_n(&group.key, key, __ATOMIC_RELEASE);
}

// Threads of one process may be different members.
uint64_t key_of(uint64_t comm_id, int32_t rank) {
  uint64_t key = (comm_id ^ static_cast<uint32_t>(rank)) * 0x9e3779b97f4a7c15;
  return key | uint64_t{key == 0};
}

struct Declared {
  CommInfo comm;
  const Members& members;
  GroupDeclaration declared_as;
};

// With the lock held: a free slot and a communicator of its own, or kGroups.
uint32_t add_member(uint32_t slot, uint64_t key, const Declared& declared) {
  Session& session = Session::get();
  uint32_t comm = session.add_comm(declared.comm);
  if (comm == format::kNoComm) return kGroups;
  add_ranks(session, comm, declared.members);
  session.add_group(comm, declared.declared_as);
  publish(slot, key, comm, slot, declared.comm.rank);
  return slot;
}

// With the lock held. The first member whose rank is known is the one that was, or will be, declared without.
uint32_t add_locked(uint32_t slot, uint64_t key, const Declared& declared) {
  const int32_t rank = declared.comm.rank;
  if (rank < 0) return add_member(slot, key, declared);
  const uint64_t unknown_key = key_of(declared.comm.comm_id, -1);
  const uint32_t unknown = slot_of(unknown_key);
  if (unknown == kGroups) return add_member(slot, key, declared);
  if (!is_used(unknown)) {
    // Both keys may want one slot: the member takes its own first.
    slot = add_member(slot, key, declared);
    const uint32_t free = slot == kGroups ? kGroups : slot_of(unknown_key);
    if (free != kGroups) publish(free, unknown_key, g_groups[slot].comm, slot, rank);
    return slot;
  }
  Group& group = g_groups[unknown];
  if (group.rank >= 0) return add_member(slot, key, declared);
  group.rank = rank;
  Session::get().add_group(group.comm, declared.declared_as);
  publish(slot, key, group.comm, unknown, rank);
  return unknown;
}

uint32_t add_group(uint64_t key, const Declared& declared) {
  pthread_mutex_lock(&g_lock);
  // Anew: another thread may have added it since the caller looked.
  uint32_t slot = slot_of(key);
  if (slot == kGroups)
    Session::get().lose(kLoss_meta_full);
  else if (is_used(slot))
    slot = g_groups[slot].main;
  else
    slot = add_locked(slot, key, declared);
  pthread_mutex_unlock(&g_lock);
  return slot;
}

// "<description>:<name>", the description cut so that the name stays whole in a trace; the name alone where
// there is none.
struct FullName {
  char text[sizeof(format::CommDef::name)] = {};
  const char* all = text;
  FullName(const char* name, const char* description) {
    if (description == nullptr || description[0] == '\0') {
      all = name;
      return;
    }
    const size_t name_length = strnlen(name, sizeof text - 2);
    const size_t length = strnlen(description, sizeof text - 2 - name_length);
    memcpy(text, description, length);
    text[length] = ':';
    memcpy(text + length + 1, name, name_length);
  }
};

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
  // What callers of the first version pass: the description came later.
  constexpr size_t kOldest = offsetof(lockstep_group_info, description);
  if (info == nullptr || info->size < kOldest || info->count <= 0 || info->count > kMostMembers) {
    session.lose(kLoss_unknown_context);
    return 0;
  }
  const char* name = info->name == nullptr ? "" : info->name;
  const char* description = info->size >= sizeof *info ? info->description : nullptr;
  const FullName full(name, description);
  Members members(*info);
  int32_t rank = info->rank >= 0 ? info->rank : members.index_of(session.file().header()->rank);
  const uint64_t comm_id = comm_id_of(full.all, members);
  const uint64_t key = key_of(comm_id, rank);
  uint32_t slot = slot_of(key);
  if (is_used(slot)) {
    // A group that is known costs a hash of its members and no lock.
    slot = __atomic_load_n(&g_groups[slot].main, __ATOMIC_RELAXED);
  } else {
    const bool listed = info->ranks != nullptr;
    slot = add_group(key,
                     {.comm = {.comm_id = comm_id, .name = full.all, .rank = rank, .ranks = members.count},
                      .members = members,
                      .declared_as = {.name = name,
                                      .description = description,
                                      .start = listed ? members.start : info->start,
                                      .stride = listed || members.stride >= 0 ? members.stride : info->stride,
                                      .rank = rank}});
  }
  return slot == kGroups ? 0 : format::make_context(session.process_tag(), slot);
}

Group* find_group(lockstep_group handle) {
  uint32_t slot = static_cast<uint32_t>(handle) - 1;
  if (static_cast<uint32_t>(handle >> 32) != Session::get().process_tag() || slot >= kGroups) return nullptr;
  return __atomic_load_n(&g_groups[slot].key, __ATOMIC_ACQUIRE) != 0 ? &g_groups[slot] : nullptr;
}

}  // namespace lockstep::capture::api
