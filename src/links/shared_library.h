// SPDX-License-Identifier: Apache-2.0
// A library that may be there: loaded when it is wanted, each function looked up by name. It stays loaded.
#pragma once
#include <string>

#include "base/result.h"

namespace lockstep::links {

// Copies are of one library. Any thread.
class SharedLibrary {
 public:
  // The file that the environment variable names, else `name` where the loader finds it.
  static Result<SharedLibrary> load(const char* variable, const char* name);

  // nullptr where the library has none of that name.
  template <class Function>
  Function function(const char* name) const {
    return reinterpret_cast<Function>(symbol(name));
  }

 private:
  void* symbol(const char* name) const;
  void* handle_ = nullptr;
};

}  // namespace lockstep::links
