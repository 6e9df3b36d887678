// SPDX-License-Identifier: Apache-2.0
// A library of AMD's, opened at run time by name, so that the programs are built without its headers.
#pragma once
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

namespace lockstep::sim {

class Loaded {
 public:
  explicit Loaded(const char* name) : library_(dlopen(name, RTLD_NOW | RTLD_GLOBAL)) {
    if (library_ != nullptr) return;
    std::fprintf(stderr, "%s\n", dlerror());
    std::exit(77);  // not there
  }
  template <class Function>
  Function get(const char* name) const {
    void* found = dlsym(library_, name);
    if (found == nullptr) {
      std::fprintf(stderr, "no %s\n", name);
      std::exit(77);
    }
    return reinterpret_cast<Function>(found);
  }

 private:
  void* library_;
};

inline void check(const char* what, unsigned status) {
  if (status == 0) return;
  std::fprintf(stderr, "%s: %#x\n", what, status);
  std::exit(2);
}

}  // namespace lockstep::sim
