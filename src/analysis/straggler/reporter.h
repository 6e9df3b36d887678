// SPDX-License-Identifier: Apache-2.0
// Says in findings who is late, when, and what it costs.
#pragma once
#include <string>
#include <vector>

#include "analysis/finding.h"
#include "analysis/straggler/cost/culprits.h"
#include "analysis/straggler/cost/delay_cost.h"
#include "analysis/straggler/cost/longest_own.h"
#include "analysis/straggler/cost/scattered.h"
#include "analysis/straggler/lateness/lateness.h"

namespace lockstep::analysis::straggler {

class Reporter {
 public:
  // All stay where they are.
  Reporter(const model::Job& job, const Lateness& lateness, const DelayCost& costs,
           std::vector<Finding>& findings)
      : job_(job), lateness_(lateness), costs_(costs), findings_(findings) {}

  // Whether the clocks leave no doubt of one of them.
  bool is_any_proven(const std::vector<Culprit>& culprits) const;
  // Those whose hosts are late in one finding, those whose GPUs are in another.
  void report(const std::vector<Culprit>& culprits);
  void report(const FewDelays& few);
  void report(const Turns& turns);
  void report(const LongestOwn& longest);

 private:
  // What one rank did in the steps in question.
  struct Account {
    double total_ns = 0, host_ns = 0, sure_ns = 0;  // sure: without what the clocks leave open
    const LateOp* first = nullptr;                  // the worst of the first step
    bool timed = false;
  };
  struct Accused {
    const Culprit* culprit;
    Account sum;
  };

  Account account(size_t row, size_t first, size_t last) const;
  uint32_t process_of(size_t row) const { return costs_.ranks[row].process; }
  void name(Finding& finding, uint32_t process) const;
  std::string who(uint32_t process) const;
  void show(Finding& finding, uint32_t process, const LateOp& late) const;
  std::string step_text(size_t step) const;
  std::string steps_text(const std::vector<size_t>& steps) const;
  std::string steps_evidence() const;

  void late(FindingClass kind, const std::vector<Accused>& accused);
  std::string statement(FindingClass kind, const Finding& finding, const Accused& worst) const;
  std::string cost_evidence(const Accused& accused) const;
  std::string when_text(const Pattern& pattern) const;
  static std::string advice(FindingClass kind, bool one);
  std::vector<Accused> accused_of(FindingClass kind, const std::vector<Culprit>& culprits) const;
  bool is_proven(const Accused& accused, const std::vector<Accused>& of_kind) const;
  void cannot_tell(const Accused& accused);
  void one_of_two(const Accused& accused);
  double host_share() const;

  const model::Job& job_;
  const Lateness& lateness_;
  const DelayCost& costs_;
  std::vector<Finding>& findings_;
};

}  // namespace lockstep::analysis::straggler
