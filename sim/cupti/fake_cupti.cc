// SPDX-License-Identifier: Apache-2.0
#include "sim/cupti/fake_cupti.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "capture/cuda/cupti_abi.h"

namespace lockstep::sim {
namespace {

namespace cupti = capture::cuda::cupti;

#ifdef LOCKSTEP_FAKE_CUPTI_OLD
constexpr uint32_t kVersion = 110000;
constexpr size_t kKernelBytes = 144;  // before graphs were reported
#else
constexpr uint32_t kVersion = 130001;
constexpr size_t kKernelBytes = 208;
#endif
constexpr size_t kCopyBytes = 96, kPeerCopyBytes = 104, kSetBytes = 88, kCallBytes = 40, kOtherBytes = 24;

size_t bytes_of(uint32_t kind) {
  switch (kind) {
    case cupti::kSerialKernel:
    case cupti::kConcurrentKernel:
      return kKernelBytes;
    case cupti::kCopy:
      return kCopyBytes;
    case cupti::kPeerCopy:
      return kPeerCopyBytes;
    case cupti::kSet:
      return kSetBytes;
    case cupti::kDriver:
    case cupti::kRuntime:
      return kCallBytes;
    default:
      return kOtherBytes;
  }
}

struct Buffer {
  uint8_t* at = nullptr;
  size_t bytes = 0, used = 0;
  uint32_t open = 0;  // records that are not complete
};
struct OpenKernel {
  Buffer* buffer;
  size_t offset;
};

class Library {
 public:
  cupti::Result register_callbacks(cupti::BufferRequested request, cupti::BufferCompleted complete) {
    if (request == nullptr || complete == nullptr) return 1;
    const std::lock_guard guard(lock_);
    request_ = request;
    complete_ = complete;
    return cupti::kSuccess;
  }
  cupti::Result switch_kind(cupti::Kind kind, bool on) {
    const std::lock_guard guard(lock_);
    if (on) kinds_.insert(kind);
    if (!on) kinds_.erase(kind);
    // As seen of CUPTI 13: the kind switches all calls of the driver; once it was switched off, single ones
    // stay off.
    if (kind != cupti::kDriver) return cupti::kSuccess;
    single_calls_work_ = on;
    std::fill(calls_ + 1, calls_ + kDriverCalls, on);
    return cupti::kSuccess;
  }
  cupti::Result switch_context(void* context, cupti::Kind kind, bool on) {
    const std::lock_guard guard(lock_);
    if (on) contexts_.insert({kind, context});
    if (!on) contexts_.erase({kind, context});
    return cupti::kSuccess;
  }
  cupti::Result switch_call(uint32_t call, bool on) {
    const std::lock_guard guard(lock_);
    if (call >= kDriverCalls) return 1;
    if (single_calls_work_) calls_[call] = on;
    return cupti::kSuccess;
  }
  cupti::Result flush(bool forced) {
    std::vector<Buffer*> ready;
    {
      const std::lock_guard guard(lock_);
      std::vector<Buffer*> kept;
      for (Buffer* buffer : buffers_) (forced || buffer->open == 0 ? ready : kept).push_back(buffer);
      buffers_ = kept;
      for (Buffer* buffer : ready) forget(buffer);
    }
    for (Buffer* buffer : ready) give_back(buffer);
    return cupti::kSuccess;
  }
  cupti::Result next_record(uint8_t* buffer, size_t valid, uint8_t** record) {
    uint8_t* next = buffer;
    if (*record != nullptr) {
      uint32_t kind;
      memcpy(&kind, *record, sizeof kind);
      next = *record + bytes_of(kind);
    }
    if (next >= buffer + valid) return 12;
    *record = next;
    return cupti::kSuccess;
  }
  cupti::Result dropped_records(size_t* dropped) {
    const std::lock_guard guard(lock_);
    *dropped = drops_;
    drops_ = 0;
    return cupti::kSuccess;
  }
  cupti::Result register_timestamp(cupti::Timestamp timestamp) {
    if (timestamp == nullptr) return 1;
    const std::lock_guard guard(lock_);
    timestamp_ = timestamp;
    return cupti::kSuccess;
  }
  cupti::Result subscribe(void** subscriber) {
    const std::lock_guard guard(lock_);
    if (subscribed_) return cupti::kMultipleSubscribers;
    subscribed_ = true;
    *subscriber = this;
    return cupti::kSuccess;
  }
  cupti::Result unsubscribe(void* subscriber) {
    const std::lock_guard guard(lock_);
    if (subscriber != this || !subscribed_) return 1;
    subscribed_ = false;
    return cupti::kSuccess;
  }
  cupti::Result finalize() {
    const std::lock_guard guard(lock_);
    kinds_.clear();
    std::fill(calls_, calls_ + kDriverCalls, false);
    single_calls_work_ = true;
    request_ = nullptr;
    complete_ = nullptr;
    subscribed_ = false;
    ++finalized_;
    return cupti::kSuccess;
  }
  void use_system_thread_ids(bool on) { system_thread_ids_ = on; }

