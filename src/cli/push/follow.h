// SPDX-License-Identifier: Apache-2.0
// `push --follow`: a running job's newest state into a store, until its processes have ended.
#pragma once
#include "cli/command.h"
#include "store/fleet.h"

namespace lockstep::cli::push {

// The exit code.
int follow(const Arguments& arguments, const store::FleetTarget& target);

}  // namespace lockstep::cli::push
