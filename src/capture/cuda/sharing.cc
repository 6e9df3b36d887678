// SPDX-License-Identifier: Apache-2.0
#include "capture/cuda/sharing.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <atomic>

#include "capture/core/clock.h"
#include "capture/core/locked.h"
#include "capture/core/log/thread_log.h"
#include "capture/core/session/session.h"
#include "capture/cuda/buffers.h"
#include "capture/cuda/cupti_clock.h"
#include "capture/cuda/fences.h"
#include "capture/cuda/records.h"
#include "capture/cuda/window.h"

namespace lockstep::capture::cuda {
namespace {

constexpr uint32_t kKinds = 128;  // CUPTI 13 counts to 54

pthread_mutex_t g_switches = PTHREAD_MUTEX_INITIALIZER;

constinit thread_local uint32_t t_profilers_calls = 0;
struct ProfilersCall {
  ProfilersCall() { ++t_profilers_calls; }
  ~ProfilersCall() { --t_profilers_calls; }
  ProfilersCall(const ProfilersCall&) = delete;
  ProfilersCall& operator=(const ProfilersCall&) = delete;
};

Fences g_fences;

BufferPool g_pool;
uint64_t default_timestamp();
CuptiClock g_clock{default_timestamp};
std::atomic<bool> g_registered{false};  // the callbacks that CUPTI knows are ours
std::atomic<bool> g_is_exiting{false};
std::atomic<bool> g_active{false};
std::atomic<bool> g_system_thread_ids{false};
std::atomic<int64_t> g_last_delivery{0};                    // CLOCK_MONOTONIC
std::atomic<bool> g_wanted[kKinds], g_ever_wanted[kKinds];  // by us
bool g_want_calls = false;
constexpr uint32_t kDriverCalls = 1024;  // CUPTI 13 counts to 806
std::atomic<bool> g_kind_of_calls_was_on{false};

std::atomic<cupti::BufferRequested> g_their_request{nullptr};
std::atomic<cupti::BufferCompleted> g_their_complete{nullptr};
std::atomic<void*> g_their_subscriber{nullptr};
std::atomic<uint64_t> g_their_drops{0};
std::atomic<int64_t> g_their_period{0}, g_their_last_turn{0};  // ns; 0: a profiler flushes when it likes
Window g_their_kinds[kKinds];
Contexts g_their_contexts[kKinds];
Window g_their_calls[kDriverCalls];  // of the driver, switched on one by one

uint64_t default_timestamp() {
  uint64_t now = 0;
  const CuptiLibrary* library = loaded_cupti();
  if (library != nullptr) library->timestamp(&now);
  return now;
}

// Whether a profiler would have had this record from a CUPTI of its own. What we did not switch on, it did.
bool is_theirs(const cupti::Record& record) {
  const cupti::Kind kind = record.kind();
  switch (kind) {
    case cupti::kSerialKernel:
    case cupti::kConcurrentKernel: {
      const auto start = record.get<uint64_t>(cupti::Kernel::kStart);
      const auto correlation = record.get<uint32_t>(cupti::Kernel::kCorrelation);
      return g_their_kinds[cupti::kSerialKernel].holds(start, correlation, g_fences) ||
             g_their_kinds[cupti::kConcurrentKernel].holds(start, correlation, g_fences);
    }
    case cupti::kCopy:
    case cupti::kPeerCopy:
    case cupti::kSet:
      return !g_ever_wanted[kind].load(std::memory_order_relaxed) ||
             g_their_kinds[kind].holds(
                 record.get<uint64_t>(cupti::Copy::kStart),
                 record.get<uint32_t>(kind == cupti::kPeerCopy ? cupti::PeerCopy::kCorrelation
                                                               : cupti::Copy::kCorrelation),
                 g_fences);
    case cupti::kDriver: {
      const auto call = record.get<uint32_t>(cupti::ApiCall::kCall);
      const auto start = record.get<uint64_t>(cupti::ApiCall::kStart);
      return g_their_kinds[cupti::kDriver].holds(start) ||
             (call < kDriverCalls && g_their_calls[call].holds(start));
    }
    default:
      return true;
  }
}

// The profiler's buffer that is being filled. As with a CUPTI of its own it has one from the moment it
// switches records on, and gets it back full or when it flushes: some do not even flush before they gave one.
class TheirBuffer {
 public:
  void add(const cupti::Record& record) {
    Locked locked(&lock_);
    if (buffer_ != nullptr && (used_ + record.bytes() > bytes_ || (most_ != 0 && records_ == most_)))
      give_back();
    if (buffer_ == nullptr) ask();
    if (buffer_ == nullptr || used_ + record.bytes() > bytes_) {
      g_their_drops.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    memcpy(buffer_ + used_, record.data(), record.bytes());
    used_ += record.bytes();
    ++records_;
  }
  void open() {
    Locked locked(&lock_);
    if (buffer_ == nullptr) ask();
  }
  void close() {
    Locked locked(&lock_);
    if (buffer_ != nullptr) give_back();
  }

 private:
  void ask() {
    const cupti::BufferRequested request = g_their_request.load(std::memory_order_acquire);
    used_ = records_ = bytes_ = most_ = 0;
    if (request != nullptr) request(&buffer_, &bytes_, &most_);
  }
  void give_back() {
    uint8_t* const buffer = buffer_;
    buffer_ = nullptr;
    const cupti::BufferCompleted complete = g_their_complete.load(std::memory_order_acquire);
    if (complete != nullptr) complete(nullptr, 0, buffer, bytes_, used_);
  }

  // Recursive: a profiler may call CUPTI from its callbacks.
  pthread_mutex_t lock_ = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
  uint8_t* buffer_ = nullptr;
  size_t bytes_ = 0, most_ = 0, used_ = 0, records_ = 0;
};
TheirBuffer g_their_buffer;

void requested(uint8_t** buffer, size_t* bytes, size_t* most_records) {
  *buffer = g_pool.take();
  *bytes = *buffer != nullptr ? BufferPool::kBufferBytes : 0;
  *most_records = 0;
}

void count_drops(const CuptiLibrary& library, void* context, uint32_t stream) {
  size_t dropped = 0;
  if (library.dropped_records(context, stream, &dropped) != cupti::kSuccess || dropped == 0) return;
  g_their_drops.fetch_add(dropped, std::memory_order_relaxed);
  if (ThreadLog* log = ThreadLog::get()) log->lose(kLoss_gpu_dropped, dropped);
}

uint32_t our_calls() {
  static const uint32_t count = [] {
    const int version = driver_version();
    return version != 0 && version < 11080 ? uint32_t{sizeof kLaunchCalls / sizeof kLaunchCalls[0]}
                                           : kLaunchCallsOfNewDrivers;
  }();
  return count;
}

template <class Visit>
void for_each_record(const CuptiLibrary& library, uint8_t* buffer, size_t valid, const Visit& visit) {
  uint8_t* at = nullptr;
  bool more = valid > 0 && library.next_record(buffer, valid, &at) == cupti::kSuccess;
  while (more) {
    uint8_t* next = at;
    more = library.next_record(buffer, valid, &next) == cupti::kSuccess && next > at;
    visit(cupti::Record(at, static_cast<size_t>((more ? next : buffer + valid) - at)));
    at = next;
  }
}

void write_records(const CuptiLibrary& library, uint8_t* buffer, size_t valid) {
  if (!g_active.load(std::memory_order_acquire)) return;
  const WhatToWrite what{our_calls(), g_wanted[cupti::kCopy].load(std::memory_order_relaxed),
                         g_system_thread_ids.load(std::memory_order_relaxed)};
  for_each_record(library, buffer, valid,
                  [&](const cupti::Record& record) { write_record(record, g_clock, what); });
}

// Buffers of ours on their way to the profiler: those that a fence may divide wait for its record, which
// CUPTI may deliver later than the kernels on both sides of it.
class OnTheirWay {
 public:
  void add(const CuptiLibrary& library, uint8_t* buffer, size_t valid) {
    for_each_record(library, buffer, valid, [](const cupti::Record& record) { g_fences.learn(record); });
    Locked locked(&lock_);
    if (count_ == kMost) hand_over_first(library);
    waiting_[count_++] = {buffer, valid};
    if (!g_fences.pending()) hand_over_all(library);
  }
  void hand_over(const CuptiLibrary& library) {
    Locked locked(&lock_);
    hand_over_all(library);
  }

