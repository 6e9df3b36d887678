// SPDX-License-Identifier: Apache-2.0
// What a small cache in front has pushed out: a hash table from a key to what the file calls it, so that
// nothing is defined twice. One owner thread; all zero is an empty table. It grows by mapping memory, a few
// times in the life of a thread; where none is to be had the key is not remembered. Never freed: a log
// outlives its thread.
#pragma once
#include <sys/mman.h>

#include <cstdint>

namespace lockstep::capture {

template <class Key, class Value>
// Open addressing, at most half full, so a look-up ends after few steps. It doubles when it is.
class KeyTable {
 public:
  // The value of a key, or nullptr. `hash` is well mixed in its upper half.
  const Value* find(const Key& key, uint64_t hash) const {
    if (slots_ == nullptr) return nullptr;
    for (uint64_t at = hash >> 32;; ++at) {
      const Slot& slot = slots_[at & (capacity_ - 1)];
      if (!slot.used) return nullptr;
      if (slot.hash == hash && slot.key == key) return &slot.value;
    }
  }
  // Adds a key that find() did not know.
  void add(const Key& key, uint64_t hash, const Value& value) {
    if (2 * used_ >= capacity_ && !grow()) return;
    put({key, hash, value, true});
    ++used_;
  }

 private:
  struct Slot {
    Key key;
    uint64_t hash;
    Value value;
    bool used;
  };
  static constexpr uint32_t kFirst = 128;

  void put(const Slot& slot) {
    uint64_t at = slot.hash >> 32;
    while (slots_[at & (capacity_ - 1)].used) ++at;
    slots_[at & (capacity_ - 1)] = slot;
  }
  bool grow() {
    uint32_t capacity = capacity_ == 0 ? kFirst : 2 * capacity_;
    void* memory =
        mmap(nullptr, capacity * sizeof(Slot), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return false;
    Slot* old = slots_;
    uint32_t old_capacity = capacity_;
    slots_ = static_cast<Slot*>(memory);
    capacity_ = capacity;
    for (uint32_t i = 0; i < old_capacity; ++i) {
      if (old[i].used) put(old[i]);
    }
    if (old != nullptr) munmap(old, old_capacity * sizeof(Slot));
    return true;
  }

  Slot* slots_;
  uint32_t capacity_;  // a power of two
  uint32_t used_;
};

}  // namespace lockstep::capture