  uint64_t now() {
    if (timestamp_ != nullptr) return timestamp_();
    timespec time{};
    clock_gettime(CLOCK_REALTIME, &time);
    return static_cast<uint64_t>(time.tv_sec) * 1000000000 + static_cast<uint64_t>(time.tv_nsec);
  }
  uint32_t launch(const FakeLaunch& launch) {
    const uint32_t correlation = next_correlation();
    const uint64_t begin = now();
    if (is_on(cupti::kConcurrentKernel) || is_on(cupti::kSerialKernel)) {
      uint8_t record[kKernelBytes] = {};
      put(record, 0, is_on(cupti::kConcurrentKernel) ? cupti::kConcurrentKernel : cupti::kSerialKernel);
      put(record, cupti::Kernel::kDevice, launch.device);
      put(record, cupti::Kernel::kContext, uint32_t{1});
      put(record, cupti::Kernel::kStream, launch.stream);
      put(record, cupti::Kernel::kGridX, launch.channels);
      put(record, cupti::Kernel::kGridY, launch.rows);
      put(record, cupti::Kernel::kGridZ, launch.layers);
      put(record, cupti::Kernel::kCorrelation, correlation);
      put(record, cupti::Kernel::kName, launch.name);
      if constexpr (kKernelBytes > cupti::Kernel::kGraph) {
        put(record, cupti::Kernel::kGraphNode, launch.node);
        put(record, cupti::Kernel::kGraph, launch.graph);
      }
      append(record, sizeof record, correlation);
    }
    const bool by_runtime = launch.runtime_call != 0 && is_on(cupti::kRuntime);
    if (by_runtime) append_call(cupti::kRuntime, launch.runtime_call, correlation, begin);
    if (launch.driver_call != 0 && !by_runtime && is_call_on(launch.driver_call))
      append_call(cupti::kDriver, launch.driver_call, correlation, begin);
    return correlation;
  }
  void finish(uint32_t correlation, uint64_t start, uint64_t end) {
    Buffer* full = nullptr;
    {
      const std::lock_guard guard(lock_);
      const auto found = open_.find(correlation);
      if (found == open_.end()) return;
      uint8_t* at = found->second.buffer->at + found->second.offset;
      put(at, cupti::Kernel::kStart, start);
      put(at, cupti::Kernel::kEnd, end);
      Buffer* buffer = found->second.buffer;
      open_.erase(found);
      if (--buffer->open == 0 && buffer != buffers_.back()) {
        std::erase(buffers_, buffer);
        full = buffer;
      }
    }
    if (full != nullptr) give_back(full);
  }
  uint32_t copy(const FakeCopy& copy, uint64_t start, uint64_t end) {
    const uint32_t correlation = next_correlation();
    if (!is_on(copy.kind)) return correlation;
    uint8_t record[kPeerCopyBytes] = {};
    const bool is_peer = copy.kind == cupti::kPeerCopy;
    put(record, 0, copy.kind);
    if (copy.kind == cupti::kSet) {
      put(record, cupti::Set::kMemory, uint16_t{3});
    } else {
      put(record, cupti::Copy::kFrom, uint8_t{2});
      put(record, cupti::Copy::kTo, uint8_t{3});
    }
    put(record, cupti::Copy::kBytes, copy.bytes);
    put(record, cupti::Copy::kStart, start);
    put(record, cupti::Copy::kEnd, end);
    put(record, cupti::Copy::kStream, uint32_t{9});
    put(record, is_peer ? cupti::PeerCopy::kCorrelation : cupti::Copy::kCorrelation, correlation);
    append(record, bytes_of(copy.kind), 0);
    return correlation;
  }
  void call(uint32_t driver_call) {
    const uint32_t correlation = next_correlation();
    const uint64_t begin = now();
    if (is_call_on(driver_call)) append_call(cupti::kDriver, driver_call, correlation, begin);
  }
  uint32_t other(uint32_t kind) {
    if (!is_on(kind)) return 0;
    uint8_t record[kOtherBytes] = {};
    put(record, 0, kind);
    append(record, sizeof record, 0);
    return 1;
  }
  FakeState state() {
    const std::lock_guard guard(lock_);
    return {.ours_registered = request_ != nullptr,
            .subscribers = subscribed_ ? 1u : 0u,
            .enabled_kinds = static_cast<uint32_t>(kinds_.size()),
            .enabled_calls = static_cast<uint32_t>(std::count(calls_, calls_ + kDriverCalls, true)),
            .refused = refused_,
            .dropped = dropped_,
            .buffers_out = static_cast<uint32_t>(buffers_.size()),
            .finalized = finalized_};
  }

