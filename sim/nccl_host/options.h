// SPDX-License-Identifier: Apache-2.0
// The command line of lockstep-nccl-host.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "nccl_host/bench.h"
#include "nccl_host/plugin_library.h"

namespace lockstep::sim {

struct Options {
  std::optional<std::string> plugin;  // empty: as where the variable is unset
  Search search = Search::k2_28_3;
  std::string tape, script;
  std::vector<std::string> faults;
  int api = 0;  // 0 = the newest that the plugin exports
  bool recorded_pace = false;
  std::string late;      // a file of 8 bytes, see PlayOptions::late_ns
  int64_t shift_ns = 0;  // CLOCK_REALTIME of the replay less that of the recording; 0: begin at once
  bool json = false;
  bool help = false, list = false;
  uint64_t repeat = 1;
  uint64_t events = 0;  // 0 = the script's or the benchmark's own
  BenchOptions bench;   // stream is empty when no benchmark is asked for
};

Result<Options> parse_options(int argc, char** argv);
std::string help_text();

}  // namespace lockstep::sim
