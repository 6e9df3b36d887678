// SPDX-License-Identifier: Apache-2.0
// How the library comes into a process: rocprofiler-sdk loads what ROCP_TOOL_LIBRARIES names and calls
// rocprofiler_configure before AMD's runtime can launch anything. Another tool in the process, PyTorch's
// among them, is another client of the same SDK: both get all kernels.
//   LOCKSTEP_HSA   off, or words between commas: ranges (of roctx), print (format/hsa_setting.h)
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <atomic>

#include "capture/core/clock.h"
#include "capture/core/locked.h"
#include "capture/core/session/session.h"
#include "capture/cuda/ranges.h"
#include "capture/hsa/counter_block.h"
#include "capture/hsa/kernel_objects.h"
#include "capture/rocp/agents.h"
#include "capture/rocp/dispatches.h"
#include "capture/rocp/markers.h"
#include "format/cuda_setting.h"
#include "format/hsa_setting.h"

namespace lockstep::capture::rocp {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

struct Sdk {
  CreateContext create_context;
  StartContext start_context;
  ConfigureCallbacks configure_callbacks;
  QueryAgents query_agents;
  GetTimestamp get_timestamp;
};
Sdk g_sdk;
uint32_t g_version = 0;
pthread_mutex_t g_turn = PTHREAD_MUTEX_INITIALIZER;  // of look_locked()
int64_t g_clock_ns = 0, g_counters_ns = 0;

bool has_word(const char* word) { return format::has_word(getenv(format::kHsaSetting), word); }
void note(const char* what) { Session::get().add_note(format::kNoteHsa, what); }

template <class Function>
bool take(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

// Of the copy of the SDK that calls us: a process may hold two.
bool find_sdk(const void* caller) {
  Dl_info info{};
  if (dladdr(caller, &info) == 0 || info.dli_fname == nullptr) return false;
  void* library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) library = dlopen(nullptr, RTLD_LAZY);  // linked into the program
  return library != nullptr && take(library, "rocprofiler_create_context", &g_sdk.create_context) &&
         take(library, "rocprofiler_start_context", &g_sdk.start_context) &&
         take(library, "rocprofiler_configure_callback_tracing_service", &g_sdk.configure_callbacks) &&
         take(library, "rocprofiler_query_available_agents", &g_sdk.query_agents) &&
         take(library, "rocprofiler_get_timestamp", &g_sdk.get_timestamp);
}

void on_code(CallbackRecord record, uint64_t*, void*) {
  if (record.kind != kCodeObject || record.phase != kEnter || !Session::get().running()) return;
  if (record.operation == kLoadCode) return hsa::count_executable();
  const auto* symbol = static_cast<const KernelSymbol*>(record.payload);
  if (record.operation == kDeviceSymbol && symbol != nullptr && symbol->bytes >= sizeof *symbol &&
      symbol->name != nullptr)
    hsa::add_kernel(key_of_kernel(symbol->kernel), symbol->name);
}

// Definitions stay for as long as the process lives: a ring gets fewer.
int64_t every(int64_t ns) { return Session::get().file().ring() ? 16 * ns : ns; }

// Names come before what ends.
void look_locked(bool is_last) {
  hsa::define_used_kernels();
  define_queues();
  const int64_t now = clock_ns(CLOCK_MONOTONIC);
  if (is_last || now - g_clock_ns >= every(kSecond)) {
    g_clock_ns = now;
    place_clocks(g_sdk.get_timestamp);
  }
  if (is_last || now - g_counters_ns >= every(2 * kSecond)) {
    g_counters_ns = now;
    write_counters();
  }
}

// The keeper's, on each of its naps.
void on_nap() {
  Locked locked(&g_turn);
  if (g_clock_ns != 0) look_locked(false);  // once the SDK is there
}
// Before the session closes, which the library's destructor does. It waits for the keeper, with a bound.
void on_exit() {
  if (!Session::get().running() || !lock_until(&g_turn, clock_ns(CLOCK_MONOTONIC) + kSecond)) return;
  look_locked(true);
  pthread_mutex_unlock(&g_turn);
}

void record(const Recording& recording) {
  record_mode(recording);
  cuda::record_ranges(recording.mode != format::Mode::kOff);
}

// Why nothing is captured; nullptr: it is.
const char* start() {
  if (list_agents(g_sdk.query_agents) == 0) return "no GPU in this process";
  ContextId context{};
  constexpr int32_t kCode[] = {kLoadCode, kDeviceSymbol}, kKernels[] = {kEnqueue, kComplete},
                    kRanges[] = {kPush, kPop, kStartRange, kStopRange};
  if (g_sdk.create_context(&context) != kSuccess ||
      g_sdk.configure_callbacks(context, kCodeObject, kCode, 2, on_code, nullptr) != kSuccess ||
      g_sdk.configure_callbacks(context, kKernelDispatch, kKernels, 2, on_dispatch, nullptr) != kSuccess ||
      (has_word(format::kHsaRanges) &&
       g_sdk.configure_callbacks(context, kMarkers, kRanges, 4, on_marker, nullptr) != kSuccess) ||
      g_sdk.start_context(context) != kSuccess)
    return "rocprofiler-sdk refuses a context";
  atexit(on_exit);
  {
    Locked locked(&g_turn);
    look_locked(true);
  }
  char what[80];
  snprintf(what, sizeof what, "kernels, rocprofiler-sdk %u.%u.%u", g_version / 10000, g_version / 100 % 100,
           g_version % 100);
  Session::get().add_note(format::kNoteGpuRecords, what);
  return nullptr;
}

int initialize(Finalize, void*) {
  const char* why = start();
  if (why != nullptr) note(why);
  return why == nullptr ? 0 : -1;
}
// The SDK has delivered the last ends by now; they may come after exit's handlers.
void finalize(void*) { on_exit(); }

// After all that exit calls, the SDK's own end among it, whichever of the two comes first.
__attribute__((destructor)) void at_unload() {
  if (g_clock_ns != 0 && Session::get().phase() != capture::Phase::kForked && has_word(format::kHsaPrint))
    hsa::print_counters(written_counters());
}

Configured* configure(uint32_t version, const void* caller) {
  static Configured configured{sizeof(Configured), initialize, finalize, nullptr};
  static std::atomic<bool> is_taken{false};
  if (has_word(format::kHsaOff) ||
      !Session::get().open(format::Source::kHsa, {.record = record, .apply_pending = on_nap}))
    return nullptr;
  Session::get().file().header()->gpu_clock = format::GpuClock::kAmdTicks;
  if (version < kOldestVersion || version >= kNextMajorVersion) {
    char why[120];
    snprintf(why, sizeof why, "rocprofiler-sdk %u.%u is not known, only 1.x is", version / 10000,
             version / 100 % 100);
    note(why);
    return nullptr;
  }
  if (is_taken.exchange(true)) return note("a second rocprofiler-sdk in one process is left alone"), nullptr;
  if (!find_sdk(caller)) return note("rocprofiler-sdk lacks a function"), nullptr;
  g_version = version;
  return &configured;
}

}  // namespace
}  // namespace lockstep::capture::rocp

extern "C" __attribute__((visibility("default"))) void* rocprofiler_configure(uint32_t version, const char*,
                                                                              uint32_t, void*) {
  namespace rocp = lockstep::capture::rocp;
  return rocp::configure(version, __builtin_return_address(0));
}
