// SPDX-License-Identifier: Apache-2.0
// A library that the process has loaded already. It is looked for among the loaded ones by file name: to
// dlopen a name that is not among them would search the file system, for every communicator. A version may
// follow the name: HIP's is libamdhip64.so.6.
#pragma once
#include <dlfcn.h>
#include <link.h>
#include <string.h>

namespace lockstep::capture {

inline const char* file_name_of(const char* path) {
  const char* slash = strrchr(path, '/');
  return slash != nullptr ? slash + 1 : path;
}

// Takes locks of the loader: not for the event path.
inline bool find_loaded(const char* name, char (&path)[1024]) {
  struct Search {
    const char* name;
    char (&path)[1024];
  } search{name, path};
  const auto compare = [](dl_phdr_info* object, size_t, void* data) {
    auto* wanted = static_cast<Search*>(data);
    const char* const file = file_name_of(object->dlpi_name);
    const size_t length = strlen(wanted->name);
    if (strncmp(file, wanted->name, length) != 0 || (file[length] != 0 && file[length] != '.')) return 0;
    if (strlen(object->dlpi_name) >= sizeof wanted->path) return 0;
    strcpy(wanted->path, object->dlpi_name);
    return 1;
  };
  return dl_iterate_phdr(compare, &search) != 0;
}

// Holds the library open while it lives. False, and no function, where it is not loaded.
class LoadedLibrary {
 public:
  explicit LoadedLibrary(const char* name) {
    char path[1024];
    if (find_loaded(name, path)) handle_ = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
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
  void* handle_ = nullptr;
};

}  // namespace lockstep::capture
