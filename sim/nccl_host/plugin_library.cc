// SPDX-License-Identifier: Apache-2.0
#include "nccl_host/plugin_library.h"

#include <dlfcn.h>

namespace lockstep::sim {

void PluginLibrary::Close::operator()(void* library) const { dlclose(library); }

Result<PluginLibrary> PluginLibrary::open(const std::string& name, int api) {
  PluginLibrary plugin;
  plugin.library_.reset(dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL));
  if (!plugin.library_) {
    const char* reason = dlerror();  // of the name as given; the second attempt's is of no use to anybody
    const std::string text = reason ? reason : "unknown reason";
    plugin.library_.reset(dlopen(("libnccl-profiler-" + name + ".so").c_str(), RTLD_NOW | RTLD_LOCAL));
    if (!plugin.library_) return Error{ErrorCode::kNotFound, "cannot load the plugin: " + text, ""};
  }
  for (int version = api ? api : 7; version >= (api ? api : 1); --version) {
    plugin.symbol_ = dlsym(plugin.library_.get(), ("ncclProfiler_v" + std::to_string(version)).c_str());
    if (plugin.symbol_ == nullptr) continue;
    plugin.api_ = version;
    return plugin;
  }
  return Error{ErrorCode::kUnsupported,
               api ? "the plugin does not export ncclProfiler_v" + std::to_string(api)
                   : std::string("the plugin exports no ncclProfiler_v7 ... ncclProfiler_v1"),
               name};
}

}  // namespace lockstep::sim
