// SPDX-License-Identifier: Apache-2.0
// A distribution's HIP, as programs call it that are built without its headers.
#pragma once
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
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

// Kernels as a compiler makes them of kernel<<<...>>>(...); of launches, HIP 5.2.3 captures these alone. The
// code becomes known as a program's start makes it, with addresses that stand for its kernels.
class CompiledKernels {
 public:
  // `hip` outlives it. Once a process: HIP keeps what it is told.
  CompiledKernels(const Hip& hip, const std::vector<char>& code) : hip_(hip) {
    static std::vector<char> bundle;
    static Wrapper wrapper;
    bundle = bundle_of(code);
    wrapper = {0x48495046, 1, bundle.data(), nullptr};
    void** const modules = hip.library.get<void** (*)(const void*)>("__hipRegisterFatBinary")(&wrapper);
    const auto add = hip.library.get<void (*)(void**, const void*, const char*, const char*, unsigned, void*,
                                              void*, void*, void*, int*)>("__hipRegisterFunction");
    for (const auto& [function, name] :
         {std::pair{&kCompute, "plain_compute"}, std::pair{&kReduce, "ncclDevKernel_Generic_1"}})
      add(modules, function, name, name, ~0u, nullptr, nullptr, nullptr, nullptr, nullptr);
  }
  void launch(bool is_rccls, void* first, unsigned blocks, void* stream) const {
    unsigned long bytes = 64;
    void* arguments[] = {&first, &bytes};
    hip_.call("hipLaunchKernel", static_cast<const void*>(is_rccls ? &kReduce : &kCompute),
              Extent{blocks, 1, 1}, Extent{64, 1, 1}, static_cast<void**>(arguments), size_t{0}, stream);
  }

 private:
  struct Extent {
    unsigned x, y, z;
  };
  // What a compiler puts into a program around the code of its kernels.
  struct Wrapper {
    unsigned magic, version;
    const void* bundle;
    void* unused;
  };
  static std::vector<char> bundle_of(const std::vector<char>& code) {
    constexpr size_t kCodeAt = 4096;
    std::string head = "__CLANG_OFFLOAD_BUNDLE__";
    const auto add_number = [&](uint64_t number) {
      head.append(reinterpret_cast<const char*>(&number), sizeof number);
    };
    add_number(2);
    for (const std::string target : {"host-x86_64-unknown-linux", "hipv4-amdgcn-amd-amdhsa--gfx900"}) {
      add_number(kCodeAt);
      add_number(target.starts_with("host") ? 0 : code.size());
      add_number(target.size());
      head += target;
    }
    std::vector<char> bundle(kCodeAt + code.size());
    std::memcpy(bundle.data(), head.data(), head.size());
    std::memcpy(bundle.data() + kCodeAt, code.data(), code.size());
    return bundle;
  }

  static constexpr char kCompute = 0, kReduce = 1;
  const Hip& hip_;
};

}  // namespace lockstep::sim
