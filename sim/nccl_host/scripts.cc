// SPDX-License-Identifier: Apache-2.0
#include "nccl_host/scripts.h"

namespace lockstep::sim {
namespace {

constexpr Script kScripts[] = {
#define SCRIPT(name, summary) {#name, summary, script_##name},
#include "nccl_host/scripts.def"
#undef SCRIPT
};

}  // namespace

const Script* find_script(std::string_view name) {
  for (const Script& script : kScripts)
    if (script.name == name) return &script;
  return nullptr;
}

std::string script_list() {
  std::string out;
  for (const Script& script : kScripts) {
    std::string line = "  " + std::string(script.name);
    line.resize(20, ' ');
    out += line + std::string(script.summary) + "\n";
  }
  return out;
}

}  // namespace lockstep::sim
