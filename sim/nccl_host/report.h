// SPDX-License-Identifier: Apache-2.0
// What a play found, for people (stderr) and for programs (JSON on stdout).
#pragma once
#include <string>

#include "nccl_host/core.h"
#include "nccl_host/player.h"
#include "nccl_host/program.h"

namespace lockstep::sim {

struct PlayReport {
  std::string plugin_name;
  int api = 0;
  int mask = 0;
  uint64_t loads = 0;
  uint64_t repeat = 1;
  bool all_finalized = false;
  PlayResult result;
};

std::string text_report(const Program& program, const PlayReport& report);
std::string json_report(const Program& program, const PlayReport& report);
std::string json_quote(const std::string& text);

}  // namespace lockstep::sim
