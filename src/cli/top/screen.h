// SPDX-License-Identifier: Apache-2.0
// The live view on a terminal.
#pragma once
#include "base/result.h"
#include "live/live_run.h"

namespace lockstep::cli::top {

// Until the user quits or a signal asks for it; the terminal is then as it was. An error if there is no
// terminal that it can draw on, or if this program was built without ncurses.
Result<void> run_screen(live::LiveRun& run, const std::string& name);

}  // namespace lockstep::cli::top
