// SPDX-License-Identifier: Apache-2.0
// What an agent may ask: commands that only read, on paths below folders that the user named.
#pragma once
#include <chrono>
#include <string>
#include <vector>

#include "cli/mcp/server.h"

namespace lockstep::cli::mcp {

struct ToolLimits {
  std::vector<std::string> folders;  // absolute, without links
  std::chrono::seconds patience{60};
};
// The tools share a copy of `limits`. Each call starts a child, so the caller has one thread.
std::vector<Tool> all_tools(const ToolLimits& limits);

}  // namespace lockstep::cli::mcp
