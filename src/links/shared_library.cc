// SPDX-License-Identifier: Apache-2.0
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
  const char* const error = dlerror();
  return Error{
      ErrorCode::kNotFound,
      "cannot be loaded" + std::string(error == nullptr ? "" : ": ") + (error == nullptr ? "" : error), path};
}

void* SharedLibrary::symbol(const char* name) const { return dlsym(handle_, name); }

}  // namespace lockstep::links
