// SPDX-License-Identifier: Apache-2.0
// The command line of lockstep-sim-job.
#pragma once
#include <string>

#include "base/result.h"
#include "job/job.h"

namespace lockstep::sim::job {

struct Options {
  JobOptions job;
  std::string output;
  bool live = false;
  std::string plugin;    // of a live job; empty: beside this program
  unsigned threads = 0;  // 0: one per processor
  bool help = false;
};

Result<Options> parse_options(int argc, char** argv);
std::string help_text();

}  // namespace lockstep::sim::job