 private:
  template <class T>
  static void put(uint8_t* record, size_t offset, T value) {
    memcpy(record + offset, &value, sizeof value);
  }
  bool is_on(cupti::Kind kind) {
    const std::lock_guard guard(lock_);
    // A launch does not say in which context it is.
    const auto in_context = contexts_.lower_bound({kind, nullptr});
    return kinds_.contains(kind) || (in_context != contexts_.end() && in_context->first == kind);
  }
  bool is_call_on(uint32_t call) {
    const std::lock_guard guard(lock_);
    return calls_[call];
  }
  uint32_t next_correlation() {
    const std::lock_guard guard(lock_);
    return ++correlation_;
  }
  void append_call(cupti::Kind kind, uint32_t call, uint32_t correlation, uint64_t begin) {
    uint8_t record[kCallBytes] = {};
    put(record, 0, kind);
    put(record, cupti::ApiCall::kCall, call);
    put(record, cupti::ApiCall::kStart, begin);
    put(record, cupti::ApiCall::kEnd, now());
    put(record, cupti::ApiCall::kThread,
        system_thread_ids_ ? static_cast<uint32_t>(gettid()) : static_cast<uint32_t>(pthread_self()));
    put(record, cupti::ApiCall::kCorrelation, correlation);
    append(record, sizeof record, 0);
  }
  // `open`: correlation of a kernel whose times come later; 0 complete.
  void append(const uint8_t* record, size_t bytes, uint32_t open) {
    Buffer* full = nullptr;
    {
      std::unique_lock guard(lock_);
      if (buffers_.empty() || buffers_.back()->used + bytes > buffers_.back()->bytes) {
        if (!buffers_.empty() && buffers_.back()->open == 0) {
          full = buffers_.back();
          buffers_.pop_back();
        }
        if (request_ == nullptr) return;
        auto* buffer = new Buffer;
        size_t most = 0;
        request_(&buffer->at, &buffer->bytes, &most);
        if (buffer->at == nullptr || buffer->bytes < bytes) {
          ++refused_;
          ++drops_;
          ++dropped_;
          delete buffer;
          buffer = nullptr;
        } else {
          buffers_.push_back(buffer);
        }
      }
      if (!buffers_.empty() && buffers_.back()->used + bytes <= buffers_.back()->bytes) {
        Buffer* buffer = buffers_.back();
        memcpy(buffer->at + buffer->used, record, bytes);
        if (open != 0) {
          open_.emplace(open, OpenKernel{buffer, buffer->used});
          ++buffer->open;
        }
        buffer->used += bytes;
      }
    }
    if (full != nullptr) give_back(full);
  }
  // With lock: kernels in a buffer that goes are not completed any more.
  void forget(Buffer* buffer) {
    std::erase_if(open_, [&](const auto& entry) { return entry.second.buffer == buffer; });
  }
  void give_back(Buffer* buffer) {
    cupti::BufferCompleted complete;
    {
      const std::lock_guard guard(lock_);
      complete = complete_;
    }
    if (complete != nullptr) complete(nullptr, 0, buffer->at, buffer->bytes, buffer->used);
    delete buffer;
  }

