// SPDX-License-Identifier: Apache-2.0
// Completions for bash, zsh and fish, made from the table of commands.
#pragma once
#include <string>

namespace lockstep::cli::manual {

// To be sourced (bash, fish), or put into a folder of zsh's fpath as _lockstep.
std::string bash_completion();
std::string zsh_completion();
std::string fish_completion();

}  // namespace lockstep::cli::manual
