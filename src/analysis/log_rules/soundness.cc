// SPDX-License-Identifier: Apache-2.0
// Damage takes from a file its say about the set-up, not about trouble. A changed digit turns a card, a rank
// or a communicator into another one, and a comparison across ranks would then blame whoever differs; but no
// damage makes a line that matches the whole pattern of a warning. Connections name communicators by row, so
// the rows that stay are renumbered.
#include "analysis/log_rules/soundness.h"

#include <algorithm>

namespace lockstep::analysis::log_rules {

using readers::nccl_log::CommPart;
using readers::nccl_log::Connection;
using readers::nccl_log::Fact;
using readers::nccl_log::FileState;
using readers::nccl_log::kNobody;
using readers::nccl_log::LogModel;

bool has_damage(const LogModel& model) {
  return std::any_of(model.states.begin(), model.states.end(),
                     [](const FileState& state) { return state.is_damaged(); });
}

LogModel without_damaged(const LogModel& model) {
  const auto is_of_damaged = [&](uint32_t file) { return model.states[file].is_damaged(); };
  const auto is_believed = [&](const Fact& fact) {
    return !is_of_damaged(fact.first.file) || fact.is_warning || fact.kind >= readers::nccl_log::kFirstError;
  };
  LogModel sound;
  sound.files = model.files;
  sound.states = model.states;
  sound.processes = model.processes;
  sound.call_shapes = model.call_shapes;
  sound.torch = model.torch;
  sound.unknown = model.unknown;
  sound.coverage = model.coverage;
  for (const Fact& fact : model.facts) {
    if (!is_believed(fact)) continue;
    sound.facts_of_kind[static_cast<size_t>(fact.kind)].push_back(static_cast<uint32_t>(sound.facts.size()));
    sound.facts.push_back(fact);
  }
  std::vector<uint32_t> row_of(model.comms.size(), kNobody);
  for (size_t row = 0; row < model.comms.size(); ++row) {
    const CommPart& part = model.comms[row];
    if (is_of_damaged(part.first.file)) continue;
    row_of[row] = static_cast<uint32_t>(sound.comms.size());
    sound.comms.push_back(part);
  }
  for (const Connection& row : model.connections) {
    if (is_of_damaged(row.first.file)) continue;
    sound.connections.push_back(row);
    if (row.comm != kNobody) sound.connections.back().comm = row_of[row.comm];
  }
  std::copy_if(model.topology.begin(), model.topology.end(), std::back_inserter(sound.topology),
               [&](const auto& device) { return !is_of_damaged(device.first.file); });
  return sound;
}

}  // namespace lockstep::analysis::log_rules
