// SPDX-License-Identifier: Apache-2.0
// One fault of a job: which class, whom it hits, and what an observer should say of it. The classes are the
// verdicts of `lockstep diagnose`; faults.def lists them.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "job/faults/disturbance.h"
#include "job/layout.h"
#include "job/random.h"
#include "job/step_program.h"

namespace lockstep::sim::job {

// What is true of the fault. `ranks` empty and `op_index` -1: nobody, or no operation, can be named.
struct Truth {
  std::string fault, variant;
  std::vector<std::string> classes;  // right answers, best first; empty: healthy
  std::vector<int> ranks;            // to be blamed, all of them
  std::vector<int> also;             // may be blamed with them
  bool any_of = false;               // any one of `ranks` is as right as all of them
  bool ranks_known = true;           // whether the files can tell
  int group = -1;                    // of the layout
  bool comm_is_new = false;          // the disturbance's new group instead
  std::string func;
  int64_t op_index = -1;  // on that communicator, as `lockstep` counts it
  int since_step = -1;
  std::string pattern;    // when a rank is late: a word of faults.def; empty: not asked for
  int until_step = -1;    // of a pattern; the first step without
  int period = 0;         // of a pattern, steps; 0: none
  double cost_share = 0;  // of the run, against the same job without the fault; of a pattern
  double effect_ms = 0;   // lost per step, or once; of a pattern, per late step
  bool hangs = false;
  std::string note;
};

// The launcher started the job before: all processes were killed at one moment, and started again.
struct EarlierAttempt {
  LayoutSizes sizes;
  double end_share = 1;  // of the time that it would have taken
  double pause_s = 0;    // until the next attempt begins
};

struct FaultPlan {
  Disturbance disturbance;
  Truth truth;
  std::vector<EarlierAttempt> earlier;
};

struct FaultInput {
  const Layout& layout;
  const std::vector<Program>& programs;
  const ProgramSizes& sizes;
  int steps;
  bool deep;
  const Random& random;
};

// `spec` is CLASS or CLASS:VARIANT.
Result<FaultPlan> plan_fault(std::string_view spec, const FaultInput& input);
// A line per class with its variants, for the help.
std::string fault_list();

}  // namespace lockstep::sim::job
