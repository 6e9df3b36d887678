// SPDX-License-Identifier: Apache-2.0
// A finished run as `push` sends it and `fleet check` compares it.
#pragma once
#include <string>
#include <vector>

#include "store/fleet.h"
#include "verdict/diagnosed_run.h"

namespace lockstep::cli::push {

struct PushedRun {
  verdict::DiagnosedRun diagnosed;  // owns the job of `run`
  store::FleetRun run;
};

// Reads and diagnoses it, which may take minutes. An error if it holds no operations.
Result<PushedRun> pushed_run(const std::vector<std::string>& paths);

}  // namespace lockstep::cli::push
