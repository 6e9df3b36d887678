// SPDX-License-Identifier: Apache-2.0
// Vendors' libraries come with their drivers and not with this program, so they are looked up at run time.
// The handle is never closed: a driver's library may have threads of its own.
#include "links/shared_library.h"

#include <dlfcn.h>

#include <cstdlib>

namespace lockstep::links {

Result<SharedLibrary> SharedLibrary::load(const char* variable, const char* name) {
  const char* const named = std::getenv(variable);
  const char* const path = named != nullptr && *named != '\0' ? named : name;
  SharedLibrary library;
  library.handle_ = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library.handle_ != nullptr) return library;
  // The loader's own words say which file is missing or of another architecture, behind the name of this one.
  const char* const error = dlerror();
  std::string why = error == nullptr ? "" : std::string(": ") + error;
  const std::string named_twice = ": " + std::string(path) + ": ";
  if (why.starts_with(named_twice)) why.erase(0, named_twice.size() - 2);
  return Error{ErrorCode::kNotFound, "cannot be loaded" + why, path};
}

void* SharedLibrary::symbol(const char* name) const { return dlsym(handle_, name); }

}  // namespace lockstep::links
