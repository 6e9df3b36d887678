// SPDX-License-Identifier: Apache-2.0
// The memory that CUPTI fills with records: one reservation made at the start, of which as much becomes real
// as is used at the same time. Any thread, no lock, no allocation: CUPTI asks on threads that launch kernels.
// There are many of them because CUPTI before 12.9 may crash when it is refused one.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace lockstep::capture::cuda {

class BufferPool {
 public:
  static constexpr size_t kBufferBytes = 512 * 1024;
  static constexpr uint32_t kBuffers = 1024;

  bool reserve();
  // nullptr when all are taken.
  uint8_t* take();
  bool owns(const uint8_t* buffer) const;
  void give_back(uint8_t* buffer);
  uint32_t taken() const;

 private:
  uint8_t* memory_ = nullptr;
  // A bit a buffer; the lowest free one is next, so that few are touched.
  static constexpr uint32_t kWords = kBuffers / 64;
  std::atomic<uint64_t> taken_[kWords] = {};
};

}  // namespace lockstep::capture::cuda