 private:
  void hand_over_all(const CuptiLibrary& library) {
    while (count_ > 0) hand_over_first(library);
  }
  void hand_over_first(const CuptiLibrary& library) {
    const Waiting first = waiting_[0];
    --count_;
    for (uint32_t i = 0; i < count_; ++i) waiting_[i] = waiting_[i + 1];
    for_each_record(library, first.buffer, first.valid, [](const cupti::Record& record) {
      if (is_theirs(record) && !g_fences.learn(record)) g_their_buffer.add(record);
    });
    g_pool.give_back(first.buffer);
  }

  struct Waiting {
    uint8_t* buffer;
    size_t valid;
  };
  static constexpr uint32_t kMost = 64;
  pthread_mutex_t lock_ = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;  // as that of TheirBuffer
  Waiting waiting_[kMost] = {};
  uint32_t count_ = 0;
};
OnTheirWay g_on_their_way;

void completed(void* context, uint32_t stream, uint8_t* buffer, size_t bytes, size_t valid) {
  const CuptiLibrary* library = loaded_cupti();
  const cupti::BufferCompleted theirs = g_their_complete.load(std::memory_order_acquire);
  g_clock.read();
  g_last_delivery.store(clock_ns(CLOCK_MONOTONIC), std::memory_order_relaxed);
  write_records(*library, buffer, valid);
  // At exit the profiler may be gone, and its buffers with it.
  if (g_is_exiting.load(std::memory_order_acquire)) return;
  if (!g_pool.owns(buffer)) {
    // Given to CUPTI by the profiler, before our callbacks took the place of its own.
    if (theirs != nullptr) theirs(context, stream, buffer, bytes, valid);
    return;
  }
  count_drops(*library, context, stream);
  if (theirs != nullptr) {
    g_on_their_way.add(*library, buffer, valid);
  } else {
    g_pool.give_back(buffer);
  }
}

// Any kind, or single call, still on.
bool they_record() {
  for (const Window& kind : g_their_kinds) {
    if (kind.is_open()) return true;
  }
  for (const Window& call : g_their_calls) {
    if (call.is_open()) return true;
  }
  return false;
}

// Our calls by themselves: the kind of all driver calls would slow down every one. Once that kind has been on
// and off, CUPTI switches no single calls on any more; then it stays on, and all calls but ours go off.
void switch_our_calls_on(const CuptiLibrary& library) {
  if (library.enable_driver_api == nullptr) return;
  const bool others_too = g_kind_of_calls_was_on.load(std::memory_order_relaxed);
  if (others_too) library.enable(cupti::kDriver);
  for (uint32_t call = 1; others_too && call < kDriverCalls; ++call) {
    if (!is_launch_call(call, our_calls()) && !g_their_calls[call].is_open())
      library.enable_driver_api(call, 0);
  }
  for (uint32_t i = 0; !others_too && i < our_calls(); ++i) library.enable_driver_api(kLaunchCalls[i], 1);
}

void switch_our_calls_off(const CuptiLibrary& library) {
  if (g_their_kinds[cupti::kDriver].is_open() || library.enable_driver_api == nullptr) return;
  for (uint32_t i = 0; i < our_calls(); ++i) {
    if (!g_their_calls[kLaunchCalls[i]].is_open()) library.enable_driver_api(kLaunchCalls[i], 0);
  }
}

bool another_tool_has_cupti(const CuptiLibrary& library) {
  if (g_their_subscriber.load(std::memory_order_acquire) != nullptr) return false;  // it rides with us
  void* subscriber = nullptr;
  static constexpr auto kNothing = [](void*, uint32_t, uint32_t, const void*) {};
  void (*nothing)(void*, uint32_t, uint32_t, const void*) = kNothing;
  const cupti::Result result = library.subscribe(&subscriber, reinterpret_cast<void*>(nothing), nullptr);
  if (result == cupti::kSuccess) library.unsubscribe(subscriber);
  return result == cupti::kMultipleSubscribers;
}

constexpr cupti::Kind kOurKinds[] = {cupti::kConcurrentKernel, cupti::kCopy, cupti::kPeerCopy, cupti::kSet};

void switch_our_kinds_off(const CuptiLibrary& library) {
  for (const cupti::Kind kind : kOurKinds) {
    if (g_wanted[kind].exchange(false, std::memory_order_acq_rel) && !g_their_kinds[kind].is_open())
      library.disable(kind);
  }
}

bool begin_locked(const CuptiLibrary& library, Wanted wanted, char* why, size_t bytes) {
  Locked locked(&g_switches);
  if (another_tool_has_cupti(library)) {
    snprintf(why, bytes, "another tool (Nsight, a debugger or a profiler) holds CUPTI");
    return false;
  }
  if (!g_pool.reserve()) {
    snprintf(why, bytes, "no memory for CUPTI's buffers");
    return false;
  }
  const format::FileHeader* header = Session::get().file().header();
  if (header->tick_hz != 0) g_clock.set_rate(static_cast<double>(header->tick_hz) / 1e9);
  g_clock.read();
  // Before the call: CUPTI may ask for a buffer in it.
  const bool was_registered = g_registered.exchange(true, std::memory_order_acq_rel);
  g_active.store(true, std::memory_order_release);
  cupti::Result result = library.register_callbacks(requested, completed);
  if (result != cupti::kSuccess) g_registered.store(was_registered, std::memory_order_release);
  for (const cupti::Kind kind : kOurKinds) {
    if (result != cupti::kSuccess || (kind != cupti::kConcurrentKernel && !wanted.copies)) continue;
    g_ever_wanted[kind].store(true, std::memory_order_relaxed);
    g_wanted[kind].store(true, std::memory_order_release);
    result = library.enable(kind);
  }
  if (result != cupti::kSuccess) {
    switch_our_kinds_off(library);
    g_active.store(false, std::memory_order_release);
    snprintf(why, bytes, "CUPTI refused (result %u)", result);
    return false;
  }
  g_want_calls = true;
  if (!g_their_kinds[cupti::kDriver].is_open()) switch_our_calls_on(library);
  return true;
}

}  // namespace

bool in_profilers_call() { return t_profilers_calls != 0; }
bool active() { return g_active.load(std::memory_order_acquire); }

bool begin(const CuptiLibrary& library, Wanted wanted, char* why, size_t bytes) {
  if (!begin_locked(library, wanted, why, bytes)) return false;
  if (they_record()) g_their_buffer.open();
  return true;
}

void end() {
  flush(false);
  const CuptiLibrary* library = loaded_cupti();
  Locked locked(&g_switches);
  if (library == nullptr || !g_active.exchange(false, std::memory_order_acq_rel)) return;
  switch_our_kinds_off(*library);
  g_want_calls = false;
  switch_our_calls_off(*library);
}

void flush(bool forced) {
  const CuptiLibrary* library = loaded_cupti();
  if (library == nullptr || !g_registered.load(std::memory_order_acquire)) return;
  g_clock.read();
  library->flush_all(forced ? cupti::kFlushForced : 0);
}

void flush_at_exit() {
  g_is_exiting.store(true, std::memory_order_release);
  flush(true);
}

void flush_if_quiet() {
  constexpr int64_t kQuiet = 500'000'000;
  const int64_t now = clock_ns(CLOCK_MONOTONIC);
  if (now - g_last_delivery.load(std::memory_order_relaxed) < kQuiet) return;
  g_last_delivery.store(now, std::memory_order_relaxed);  // also where there was nothing to bring
  flush(false);
}

void hand_over_if_due() {
  const int64_t period = g_their_period.load(std::memory_order_relaxed), now = clock_ns(CLOCK_MONOTONIC);
  // Unless we stand between, its buffers are CUPTI's.
  if (!g_registered.load(std::memory_order_acquire) || period == 0 ||
      now - g_their_last_turn.load(std::memory_order_relaxed) < period)
    return;
  g_their_last_turn.store(now, std::memory_order_relaxed);
  g_their_buffer.close();
  if (they_record()) g_their_buffer.open();
}

cupti::Result their_callbacks(cupti::BufferRequested request, cupti::BufferCompleted complete) {
  ProfilersCall call;
  const CuptiLibrary* library = loaded_cupti();
  if (library == nullptr) return cupti::kNotInitialized;
  Locked locked(&g_switches);
  if (!g_registered.load(std::memory_order_acquire) || request == nullptr || complete == nullptr) {
    const cupti::Result result = library->register_callbacks(request, complete);
    if (result != cupti::kSuccess) return result;
  }
  g_their_request.store(request, std::memory_order_release);
  g_their_complete.store(complete, std::memory_order_release);
  return cupti::kSuccess;
}

// Kinds of what runs on the GPU are divided by launches, those of calls by time. Without the lock: the fence
// is a call of the driver, of which a profiler may be told.
static uint32_t fence_for(const CuptiLibrary& library, cupti::Kind kind) {
  const bool is_gpu = kind == cupti::kConcurrentKernel || kind == cupti::kSerialKernel ||
                      kind == cupti::kCopy || kind == cupti::kPeerCopy || kind == cupti::kSet;
  if (!is_gpu || !g_ever_wanted[kind == cupti::kSerialKernel ? cupti::kConcurrentKernel : kind].load())
    return 0;
  return g_fences.place(library, g_clock, g_their_kinds[cupti::kDriver].is_open(),
                        g_system_thread_ids.load(std::memory_order_relaxed));
}

template <class Enable>
static cupti::Result switch_on(const CuptiLibrary& library, cupti::Kind kind, void* context,
                               const Enable& enable) {
  if (kind >= kKinds) return enable();
  const uint32_t fence = fence_for(library, kind);
  {
    Locked locked(&g_switches);
    if (!they_record()) g_their_drops.store(0, std::memory_order_relaxed);
    const bool was_open = g_their_kinds[kind].is_open();
    // The serial kind asks for one kernel after the other; the two exclude each other, and either serves us.
    const bool gives_way = kind == cupti::kSerialKernel && g_wanted[cupti::kConcurrentKernel].load();
    if (gives_way) library.disable(cupti::kConcurrentKernel);
    g_their_kinds[kind].open(g_clock.now(), fence);
    const cupti::Result result = enable();
    if (result != cupti::kSuccess) {
      if (gives_way) library.enable(cupti::kConcurrentKernel);
      if (!was_open) g_their_kinds[kind].forget();
      return result;
    }
    g_their_contexts[kind].add(context);
    if (kind == cupti::kDriver) g_kind_of_calls_was_on.store(true, std::memory_order_relaxed);
  }
  if (g_registered.load(std::memory_order_acquire)) g_their_buffer.open();
  return cupti::kSuccess;
}

cupti::Result their_enable(cupti::Kind kind) {
  ProfilersCall call;
  const CuptiLibrary* library = loaded_cupti();
  if (library == nullptr) return cupti::kNotInitialized;
  return switch_on(*library, kind, nullptr, [&] { return library->enable(kind); });
}

cupti::Result their_enable_and_dump(cupti::Kind kind) {
  ProfilersCall call;
  const CuptiLibrary* library = loaded_cupti();
  if (library == nullptr || library->enable_and_dump == nullptr) return cupti::kNotInitialized;
  return switch_on(*library, kind, nullptr, [&] { return library->enable_and_dump(kind); });
}

cupti::Result their_enable_context(void* context, cupti::Kind kind) {
  ProfilersCall call;
  const CuptiLibrary* library = loaded_cupti();
  if (library == nullptr || library->enable_context == nullptr) return cupti::kNotInitialized;
  return switch_on(*library, kind, context, [&] { return library->enable_context(context, kind); });
}

static cupti::Result switch_off(const CuptiLibrary& library, cupti::Kind kind, uint32_t fence) {
  Locked locked(&g_switches);
  const uint64_t now = g_clock.now();
  g_their_kinds[kind].close(now, fence);
  g_their_contexts[kind].clear();
  if (kind == cupti::kDriver) {
    // Single calls go off with the kind.
    for (Window& one : g_their_calls) one.close(now, 0);
    if (g_want_calls && library.enable_driver_api != nullptr) {
      switch_our_calls_on(library);
      return cupti::kSuccess;
    }
  }
  if (g_wanted[kind].load(std::memory_order_acquire)) return cupti::kSuccess;
  const cupti::Result result = library.disable(kind);
  if (kind == cupti::kSerialKernel && g_wanted[cupti::kConcurrentKernel].load())
    library.enable(cupti::kConcurrentKernel);
  return result;
}

cupti::Result their_disable(cupti::Kind kind) {
  ProfilersCall call;
  const CuptiLibrary* library = loaded_cupti();
  if (library == nullptr) return cupti::kNotInitialized;
  if (kind >= kKinds) return library->disable(kind);
  return switch_off(*library, kind, fence_for(*library, kind));
}

cupti::Result their_disable_context(void* context, cupti::Kind kind) {
  ProfilersCall call;
  const CuptiLibrary* library = loaded_cupti();
  if (library == nullptr || library->disable_context == nullptr) return cupti::kNotInitialized;
  if (kind >= kKinds) return library->disable_context(context, kind);
  bool is_last = false;
  {
    Locked locked(&g_switches);
    g_their_contexts[kind].remove(context);
    is_last = !g_their_contexts[kind].any();
  }
  // Others that have the kind on go on: their records are not distinguished from this one's.
  const uint32_t fence = is_last ? fence_for(*library, kind) : 0;
  Locked locked(&g_switches);
  if (!g_their_contexts[kind].any()) g_their_kinds[kind].close(g_clock.now(), fence);
  if (g_wanted[kind].load(std::memory_order_acquire)) return cupti::kSuccess;
  return library->disable_context(context, kind);
}

cupti::Result their_driver_api(uint32_t api, uint8_t enable) {
  ProfilersCall call;
  const CuptiLibrary* library = loaded_cupti();
  if (library == nullptr || library->enable_driver_api == nullptr) return cupti::kNotInitialized;
  if (api >= kDriverCalls) return library->enable_driver_api(api, enable);
  Locked locked(&g_switches);
  Window& window = g_their_calls[api];
  if (enable == 0) {
    window.close(g_clock.now(), 0);
    return g_want_calls && is_launch_call(api, our_calls()) ? cupti::kSuccess
                                                            : library->enable_driver_api(api, enable);
  }
  const cupti::Result result = library->enable_driver_api(api, enable);
  // One that the kind covers goes off with it.
  if (result == cupti::kSuccess && !g_their_kinds[cupti::kDriver].is_open()) window.open(g_clock.now(), 0);
  return result;
}

cupti::Result their_dropped_records(void* context, uint32_t stream, size_t* dropped) {
  const CuptiLibrary* library = loaded_cupti();
  if (library == nullptr) return cupti::kNotInitialized;
  if (!g_registered.load(std::memory_order_acquire) || dropped == nullptr)
    return library->dropped_records(context, stream, dropped);
  *dropped = g_their_drops.exchange(0, std::memory_order_relaxed);
  return cupti::kSuccess;
}

template <class Flush>
static cupti::Result their_flush_by(const Flush& flush) {
  const cupti::Result result = flush();
  if (!g_registered.load(std::memory_order_acquire) || g_is_exiting.load(std::memory_order_acquire))
    return result;
  g_fences.give_up();
  if (const CuptiLibrary* library = loaded_cupti()) g_on_their_way.hand_over(*library);
  g_their_buffer.close();
  if (they_record()) g_their_buffer.open();
  return result;
}

cupti::Result their_flush_all(uint32_t flag) {
  ProfilersCall call;
  const CuptiLibrary* library = loaded_cupti();
  if (library == nullptr) return cupti::kNotInitialized;
  return their_flush_by([&] { return library->flush_all(flag); });
}

cupti::Result their_flush(void* context, uint32_t stream, uint32_t flag) {
  ProfilersCall call;
  const CuptiLibrary* library = loaded_cupti();
  if (library == nullptr || library->flush == nullptr) return cupti::kNotInitialized;
  return their_flush_by([&] { return library->flush(context, stream, flag); });
}

// CUPTI's turns bring the records to us, ours bring them to the profiler.
cupti::Result their_flush_period(uint32_t ms) {
  ProfilersCall call;
  const CuptiLibrary* library = loaded_cupti();
  if (library == nullptr || library->flush_period == nullptr) return cupti::kNotInitialized;
  const cupti::Result result = library->flush_period(ms);
  if (result == cupti::kSuccess) g_their_period.store(int64_t{ms} * 1'000'000, std::memory_order_relaxed);
  return result;
}

cupti::Result their_timestamp(cupti::Timestamp timestamp) {
  ProfilersCall call;
  const CuptiLibrary* library = loaded_cupti();
  if (library == nullptr || library->register_timestamp == nullptr) return cupti::kNotInitialized;
  // What is complete has its times from the clock before.
  flush(false);
  const cupti::Result result = library->register_timestamp(timestamp);
  if (result != cupti::kSuccess) return result;
  g_clock.change(timestamp);
  if (!g_registered.load(std::memory_order_acquire)) return result;
  // Two readings make a line; the clock need not count in ns.
  g_clock.read();
  const timespec moment{0, 1000000};
  nanosleep(&moment, nullptr);
  g_clock.read();
  return result;
}

cupti::Result their_thread_id_type(uint32_t type) {
  ProfilersCall call;
  const CuptiLibrary* library = loaded_cupti();
  if (library == nullptr || library->set_thread_id_type == nullptr) return cupti::kNotInitialized;
  const cupti::Result result = library->set_thread_id_type(type);
  if (result == cupti::kSuccess)
    g_system_thread_ids.store(type == cupti::kThreadIdSystem, std::memory_order_relaxed);
  return result;
}

// With the lock, so that our own look for other tools is not taken for one.
template <class Subscribe>
static cupti::Result subscribe_by(void** subscriber, const Subscribe& subscribe) {
  Locked locked(&g_switches);
  const cupti::Result result = subscribe();
  if (result == cupti::kSuccess && subscriber != nullptr)
    g_their_subscriber.store(*subscriber, std::memory_order_release);
  return result;
}

cupti::Result their_subscribe(void** subscriber, void* callback, void* data) {
  ProfilersCall call;
  const CuptiLibrary* library = loaded_cupti();
  if (library == nullptr) return cupti::kNotInitialized;
  return subscribe_by(subscriber, [&] { return library->subscribe(subscriber, callback, data); });
}

cupti::Result their_subscribe_v2(void** subscriber, void* callback, void* data, void* parameters) {
  ProfilersCall call;
  const CuptiLibrary* library = loaded_cupti();
  if (library == nullptr || library->subscribe_v2 == nullptr) return cupti::kNotInitialized;
  return subscribe_by(subscriber,
                      [&] { return library->subscribe_v2(subscriber, callback, data, parameters); });
}

cupti::Result their_unsubscribe(void* subscriber) {
  ProfilersCall call;
  const CuptiLibrary* library = loaded_cupti();
  if (library == nullptr) return cupti::kNotInitialized;
  const cupti::Result result = library->unsubscribe(subscriber);
  if (result == cupti::kSuccess) {
    void* known = subscriber;
    g_their_subscriber.compare_exchange_strong(known, nullptr, std::memory_order_acq_rel);
  }
  return result;
}

// After CUPTI has let go of everything: nobody has callbacks, kinds or a subscription.
static void forget_everything() {
  Locked locked(&g_switches);
  g_registered.store(false, std::memory_order_release);
  g_their_request.store(nullptr, std::memory_order_release);
  g_their_complete.store(nullptr, std::memory_order_release);
  g_their_subscriber.store(nullptr, std::memory_order_release);
  for (Window& kind : g_their_kinds) kind.forget();
  for (Contexts& contexts : g_their_contexts) contexts.clear();
  for (Window& one : g_their_calls) one.forget();
  g_kind_of_calls_was_on.store(false, std::memory_order_relaxed);
  g_their_period.store(0, std::memory_order_relaxed);
}

// CUPTI would let go of everything, ours too. To the profiler it looks as if it had: it has no subscriber, no
// callbacks and no kinds any more. The subscriber goes first: it may be told of what follows.
cupti::Result their_finalize() {
  ProfilersCall call;
  const CuptiLibrary* library = loaded_cupti();
  if (library == nullptr || library->finalize == nullptr) return cupti::kNotInitialized;
  if (!g_active.load(std::memory_order_acquire)) {
    const cupti::Result result = library->finalize();
    if (result == cupti::kSuccess) forget_everything();
    return result;
  }
  void* subscriber = g_their_subscriber.load(std::memory_order_acquire);
  if (subscriber != nullptr) their_unsubscribe(subscriber);
  for (cupti::Kind kind = 0; kind < kKinds; ++kind) {
    if (g_their_kinds[kind].is_open()) switch_off(*library, kind, 0);
  }
  for (uint32_t api = 1; api < kDriverCalls; ++api) {
    if (g_their_calls[api].is_open()) their_driver_api(api, 0);
  }
  flush(false);
  g_fences.give_up();
  g_on_their_way.hand_over(*library);
  g_their_buffer.close();
  g_their_request.store(nullptr, std::memory_order_release);
  g_their_complete.store(nullptr, std::memory_order_release);
  if (g_their_period.load(std::memory_order_relaxed) != 0) their_flush_period(0);
  return cupti::kSuccess;
}

}  // namespace lockstep::capture::cuda
