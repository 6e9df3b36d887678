// SPDX-License-Identifier: Apache-2.0
// NVTX as a library has it compiled in, written anew from what NVIDIA publishes and apart from
// src/capture/cuda/nvtx_abi.h, so that both cannot be wrong in the same way: at the first call it loads what
// NVTX_INJECTION64_PATH names, hands it its tables, and from then on calls what it finds there, or nothing.
// Each NvtxCopy<n> is another library's copy.
#pragma once
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

namespace lockstep::test {

struct NvtxAttributes {  // nvtxEventAttributes_v2
  uint16_t version = 3;
  uint16_t size = 48;
  uint32_t category = 0;
  int32_t colorType = 0;
  uint32_t color = 0;
  int32_t payloadType = 0;
  int32_t reserved0 = 0;
  uint64_t payload = 0;
  int32_t messageType = 0;  // 0 none, 1 ascii, 2 unicode, 3 registered
  const void* message = nullptr;
};

template <int kNumber = 0>
class NvtxCopy {
 public:
  using Domain = void*;
  using Text = void*;  // registered

  // What is loaded and whether it came along; false where the variable is not set.
  static bool initialize() {
    const char* path = getenv("NVTX_INJECTION64_PATH");
    void* library = path != nullptr ? dlopen(path, RTLD_LAZY) : nullptr;
    if (library == nullptr) return false;
    auto* initialize =
        reinterpret_cast<int (*)(const void* (*)(uint32_t))>(dlsym(library, "InitializeInjectionNvtx2"));
    return initialize != nullptr && initialize_by(initialize);
  }
  static bool initialize_by(int (*initialize)(const void* (*)(uint32_t))) {
    for (int i = 1; i < 16; ++i) {
      core_table_[i] = &core_[i];
      core2_table_[i] = &core2_[i];
    }
    if (initialize(export_table) != 0) return true;
    memset(core_, 0, sizeof core_);  // a tool that fails gets no calls
    memset(core2_, 0, sizeof core2_);
    return false;
  }
  static int functions() {
    int count = 0;
    for (int i = 1; i < 16; ++i) count += (core_[i] != nullptr) + (core2_[i] != nullptr);
    return count;
  }

  static uint64_t start_ex(const NvtxAttributes& a) { return call<uint64_t>(core_[4], 0, &a); }
  static uint64_t start(const char* text) { return call<uint64_t>(core_[5], 0, text); }
  static uint64_t start(const wchar_t* text) { return call<uint64_t>(core_[6], 0, text); }
  static void end(uint64_t id) { notify(core_[7], id); }
  static int push_ex(const NvtxAttributes* a) { return call<int>(core_[8], -2, a); }
  static int push(const char* text) { return call<int>(core_[9], -2, text); }
  static int push(const wchar_t* text) { return call<int>(core_[10], -2, text); }
  static int pop() { return call<int>(core_[11], -2); }
  static uint64_t start(Domain domain, const NvtxAttributes& a) {
    return call<uint64_t>(core2_[2], 0, domain, &a);
  }
  static void end(Domain domain, uint64_t id) { notify(core2_[3], domain, id); }
  static int push(Domain domain, const NvtxAttributes& a) { return call<int>(core2_[4], -2, domain, &a); }
  static int pop(Domain domain) { return call<int>(core2_[5], -2, domain); }
  static Text register_text(Domain domain, const char* text) {
    return call<Text>(core2_[10], nullptr, domain, text);
  }
  static Text register_text(Domain domain, const wchar_t* text) {
    return call<Text>(core2_[11], nullptr, domain, text);
  }
  static Domain domain(const char* name) { return call<Domain>(core2_[12], nullptr, name); }
  static Domain domain(const wchar_t* name) { return call<Domain>(core2_[13], nullptr, name); }

  static NvtxAttributes named(const char* text) { return {.messageType = 1, .message = text}; }
  static NvtxAttributes named(const wchar_t* text) { return {.messageType = 2, .message = text}; }
  static NvtxAttributes registered(Text text) { return {.messageType = 3, .message = text}; }

 private:
  using Function = void (*)();

  // `absent`: what is returned where nobody listens.
  template <class Return, class... Arguments>
  static Return call(Function function, Return absent, Arguments... arguments) {
    return function != nullptr ? reinterpret_cast<Return (*)(Arguments...)>(function)(arguments...) : absent;
  }
  template <class... Arguments>
  static void notify(Function function, Arguments... arguments) {
    if (function != nullptr) reinterpret_cast<void (*)(Arguments...)>(function)(arguments...);
  }

  // nvtxEtiGetModuleFunctionTable: the tables end with a null, which `size` leaves out.
  static int module_functions(int32_t module, Function*** table, uint32_t* size) {
    if (module != 1 && module != 5) return 0;
    *table = module == 1 ? core_table_ : core2_table_;
    *size = 16;
    return 1;
  }
  struct Callbacks {
    size_t struct_size;
    int (*get_module_function_table)(int32_t, Function***, uint32_t*);
  };
  static const void* export_table(uint32_t id) {
    static const Callbacks callbacks = {sizeof(Callbacks), module_functions};
    return id == 1 ? &callbacks : nullptr;
  }

  static inline Function core_[16] = {}, core2_[16] = {};
  static inline Function *core_table_[17] = {}, *core2_table_[17] = {};
};

}  // namespace lockstep::test
