// SPDX-License-Identifier: Apache-2.0
// A distribution's HIP, as programs call it that are built without its headers.
#pragma once
#include <fstream>
#include <iterator>
#include <vector>

#include "sim/hsa/loaded.h"

namespace lockstep::sim {

struct Hip {
  Loaded library{"libamdhip64.so.5"};
  template <class... Arguments>
  void call(const char* name, Arguments... arguments) const {
    check(name, library.get<unsigned (*)(Arguments...)>(name)(arguments...));
  }
};

inline std::vector<char> read_file(const char* path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// What the kernels of kernels.cl take.
struct Arguments {
  void* first;
  unsigned long bytes;
};

inline void launch(const Hip& hip, void* function, Arguments arguments, unsigned blocks, void* stream) {
  size_t size = sizeof arguments;
  void* extra[] = {reinterpret_cast<void*>(1), &arguments, reinterpret_cast<void*>(2), &size,
                   reinterpret_cast<void*>(3)};
  hip.call("hipModuleLaunchKernel", function, blocks, 1u, 1u, 64u, 1u, 1u, 0u, stream,
           static_cast<void**>(nullptr), static_cast<void**>(extra));
}

}  // namespace lockstep::sim
