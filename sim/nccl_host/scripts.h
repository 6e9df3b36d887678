// SPDX-License-Identifier: Apache-2.0
// The built-in call scripts: the sequences that NCCL makes for each kind of work, and the awkward ones
// (abort, PXN, shared resources, unloading). scripts.def is the one list of them.
#pragma once
#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "nccl_host/program.h"

namespace lockstep::sim {

struct Script {
  std::string_view name, summary;
  Program (*build)(uint64_t size);  // size 0 = the script's own; only scripts that say so use it
};

const Script* find_script(std::string_view name);
std::string script_list();

#define SCRIPT(name, summary) Program script_##name(uint64_t size);
#include "nccl_host/scripts.def"
#undef SCRIPT

}  // namespace lockstep::sim
