// SPDX-License-Identifier: Apache-2.0
#include "cli/top/screen.h"

namespace lockstep::cli::top {

Result<void> run_screen(const Watched&) {
  return Error{ErrorCode::kUnsupported, "built without ncurses; `lockstep top --once` prints a table", {}};
}

}  // namespace lockstep::cli::top
