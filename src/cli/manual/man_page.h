// SPDX-License-Identifier: Apache-2.0
// The manual page lockstep(1) in roff, made from the table of commands.
#pragma once
#include <string>

namespace lockstep::cli::manual {

std::string man_page();

}  // namespace lockstep::cli::manual
