// SPDX-License-Identifier: Apache-2.0
// A packet names its kernel by an address, so symbols are collected as executables are loaded. The table is
// read without a lock on the dispatch path: it only grows, by a new table of twice the size, and old ones
// stay, since a dispatch may be in the middle of one.
#include "capture/hsa/kernel_objects.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include <atomic>

#include "capture/core/locked.h"
#include "capture/core/session/session.h"

namespace lockstep::capture::hsa {
namespace {

constexpr uint64_t kFree = 0, kForgotten = 1;
constexpr size_t kPieceBytes = size_t{1} << 20;
constexpr uint32_t kFirstSlots = 1 << 12;

struct Slot {
  std::atomic<uint64_t> object;  // stored last
  std::atomic<uint32_t> number;
  std::atomic<Rccl> rccl;
};
struct Slots {
  uint64_t mask;
  Slot slots[];
};

pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;  // of what is added
std::atomic<Slots*> g_slots{nullptr};
uint64_t g_taken = 0;  // of g_slots, forgotten ones included
const char** g_names = nullptr;
std::atomic<uint8_t>* g_used = nullptr;
uint32_t g_next = 1;
char* g_piece = nullptr;
size_t g_piece_left = 0, g_name_bytes = 0;
std::atomic<uint32_t> g_uses{0};
uint32_t g_defined_uses = 0;
std::atomic<uint64_t> g_executables{0};

void* map(size_t bytes) {
  void* memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

// Never more than half full (make_room), so each search ends.
Slot* place_of(Slots* slots, uint64_t object) {
  const uint64_t hash = object * 0x9e3779b97f4a7c15;
  for (uint64_t at = hash >> 32;; ++at) {
    Slot* slot = &slots->slots[at & slots->mask];
    const uint64_t there = slot->object.load(std::memory_order_acquire);
    if (there == object || there == kFree) return slot;
  }
}

void put(Slots* slots, uint64_t object, KernelObject kernel) {
  Slot* slot = place_of(slots, object);
  slot->number.store(kernel.number, std::memory_order_relaxed);
  slot->rccl.store(kernel.rccl, std::memory_order_relaxed);
  slot->object.store(object, std::memory_order_release);
}

// A dispatch may still look into the old one, which stays: all of them together are as large as the newest.
bool make_room() {
  Slots* old = g_slots.load(std::memory_order_relaxed);
  if (old != nullptr && 2 * (g_taken + 1) <= old->mask) return true;
  uint64_t living = 0;
  for (uint64_t i = 0; old != nullptr && i <= old->mask; ++i) living += old->slots[i].object > kForgotten;
  uint64_t count = kFirstSlots;
  // Forgotten slots do not move along: where code comes and goes, the table need not grow.
  while (count < 4 * (living + 1)) count *= 2;
  auto* made = static_cast<Slots*>(map(sizeof(Slots) + count * sizeof(Slot)));
  if (made == nullptr) return false;
  made->mask = count - 1;
  for (uint64_t i = 0; old != nullptr && i <= old->mask; ++i) {
    const Slot& slot = old->slots[i];
    if (slot.object > kForgotten) put(made, slot.object, {slot.number, slot.rccl});
  }
  g_taken = living;
  g_slots.store(made, std::memory_order_release);
  return true;
}

// Never freed: a name is defined at its kernel's first dispatch, which may come at any time.
const char* keep_name(const char* name, size_t length) {
  const size_t bytes = length + 1;
  if (g_piece_left < bytes) {
    if (g_name_bytes + kPieceBytes > kMostNameBytes) return nullptr;
    auto* piece = static_cast<char*>(map(kPieceBytes));
    if (piece == nullptr) return nullptr;
    g_piece = piece;
    g_piece_left = kPieceBytes;
    g_name_bytes += kPieceBytes;
  }
  char* kept = static_cast<char*>(memcpy(g_piece, name, length));
  kept[length] = 0;
  g_piece += bytes;
  g_piece_left -= bytes;
  return kept;
}

bool has_tables() {
  if (g_names == nullptr) g_names = static_cast<const char**>(map(kMostKernels * sizeof *g_names));
  if (g_used == nullptr) g_used = static_cast<std::atomic<uint8_t>*>(map(kMostKernels * sizeof *g_used));
  return g_names != nullptr && g_used != nullptr;
}

// Without what symbols of kernels end in, and as long as a name may be.
size_t length_of(const char* name) {
  static_assert(format::kMaxKernelNameBytes == 1024);
  size_t length = strlen(name);
  if (length > 3 && memcmp(name + length - 3, ".kd", 3) == 0) length -= 3;
  return length < format::kMaxKernelNameBytes ? length : format::kMaxKernelNameBytes - 1;
}

void add(uint64_t object, const char* name) {
  if (name[0] == 0) return;
  if (object <= kForgotten || g_next >= kMostKernels || !has_tables() || !make_room()) return;
  const char* kept = keep_name(name, length_of(name));
  if (kept == nullptr) return;
  g_names[g_next] = kept;
  Slots* slots = g_slots.load(std::memory_order_relaxed);
  g_taken += place_of(slots, object)->object == kFree;
  put(slots, object, {g_next++, rccl_kind(kept)});
}

bool is_kernel(const Runtime& runtime, Symbol symbol, uint64_t* object) {
  uint32_t type = 0;
  return runtime.symbol_get_info(symbol, symbol_info::kType, &type) == kSuccess &&
         type == symbol_info::kKernel &&
         runtime.symbol_get_info(symbol, symbol_info::kKernelObject, object) == kSuccess && *object != 0;
}

// Empty where the runtime does not say. Not on the stack, which is the program's.
const char* read_name(const Runtime& runtime, Symbol symbol) {
  static char whole[64 << 10];  // under the lock
  uint32_t length = 0;
  if (runtime.symbol_get_info(symbol, symbol_info::kNameLength, &length) != kSuccess ||
      length >= sizeof whole || runtime.symbol_get_info(symbol, symbol_info::kName, whole) != kSuccess)
    return "";
  whole[length] = 0;
  return whole;
}

Status add_symbol(Executable, Symbol symbol, void* data) {
  const Runtime& runtime = *static_cast<const Runtime*>(data);
  uint64_t object = 0;
  if (is_kernel(runtime, symbol, &object)) add(object, read_name(runtime, symbol));
  return kSuccess;
}

Status forget_symbol(Executable, Symbol symbol, void* data) {
  uint64_t object = 0;
  Slots* slots = g_slots.load(std::memory_order_relaxed);
  if (slots == nullptr || !is_kernel(*static_cast<const Runtime*>(data), symbol, &object)) return kSuccess;
  Slot* slot = place_of(slots, object);
  // Not free again: a search for another address may lead over this slot.
  if (slot->object == object) slot->object.store(kForgotten, std::memory_order_release);
  return kSuccess;
}

}  // namespace

KernelObject find_kernel(uint64_t kernel_object) {
  Slots* slots = g_slots.load(std::memory_order_acquire);
  if (slots == nullptr || kernel_object <= kForgotten) return {};
  const Slot* slot = place_of(slots, kernel_object);
  if (slot->object.load(std::memory_order_acquire) != kernel_object) return {};
  return {slot->number.load(std::memory_order_relaxed), slot->rccl.load(std::memory_order_relaxed)};
}

void use_kernel(uint32_t number) {
  std::atomic<uint8_t>& used = g_used[number];
  if (__builtin_expect(used.load(std::memory_order_relaxed) != 0, 1)) return;
  used.store(1, std::memory_order_relaxed);
  g_uses.fetch_add(1, std::memory_order_release);
}

void add_kernel(uint64_t object, const char* name) {
  Locked locked(&g_lock);
  add(object, name);
}

void count_executable() { g_executables.fetch_add(1, std::memory_order_relaxed); }

void add_executable(const Runtime& runtime, Executable executable) {
  Locked locked(&g_lock);
  runtime.iterate_symbols(executable, add_symbol, const_cast<Runtime*>(&runtime));
  count_executable();
}

void forget_executable(const Runtime& runtime, Executable executable) {
  Locked locked(&g_lock);
  runtime.iterate_symbols(executable, forget_symbol, const_cast<Runtime*>(&runtime));
}

void define_used_kernels() {
  constexpr uint8_t kDefined = 2;
  const uint32_t uses = g_uses.load(std::memory_order_acquire);
  if (uses == g_defined_uses) return;
  // Counted before the look: a kernel that is first used during it is found the next time.
  g_defined_uses = uses;
  Locked locked(&g_lock);
  for (uint32_t number = 1; number < g_next; ++number) {
    if (g_used[number].load(std::memory_order_relaxed) != 1) continue;
    Session::get().add_name(format::Def::kKernelSymbol, number, g_names[number]);
    g_used[number].store(kDefined, std::memory_order_relaxed);
  }
}

uint64_t executables() { return g_executables.load(std::memory_order_relaxed); }

}  // namespace lockstep::capture::hsa
