// SPDX-License-Identifier: Apache-2.0
// A library that the process has loaded already. It is looked for among the loaded ones by file name: to
// dlopen a name that is not among them would search the file system, for every communicator. A version may
// follow the name: HIP's is libamdhip64.so.6.
#pragma once
#include <dlfcn.h>
#include <link.h>
#include <string.h>

namespace lockstep::capture::nccl {

inline const char* file_name_of(const char* path) {
  const char* slash = strrchr(path, '/');
  return slash != nullptr ? slash + 1 : path;
}

// Holds the library open while it lives. False, and no function, where it is not loaded. Takes locks of the
// loader: not for the event path.
class LoadedLibrary {
 public:
  explicit LoadedLibrary(const char* name) {
    Search search{name, {}};
    if (dl_iterate_phdr(compare, &search) != 0) handle_ = dlopen(search.path, RTLD_LAZY | RTLD_NOLOAD);
  }
  ~LoadedLibrary() {
    if (handle_ != nullptr) dlclose(handle_);
  }
  LoadedLibrary(const LoadedLibrary&) = delete;
  LoadedLibrary& operator=(const LoadedLibrary&) = delete;
  explicit operator bool() const { return handle_ != nullptr; }
  template <class Function>
  Function function(const char* name) const {
    return reinterpret_cast<Function>(handle_ == nullptr ? nullptr : dlsym(handle_, name));
  }

 private:
  struct Search {
    const char* name;
    char path[1024];
  };
  static int compare(dl_phdr_info* object, size_t, void* data) {
    auto* search = static_cast<Search*>(data);
    const char* const file = file_name_of(object->dlpi_name);
    const size_t length = strlen(search->name);
    if (strncmp(file, search->name, length) != 0 || (file[length] != 0 && file[length] != '.')) return 0;
    if (strlen(object->dlpi_name) >= sizeof search->path) return 0;
    strcpy(search->path, object->dlpi_name);
    return 1;
  }

  void* handle_ = nullptr;
};

}  // namespace lockstep::capture::nccl
