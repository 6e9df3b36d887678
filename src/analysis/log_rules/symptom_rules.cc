// SPDX-License-Identifier: Apache-2.0
#include "analysis/log_rules/symptoms.h"

#include <algorithm>

#include "analysis/log_rules/rules.h"
#include "base/ascii.h"

namespace lockstep::analysis::log_rules {
namespace {

using readers::nccl_log::Symptom;

DescribedSymptom words_of(Symptom symptom) {
  switch (symptom) {
#define SYMPTOM(name, what, advice) \
  case Symptom::k##name:            \
    return {what, advice};
#include "analysis/log_rules/symptoms.def"
#undef SYMPTOM
  }
  return {};
}

}  // namespace

std::optional<DescribedSymptom> first_symptom(const LogModel& model) {
  for (const auto& state : model.states) {
    if (!state.symptom) continue;
    DescribedSymptom found = words_of(*state.symptom);
    found.where = &state.symptom_at;
    found.text = trimmed(std::string_view(state.symptom_at.text), "# ");
    return found;
  }
  return std::nullopt;
}

// Where lines of a log are understood, these say what is wrong, or verdict/doubts.h that they show nothing.
std::optional<Hit> symptom(const View& view) {
  const auto& states = view.model().states;
  const auto found = first_symptom(view.model());
  if (!found || !view.model().is_silent()) return std::nullopt;
  // A line of a program says more of it than a title that names no symptom.
  const bool is_vague = std::all_of(states.begin(), states.end(), [](const auto& state) {
    return !state.symptom || state.symptom == Symptom::kFailure;
  });
  const bool has_errors =
      std::any_of(states.begin(), states.end(), [](const auto& state) { return state.errors > 0; });
  if (is_vague && has_errors) return std::nullopt;
  Hit hit;
  hit.what = "the text describes " + std::string(found->what) +
             ", and Lockstep understands no log line in it: " + std::string(found->text);
  hit.advice = found->advice;
  prove(view, *found->where, hit);
  return hit;
}

}  // namespace lockstep::analysis::log_rules
