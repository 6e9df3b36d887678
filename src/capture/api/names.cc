// SPDX-License-Identifier: Apache-2.0
// Open addressing over slots of one cache line. A slot is filled once and never freed, so a reader compares
// without a lock. The number of probes bounds what a call costs once the table is full.
#include "capture/api/names.h"

#include <cstdint>
#include <cstring>

namespace lockstep::capture::api {
namespace {

enum State : uint32_t { kFree = 0, kFilling = 1, kReady = 2 };
struct alignas(64) Name {
  uint32_t state;
  uint32_t length;
  char text[kNameBytes];
};
static_assert(sizeof(Name) == 64);
constexpr uint32_t kNames = 2048, kProbes = 128;
Name g_names[kNames];  // zero at load: memory only where it is used

uint64_t hash_of(const char* text, size_t length) {
  uint64_t hash = length, word = 0;
  for (; length >= 8; text += 8, length -= 8) {
    memcpy(&word, text, 8);
    hash = (hash ^ word) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 32;
  }
  word = 0;
  memcpy(&word, text, length);
  return ((hash ^ word) * 0x9e3779b97f4a7c15) >> 32;
}

}  // namespace

const char* intern(const char* text, bool* full) {
  if (text == nullptr) return nullptr;
  auto length = static_cast<uint32_t>(strnlen(text, kNameBytes - 1));
  uint64_t at = hash_of(text, length);
  for (uint32_t probe = 0; probe < kProbes; ++probe, ++at) {
    Name& name = g_names[at % kNames];
    uint32_t state = __atomic_load_n(&name.state, __ATOMIC_ACQUIRE);
    if (state == kReady) {
      if (name.length == length && memcmp(name.text, text, length) == 0) return name.text;
      continue;
    }
    // Not waited for: it may be the same text, which then gets a second copy.
    if (state == kFilling) continue;
    if (!__atomic_compare_exchange_n(&name.state, &state, kFilling, false, __ATOMIC_RELAXED,
                                     __ATOMIC_RELAXED))
      continue;
    name.length = length;
    memcpy(name.text, text, length);
    __atomic_store_n(&name.state, kReady, __ATOMIC_RELEASE);
    return name.text;
  }
  *full = true;
  return nullptr;
}

}  // namespace lockstep::capture::api
