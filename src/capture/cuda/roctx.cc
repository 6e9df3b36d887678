// SPDX-License-Identifier: Apache-2.0
// roctx's functions: preloaded, ours come before the library's in the loader's search. Each calls the
// library's, as another tool may listen there, and returns what that returns. Ranges are recorded if
// LOCKSTEP_HSA asks for them and no client of rocprofiler's SDK does it.
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

#include <atomic>

#include "capture/cuda/injection.h"
#include "capture/cuda/ranges.h"
#include "format/cuda_setting.h"
#include "format/hsa_setting.h"

namespace lockstep::capture::cuda {
namespace {

enum class Recorded : uint8_t { kUnknown, kNo, kYes };
std::atomic<Recorded> g_is_recorded{Recorded::kUnknown};

// Two threads that ask first find the same answer.
Recorded find_out() {
  const char* setting = getenv(format::kHsaSetting);
  const bool is_wanted =
      format::asks_for(setting, format::kHsaRanges) && !format::has_word(setting, format::kHsaSdk);
  const Recorded found = is_wanted && open_session() ? Recorded::kYes : Recorded::kNo;
  g_is_recorded.store(found, std::memory_order_relaxed);
  return found;
}
bool is_recorded() {
  const Recorded known = g_is_recorded.load(std::memory_order_relaxed);
  return (known == Recorded::kUnknown ? find_out() : known) == Recorded::kYes;
}

// One that was loaded for its user alone is behind nobody in the search: it is looked for by its names.
void* function_of_library(const char* name) {
  if (void* function = dlsym(RTLD_NEXT, name)) return function;
  for (const char* library : {"libroctx64.so.4", "libroctx64.so", "librocprofiler-sdk-roctx.so.1",
                              "librocprofiler-sdk-roctx.so.0", "librocprofiler-sdk-roctx.so"}) {
    void* handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == nullptr) continue;
    void* function = dlsym(handle, name);
    dlclose(handle);
    if (function != nullptr) return function;
  }
  return nullptr;
}

// nullptr: no such library is there.
template <class Function>
Function* library(std::atomic<void*>& known, const char* name) {
  void* function = known.load(std::memory_order_relaxed);
  if (__builtin_expect(function == nullptr, 0)) {
    function = function_of_library(name);
    known.store(function, std::memory_order_relaxed);
  }
  return reinterpret_cast<Function*>(function);
}

std::atomic<void*> g_push{nullptr}, g_pop{nullptr}, g_start{nullptr}, g_stop{nullptr};

}  // namespace
}  // namespace lockstep::capture::cuda

namespace cuda = lockstep::capture::cuda;
#define LOCKSTEP_ROCTX extern "C" __attribute__((visibility("default")))

LOCKSTEP_ROCTX int roctxRangePushA(const char* text) {
  int level = -1;
  if (cuda::is_recorded()) level = cuda::push_range(0, cuda::range_name_of(text));
  auto* const theirs = cuda::library<int(const char*)>(cuda::g_push, "roctxRangePushA");
  return theirs != nullptr ? theirs(text) : level;
}
LOCKSTEP_ROCTX int roctxRangePop() {
  int level = -1;
  if (cuda::is_recorded()) level = cuda::pop_range(0);
  auto* const theirs = cuda::library<int()>(cuda::g_pop, "roctxRangePop");
  return theirs != nullptr ? theirs() : level;
}
LOCKSTEP_ROCTX uint64_t roctxRangeStartA(const char* text) {
  auto* const theirs = cuda::library<uint64_t(const char*)>(cuda::g_start, "roctxRangeStartA");
  if (theirs == nullptr) return cuda::is_recorded() ? cuda::start_range(0, cuda::range_name_of(text)) : 0;
  const uint64_t number = theirs(text);
  if (cuda::is_recorded()) cuda::start_numbered_range(number, cuda::range_name_of(text));
  return number;
}
LOCKSTEP_ROCTX void roctxRangeStop(uint64_t number) {
  auto* const theirs = cuda::library<void(uint64_t)>(cuda::g_stop, "roctxRangeStop");
  if (cuda::is_recorded()) theirs != nullptr ? cuda::end_numbered_range(number) : cuda::end_range(number);
  if (theirs != nullptr) theirs(number);
}
