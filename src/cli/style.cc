// SPDX-License-Identifier: Apache-2.0
#include "cli/style.h"

#include <unistd.h>

#include <cstdlib>

namespace lockstep::cli {

Style Style::of_stdout() {
  const char* no_color = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  bool wanted = no_color == nullptr || *no_color == 0;
  bool able = isatty(STDOUT_FILENO) == 1 && terminal != nullptr && std::string_view(terminal) != "dumb";
  return Style(wanted && able);
}

}  // namespace lockstep::cli
