// SPDX-License-Identifier: Apache-2.0
// A bit for each buffer instead of a list of free ones: taking one is a compare-and-swap of a word, to which
// it does no harm if a buffer was taken and given back in between (ABA).
#include "capture/cuda/buffers.h"

#include <sys/mman.h>

namespace lockstep::capture::cuda {

// Buffers past these were needed once, in a burst; their memory is not kept.
constexpr size_t kKept = 16;

bool BufferPool::reserve() {
  if (memory_ != nullptr) return true;
  void* memory = mmap(nullptr, kBufferBytes * kBuffers, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  memory_ = static_cast<uint8_t*>(memory);
  return true;
}

uint8_t* BufferPool::take() {
  for (uint32_t word = 0; word < kWords && memory_ != nullptr; ++word) {
    uint64_t taken = taken_[word].load(std::memory_order_relaxed);
    while (~taken != 0) {
      const auto bit = static_cast<uint32_t>(__builtin_ctzll(~taken));
      if (taken_[word].compare_exchange_weak(taken, taken | uint64_t{1} << bit, std::memory_order_acquire,
                                             std::memory_order_relaxed))
        return memory_ + (size_t{word} * 64 + bit) * kBufferBytes;
    }
  }
  return nullptr;
}

bool BufferPool::owns(const uint8_t* buffer) const {
  return memory_ != nullptr && buffer >= memory_ && buffer < memory_ + kBufferBytes * kBuffers;
}

void BufferPool::give_back(uint8_t* buffer) {
  const auto slot = static_cast<size_t>(buffer - memory_) / kBufferBytes;
  // Before the bit is cleared: afterwards another thread may be filling it.
  if (slot >= kKept) madvise(buffer, kBufferBytes, MADV_DONTNEED);
  taken_[slot / 64].fetch_and(~(uint64_t{1} << slot % 64), std::memory_order_release);
}

uint32_t BufferPool::taken() const {
  int count = 0;
  for (const auto& word : taken_) count += __builtin_popcountll(word.load(std::memory_order_relaxed));
  return static_cast<uint32_t>(count);
}

}  // namespace lockstep::capture::cuda
