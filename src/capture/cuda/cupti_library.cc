// SPDX-License-Identifier: Apache-2.0
// CUPTI has to be that of the process's CUDA: one that is newer than the driver cannot work. So one that is
// loaded already is taken; else it is looked for beside the loaded runtime, then in the usual places, and by
// bare name last, never with a newer major version.
#include "capture/cuda/cupti_library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <atomic>

#include "capture/core/host/loaded_library.h"

namespace lockstep::capture::cuda {
namespace {

pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
CuptiLibrary g_library;
std::atomic<const CuptiLibrary*> g_found{nullptr};

// Once, under g_lock: readers see the library whole behind `g_found`.
bool bind(void* handle, const char* path, char* why, size_t bytes) {
  CuptiLibrary found{};
#define FUNCTION(name, symbol, needed, parameters)                                    \
  found.name = reinterpret_cast<cupti::Result(*) parameters>(dlsym(handle, #symbol)); \
  if ((needed) != 0 && found.name == nullptr) {                                       \
    snprintf(why, bytes, "%s has no %s (its CUPTI is too old)", path, #symbol);       \
    return false;                                                                     \
  }
#include "capture/cuda/cupti_functions.def"
#undef FUNCTION
  snprintf(found.path, sizeof found.path, "%s", path);
  g_library = found;
  g_found.store(&g_library, std::memory_order_release);
  return true;
}

bool open(const char* path, char* why, size_t bytes) {
  // Local: its functions must not come before those that a profiler of the program would find.
  void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  return handle != nullptr && bind(handle, path, why, bytes);
}

bool open_in(const char* folder, const char* rest, int major, char* why, size_t bytes) {
  char path[1024];
  // The name with a version first: the plain one is a link for compilers, to whichever release is installed.
  const char* forms[] = {"%s/%slibcupti.so.%d", "%s/%slibcupti.so"};
  for (const char* form : forms) {
    if (snprintf(path, sizeof path, form, folder, rest, major) < static_cast<int>(sizeof path) &&
        open(path, why, bytes))
      return true;
  }
  return false;
}

bool search(char* why, size_t bytes) {
  char runtime[1024];
  int major = driver_version() / 1000;  // a newer CUPTI cannot work
  if (find_loaded("libcudart.so", runtime)) {
    char* slash = strrchr(runtime, '/');
    const char* dot = strstr(slash != nullptr ? slash : runtime, ".so.");
    if (dot != nullptr) major = atoi(dot + 4);
    if (slash != nullptr) {
      *slash = 0;
      for (const char* rest :
           {"", "../extras/CUPTI/lib64/", "../../../extras/CUPTI/lib64/", "../../cuda_cupti/lib/"}) {
        if (open_in(runtime, rest, major, why, bytes)) return true;
      }
    }
  }
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH", static_cast<const char*>(nullptr)}) {
    const char* home = variable != nullptr ? getenv(variable) : "/usr/local/cuda";
    if (home == nullptr || *home == 0) continue;
    for (const char* rest : {"extras/CUPTI/lib64/", "lib64/", "lib/"}) {
      if (open_in(home, rest, major, why, bytes)) return true;
    }
  }
  char name[32];
  for (int version = major; version >= 11; --version) {
    snprintf(name, sizeof name, "libcupti.so.%d", version);
    if (open(name, why, bytes)) return true;
  }
  return open("libcupti.so", why, bytes);
}

}  // namespace

int driver_version() {
  // None is loaded for the question: a process without a driver has no GPU to record.
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (driver == nullptr) return 0;
  auto version = reinterpret_cast<int (*)(int*)>(dlsym(driver, "cuDriverGetVersion"));
  int number = 0;
  if (version == nullptr || version(&number) != 0) number = 0;
  dlclose(driver);
  return number;
}

const CuptiLibrary* loaded_cupti() {
  const CuptiLibrary* library = g_found.load(std::memory_order_acquire);
  if (library != nullptr) return library;
  char path[1024], why[256];
  pthread_mutex_lock(&g_lock);
  // Asked again with each call until there is one: programs load it late, with their profiler.
  if (g_found.load(std::memory_order_relaxed) == nullptr && find_loaded("libcupti.so", path))
    open(path, why, sizeof why);
  library = g_found.load(std::memory_order_relaxed);
  pthread_mutex_unlock(&g_lock);
  return library;
}

const CuptiLibrary* find_cupti(char* why, size_t bytes) {
  const CuptiLibrary* library = loaded_cupti();
  if (library != nullptr) return library;
  why[0] = 0;
  pthread_mutex_lock(&g_lock);
  if (g_found.load(std::memory_order_relaxed) == nullptr && !search(why, bytes) && why[0] == 0)
    snprintf(why, bytes, "no libcupti was found; set CUDA_HOME, or install CUPTI (nvidia-cuda-cupti)");
  library = g_found.load(std::memory_order_relaxed);
  pthread_mutex_unlock(&g_lock);
  return library;
}

}  // namespace lockstep::capture::cuda
