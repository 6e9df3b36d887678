// SPDX-License-Identifier: Apache-2.0
// Where commands do not write, not with --force either: over evidence.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace lockstep::cli {

// An error if there is a file at `output` and it is one of the inputs, a process file of whatever run, or
// lies in a directory that is an input, unless its name ends in one of `results`: endings of what the command
// writes and directories are not read for.
Result<void> check_output(const std::string& output, const std::vector<std::string>& inputs,
                          std::span<const std::string_view> results);

}  // namespace lockstep::cli
