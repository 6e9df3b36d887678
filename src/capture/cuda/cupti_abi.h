// SPDX-License-Identifier: Apache-2.0
// What of NVIDIA's CUPTI this library uses, written from its published interface: results, kinds of activity,
// and the fields of four records, by their offsets. Records grow at their end from release to release (CUPTI
// 11.0 to 13.0 agree on what is here), so a field is read only where the record is long enough. Times are ns
// on CUPTI's own clock.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace lockstep::capture::cuda::cupti {

using Result = uint32_t;
inline constexpr Result kSuccess = 0, kNotInitialized = 15, kMultipleSubscribers = 39;

using Kind = uint32_t;
inline constexpr Kind kCopy = 1, kSet = 2, kSerialKernel = 3, kDriver = 4, kRuntime = 5,
                      kConcurrentKernel = 10, kPeerCopy = 22;

using BufferRequested = void (*)(uint8_t** buffer, size_t* bytes, size_t* most_records);
using BufferCompleted = void (*)(void* context, uint32_t stream, uint8_t* buffer, size_t bytes, size_t valid);
using Timestamp = uint64_t (*)();
// How calls name their thread: half of pthread_self(), or the kernel's number.
inline constexpr uint32_t kThreadIdSystem = 1;
inline constexpr uint32_t kFlushForced = 1;

// Calls that launch, and one that does nothing, by CUPTI's numbers. The _ptsz ones take the per-thread
// default stream.
enum DriverCall : uint32_t {
  kDriverGetVersion = 2,
  kLaunchKernel = 307,
  kLaunchKernelPtsz = 442,
  kGraphLaunch = 514,
  kGraphLaunchPtsz = 515,
  kLaunchKernelEx = 652,
  kLaunchKernelExPtsz = 653,
};
enum RuntimeCall : uint32_t { kRuntimeGraphLaunch = 311, kRuntimeGraphLaunchPtsz = 312 };

// A record of `bytes` bytes. Reading past its end gives 0, as does a field that its release did not have.
class Record {
 public:
  Record(const uint8_t* at, size_t bytes) : at_(at), bytes_(bytes) {}
  const uint8_t* data() const { return at_; }
  size_t bytes() const { return bytes_; }
  template <class T>
  T get(size_t offset) const {
    T value{};
    if (offset + sizeof(T) <= bytes_) memcpy(&value, at_ + offset, sizeof(T));
    return value;
  }
  Kind kind() const { return get<Kind>(0); }

 private:
  const uint8_t* at_;
  size_t bytes_;
};

// Offsets.
struct Kernel {
  static constexpr size_t kStart = 16, kEnd = 24, kDevice = 40, kContext = 44, kStream = 48, kGridX = 52,
                          kGridY = 56, kGridZ = 60, kCorrelation = 92, kName = 104, kGraphNode = 144,
                          kGraph = 156, kLeast = 112;
};
struct Copy {
  static constexpr size_t kFrom = 5, kTo = 6, kBytes = 8, kStart = 16, kEnd = 24, kDevice = 32, kContext = 36,
                          kStream = 40, kCorrelation = 44, kGraphNode = 64, kLeast = 48;
};
struct PeerCopy {
  static constexpr size_t kCorrelation = 60, kGraphNode = 72, kLeast = 64;  // the rest as in Copy
};
struct Set {
  static constexpr size_t kMemory = 50;  // the rest as in Copy
};
struct ApiCall {
  static constexpr size_t kCall = 4, kStart = 8, kEnd = 16, kThread = 28, kCorrelation = 32, kLeast = 40;
};

}  // namespace lockstep::capture::cuda::cupti
