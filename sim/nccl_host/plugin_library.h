// SPDX-License-Identifier: Apache-2.0
// PluginLibrary: a profiler plugin opened as NCCL opens it: dlopen(RTLD_NOW | RTLD_LOCAL) of the name as given, then of
// libnccl-profiler-<name>.so; then the newest ncclProfiler_v<N> that it exports, or exactly the one asked for.
// Closes the library when it dies. Move-only; not thread-safe.
#pragma once
#include <memory>
#include <string>

#include "base/result.h"

namespace lockstep::sim {

class PluginLibrary {
 public:
  // api 0 = probe v7 down to v1.
  static Result<PluginLibrary> open(const std::string& name, int api);
  int api() const { return api_; }
  void* symbol() const { return symbol_; }

 private:
  struct Close {
    void operator()(void* library) const;
  };
  std::unique_ptr<void, Close> library_;
  int api_ = 0;
  void* symbol_ = nullptr;
};

}  // namespace lockstep::sim
