// SPDX-License-Identifier: Apache-2.0
// Faults: what a plugin has to survive, injected into any tape or script. Most rewrite the Program before it
// is played; the rest change the modelled core or the play. faults.def is the one list of them.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "nccl_host/binding.h"
#include "nccl_host/player.h"
#include "nccl_host/program.h"

namespace lockstep::sim {

bool is_fault(std::string_view name);
std::string fault_list();
void apply_fault(std::string_view name, Program* program, Behaviour* behaviour, PlayOptions* options);

}  // namespace lockstep::sim
