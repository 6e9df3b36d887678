// SPDX-License-Identifier: Apache-2.0
// The live view on a terminal.
#pragma once
#include <chrono>
#include <functional>
#include <vector>

#include "base/result.h"
#include "live/live_run.h"

namespace lockstep::cli::top {

// What is watched.
struct Watched {
  std::string name;
  std::function<Result<std::vector<live::SeenProcess>>()> look;
  std::chrono::milliseconds period{1'000};  // between looks
};

// Until the user quits or a signal asks for it; the terminal is then as it was. An error if there is no
// terminal that it can draw on, or if this program was built without ncurses.
Result<void> run_screen(const Watched& watched);

}  // namespace lockstep::cli::top
