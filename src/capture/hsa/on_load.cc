// SPDX-License-Identifier: Apache-2.0
// How the library comes into a process: AMD's runtime loads what HSA_TOOLS_LIB names and calls OnLoad when it
// has found its devices, before anything can be launched. Its OnUnload comes with the last hsa_shut_down,
// which HIP never calls: an exit handler drains, too.
//   LOCKSTEP_HSA   off, or words between commas (format/hsa_setting.h)
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "capture/core/locked.h"
#include "capture/core/session/session.h"
#include "capture/hsa/agents.h"
#include "capture/hsa/argument_memory.h"
#include "capture/hsa/collector.h"
#include "capture/hsa/copies.h"
#include "capture/hsa/kernel_objects.h"
#include "capture/hsa/queues.h"
#include "format/cuda_setting.h"
#include "format/hsa_setting.h"

namespace lockstep::capture::hsa {
namespace {

pthread_mutex_t g_load_lock = PTHREAD_MUTEX_INITIALIZER;
bool g_is_loaded = false, g_has_exit_handler = false, g_has_copies = false;

Status on_executable_freeze(Executable executable, const char* options) {
  const Status frozen = g_runtime.executable_freeze(executable, options);
  if (frozen == kSuccess && Session::get().running()) add_executable(g_runtime, executable);
  return frozen;
}

Status on_executable_destroy(Executable executable) {
  if (Session::get().running()) forget_executable(g_runtime, executable);
  return g_runtime.executable_destroy(executable);
}

void record(const Recording& recording) {
  g_packet_settings.mode.store(recording.mode, std::memory_order_relaxed);
}

void note(const char* what) { Session::get().add_note(format::kNoteHsa, what); }

bool has_word(const char* word) { return format::has_word(getenv(format::kHsaSetting), word); }

void load(const RootTable* root) {
  // Beside its own client the SDK would have two owners of the signals.
  if (has_word(format::kHsaOff) || has_word(format::kHsaSdk) ||
      !Session::get().open(format::Source::kHsa, {.record = record}))
    return;
  Session::get().file().header()->gpu_clock = format::GpuClock::kAmdTicks;
  char why[160];
  Runtime runtime{};
  if (!read_tables(root, &runtime, why, sizeof why)) return note(why);
  // Read as the runtime's own, ours would call themselves for ever.
  if (runtime.queue_create == on_queue_create) return;  // the same tables again
  // Its end by us would be worse than no times.
  if (runtime.overruns_its_buffer && !has_word(format::kHsaPatched))
    return note(
        "ROCm 7.2 can crash where a tool sees its queues' packets (InterceptQueue's staging buffer), so no "
        "kernels are recorded. If this runtime has the fix, set LOCKSTEP_HSA=patched");
  g_runtime = runtime;
  const bool reads_arguments = !has_word(format::kHsaNoArguments) &&
                               begin_argument_memory(g_runtime, has_word(format::kHsaDeviceArguments));
  g_packet_settings.reads_arguments.store(reads_arguments, std::memory_order_relaxed);
  if (list_agents(g_runtime) == 0) note("no GPU in this process");
  Replacements ours{.queue_create = on_queue_create,
                    .queue_destroy = on_queue_destroy,
                    .executable_freeze = on_executable_freeze,
                    .executable_destroy = on_executable_destroy,
                    .counted_acquire = on_counted_acquire,
                    .create_queues = on_create_queues,
                    .memory_async_copy = nullptr,
                    .copy_on_engine = nullptr,
                    .pool_allocate = reads_arguments ? on_pool_allocate : nullptr,
                    .pool_free = reads_arguments ? on_pool_free : nullptr,
                    .memory_free = reads_arguments ? on_memory_free : nullptr};
  g_has_copies = has_word(format::kHsaCopies) && agent_count() > 0 && begin_copies();
  if (g_has_copies) {
    ours.memory_async_copy = on_memory_async_copy;
    ours.copy_on_engine = on_copy_on_engine;
  }
  // Before the tables are ours: from then on kernels come, and nobody else collects them.
  if (!start_collector()) return note("no thread can be started");
  replace(root, g_runtime, ours);
  snprintf(why, sizeof why, "kernels%s, HSA tables of %u and %u bytes", g_has_copies ? ", copies" : "",
           static_cast<const TableVersion*>(root->core)->minor,
           static_cast<const TableVersion*>(root->ext)->minor);
  Session::get().add_note(format::kNoteGpuRecords, why);
  g_is_loaded = true;
  if (!g_has_exit_handler) g_has_exit_handler = atexit(drain) == 0;
}

void unload() {
  if (!g_is_loaded || Session::get().phase() == Phase::kForked) return;
  stop_collector();
  if (g_has_copies) end_copies();
  drop_queues();
  g_is_loaded = g_has_copies = false;
}

}  // namespace
}  // namespace lockstep::capture::hsa

extern "C" {
__attribute__((visibility("default"))) bool OnLoad(const void* root, uint64_t, uint64_t, const char* const*) {
  namespace hsa = lockstep::capture::hsa;
  lockstep::capture::Locked locked(&hsa::g_load_lock);
  hsa::load(static_cast<const hsa::RootTable*>(root));
  return true;
}
__attribute__((visibility("default"))) void OnUnload() {
  namespace hsa = lockstep::capture::hsa;
  lockstep::capture::Locked locked(&hsa::g_load_lock);
  hsa::unload();
}
}
