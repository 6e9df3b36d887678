// SPDX-License-Identifier: Apache-2.0
// How the library comes into a process and lives in it. CUDA's driver calls InitializeInjection when it
// starts, by CUDA_INJECTION64_PATH; a thread of ours then asks CUPTI for records where it brings none by
// itself, and once more at exit.
//   LOCKSTEP_CUDA   off, or what is recorded beside kernels: copies (and fills), ranges (of NVTX), or both
//                   with a comma
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

#include "capture/core/clock.h"
#include "capture/core/own_thread.h"
#include "capture/core/session/session.h"
#include "capture/cuda/injection.h"
#include "capture/cuda/ranges.h"
#include "capture/cuda/sharing.h"
#include "format/cuda_setting.h"
#include "format/definitions.h"

namespace lockstep::capture::cuda {
namespace {

constexpr int64_t kMillisecond = 1000000;
constexpr int64_t kLookEvery = 100 * kMillisecond, kTryEvery = 2000 * kMillisecond;
// How long a program in Python may take to load its own libcupti.
constexpr int64_t kGrace = 30000 * kMillisecond;
// What a process is kept from ending for at most, should CUPTI not answer.
constexpr int64_t kLastFlush = 2000 * kMillisecond;

pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t g_changed;  // on CLOCK_MONOTONIC; made with the thread
bool g_started = false, g_ending = false, g_over = false;
int64_t g_started_ns = 0;
std::atomic<bool> g_has_spoken{false};
std::atomic<bool> g_are_asked_for{false};  // GPU times, by the mode in force

timespec in(int64_t ns) {
  const int64_t at = clock_ns(CLOCK_MONOTONIC) + ns;
  return {at / 1000000000, at % 1000000000};
}

// Once a process, and for all ranks of a host once: they would all say the same.
void warn(const char* what, const char* why) {
  if (g_has_spoken.exchange(true)) return;
  Session::get().add_note(format::kNoteGpuRecords, why);
  if (Session::get().file().header()->local_rank <= 0) fprintf(stderr, "lockstep: %s: %s\n", what, why);
}

const char* setting() { return getenv(format::kCudaSetting); }
bool is_off() { return format::has_word(setting(), format::kCudaOff); }

// A program in Python may still load a libcupti of its own, and would then get ours, should that be there
// first: another release. Its own is waited for.
bool may_load_its_own() {
  return strncmp(program_invocation_short_name, "python", 6) == 0 &&
         clock_ns(CLOCK_MONOTONIC) - g_started_ns < kGrace;
}

void try_to_begin() {
  char why[160];
  const CuptiLibrary* library = loaded_cupti();
  if (library == nullptr && may_load_its_own()) return;
  if (library == nullptr) library = find_cupti(why, sizeof why);
  const Wanted wanted{.copies = format::asks_for(setting(), format::kCudaCopies)};
  if (library == nullptr || !begin(*library, wanted, why, sizeof why)) {
    warn("no GPU times for now", why);
    return;
  }
  uint32_t version = 0;
  library->version(&version);
  char note[160];
  snprintf(note, sizeof note, "%s, CUPTI %u", wanted.copies ? "kernels, copies" : "kernels", version);
  Session::get().add_note(format::kNoteGpuRecords, note);
}

void* run(void*) {
  prctl(PR_SET_NAME, "lockstep-cuda");
  int64_t last_try = 0;
  for (;;) {
    pthread_mutex_lock(&g_lock);
    if (!g_ending) {
      const timespec until = in(kLookEvery);
      pthread_cond_timedwait(&g_changed, &g_lock, &until);
    }
    const bool ending = g_ending;
    pthread_mutex_unlock(&g_lock);
    // The file is closed: nothing more can be written.
    if (!Session::get().running()) return nullptr;
    const int64_t now = clock_ns(CLOCK_MONOTONIC);
    const bool asked_for = g_are_asked_for.load(std::memory_order_relaxed);
    if (asked_for && !active() && !ending && (last_try == 0 || now - last_try >= kTryEvery)) {
      last_try = now;
      try_to_begin();
    }
    // CUPTI brings a buffer when it is full; what lies in a half-full one has to be asked for.
    if (active()) ending ? flush_at_exit() : flush_if_quiet();
    if (!ending) hand_over_if_due();
    if (!asked_for && active()) {
      end();
      // Begins at once when the mode asks for GPU times again.
      last_try = 0;
    }
    if (ending) break;
  }
  pthread_mutex_lock(&g_lock);
  g_over = true;
  pthread_cond_broadcast(&g_changed);
  pthread_mutex_unlock(&g_lock);
  return nullptr;
}

// Registered after CUDA's own exit handlers, so called before them.
void at_exit() {
  if (!Session::get().running()) return;
  const timespec until = in(kLastFlush);
  pthread_mutex_lock(&g_lock);
  g_ending = true;
  pthread_cond_broadcast(&g_changed);
  while (!g_over && pthread_cond_timedwait(&g_changed, &g_lock, &until) != ETIMEDOUT) {
  }
  pthread_mutex_unlock(&g_lock);
}

bool start_own_thread() {
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(&g_changed, &monotonic);
  pthread_condattr_destroy(&monotonic);
  // CUPTI and the callbacks of profilers run on its stack.
  return start_thread(run, nullptr, 0) == 0;
}

// Whether the calls of profilers come to us: without that ours would take their records away.
bool is_preloaded() {
  void* program = dlopen(nullptr, RTLD_LAZY | RTLD_NOLOAD);  // and what was loaded with it
  if (program == nullptr) return false;
  // In the loader's own order, in which the call of a profiler finds it.
  void* symbol = dlsym(program, "cuptiActivityRegisterCallbacks");
  dlclose(program);
  Dl_info ours{}, found{};
  return symbol != nullptr && dladdr(symbol, &found) != 0 &&
         dladdr(reinterpret_cast<void*>(&is_preloaded), &ours) != 0 && found.dli_fbase == ours.dli_fbase;
}

void record(const Recording& recording) {
  g_are_asked_for.store(recording.mode != format::Mode::kOff && recording.mode != format::Mode::kLite,
                        std::memory_order_relaxed);
  record_ranges(recording.mode != format::Mode::kOff);
}

void start() {
  if (is_off() || !open_session()) return;
  if (!is_preloaded()) {
    warn("no GPU times",
         "liblockstep-cuda.so must also be in LD_PRELOAD, so that profilers in this process keep their "
         "records");
    return;
  }
  // While a profiler is starting CUDA, CUPTI is in the middle of something: the thread begins a moment later.
  if (g_are_asked_for.load(std::memory_order_relaxed) && !in_profilers_call()) try_to_begin();
  if (start_own_thread()) atexit(at_exit);
}

// NVIDIA's own tools, and what runs under them. They refuse to work where another library is injected.
bool is_with_nvidias_tool() {
  for (const char* name :
       {"ncu", "nsys", "nv-nsight-cu-cli", "nsys-launcher", "compute-sanitizer", "cuda-gdb"}) {
    if (strcmp(program_invocation_short_name, name) == 0) return true;
  }
  for (const char* variable :
       {"NSYS_PROFILING_SESSION_ID", "NV_NSIGHT_INJECTION_TRANSPORT_TYPE", "NV_TPS_LAUNCH_TOKEN"}) {
    if (getenv(variable) != nullptr) return true;
  }
  const char* preloaded = getenv("LD_PRELOAD");
  for (const char* part :
       {"TreeLauncher", "ToolsInjection", "InterceptorInjection", "libsanitizer-collection"}) {
    if (preloaded != nullptr && strstr(preloaded, part) != nullptr) return true;
  }
  return false;
}

// Tells who loads the file that a variable names to load ours, unless a tool is there already.
void inject_by(const char* variable, const char* ours) {
  const char* injected = getenv(variable);
  if (is_with_nvidias_tool()) {
    if (injected != nullptr && strcmp(injected, ours) == 0) unsetenv(variable);
  } else if (injected == nullptr) {
    setenv(variable, ours, 1);
  }
}

// Preloaded is enough: the driver, and NVTX, are told where to find us.
__attribute__((constructor)) void at_load() {
  Dl_info ours{};
  if (is_off() || dladdr(reinterpret_cast<void*>(&is_preloaded), &ours) == 0 || !is_preloaded()) return;
  inject_by("CUDA_INJECTION64_PATH", ours.dli_fname);
  if (format::asks_for(setting(), format::kCudaRanges)) inject_by("NVTX_INJECTION64_PATH", ours.dli_fname);
}

}  // namespace

bool open_session() { return Session::get().open(format::Source::kCuda, {.record = record}); }

}  // namespace lockstep::capture::cuda

extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  namespace cuda = lockstep::capture::cuda;
  pthread_mutex_lock(&cuda::g_lock);
  const bool first = !cuda::g_started;
  cuda::g_started = true;
  if (first) cuda::g_started_ns = lockstep::capture::clock_ns(CLOCK_MONOTONIC);
  pthread_mutex_unlock(&cuda::g_lock);
  if (first) cuda::start();
  return 1;
}
