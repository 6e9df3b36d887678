// SPDX-License-Identifier: Apache-2.0
#include "arena.h"

#include <sys/mman.h>

#include <new>

namespace custom_allreduce {

Arena::Arena(int ranks, size_t elements) : ranks_(ranks), elements_((elements + 15) / 16 * 16) {
  const auto flags = static_cast<size_t>(ranks) * static_cast<size_t>(ranks);
  bytes_ = flags * sizeof(Flag) + 2 * static_cast<size_t>(ranks) * elements_ * sizeof(float);
  void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return;
  base_ = memory;
  flags_ = static_cast<Flag*>(memory);
  for (size_t i = 0; i < flags; ++i) new (&flags_[i]) Flag;
  data_ = reinterpret_cast<float*>(flags_ + flags);
}

Arena::~Arena() {
  if (base_ != nullptr) munmap(base_, bytes_);
}

}  // namespace custom_allreduce
