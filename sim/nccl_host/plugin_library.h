// SPDX-License-Identifier: Apache-2.0
// PluginLibrary: a profiler plugin opened as NCCL opens it: dlopen(RTLD_NOW | RTLD_LOCAL) of each name that a
// release makes of NCCL_PROFILER_PLUGIN, until one opens; then the newest ncclProfiler_v<N> that it exports,
// or exactly the one asked for. Closes the library when it dies. Move-only; not thread-safe.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace lockstep::sim {

// What releases of NCCL do differs from this one on.
enum class Search {
  k2_23,    // the value alone
  k2_26,    // the value, then libnccl-profiler-<value>.so
  k2_27_3,  // a value lib*.so, else libnccl-profiler-<value>.so alone: no path, nothing in the program
  k2_27_5,  // as 2.26, but a path and lib*.so stay what they are
  k2_28_3,  // as 2.27.5, and "none" is nothing
};

// What is opened for a value of NCCL_PROFILER_PLUGIN, in that order; empty text: the program itself and what
// it was linked with. An empty value is an unset one.
std::vector<std::string> names_of_plugin(const std::string& value, Search search);

class PluginLibrary {
 public:
  // api 0 = probe v7 down to v1.
  static Result<PluginLibrary> open(const std::string& value, int api, Search search = Search::k2_28_3);
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
