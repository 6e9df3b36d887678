// SPDX-License-Identifier: Apache-2.0
// %p %h %r %n %j in file names: process id, host, rank, node rank, job id; %% is a percent sign. Unknown
// numbers become -1 and an unknown job "nojob", as in the capture libraries.
#pragma once
#include <string>
#include <string_view>

#include "run/process_info.h"

namespace lockstep::cli::trace {

std::string expand_tokens(std::string_view text, const run::ProcessIdentity& identity,
                          const run::JobPlace& place);
// Text that expands to itself.
std::string protect_tokens(std::string_view text);

}  // namespace lockstep::cli::trace
