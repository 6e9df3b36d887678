// SPDX-License-Identifier: Apache-2.0
// The losses of a run as a table.
#pragma once
#include <string>

#include "input/losses.h"

namespace lockstep::cli {

// "Losses: none." or a heading and a table.
std::string loss_report(const input::RunOverview& run);

}  // namespace lockstep::cli
