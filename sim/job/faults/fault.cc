// SPDX-License-Identifier: Apache-2.0
#include "job/faults/fault.h"

#include <algorithm>
#include <iterator>
#include <sstream>

#include "job/faults/plans.h"
#include "job/simulation.h"

namespace lockstep::sim::job {
namespace {

struct Entry {
  std::string_view name, variants, text;
  Result<FaultPlan> (*plan)(std::string_view, const FaultInput&);
};
constexpr Entry kFaults[] = {
#define FAULT(name, function, variants, text) {name, variants, text, function},
#include "job/faults/faults.def"
#undef FAULT
};

std::vector<std::string> words(std::string_view text) {
  std::istringstream in{std::string(text)};
  return {std::istream_iterator<std::string>(in), {}};
}

}  // namespace

const Program& program_of(const FaultInput& input, int rank) {
  return input.programs[static_cast<size_t>(input.layout.stage_of(rank))];
}

double step_compute_us(const FaultInput& input) {
  double us = 0;
  for (const Unit& unit : input.programs.front()) us += unit.compute_us;
  return us;
}

double run_us(const FaultInput& input, const Disturbance& disturbance) {
  const Timeline played =
      Simulation(input.layout, input.programs, disturbance, {input.steps, false}, input.random).run();
  return static_cast<double>(played.last - kFirstStepNs) * 1e-3;
}

Target target_at(const FaultInput& input, int rank, Position at) {
  const Program& program = program_of(input, rank);
  const Unit& unit = program[static_cast<size_t>(at.unit)];
  uint64_t in_step = 0, before = 0;
  for (size_t u = 0; u < program.size(); ++u) {
    if (program[u].dim != unit.dim || program[u].tasks.front().is_p2p()) continue;
    ++in_step;
    before += u < static_cast<size_t>(at.unit);
  }
  return {rank, at, input.layout.group_of(rank, unit.dim), static_cast<uint64_t>(at.step) * in_step + before,
          unit.tasks.front()};
}

void name_op(const Target& target, Truth* truth) {
  truth->group = target.group;
  truth->func = name_of(target.task.func);
  truth->op_index = static_cast<int64_t>(target.index);
  truth->since_step = target.at.step;
}

Result<FaultPlan> wrong_input(std::string text) { return Error{ErrorCode::kUsage, std::move(text), ""}; }

Result<FaultPlan> plan_fault(std::string_view spec, const FaultInput& input) {
  const size_t colon = spec.find(':');
  const std::string_view name = spec.substr(0, colon);
  const auto* found =
      std::find_if(std::begin(kFaults), std::end(kFaults), [&](const Entry& e) { return e.name == name; });
  if (found == std::end(kFaults))
    return wrong_input("no fault '" + std::string(name) + "'; --help lists them");
  const std::vector<std::string> variants = words(found->variants);
  std::string variant = variants.empty() ? "" : variants.front();
  if (colon != std::string_view::npos) {
    variant = spec.substr(colon + 1);
    if (std::find(variants.begin(), variants.end(), variant) == variants.end())
      return wrong_input(std::string(name) + " has no variant '" + variant + "'; --help lists them");
  }
  LOCKSTEP_ASSIGN(FaultPlan plan, found->plan(variant, input));
  plan.truth.fault = name;
  plan.truth.variant = variant;
  return plan;
}

std::string fault_list() {
  std::string text;
  for (const Entry& fault : kFaults) {
    std::string name(fault.name);
    if (!fault.variants.empty()) name += " (" + std::string(fault.variants) + ")";
    text += "  " + name + "\n      " + std::string(fault.text) + "\n";
  }
  return text;
}

}  // namespace lockstep::sim::job
