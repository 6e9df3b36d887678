// SPDX-License-Identifier: Apache-2.0
#include "nccl_host/plugin_library.h"

#include <dlfcn.h>
#include <strings.h>

namespace lockstep::sim {
namespace {

// Any beginning of the word, in any case: the length that counts is the value's.
bool is_in_program(const std::string& value) {
  return strncasecmp(value.c_str(), "STATIC_PLUGIN", value.size()) == 0;
}

}  // namespace

std::vector<std::string> names_of_plugin(const std::string& value, Search search) {
  if (value.empty()) return {"libnccl-profiler.so"};
  if (search == Search::k2_28_3 && strcasecmp(value.c_str(), "none") == 0) return {};
  const bool is_file = value.starts_with("lib") && value.ends_with(".so");
  const std::string longer = "libnccl-profiler-" + value + ".so";
  if (search == Search::k2_27_3) return {is_file ? value : longer};
  if (is_in_program(value)) return {""};
  const bool is_whole = search == Search::k2_23 ||
                        (search >= Search::k2_27_5 && (is_file || value.find('/') != std::string::npos));
  return is_whole ? std::vector{value} : std::vector{value, longer};
}

void PluginLibrary::Close::operator()(void* library) const { dlclose(library); }

Result<PluginLibrary> PluginLibrary::open(const std::string& value, int api, Search search) {
  PluginLibrary plugin;
  std::string reason = "NCCL looks for none";
  for (const std::string& name : names_of_plugin(value, search)) {
    plugin.library_.reset(dlopen(name.empty() ? nullptr : name.c_str(), RTLD_NOW | RTLD_LOCAL));
    if (plugin.library_) break;
    if (const char* message = dlerror(); message != nullptr) reason = message;
  }
  if (!plugin.library_) return Error{ErrorCode::kNotFound, "cannot load the plugin: " + reason, ""};
  for (int version = api ? api : 7; version >= (api ? api : 1); --version) {
    plugin.symbol_ = dlsym(plugin.library_.get(), ("ncclProfiler_v" + std::to_string(version)).c_str());
    if (plugin.symbol_ == nullptr) continue;
    plugin.api_ = version;
    return plugin;
  }
  return Error{ErrorCode::kUnsupported,
               api ? "the plugin does not export ncclProfiler_v" + std::to_string(api)
                   : std::string("the plugin exports no ncclProfiler_v7 ... ncclProfiler_v1"),
               value};
}

}  // namespace lockstep::sim
