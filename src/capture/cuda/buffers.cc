// SPDX-License-Identifier: Apache-2.0
#include "capture/cuda/buffers.h"

#include <sys/mman.h>

namespace lockstep::capture::cuda {

bool BufferPool::reserve() {
  if (memory_ != nullptr) return true;
  void* memory = mmap(nullptr, kBufferBytes * kBuffers, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  memory_ = static_cast<uint8_t*>(memory);
  return true;
}

uint8_t* BufferPool::take() {
  uint64_t taken = taken_.load(std::memory_order_relaxed);
  while (memory_ != nullptr && ~taken != 0) {
    const int slot = __builtin_ctzll(~taken);
    if (taken_.compare_exchange_weak(taken, taken | uint64_t{1} << slot, std::memory_order_acquire,
                                     std::memory_order_relaxed))
      return memory_ + static_cast<size_t>(slot) * kBufferBytes;
  }
  return nullptr;
}

bool BufferPool::owns(const uint8_t* buffer) const {
  return memory_ != nullptr && buffer >= memory_ && buffer < memory_ + kBufferBytes * kBuffers;
}

void BufferPool::give_back(const uint8_t* buffer) {
  const auto slot = static_cast<size_t>(buffer - memory_) / kBufferBytes;
  taken_.fetch_and(~(uint64_t{1} << slot), std::memory_order_release);
}

uint32_t BufferPool::taken() const {
  return static_cast<uint32_t>(__builtin_popcountll(taken_.load(std::memory_order_relaxed)));
}

}  // namespace lockstep::capture::cuda