  std::mutex lock_;
  cupti::BufferRequested request_ = nullptr;
  cupti::BufferCompleted complete_ = nullptr;
  cupti::Timestamp timestamp_ = nullptr;
  std::set<uint32_t> kinds_;
  std::set<std::pair<uint32_t, void*>> contexts_;  // a kind in one of them
  static constexpr uint32_t kDriverCalls = 800;
  bool calls_[kDriverCalls] = {}, single_calls_work_ = true;
  bool subscribed_ = false;
  bool system_thread_ids_ = false;
  std::vector<Buffer*> buffers_;  // the last one is being filled
  std::multimap<uint32_t, OpenKernel> open_;
  uint32_t correlation_ = 0, finalized_ = 0;
  uint64_t refused_ = 0, drops_ = 0, dropped_ = 0;
};

Library& library() {
  static auto* one = new Library;  // outlives the exit handlers of those who flush in them
  return *one;
}

}  // namespace
}  // namespace lockstep::sim

using lockstep::sim::library;
namespace cupti = lockstep::capture::cuda::cupti;
#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED cupti::Result cuptiActivityRegisterCallbacks(cupti::BufferRequested request,
                                                      cupti::BufferCompleted complete) {
  return library().register_callbacks(request, complete);
}
EXPORTED cupti::Result cuptiActivityEnable(uint32_t kind) { return library().switch_kind(kind, true); }
EXPORTED cupti::Result cuptiActivityDisable(uint32_t kind) { return library().switch_kind(kind, false); }
EXPORTED cupti::Result cuptiActivityFlushPeriod(uint32_t) { return cupti::kSuccess; }
EXPORTED cupti::Result cuptiActivityFlushAll(uint32_t flag) { return library().flush(flag != 0); }
EXPORTED cupti::Result cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid, uint8_t** record) {
  return library().next_record(buffer, valid, record);
}
EXPORTED cupti::Result cuptiActivityGetNumDroppedRecords(void*, uint32_t, size_t* dropped) {
  return library().dropped_records(dropped);
}
EXPORTED cupti::Result cuptiGetTimestamp(uint64_t* now) {
  *now = library().now();
  return cupti::kSuccess;
}
EXPORTED cupti::Result cuptiGetVersion(uint32_t* version) {
  *version = lockstep::sim::kVersion;
  return cupti::kSuccess;
}
EXPORTED cupti::Result cuptiSubscribe(void** subscriber, void*, void*) {
  return library().subscribe(subscriber);
}
EXPORTED cupti::Result cuptiUnsubscribe(void* subscriber) { return library().unsubscribe(subscriber); }
#ifndef LOCKSTEP_FAKE_CUPTI_OLD
EXPORTED cupti::Result cuptiActivityEnableDriverApi(uint32_t call, uint8_t on) {
  return library().switch_call(call, on != 0);
}
EXPORTED cupti::Result cuptiActivityEnableContext(void* context, uint32_t kind) {
  return library().switch_context(context, kind, true);
}
EXPORTED cupti::Result cuptiActivityDisableContext(void* context, uint32_t kind) {
  return library().switch_context(context, kind, false);
}
EXPORTED cupti::Result cuptiActivityRegisterTimestampCallback(cupti::Timestamp timestamp) {
  return library().register_timestamp(timestamp);
}
EXPORTED cupti::Result cuptiSetThreadIdType(uint32_t type) {
  library().use_system_thread_ids(type == cupti::kThreadIdSystem);
  return cupti::kSuccess;
}
EXPORTED cupti::Result cuptiFinalize() { return library().finalize(); }
#endif

EXPORTED const lockstep::sim::FakeCupti fake_cupti_functions;
const lockstep::sim::FakeCupti fake_cupti_functions = {
    .now = [] { return library().now(); },
    .launch = [](const lockstep::sim::FakeLaunch* launch) { return library().launch(*launch); },
    .finish = [](uint32_t correlation, uint64_t start,
                 uint64_t end) { library().finish(correlation, start, end); },
    .copy = [](const lockstep::sim::FakeCopy* copy, uint64_t start,
               uint64_t end) { return library().copy(*copy, start, end); },
    .call = [](uint32_t driver_call) { library().call(driver_call); },
    .other = [](uint32_t kind) { return library().other(kind); },
    .state = [] { return library().state(); },
};
