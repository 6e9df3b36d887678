// SPDX-License-Identifier: Apache-2.0
// Statistics of what a ring overwrites. A kernel's end comes on another thread than its operation and names
// it by handle alone, so the newest operations keep their cell's key in a small table. A slot that another
// operation has taken costs a duration and counts nothing wrong: the handle is looked at before and after the
// key.
#include "capture/nccl/histogram.h"

#include "capture/core/log/histogram_cell.h"
#include "capture/core/session/session.h"

namespace lockstep::capture::nccl {
namespace {

struct RecentOperation {
  uint64_t handle;  // written before `key`, checked again after reading it
  uint64_t key;
};
constexpr uint32_t kRecent = 1024;
RecentOperation g_recent[kRecent];

RecentOperation& recent(uint64_t handle) { return g_recent[(handle * 0x9e3779b97f4a7c15) >> 54]; }
static_assert(kRecent == 1u << (64 - 54));

}  // namespace

void count_operation(ThreadLog* log, uint64_t handle, format::Kind kind, uint32_t comm, ShapeRef shape,
                     uint64_t count, uint64_t ticks) {
  uint64_t bytes = count * shape.element_bytes;
  uint64_t key =
      uint64_t{comm} << 32 | uint64_t{shape.id} << 16 | size_bucket(bytes) << 8 | static_cast<uint64_t>(kind);
  format::HistogramCell* cell = log->histogram_cell(key, format::handle_log(handle), ticks);
  if (cell == nullptr) return;
  add_operation(cell, bytes, ticks);
  RecentOperation& slot = recent(handle);
  __atomic_store_n(&slot.handle, uint64_t{0}, __ATOMIC_RELAXED);
  __atomic_store_n(&slot.key, key, __ATOMIC_RELEASE);
  __atomic_store_n(&slot.handle, handle, __ATOMIC_RELEASE);
}

void count_duration(ThreadLog* log, const format::KernelChRecord* kernel) {
  if (kernel->gpu_start == 0 || kernel->gpu_stop < kernel->gpu_start) return;
  const auto* clock = reinterpret_cast<const uint8_t*>(&Session::get().file().header()->gpu_clock);
  // Cells are in ns, and the rate of AMD's ticks is not known here.
  if (__atomic_load_n(clock, __ATOMIC_RELAXED) != static_cast<uint8_t>(format::GpuClock::kNvidiaNs)) return;
  RecentOperation& slot = recent(kernel->parent);
  if (__atomic_load_n(&slot.handle, __ATOMIC_ACQUIRE) != kernel->parent) return;
  uint64_t key = __atomic_load_n(&slot.key, __ATOMIC_ACQUIRE);
  if (__atomic_load_n(&slot.handle, __ATOMIC_RELAXED) != kernel->parent) return;
  format::HistogramCell* cell =
      log->histogram_cell(key, format::handle_log(kernel->parent), kernel->head.start);
  if (cell == nullptr) return;
  add_duration(cell, kernel->gpu_stop - kernel->gpu_start);
}

}  // namespace lockstep::capture::nccl
